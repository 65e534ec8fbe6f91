// Package wire holds the messages between portal and agent and their version,
// and nothing else: no transport, no clock, no I/O. The agent serves these as
// JSON over plain HTTP inside the link it dialled; the portal is the client.
//
//	GET  /v1/state                 → State: who the node is and what it holds now
//	PUT  /v1/desired               Desired → State: the node's whole desired state; an older generation is refused (409)
//	GET  /v1/events?after=N        → a stream of Event lines (NDJSON), journalled facts that cost money; N is acknowledged
//	GET  /v1/samples               → a stream of Tick lines (NDJSON), one a second
//	POST /v1/instances/{id}/exec   Upgrade: berth-terminal; see TerminalProtocol
//	GET  /v1/instances/{id}/logs   ?run=&tail= → text/plain; tail in bytes from the end, absent: all that is kept
//
// On the portal's side stand POST JoinPath (JoinRequest → JoinResponse), GET
// ChallengePath with NodeHeader (→ ChallengeResponse) and GET LinkPath, upgraded
// to a WebSocket that carries yamux in binary messages: the portal is the yamux
// client and opens the streams. 401 or 410 there mean that the node is unknown.
// Errors on the agent's side are RFC 9457 problems.
package wire

// Version is the protocol version both sides send in VersionHeader. A minor release
// that adds fields raises it by one; both sides ignore what they do not know, so
// that neighbours understand each other.
const Version = 1

// Understands tells whether the two sides of a link may be of these versions: one
// apart at most, in either direction.
func Understands(theirs int) bool { return theirs >= Version-1 && theirs <= Version+1 && theirs > 0 }

// Headers and paths of the link and the join exchange on the portal's side.
const (
	VersionHeader   = "Berth-Wire-Version"
	NodeHeader      = "Berth-Node"
	BootHeader      = "Berth-Boot"      // which boot of which host dials: tells a copied key from a new connection
	ChallengeHeader = "Berth-Challenge" // as handed out by ChallengePath
	SignatureHeader = "Berth-Signature" // base64(ed25519(challenge + "\n" + channel))
	JoinPath        = "/agent/v1/join"
	ChallengePath   = "/agent/v1/challenge"
	LinkPath        = "/agent/v1/link" // WebSocket; ?channel=control|bulk
)

// Channel is one of the two WebSockets of a link.
type Channel string

// The two channels: a wide window on control would make every keystroke wait.
const (
	Control Channel = "control" // desired state, events, samples, terminals; yamux window 256 KiB
	Bulk    Channel = "bulk"    // files, logs, ports; yamux window 4 MiB
)

// Window is the yamux stream window of the channel, in bytes.
func (c Channel) Window() uint32 {
	if c == Bulk {
		return 4 << 20
	}
	return 256 << 10
}

// JoinRequest is posted once with a one-time token; the node made its own key.
type JoinRequest struct {
	Token     string `json:"token"`
	Name      string `json:"name"`       // what the operator calls the node; the portal makes it unique
	PublicKey []byte `json:"public_key"` // ed25519, 32 bytes
	Version   int    `json:"version"`
}

// JoinResponse names the node; the token is dead from here on.
type JoinResponse struct {
	NodeID string `json:"node_id"`
	Name   string `json:"name"`
}

// ChallengeResponse is what a node signs to open a link. It expires in a minute.
type ChallengeResponse struct {
	Challenge string `json:"challenge"`
}

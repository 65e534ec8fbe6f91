package server

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/hashicorp/yamux"
	"github.com/labstack/echo/v4"

	"berth/fleet"
	"berth/models"
	"berth/tunnel"
	"berth/wire"
)

// challengeLife is how long a node has to sign its challenge.
const challengeLife = time.Minute

// links holds the connections that nodes dialled to this portal. A node's newest
// connection of a channel replaces the one before.
type links struct {
	fleet  *fleet.Service
	secret []byte // signs challenges, so that none has to be remembered
	log    *slog.Logger
	ctx    context.Context // ends with the server

	mu    sync.Mutex
	nodes map[models.NodeID]map[wire.Channel]*nodeChannel
	open  sync.WaitGroup
}

// count returns how many nodes are linked on each channel.
func (l *links) count() map[wire.Channel]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[wire.Channel]int{wire.Control: 0, wire.Bulk: 0}
	for _, channels := range l.nodes {
		for channel := range channels {
			out[channel]++
		}
	}
	return out
}

// nodeChannel is one live connection with an HTTP client inside it.
type nodeChannel struct {
	session *yamux.Session
	http    *http.Client
	boot    string // of the host it comes from
}

func newLinks(ctx context.Context, f *fleet.Service, secret []byte, log *slog.Logger) *links {
	return &links{fleet: f, secret: secret, log: log, ctx: ctx, nodes: map[models.NodeID]map[wire.Channel]*nodeChannel{}}
}

// join handles POST wire.JoinPath: a one-time token for an identity.
func (l *links) join(c echo.Context) error {
	var req wire.JoinRequest
	if err := c.Bind(&req); err != nil {
		return err
	}
	answer, err := l.fleet.Join(c.Request().Context(), req, models.At(time.Now()))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, answer)
}

// challenge handles GET wire.ChallengePath: something to sign, good for a minute.
func (l *links) challenge(c echo.Context) error {
	return c.JSON(http.StatusOK, wire.ChallengeResponse{Challenge: l.makeChallenge(c.Request().Header.Get(wire.NodeHeader), time.Now())})
}

func (l *links) makeChallenge(node string, at time.Time) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(at.Unix()))
	return base64.RawURLEncoding.EncodeToString(append(b, l.challengeMAC(b, node)...))
}

func (l *links) challengeMAC(stamp []byte, node string) []byte {
	mac := hmac.New(sha256.New, l.secret)
	mac.Write(stamp)
	mac.Write([]byte(node))
	return mac.Sum(nil)
}

// fresh tells whether challenge was made here for node within challengeLife.
func (l *links) fresh(challenge, node string, at time.Time) bool {
	b, err := base64.RawURLEncoding.DecodeString(challenge)
	if err != nil || len(b) != 8+sha256.Size {
		return false
	}
	age := at.Sub(time.Unix(int64(binary.BigEndian.Uint64(b)), 0))
	return subtle.ConstantTimeCompare(b[8:], l.challengeMAC(b[:8], node)) == 1 && age >= -time.Second && age < challengeLife
}

// accept handles GET wire.LinkPath: it proves the node's key, upgrades and keeps
// the channel until it ends.
func (l *links) accept(c echo.Context) error {
	r := c.Request()
	node, channel := models.NodeID(r.Header.Get(wire.NodeHeader)), wire.Channel(c.QueryParam("channel"))
	if channel != wire.Control && channel != wire.Bulk {
		return &models.Problem{Code: models.Invalid, What: "A link is opened on channel control or bulk.", Next: "Update the agent.", Fields: map[string]string{"channel": "control or bulk"}}
	}
	key, err := l.fleet.NodeKey(r.Context(), node)
	if err != nil && !models.HasCode(err, models.NotFound) {
		return err
	}
	challenge := r.Header.Get(wire.ChallengeHeader)
	signature, _ := base64.StdEncoding.DecodeString(r.Header.Get(wire.SignatureHeader))
	if err != nil || !l.fresh(challenge, string(node), time.Now()) || !ed25519.Verify(key, []byte(challenge+"\n"+string(channel)), signature) {
		return &models.Problem{Code: models.Unauthorized, What: "This node is not known here, or its key is another.", Next: "Join it again with a new token from the fleet page."}
	}
	version, _ := strconv.Atoi(r.Header.Get(wire.VersionHeader))
	if err := fleet.CheckVersion(version); err != nil {
		return err
	}
	boot := r.Header.Get(wire.BootHeader)
	if l.elsewhere(node, boot) {
		l.log.Warn("another host dials with a node's key", "node", node, "address", r.RemoteAddr)
		l.fleet.NodeDoubled(node, r.RemoteAddr, models.At(time.Now()))
		return &models.Problem{Code: models.Conflict, What: "Another host is linked with this node's key at this moment.",
			Next: "If this folder was copied: give this host an empty one and join it with a token of its own. If the other one was replaced by this: end the agent there."}
	}
	up := websocket.Upgrader{ReadBufferSize: tunnel.ReadBuffer, WriteBufferSize: tunnel.WriteBuffer, WriteBufferPool: &tunnel.WriteBuffers, HandshakeTimeout: 15 * time.Second}
	ws, err := up.Upgrade(c.Response(), r, nil)
	if err != nil {
		l.log.Warn("a node's upgrade failed", "node", node, "error", err)
		return nil // the upgrader has answered
	}
	session, err := tunnel.Client(ws, channel.Window(), l.log)
	if err != nil {
		return err
	}
	l.serve(node, channel, boot, session)
	return nil
}

// elsewhere tells whether a node is linked from another boot of a host, and alive
// there: two must never act on one node's desired state. The same host comes back
// as it likes; one that was restarted, as soon as its old connection has died.
func (l *links) elsewhere(node models.NodeID, boot string) bool {
	l.mu.Lock()
	var others []*nodeChannel
	for _, ch := range l.nodes[node] {
		if ch.boot != boot {
			others = append(others, ch)
		}
	}
	l.mu.Unlock()
	for _, ch := range others {
		if _, err := ch.session.Ping(); err == nil {
			return true
		}
		ch.session.Close()
	}
	return false
}

// serve keeps a channel until it ends, and the node's conversation on control.
func (l *links) serve(node models.NodeID, channel wire.Channel, boot string, session *yamux.Session) {
	l.open.Add(1)
	defer l.open.Done()
	stop := context.AfterFunc(l.ctx, func() { session.Close() })
	defer stop()
	transport := &http.Transport{
		DialContext:         func(context.Context, string, string) (net.Conn, error) { return session.Open() },
		MaxIdleConnsPerHost: 4,
		IdleConnTimeout:     30 * time.Second,
		DisableCompression:  true,
	}
	defer transport.CloseIdleConnections()
	mine := &nodeChannel{session: session, http: &http.Client{Transport: transport}, boot: boot}
	l.register(node, channel, mine)
	log := l.log.With("node", node, "channel", channel)
	log.Info("node linked")
	if channel == wire.Control {
		err := converse(l.ctx, l.fleet, node, mine, log)
		log.Info("node's conversation ended", "why", err)
	}
	<-session.CloseChan()
	if l.unregister(node, channel, mine) && channel == wire.Control {
		if err := l.fleet.NodeDisconnected(context.WithoutCancel(l.ctx), node, models.At(time.Now())); err != nil {
			log.Error("note a node's absence", "error", err)
		}
	}
}

func (l *links) register(node models.NodeID, channel wire.Channel, mine *nodeChannel) {
	l.mu.Lock()
	old := l.nodes[node][channel]
	if l.nodes[node] == nil {
		l.nodes[node] = map[wire.Channel]*nodeChannel{}
	}
	l.nodes[node][channel] = mine
	l.mu.Unlock()
	if old != nil {
		old.session.Close()
	}
}

// unregister tells whether mine was still the node's channel.
func (l *links) unregister(node models.NodeID, channel wire.Channel, mine *nodeChannel) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.nodes[node][channel] != mine {
		return false
	}
	delete(l.nodes[node], channel)
	return true
}

// channel returns a node's connection, or a Problem that says the node is away.
func (l *links) channel(node models.NodeID, channel wire.Channel) (*nodeChannel, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ch := l.nodes[node][channel]; ch != nil {
		return ch, nil
	}
	return nil, &models.Problem{Code: models.Unavailable, What: "The node of this instance is not connected right now.", Next: "The instance goes on; try again in a minute."}
}

// wait returns when the last channel has ended; the server's context ends them.
func (l *links) wait() { l.open.Wait() }

package agent

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"berth/wire"
)

// Identity is who a node is to its portal. The private key stands beside it in
// the folder and never leaves the node.
type Identity struct {
	NodeID    string `json:"node_id"`
	Name      string `json:"name"`
	PortalURL string `json:"portal_url"`
}

const (
	identityFile = "node.json"
	keyFile      = "node.key"
	nextKeyFile  = "node.key.next" // of a Rejoin that the portal has not answered yet
)

// ErrOtherPortal is returned by Join for a folder that belongs to another portal.
var ErrOtherPortal = errors.New("it belongs to another portal: give this node a folder of its own, or leave that one")

// ErrRefused is in the error of a join that the portal answered with a "no", such as
// to a token that was used.
var ErrRefused = errors.New("refused by the portal")

// LoadIdentity returns the identity kept in dir; false when the folder has not
// joined a portal yet.
func LoadIdentity(dir string) (Identity, bool, error) {
	var id Identity
	if err := readJSON(filepath.Join(dir, identityFile), &id); err != nil {
		return Identity{}, false, err
	}
	return id, id.NodeID != "", nil
}

// Join makes the node's key in dir, registers it at the portal with a one-time
// token and keeps the identity it is given. A folder that has already joined
// this portal is left as it is and the token stays unused; one that belongs to
// another portal is an error. A join that failed half-way may be repeated.
func Join(ctx context.Context, portalURL, token, name, dir string) (Identity, error) {
	portal, err := portalBase(portalURL)
	if err != nil {
		return Identity{}, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Identity{}, err
	}
	if id, joined, err := LoadIdentity(dir); err != nil || joined {
		if joined && id.PortalURL != portal {
			return Identity{}, fmt.Errorf("%s is node %s of %s: %w", dir, id.Name, id.PortalURL, ErrOtherPortal)
		}
		return id, err
	}
	key, err := loadKey(filepath.Join(dir, keyFile))
	if err != nil {
		return Identity{}, err
	}
	id, err := register(ctx, portal, token, name, key)
	if err != nil {
		return Identity{}, err
	}
	return id, writeJSON(filepath.Join(dir, identityFile), id)
}

// Rejoin is Join under a new key, whatever dir has joined before. It stays who it
// was until the portal has said yes: a join that fails costs it nothing. What ran
// there for the old identity is ended by the new one's portal, which does not know
// it. An agent that runs goes on as who it was until it is started again.
func Rejoin(ctx context.Context, portalURL, token, name, dir string) (Identity, error) {
	portal, err := portalBase(portalURL)
	if err != nil {
		return Identity{}, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Identity{}, err
	}
	next := filepath.Join(dir, nextKeyFile)
	key, err := loadKey(next) // kept, so that a repetition is known by it
	if err != nil {
		return Identity{}, err
	}
	id, err := register(ctx, portal, token, name, key)
	if err != nil {
		return Identity{}, err
	}
	// Killed between the two it is nobody, and joins again with another token.
	if err := os.Rename(next, filepath.Join(dir, keyFile)); err != nil {
		return Identity{}, err
	}
	return id, writeJSON(filepath.Join(dir, identityFile), id)
}

// register makes a node of key at the portal.
func register(ctx context.Context, portal, token, name string, key ed25519.PrivateKey) (Identity, error) {
	public, _ := key.Public().(ed25519.PublicKey)
	var answer wire.JoinResponse
	ask := wire.JoinRequest{Token: token, Name: name, PublicKey: public, Version: wire.Version}
	err := postJSON(ctx, portal+wire.JoinPath, ask, &answer)
	var no *refusal
	switch {
	case errors.As(err, &no) && no.text != "":
		return Identity{}, fmt.Errorf("join %s: %w (%d): %s", portal, ErrRefused, no.status, no.text)
	case err != nil:
		return Identity{}, fmt.Errorf("join %s: %w", portal, err)
	case answer.NodeID == "":
		return Identity{}, fmt.Errorf("join %s: the portal gave no node id", portal)
	}
	return Identity{NodeID: answer.NodeID, Name: answer.Name, PortalURL: portal}, nil
}

// portalBase checks the address and takes a trailing slash off it.
func portalBase(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return "", fmt.Errorf("portal address %q is not of the form https://portal.example", raw)
	}
	return strings.TrimRight(u.Scheme+"://"+u.Host+u.Path, "/"), nil
}

// loadKey returns the key in a file, making it at the first call. The file holds
// the 32-byte seed in base64, mode 0600.
func loadKey(path string) (ed25519.PrivateKey, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		seed := make([]byte, ed25519.SeedSize)
		rand.Read(seed) // never fails: it ends the program instead
		return ed25519.NewKeyFromSeed(seed), writeFile(path, []byte(base64.StdEncoding.EncodeToString(seed)+"\n"))
	}
	if err != nil {
		return nil, err
	}
	seed, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(data)))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("%s does not hold a node key: restore it, or remove it and join again (berth agent join --replace)", path)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

func postJSON(ctx context.Context, address string, ask, answer any) error {
	body, err := json.Marshal(ask)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	return fetchJSON(req, answer)
}

// fetchJSON does the request within 15 s and reads the answer; an answer of the
// 400s or 500s is a *refusal.
func fetchJSON(req *http.Request, answer any) error {
	client := http.Client{Timeout: 15 * time.Second}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return &refusal{status: resp.StatusCode, text: refusalText(body)}
	}
	return json.Unmarshal(body, answer)
}

// refusal is the portal's "no" in its own words.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string {
	if r.unknownNode() {
		return fmt.Sprintf("the portal does not know this node (%d: %s): it was removed there, or the token or key is not its own; join again with a new token", r.status, r.text)
	}
	return fmt.Sprintf("the portal answered %d: %s", r.status, r.text)
}

func (r *refusal) unknownNode() bool {
	return r.status == http.StatusUnauthorized || r.status == http.StatusGone
}

// refusalText finds the sentence in an RFC 9457 problem, else takes the start
// of the body.
func refusalText(body []byte) string {
	var problem struct{ Detail, Next string }
	if json.Unmarshal(body, &problem) == nil && problem.Detail != "" {
		return strings.TrimSpace(problem.Detail + " " + problem.Next)
	}
	text := strings.TrimSpace(string(body))
	if len(text) > 200 {
		text = text[:200]
	}
	return strings.ToValidUTF8(text, "")
}

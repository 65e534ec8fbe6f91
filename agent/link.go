package agent

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/hashicorp/yamux"

	"berth/tunnel"
	"berth/wire"
)

// link keeps the two channels to the portal open. The agent dials, so a node
// needs no inbound port; then the portal opens streams inside and the agent
// answers plain HTTP on them.
type link struct {
	portal  string
	nodeID  string
	bootID  string
	key     ed25519.PrivateKey
	handler http.Handler
	log     *slog.Logger
	opened  func(wire.Channel) // a new connection of the channel is up
}

// run keeps one channel open until ctx ends. The channels know nothing of each
// other: either may be away.
func (l *link) run(ctx context.Context, channel wire.Channel) {
	var wait backoff
	log := l.log.With("channel", channel)
	for ctx.Err() == nil {
		conn, err := l.dial(ctx, channel)
		lived := time.Duration(0)
		if err == nil {
			log.Info("linked to the portal", "portal", l.portal)
			started := time.Now()
			err = l.serve(ctx, conn, channel)
			lived = time.Since(started)
		}
		if ctx.Err() != nil {
			return
		}
		pause := wait.next(lived)
		var no *refusal
		if errors.As(err, &no) && no.unknownNode() {
			log.Error("refused by the portal", "portal", l.portal, "error", err, "retry_in", pause)
		} else {
			log.Warn("no link to the portal", "portal", l.portal, "error", err, "lived", lived, "retry_in", pause)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// dial fetches a challenge, signs it for this channel and opens the WebSocket.
func (l *link) dial(ctx context.Context, channel wire.Channel) (*websocket.Conn, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.portal+wire.ChallengePath, nil)
	if err != nil {
		return nil, err
	}
	version := strconv.Itoa(wire.Version)
	req.Header.Set(wire.NodeHeader, l.nodeID)
	req.Header.Set(wire.VersionHeader, version)
	var answer wire.ChallengeResponse
	if err := fetchJSON(req, &answer); err != nil {
		return nil, err
	}
	signature := ed25519.Sign(l.key, []byte(answer.Challenge+"\n"+string(channel)))
	head := http.Header{}
	head.Set(wire.NodeHeader, l.nodeID)
	head.Set(wire.VersionHeader, version)
	head.Set(wire.BootHeader, l.bootID)
	head.Set(wire.ChallengeHeader, answer.Challenge)
	head.Set(wire.SignatureHeader, base64.StdEncoding.EncodeToString(signature))

	dialer := websocket.Dialer{
		Proxy:            http.ProxyFromEnvironment,
		HandshakeTimeout: 15 * time.Second,
		ReadBufferSize:   tunnel.ReadBuffer,
		WriteBufferSize:  tunnel.WriteBuffer,
		WriteBufferPool:  &tunnel.WriteBuffers,
	}
	address := "ws" + strings.TrimPrefix(l.portal, "http") + wire.LinkPath + "?channel=" + url.QueryEscape(string(channel))
	ws, resp, err := dialer.DialContext(ctx, address, head)
	if err == nil {
		return ws, nil
	}
	if resp != nil && errors.Is(err, websocket.ErrBadHandshake) {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10)) // gorilla keeps the first bytes only
		return nil, &refusal{status: resp.StatusCode, text: refusalText(body)}
	}
	return nil, err
}

// serve answers the portal's requests until the connection or ctx ends, and
// returns when the last of its handlers has ended.
func (l *link) serve(ctx context.Context, conn *websocket.Conn, channel wire.Channel) error {
	session, err := tunnel.Server(conn, channel.Window(), l.log)
	if err != nil {
		conn.Close()
		return err
	}
	l.opened(channel)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	handlers := gate{next: l.handler}
	server := http.Server{
		Handler:           &handlers,
		ReadHeaderTimeout: 15 * time.Second,
		IdleTimeout:       2 * time.Minute,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(l.log.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { session.Close() })
	defer stop()
	err = server.Serve(session)
	cancel()
	session.Close()
	server.Close()
	handlers.close()
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, yamux.ErrSessionShutdown) {
		err = errors.New("the connection ended")
	}
	return err
}

// gate lets requests through until it is closed, and its closing waits for the
// last of them. http.Server does not wait for those that took their connection.
type gate struct {
	next http.Handler

	mu     sync.Mutex
	closed bool
	inside sync.WaitGroup
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return
	}
	g.inside.Add(1)
	g.mu.Unlock()
	defer g.inside.Done()
	g.next.ServeHTTP(w, r)
}

func (g *gate) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.inside.Wait()
}

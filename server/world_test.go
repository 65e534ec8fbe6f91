package server

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/billing"
	"berth/billing/stripe"
	"berth/billing/stripedouble"
	"berth/fleet"
	"berth/gpu"
	"berth/models"
	"berth/models/store"
	"berth/wire"
)

// patience bounds every wait; it only matters when a test fails.
const patience = 30 * time.Second

// world is a portal on a real SQLite file, listening on a real port, with the
// payment double on another.
type world struct {
	*testing.T
	server  *Server
	store   *store.Store
	fleet   *fleet.Service
	billing *billing.Service
	double  *stripedouble.Server
	url     string // of the portal
	log     *lockedBuffer
}

// lockedBuffer collects the log.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

const webhookSecret = "whsec_berth_server_test"

// newWorld starts a portal; change may alter its configuration.
func newWorld(t *testing.T, change ...func(*Config)) *world {
	t.Helper()
	w := &world{T: t, log: &lockedBuffer{}}
	log := slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	portal, pay := w.listen(), w.listen()
	w.url = "http://" + portal.Addr().String()
	payURL := "http://" + pay.Addr().String()
	var err error
	dir := t.TempDir()
	w.double, err = stripedouble.New(stripedouble.Config{Dir: filepath.Join(dir, "double"), SecretKey: "sk_test_berth_server", WebhookSecret: webhookSecret,
		WebhookURL: w.url + webhookPath, PublicURL: payURL})
	w.must(err)
	gateway, err := stripe.New(stripe.Config{Key: "sk_test_berth_server", WebhookSecrets: []string{webhookSecret}, BaseURL: payURL}, log)
	w.must(err)
	w.store, err = store.Open(context.Background(), filepath.Join(dir, "berth.db"))
	w.must(err)
	w.billing = billing.New(w.store, gateway, billing.Config{TestPayments: true}, log)
	w.fleet = fleet.New(w.store, w.billing, fleet.Config{}, log)
	cfg := Config{Store: w.store, Billing: w.billing, Fleet: w.fleet, Log: log, CheckoutOrigin: payURL, Version: "test"}
	for _, f := range change {
		f(&cfg)
	}
	w.server, err = New(cfg)
	w.must(err)

	ctx, cancel := context.WithCancel(context.Background())
	double := &http.Server{Handler: w.double}
	var parts sync.WaitGroup
	parts.Go(func() { _ = double.Serve(pay) })
	parts.Go(func() { _ = w.double.Run(ctx) })
	parts.Go(func() { _ = w.billing.Run(ctx) })
	parts.Go(func() {
		if err := w.server.Serve(ctx, portal); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		_ = double.Close()
		parts.Wait()
		w.must(w.double.Close())
		w.must(w.store.Close())
	})
	return w
}

func (w *world) listen() net.Listener {
	w.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	return l
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// browser is somebody with a cookie jar who does not follow redirects.
type browser struct {
	*world
	http *http.Client
	head http.Header // sent with every request
}

func (w *world) browser() *browser {
	jar, _ := cookiejar.New(nil) // never fails
	transport := &http.Transport{}
	w.Cleanup(transport.CloseIdleConnections)
	return &browser{world: w, head: http.Header{"Accept": {"text/html"}}, http: &http.Client{Jar: jar, Transport: transport, Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// answer is what came back, read whole.
type answer struct {
	*http.Response
	body string
}

func (b *browser) do(method, path string, body io.Reader, head http.Header) answer {
	b.Helper()
	if !strings.HasPrefix(path, "http") {
		path = b.url + path
	}
	req, err := http.NewRequest(method, path, body)
	b.must(err)
	for _, h := range []http.Header{b.head, head} {
		for k, v := range h {
			req.Header[k] = v
		}
	}
	res, err := b.http.Do(req)
	b.must(err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	b.must(err)
	return answer{res, string(text)}
}

func (b *browser) get(path string) answer {
	b.Helper()
	return b.do(http.MethodGet, path, nil, nil)
}

func (b *browser) post(path string, pairs ...string) answer {
	b.Helper()
	f := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		f.Add(pairs[i], pairs[i+1])
	}
	return b.do(http.MethodPost, path, strings.NewReader(f.Encode()), http.Header{"Content-Type": {"application/x-www-form-urlencoded"}})
}

// mainPart is what a page says, without what is around it.
func mainPart(body string) string {
	if i := strings.Index(body, "<main"); i >= 0 {
		body = body[i:]
	}
	return body[:min(len(body), 3000)]
}

// wants fails unless the answer has the status and each text is in its body.
func (a answer) wants(t *testing.T, status int, texts ...string) answer {
	t.Helper()
	if a.StatusCode != status {
		t.Fatalf("%s %s: %d, not %d: %s", a.Request.Method, a.Request.URL.Path, a.StatusCode, status, mainPart(a.body))
	}
	for _, text := range texts {
		if !strings.Contains(a.body, text) {
			t.Errorf("%s %s does not say %q: %s", a.Request.Method, a.Request.URL.Path, text, mainPart(a.body))
		}
	}
	return a
}

// leadsTo fails unless the answer sends the browser on to path.
func (a answer) leadsTo(t *testing.T, path string) answer {
	t.Helper()
	a.wants(t, http.StatusSeeOther)
	if got := a.Header.Get("Location"); got != path {
		t.Fatalf("%s %s leads to %q, not %q", a.Request.Method, a.Request.URL.Path, got, path)
	}
	return a
}

const password = "correct horse battery"

// signUp makes somebody with an account and signs them in.
func (w *world) signUp(email string) *browser {
	w.Helper()
	b := w.browser()
	b.post("/signup", "name", "Ada Keel", "email", email, "password", password).leadsTo(w.T, "/")
	return b
}

// operator is the first operator, signed in.
func (w *world) operator() *browser {
	w.Helper()
	made, err := w.server.Bootstrap(context.Background(), "", false)
	w.must(err)
	b := w.browser()
	b.post("/login", "email", made.Email, "password", made.Password).leadsTo(w.T, "/")
	return b
}

// who reads the identity of an e-mail from the store.
func (w *world) who(email string) (u models.User, a models.Account) {
	w.Helper()
	w.must(w.store.View(context.Background(), func(tx *store.Tx) (err error) {
		if u, err = tx.UserByEmail(email); err != nil {
			return err
		}
		a, err = tx.HomeAccount(u.ID)
		return err
	}))
	return u, a
}

// addNode joins a node of two simulated A100s, as its link would.
func (w *world) addNode() models.NodeID {
	w.Helper()
	ctx, at := context.Background(), models.At(time.Now())
	public, _, err := ed25519.GenerateKey(rand.Reader)
	w.must(err)
	token, _, err := w.fleet.CreateJoinToken(ctx, "", at)
	w.must(err)
	joined, err := w.fleet.Join(ctx, wire.JoinRequest{Token: token, Name: "kestrel", PublicKey: public, Version: wire.Version}, at)
	w.must(err)
	state := wire.State{Version: wire.Version, AgentVersion: "test", BootID: "boot", At: time.Now(),
		Host: wire.Host{Name: "kestrel", Kernel: "Linux", MilliCPU: 64_000, MemoryMiB: 512 << 10, DiskGiB: 1000, Simulated: true, Sharing: []string{gpu.TimeShare},
			Runtime: wire.Runtime{Driver: "sandbox", Mode: "user", Images: []string{hostImage}, Ladder: []wire.Rung{{Mode: "full", Detail: "not permitted"}, {Mode: "user", Works: true}}}},
		Devices: []wire.Device{
			{UUID: "GPU-0", Index: 0, Model: "a100-80gb", Name: "NVIDIA A100-SXM4-80GB", MemoryMiB: 81920, MIG: true, Health: "ok"},
			{UUID: "GPU-1", Index: 1, Model: "a100-80gb", Name: "NVIDIA A100-SXM4-80GB", MemoryMiB: 81920, MIG: true, Health: "ok"},
		}}
	_, err = w.fleet.NodeConnected(ctx, models.NodeID(joined.NodeID), state, at)
	w.must(err)
	return models.NodeID(joined.NodeID)
}

// within polls until done, or fails with what was waited for.
func (w *world) within(what string, done func() bool) {
	w.Helper()
	deadline := time.Now().Add(patience)
	for !done() {
		if time.Now().After(deadline) {
			w.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

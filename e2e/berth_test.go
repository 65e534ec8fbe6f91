package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait for an event; it matters only on failure.
const patience = 60 * time.Second

var build struct {
	once sync.Once
	path string
	err  error
}

// binary builds berth once per test run.
func binary(t testing.TB) string {
	t.Helper()
	build.once.Do(func() {
		dir, err := os.MkdirTemp("", "berth-e2e-")
		if err != nil {
			build.err = err
			return
		}
		build.path = filepath.Join(dir, "berth")
		out, err := exec.Command("go", "build", "-o", build.path, "berth").CombinedOutput()
		if err != nil {
			build.err = fmt.Errorf("build: %w\n%s", err, out)
		}
	})
	if build.err != nil {
		t.Fatal(build.err)
	}
	return build.path
}

func TestMain(m *testing.M) {
	code := m.Run()
	if build.path != "" {
		_ = os.RemoveAll(filepath.Dir(build.path))
	}
	os.Exit(code)
}

// process is a running berth command.
type process struct {
	t      testing.TB
	name   string
	cmd    *exec.Cmd
	done   chan struct{}
	err    error
	mu     sync.Mutex
	output bytes.Buffer
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.Write(b)
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.String()
}

// start runs `berth args…` until the test ends.
func start(t testing.TB, env []string, args ...string) *process {
	t.Helper()
	return startCommand(t, env, args[0], exec.Command(binary(t), args...))
}

func startCommand(t testing.TB, env []string, name string, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, name: name, cmd: cmd, done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.terminate()
		if t.Failed() {
			t.Logf("%s said:\n%s", p.name, p.text())
		}
	})
	return p
}

// terminate ends the process by SIGTERM and waits for it.
func (p *process) terminate() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(patience):
		p.kill()
		p.t.Errorf("%s did not end on SIGTERM", p.name)
	}
}

// kill ends the process by SIGKILL and waits for it.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// until waits for what to become true, and fails the test when it does not.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !is() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, patience)
		}
		<-time.After(20 * time.Millisecond) // another process: there is no event to wait on
	}
}

// berth is a whole `berth up`, or a portal and an agent apart.
type berth struct {
	t    testing.TB
	dir  string
	base string
	up   *process // berth up, or the portal alone

	agent *process // when started apart
}

// up starts `berth up` on a free port in a fresh directory.
func up(t testing.TB, args ...string) *berth {
	t.Helper()
	b := &berth{t: t, dir: shortTempDir(t)}
	b.start(args...)
	return b
}

func (b *berth) start(args ...string) {
	b.t.Helper()
	b.up = start(b.t, nil, append([]string{"up", "--listen", "127.0.0.1:0", "--data", b.dir}, args...)...)
	until(b.t, "berth up ready", func() bool {
		select {
		case <-b.up.done:
			b.t.Fatalf("berth up ended: %v\n%s", b.up.err, b.up.text())
		default:
		}
		_, rest, ok := strings.Cut(b.up.text(), "Berth is ready: ")
		if ok {
			b.base, _, ok = strings.Cut(rest, "\n")
		}
		return ok
	})
}

// shortTempDir makes a directory whose path leaves room for socket names, and
// ends every instance in it with the test.
func shortTempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "be")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		out, err := exec.Command(binary(t), "down", "--data", dir).CombinedOutput()
		if err != nil {
			t.Errorf("berth down: %v\n%s", err, out)
		}
		if t.Failed() {
			logs, _ := filepath.Glob(filepath.Join(dir, "log", "*.log"))
			for _, l := range logs {
				b, _ := os.ReadFile(l)
				t.Logf("%s:\n%s", filepath.Base(l), tail(b, 8<<10))
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func tail(b []byte, n int) []byte { return b[max(0, len(b)-n):] }

// caller speaks the outside contract with nothing but net/http.
type caller struct {
	t     testing.TB
	base  string
	token string
	http  *http.Client
}

// signUp makes a user by the plain form and a token through the API.
func (b *berth) signUp(email string) *caller {
	b.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		b.t.Fatal(err)
	}
	c := &caller{t: b.t, base: b.base, http: &http.Client{Jar: jar, Timeout: patience}}
	res, err := c.http.PostForm(b.base+"/signup", url.Values{"name": {"Ada"}, "email": {email}, "password": {"correct horse battery"}})
	if err != nil {
		b.t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		b.t.Fatalf("sign up: %s", res.Status)
	}
	var token struct{ ID, Token string }
	c.must(http.StatusCreated, http.MethodPost, "/api/v1/tokens", map[string]any{"name": "test"}, &token)
	c.token = token.Token
	c.http.Jar = nil
	return c
}

// operatorSignIn is what berth up has printed, this once.
func (b *berth) operatorSignIn() (email, password string) {
	_, rest, _ := strings.Cut(b.up.text(), "shown this once: ")
	words := strings.Fields(rest) // address "password" password
	return words[0], words[2]
}

// operator is the caller with the token that up wrote.
func (b *berth) operator() *caller {
	b.t.Helper()
	token, err := os.ReadFile(filepath.Join(b.dir, "operator.token"))
	if err != nil {
		b.t.Fatal(err)
	}
	return &caller{t: b.t, base: b.base, token: strings.TrimSpace(string(token)), http: &http.Client{Timeout: patience}}
}

// call makes one request and decodes the JSON answer into into, if not nil.
func (c *caller) call(method, path string, body, into any, headers ...string) (int, string) {
	c.t.Helper()
	var payload io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			c.t.Fatal(err)
		}
		payload = bytes.NewReader(b)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, payload)
	if err != nil {
		c.t.Fatal(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := c.http.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	if into != nil && res.StatusCode < 300 {
		if err := json.Unmarshal(text, into); err != nil {
			c.t.Fatalf("%s %s: %v in %s", method, path, err, text)
		}
	}
	return res.StatusCode, string(text)
}

// must is call, and the status has to be as wanted.
func (c *caller) must(status int, method, path string, body, into any, headers ...string) {
	c.t.Helper()
	if got, text := c.call(method, path, body, into, headers...); got != status {
		c.t.Fatalf("%s %s: %d, want %d: %s", method, path, got, status, text)
	}
}

// The answers of the outside contract, as far as tests read them.
type (
	amount struct {
		Micros   int64  `json:"micros"`
		Currency string `json:"currency"`
	}
	instance struct {
		ID           string `json:"id"`
		Name         string `json:"name"`
		State        string `json:"state"`
		Reason       string `json:"reason"`
		SKU          string `json:"sku"`
		Seconds      int64  `json:"seconds"`
		Charged      amount `json:"charged"`
		PricePerHour amount `json:"price_per_hour"`
		Slices       []struct {
			DeviceUUID string `json:"device_uuid"`
			Profile    string `json:"profile"`
			Start      int    `json:"start"`
			Size       int    `json:"size"`
		} `json:"slices"`
	}
	walletAnswer struct {
		Balance   amount `json:"balance"`
		Held      amount `json:"held"`
		Accrued   amount `json:"accrued"`
		Available amount `json:"available"`
	}
	topup struct {
		ID          string `json:"id"`
		State       string `json:"state"`
		CheckoutURL string `json:"checkout_url"`
	}
)

// topUp pays micros into the wallet with a card at the hosted page, and waits
// for the balance.
func (c *caller) topUp(micros int64, card string) {
	c.t.Helper()
	var before, now walletAnswer
	c.must(http.StatusOK, http.MethodGet, "/api/v1/wallet", nil, &before)
	top := c.startTopUp(micros)
	c.pay(top, card)
	until(c.t, "the balance to show the payment", func() bool {
		c.must(http.StatusOK, http.MethodGet, "/api/v1/wallet", nil, &now)
		return now.Balance.Micros == before.Balance.Micros+micros
	})
}

func (c *caller) startTopUp(micros int64) topup {
	c.t.Helper()
	var top topup
	c.must(http.StatusCreated, http.MethodPost, "/api/v1/wallet/topups",
		map[string]any{"amount": amount{Micros: micros, Currency: "USD"}}, &top)
	return top
}

// pay posts the hosted page's plain form and returns the status of the answer.
func (c *caller) pay(top topup, card string) int {
	c.t.Helper()
	client := &http.Client{Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.PostForm(top.CheckoutURL, url.Values{"card": {card}})
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	return res.StatusCode
}

// launch launches sku and waits until it runs.
func (c *caller) launch(sku string) instance {
	c.t.Helper()
	var in instance
	c.must(http.StatusCreated, http.MethodPost, "/api/v1/instances",
		map[string]any{"sku": sku, "billing_mode": "on_demand", "image": "host system", "disk_gib": 10}, &in)
	return c.await(in.ID, "running")
}

// await waits for an instance to reach a state.
func (c *caller) await(id, state string) instance {
	c.t.Helper()
	var in instance
	until(c.t, "instance "+id+" "+state, func() bool {
		c.must(http.StatusOK, http.MethodGet, "/api/v1/instances/"+id, nil, &in)
		if in.State == "failed" && state != "failed" {
			c.t.Fatalf("instance failed: %s", in.Reason)
		}
		return in.State == state
	})
	return in
}

// decode reads a JSON answer.
func decode(t testing.TB, res *http.Response, into any) {
	t.Helper()
	if err := json.NewDecoder(res.Body).Decode(into); err != nil {
		t.Errorf("%s is not JSON: %v", res.Header.Get("Content-Type"), err)
	}
}

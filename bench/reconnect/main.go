// Reconnect measures how a fleet comes back when its portal restarts.
//
//	go run ./reconnect -agents 1000
//
// The portal is `berth serve` on SQLite in a process of its own. The agents are
// Berth's, with simulated cards, their own keys, journals and links; only their
// runtime has nothing to run, so that a thousand fit into one process. The portal
// is killed and started again on the same address after a pause. One more agent is
// a whole `berth agent` process, on which an instance is launched before and after.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"berth/agent"
	"berth/agent/device/simulator"
	"berth/agent/runtime"
	"berth/gpu"
)

func main() {
	agents := flag.Int("agents", 1000, "how many")
	away := flag.Duration("away", 5*time.Second, "between the portal's death and its return")
	flag.Parse()
	if err := run(*agents, *away); err != nil {
		fmt.Fprintln(os.Stderr, "reconnect:", err)
		os.Exit(1)
	}
}

func run(agents int, away time.Duration) error {
	dir, err := os.MkdirTemp("", "berth-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // sandboxes of other users pass through it
		return err
	}
	binary := filepath.Join(dir, "berth")
	if out, err := exec.Command("go", "build", "-C", "..", "-o", binary, ".").CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	p := &portal{binary: binary, dir: filepath.Join(dir, "portal"), listen: "127.0.0.1:0"}
	if err := p.start(); err != nil {
		return err
	}
	defer p.kill()

	ctx, cancel := context.WithCancel(context.Background())
	var fleet sync.WaitGroup
	defer fleet.Wait()
	defer cancel()
	began := time.Now()
	for i := range agents {
		a, err := idleAgent(ctx, p, filepath.Join(dir, fmt.Sprintf("node-%04d", i)), fmt.Sprintf("idle-%04d", i))
		if err != nil {
			return err
		}
		fleet.Go(func() { _ = a.Run(ctx) })
	}
	real, err := p.realAgent(filepath.Join(dir, "real"))
	if err != nil {
		return err
	}
	defer func() { _ = real.Process.Kill(); _ = real.Wait() }()
	if _, err := p.untilLinked(agents + 1); err != nil {
		return err
	}
	fmt.Printf("%d agents joined and linked one after the other in %.1f s; portal %d MiB\n", agents+1, time.Since(began).Seconds(), p.rss())
	c, err := p.signUp()
	if err != nil {
		return err
	}
	if err := c.launch(); err != nil {
		return fmt.Errorf("launch before: %w", err)
	}

	p.kill()
	time.Sleep(away)
	if err := p.start(); err != nil {
		return err
	}
	up := time.Now()
	steps, err := p.untilLinked(agents + 1)
	if err != nil {
		return err
	}
	fmt.Printf("killed, back after %s; seconds until 50, 90, 99, 100 %% of %d were linked: %.1f, %.1f, %.1f, %.1f\n",
		away, agents+1, steps[0], steps[1], steps[2], time.Since(up).Seconds())
	fmt.Printf("portal %d MiB, CPU %.1f s since its start\n", p.rss(), p.cpu())
	began = time.Now()
	if err := c.launch(); err != nil {
		return fmt.Errorf("launch afterwards: %w", err)
	}
	fmt.Printf("a launch afterwards: %.2f s to running\n", time.Since(began).Seconds())
	before := p.cpu()
	time.Sleep(10 * time.Second)
	fmt.Printf("at rest, %d agents telling each second: %.0f %% of one CPU\n", agents+1, (p.cpu()-before)*10)
	return c.end()
}

// idleAgent is an agent with one simulated card and a runtime that has nothing.
func idleAgent(ctx context.Context, p *portal, dir, name string) (*agent.Agent, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	token, err := p.token()
	if err != nil {
		return nil, err
	}
	if _, err := agent.Join(ctx, p.base, token, name, dir); err != nil {
		return nil, err
	}
	log := slog.New(slog.DiscardHandler)
	devices, err := simulator.New(dir, []gpu.ModelID{"rtx4090"}, 1, log)
	if err != nil {
		return nil, err
	}
	return agent.New(agent.Config{Dir: dir, Version: "bench", Runtime: nothing{}, Devices: devices, Log: log})
}

// nothing is a runtime without instances. Nothing is ever launched on it.
type nothing struct{ runtime.Driver }

func (nothing) Probe(context.Context) runtime.Info {
	return runtime.Info{Driver: "none", Rung: runtime.RungProcess}
}
func (nothing) List(context.Context) ([]runtime.Observed, error) { return nil, nil }
func (nothing) Watch(ctx context.Context) <-chan string          { return nil }

// portal is a `berth serve` of our own.
type portal struct {
	binary, dir, listen string
	base                string
	cmd                 *exec.Cmd
}

func (p *portal) start() error {
	p.cmd = exec.Command(p.binary, "serve", "--listen", p.listen, "--data", p.dir)
	var out lockedBuffer
	p.cmd.Stdout, p.cmd.Stderr = &out, io.Discard
	if err := p.cmd.Start(); err != nil {
		return err
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if _, rest, ok := strings.Cut(out.String(), "Portal: "); ok {
			p.base = strings.Fields(rest)[0]
			p.listen = strings.TrimPrefix(p.base, "http://")
			if res, err := http.Get(p.base + "/readyz"); err == nil {
				_ = res.Body.Close()
				if res.StatusCode == http.StatusOK {
					return nil
				}
			}
		}
	}
	return errors.New("the portal did not start")
}

func (p *portal) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

func (p *portal) operator(method, path string, into any) error {
	token, err := os.ReadFile(filepath.Join(p.dir, "operator.token"))
	if err != nil {
		return err
	}
	req, err := http.NewRequest(method, p.base+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	return answer(http.DefaultClient, req, into)
}

func (p *portal) token() (string, error) {
	var t struct{ Token string }
	err := p.operator(http.MethodPost, "/api/v1/nodes/join-tokens", &t)
	return t.Token, err
}

func (p *portal) realAgent(dir string) (*exec.Cmd, error) {
	token, err := p.token()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(p.binary, "agent", "--portal", p.base, "--token", token, "--name", "real", "--data", dir, "--simulate", "a100-80gb:1")
	return cmd, cmd.Start()
}

var linked = regexp.MustCompile(`berth_node_links\{channel="control"\} (\d+)`)

// untilLinked returns when n nodes are, with the seconds at which 50, 90 and 99 % were.
func (p *portal) untilLinked(n int) (steps [3]float64, err error) {
	began := time.Now()
	for time.Since(began) < 3*time.Minute {
		res, err := http.Get(p.base + "/metrics")
		if err != nil {
			return steps, err
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil {
			return steps, err
		}
		count := 0
		if m := linked.FindSubmatch(body); m != nil {
			count, _ = strconv.Atoi(string(m[1]))
		}
		for i, part := range []int{50, 90, 99} {
			if steps[i] == 0 && count*100 >= n*part {
				steps[i] = time.Since(began).Seconds()
			}
		}
		if count >= n {
			return steps, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return steps, fmt.Errorf("%d nodes were not linked within three minutes", n)
}

func (p *portal) rss() int {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	m := regexp.MustCompile(`VmRSS:\s+(\d+)`).FindSubmatch(raw)
	if m == nil {
		return 0
	}
	kib, _ := strconv.Atoi(string(m[1]))
	return kib / 1024
}

// cpu is the seconds of CPU that the portal has used.
func (p *portal) cpu() float64 {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	f := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.ParseFloat(f[11], 64)
	system, _ := strconv.ParseFloat(f[12], 64)
	return (user + system) / 100
}

// client is a renter with money.
type client struct {
	p        *portal
	http     *http.Client
	launched []string
}

func (p *portal) signUp() (*client, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	c := &client{p: p, http: &http.Client{Jar: jar, Timeout: time.Minute}}
	res, err := c.http.PostForm(p.base+"/signup", url.Values{"name": {"Ada"}, "email": {"ada@example.org"}, "password": {"correct horse battery"}})
	if err != nil {
		return nil, err
	}
	_ = res.Body.Close()
	var top struct {
		CheckoutURL string `json:"checkout_url"`
	}
	if err := c.call(http.MethodPost, "/api/v1/wallet/topups", `{"amount":{"micros":25000000,"currency":"USD"}}`, &top); err != nil {
		return nil, err
	}
	res, err = http.PostForm(top.CheckoutURL, url.Values{"card": {"4242424242424242"}})
	if err != nil {
		return nil, err
	}
	_ = res.Body.Close()
	return c, c.until("/api/v1/wallet", `"micros":25000000`)
}

func (c *client) call(method, path, body string, into any) error {
	req, err := http.NewRequest(method, c.p.base+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	return answer(c.http, req, into)
}

func (c *client) until(path, text string) error {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		var raw json.RawMessage
		if err := c.call(http.MethodGet, path, "", &raw); err != nil {
			return err
		}
		if bytes.Contains(raw, []byte(text)) {
			return nil
		}
	}
	return fmt.Errorf("%s never said %s", path, text)
}

func (c *client) launch() error {
	var in struct{ ID string }
	if err := c.call(http.MethodPost, "/api/v1/instances", `{"sku":"a100-80gb.1g.10gb","disk_gib":1}`, &in); err != nil {
		return err
	}
	c.launched = append(c.launched, in.ID)
	return c.until("/api/v1/instances/"+in.ID, `"state":"running"`)
}

// end terminates what was launched: instances outlive agent and portal.
func (c *client) end() error {
	for _, id := range c.launched {
		if err := c.call(http.MethodPost, "/api/v1/instances/"+id+"/terminate", "", nil); err != nil {
			return err
		}
		if err := c.until("/api/v1/instances/"+id, `"state":"terminated"`); err != nil {
			return err
		}
	}
	return nil
}

func answer(c *http.Client, req *http.Request, into any) error {
	res, err := c.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %d %s", req.Method, req.URL.Path, res.StatusCode, body)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(body, into)
}

// lockedBuffer is a bytes.Buffer for a process to write and us to read.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

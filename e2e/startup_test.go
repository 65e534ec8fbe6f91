package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// SIGTERM ends berth up and its parts; the instance goes on, and the next start
// goes on where it was.
func TestStopAndStartAgain(t *testing.T) {
	t.Parallel()
	b := up(t)
	ada := b.signUp("ada@example.org")
	ada.topUp(25_000_000, "4242424242424242")
	in := ada.launch("a100-80gb.1g.10gb")
	ws := ada.dial(in.ID, "terminal")
	command(t, ws, "kept=$((40+2)); echo kept=$kept=", "=42=")
	_ = ws.Close()
	before := ada.get(in.ID).Seconds

	b.up.terminate()
	if b.up.err != nil {
		t.Errorf("berth up ended with %v", b.up.err)
	}
	if pids := shims(t, b.dir); len(pids) != 1 {
		t.Fatalf("shims after the stop: %v", pids)
	}
	if left := parts(t, b.dir); len(left) > 0 {
		t.Fatalf("left after the stop: %v", left)
	}

	b.start()
	ada.base = b.base
	ada.await(in.ID, "running")
	until(t, "the same shell", func() bool {
		ws, _, err := ada.tryDial(in.ID, "terminal")
		if err != nil {
			return false
		}
		defer ws.Close()
		return strings.Contains(command(t, ws, "echo again=$kept=", "again=42="), "again=42=")
	})
	until(t, "the meter to go on", func() bool { return ada.get(in.ID).Seconds > before+1 })

	out, err := exec.Command(binary(t), "down", "--data", b.dir).CombinedOutput()
	if err != nil || len(shims(t, b.dir)) != 0 {
		t.Errorf("berth down: %v %s; shims %v", err, out, shims(t, b.dir))
	}
}

// parts lists portal and agent processes of a data directory.
func parts(t testing.TB, dir string) (found []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		line, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		words := strings.Split(string(line), "\x00")
		if err == nil && len(words) > 1 && (words[1] == "serve" || words[1] == "agent" || words[1] == "up") && strings.Contains(string(line), dir) {
			found = append(found, strings.Join(words, " "))
		}
	}
	return found
}

// go run passes no SIGTERM on; berth up ends with it all the same.
func TestGoRunLeavesNoOrphan(t *testing.T) {
	t.Parallel()
	dir := shortTempDir(t)
	cmd := exec.Command("go", "run", "berth", "up", "--listen", "127.0.0.1:0", "--data", dir)
	out := &process{t: t, name: "go run"}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "go run . up", func() bool { return strings.Contains(out.text(), "Berth is ready") })
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	until(t, "all parts to end", func() bool { return len(parts(t, dir)) == 0 })
}

// What cannot work is refused at the start, in words that say what to do.
func TestRefusedAtStart(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	held := shortTempDir(t)
	(&berth{t: t, dir: held}).serve("127.0.0.1:0")
	damaged := shortTempDir(t)
	if err := os.WriteFile(filepath.Join(damaged, "secrets.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		env  []string
		args []string
		want []string
	}{
		"a port in use":                           {nil, []string{"serve", "--listen", taken.Addr().String()}, []string{"is in use", "--listen"}},
		"a directory in use":                      {nil, []string{"serve", "--listen", "127.0.0.1:0", "--data", held}, []string{"in use by another berth", "--data"}},
		"no webhook secret":                       {[]string{"STRIPE_SECRET_KEY=sk_test_x"}, []string{"serve", "--listen", "127.0.0.1:0"}, []string{"STRIPE_WEBHOOK_SECRET"}},
		"an empty webhook secret":                 {[]string{"STRIPE_SECRET_KEY=sk_test_x", "STRIPE_WEBHOOK_SECRET="}, []string{"serve", "--listen", "127.0.0.1:0"}, []string{"STRIPE_WEBHOOK_SECRET"}},
		"a secret without a key":                  {[]string{"STRIPE_WEBHOOK_SECRET=whsec_x"}, []string{"serve", "--listen", "127.0.0.1:0"}, []string{"STRIPE_SECRET_KEY"}},
		"a restricted live key beside the double": {[]string{"STRIPE_SECRET_KEY= rk_live_x", "STRIPE_WEBHOOK_SECRET=whsec_x"}, []string{"serve", "--listen", "127.0.0.1:0", "--test-payments"}, []string{"live", "--test-payments"}},
		"a live key beside the double":            {[]string{"STRIPE_SECRET_KEY=sk_live_x", "STRIPE_WEBHOOK_SECRET=whsec_x"}, []string{"serve", "--listen", "127.0.0.1:0", "--test-payments"}, []string{"live", "--test-payments"}},
		"a live key beside the double's address":  {[]string{"STRIPE_SECRET_KEY=sk_live_x", "STRIPE_WEBHOOK_SECRET=whsec_x"}, []string{"serve", "--listen", "127.0.0.1:0", "--test-payments-listen", "127.0.0.1:0"}, []string{"live", "--test-payments"}},
		"a live key for simulated cards":          {[]string{"STRIPE_SECRET_KEY=sk_live_x", "STRIPE_WEBHOOK_SECRET=whsec_x"}, []string{"up", "--listen", "127.0.0.1:0"}, []string{"live", "simulated", "berth serve"}},
		"damaged secrets":                         {nil, []string{"serve", "--listen", "127.0.0.1:0", "--data", damaged}, []string{"secrets.json", "restore"}},
		"an unknown card":                         {nil, []string{"up", "--simulate", "a100-90gb:1"}, []string{"a100-90gb", "--simulate"}},
		"too many cards":                          {nil, []string{"up", "--simulate", "a100-80gb:0"}, []string{"--simulate"}},
		"an unknown currency":                     {nil, []string{"serve", "--listen", "127.0.0.1:0", "--currency", "XXX"}, []string{"XXX"}},
		"a base address with a path":              {nil, []string{"serve", "--listen", "127.0.0.1:0", "--base-url", "https://x.example/y"}, []string{"https://x.example/y"}},
		"an agent that never joined":              {nil, []string{"agent", "--simulate", "a100-80gb:1"}, []string{"has not joined", "--token"}},
		"a flag from the environment":             {[]string{"BERTH_LISTEN=nonsense"}, []string{"serve"}, []string{"--listen"}},
	} {
		t.Run(name, func(t *testing.T) {
			args := tc.args
			if !strings.Contains(strings.Join(args, " "), "--data") {
				args = append(args, "--data", shortTempDir(t))
			}
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, binary(t), args...)
			cmd.Env = append(os.Environ(), tc.env...)
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Fatalf("it started: %s", out)
			}
			for _, want := range tc.want {
				if !strings.Contains(string(out), want) {
					t.Errorf("%q is missing in: %s", want, out)
				}
			}
		})
	}
}

// Bodies that are wrong in every way are refused as problems that say what and
// what next, and nothing changes.
func TestBadBodies(t *testing.T) {
	t.Parallel()
	b := up(t)
	ada := b.signUp("ada@example.org")
	ada.topUp(25_000_000, "4242424242424242")
	big := strings.Repeat("x", 2<<20)
	for name, tc := range map[string]struct {
		path, body string
		status     int
		field      string
	}{
		"not JSON":              {"instances", `{`, 400, ""},
		"a list":                {"instances", `[]`, 422, ""},
		"a number for a SKU":    {"instances", `{"sku":7}`, 422, "sku"},
		"no SKU":                {"instances", `{}`, 422, "sku"},
		"an unknown SKU":        {"instances", `{"sku":"h900"}`, 422, "sku"},
		"a negative disk":       {"instances", `{"sku":"a100-80gb.1g.10gb","disk_gib":-1}`, 422, "disk_gib"},
		"a disk beyond numbers": {"instances", `{"sku":"a100-80gb.1g.10gb","disk_gib":9223372036854775807}`, 422, "disk_gib"},
		"privileged":            {"instances", `{"sku":"a100-80gb.1g.10gb","privileged":true}`, 422, "privileged"},
		"devices":               {"instances", `{"sku":"a100-80gb.1g.10gb","devices":["/dev/nvidia0"]}`, 422, "devices"},
		"mounts":                {"instances", `{"sku":"a100-80gb.1g.10gb","mounts":["/var/run/docker.sock"]}`, 422, "mounts"},
		"a name of 10,000":      {"instances", `{"sku":"a100-80gb.1g.10gb","name":"` + strings.Repeat("a", 10_000) + `"}`, 422, "name"},
		"a name with a script":  {"instances", `{"sku":"a100-80gb.1g.10gb","name":"<script>"}`, 422, "name"},
		"an unknown mode":       {"instances", `{"sku":"a100-80gb.1g.10gb","billing_mode":"spot"}`, 422, "billing_mode"},
		"bad UTF-8":             {"instances", "{\"sku\":\"\xff\"}", 0, ""},
		"two megabytes":         {"instances", `{"sku":"` + big + `"}`, 413, ""},
		"a negative top-up":     {"wallet/topups", `{"amount":{"micros":-5000000,"currency":"USD"}}`, 422, "amount"},
		"too small a top-up":    {"wallet/topups", `{"amount":{"micros":1,"currency":"USD"}}`, 422, "amount"},
		"too large a top-up":    {"wallet/topups", `{"amount":{"micros":9223372036854775807,"currency":"USD"}}`, 422, "amount"},
		"beyond 64 bits":        {"wallet/topups", `{"amount":{"micros":92233720368547758070,"currency":"USD"}}`, 422, ""},
		"another currency":      {"wallet/topups", `{"amount":{"micros":5000000,"currency":"JPY"}}`, 422, "amount.currency"},
		"a fraction":            {"wallet/topups", `{"amount":{"micros":5000000.5,"currency":"USD"}}`, 422, ""},
		"a token without name":  {"tokens", `{"name":""}`, 422, "name"},
		"a token of a page":     {"tokens", `{"name":"` + strings.Repeat("n", 100_000) + `"}`, 422, "name"},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequest(http.MethodPost, b.base+"/api/v1/"+tc.path, strings.NewReader(tc.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+ada.token)
			req.Header.Set("Content-Type", "application/json")
			refusal(t, req, tc.status, tc.field)
		})
	}
	for name, header := range map[string][2]string{
		"a form":                          {"Content-Type", "application/x-www-form-urlencoded"},
		"another site's page":             {"Sec-Fetch-Site", "cross-site"},
		"another origin":                  {"Origin", "https://evil.example"},
		"an origin that begins like ours": {"Origin", b.base + ".evil.example"},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequest(http.MethodPost, b.base+"/api/v1/tokens", strings.NewReader(`{"name":"x"}`))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+ada.token)
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set(header[0], header[1])
			if res := refusal(t, req, 0, ""); res.Header.Get("Access-Control-Allow-Origin") != "" {
				t.Error("an origin is allowed")
			}
		})
	}
	order := map[string]any{"sku": "a100-80gb.1g.10gb"}
	var in instance
	ada.must(http.StatusCreated, http.MethodPost, "/api/v1/instances", order, &in, "Idempotency-Key", "k")
	order["disk_gib"] = 33
	if status, text := ada.call(http.MethodPost, "/api/v1/instances", order, nil, "Idempotency-Key", "k"); status != http.StatusConflict || !strings.Contains(text, "idempotency_reused") {
		t.Errorf("a key with another body: %d %s", status, text)
	}
	var list struct{ Items []instance }
	ada.must(http.StatusOK, http.MethodGet, "/api/v1/instances", nil, &list)
	if len(list.Items) != 1 || ada.balance() != 25_000_000 {
		t.Errorf("%d instances, balance %d", len(list.Items), ada.balance())
	}
}

// refusal wants a 4xx problem with code, detail and next, naming field; status 0
// is any 4xx.
func refusal(t *testing.T, req *http.Request, status int, field string) *http.Response {
	t.Helper()
	c := &caller{t: t, http: &http.Client{Timeout: 20 * time.Second}}
	res, err := c.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var p struct {
		Code, Detail, Next string
		Fields             map[string]string
	}
	decode(t, res, &p)
	if res.StatusCode < 400 || res.StatusCode >= 500 || status != 0 && res.StatusCode != status {
		t.Errorf("%d, want %d: %+v", res.StatusCode, status, p)
	}
	if p.Code == "" || p.Detail == "" || p.Next == "" {
		t.Errorf("a problem without code, detail or next: %+v", p)
	}
	if field != "" && p.Fields[field] == "" {
		t.Errorf("field %s is not named: %+v", field, p.Fields)
	}
	return res
}

// The portal of `berth up` is killed. It comes back where it was, also when the
// port was the system's choice, and the agent finds it.
func TestUpBringsItsPortalBack(t *testing.T) {
	t.Parallel()
	b := up(t)
	ada := b.signUp("ada@example.org")
	killed := 0
	for _, pid := range group(t, b.up.cmd.Process.Pid) {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.Contains(string(line), "\x00serve\x00") {
			killed = pid
		}
	}
	if killed == 0 {
		t.Fatal("no portal among the children")
	}
	if err := syscall.Kill(killed, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, "the portal where it was, with its node", func() bool {
		var offers struct{ Items []struct{ Available int } }
		status, _ := ada.call(http.MethodGet, "/api/v1/offers?sku=h100-80gb", nil, &offers)
		nodes, _ := b.operator().call(http.MethodGet, "/api/v1/nodes", nil, nil)
		return status == http.StatusOK && nodes == http.StatusOK && len(offers.Items) == 1 && offers.Items[0].Available == 1
	})
	ada.topUp(5_000_000, "4242424242424242")
	ada.launch("h100-80gb")
}

// berth down ends instances for their renters, too: they find them stopped, not
// failed, with their disks.
func TestDownStopsInstances(t *testing.T) {
	t.Parallel()
	b := up(t)
	ada := b.signUp("ada@example.org")
	ada.topUp(25_000_000, "4242424242424242")
	in := ada.launch("a100-80gb.1g.10gb")
	b.up.terminate()
	if out, err := exec.Command(binary(t), "down", "--data", b.dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b.start()
	ada.base = b.base
	stopped := ada.await(in.ID, "stopped")
	if stopped.Reason != "asked" {
		t.Errorf("reason %q", stopped.Reason)
	}
	ada.must(http.StatusAccepted, http.MethodPost, "/api/v1/instances/"+in.ID+"/start", nil, nil)
	ada.await(in.ID, "running")
}

// What was paid with test cards is never spent as real money: a live key is
// refused on a database that has test payments.
func TestTestMoneyStaysTestMoney(t *testing.T) {
	t.Parallel()
	b := up(t)
	b.signUp("ada@example.org").topUp(5_000_000, "4242424242424242")
	b.up.terminate()
	cmd := exec.Command(binary(t), "serve", "--listen", "127.0.0.1:0", "--data", b.dir)
	cmd.Env = append(os.Environ(), "STRIPE_SECRET_KEY=sk_live_x", "STRIPE_WEBHOOK_SECRET=whsec_x")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "test money would be spent as real") || !strings.Contains(string(out), "→") {
		t.Errorf("%v: %s", err, out)
	}
	b.start()
}

package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A node's folder is copied to another host: the second is refused as long as the
// first is alive, is told what to do, and the operator sees it. Were the first to
// die, the second takes its place.
func TestCopiedKey(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: another host is another boot id")
	}
	if out, err := exec.Command("unshare", "-m", "true").CombinedOutput(); err != nil {
		t.Skipf("needs a mount namespace: %v %s", err, out)
	}
	t.Parallel()
	p := apart(t)
	copied := filepath.Join(p.dir, "copy")
	if out, err := exec.Command("cp", "-r", filepath.Join(p.dir, "agent"), copied).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	first := p.agent
	second := onAnotherHost(t, filepath.Join(p.dir, "boot_id"), 7, binary(t), "agent", "--data", copied, "--simulate", "a100-80gb:1")
	until(t, "the second to be refused", func() bool {
		return strings.Contains(second.text(), "Another host is linked with this node") && strings.Contains(second.text(), "give this host an empty one")
	})
	if strings.Contains(second.text(), "linked to the portal") {
		t.Error("two hosts acted on one node's desired state")
	}
	until(t, "the operator to be told", func() bool {
		_, page := p.operator().call(http.MethodGet, "/fleet", nil, nil, "Accept", "text/html")
		return strings.Contains(page, "Key in use twice")
	})
	ada := p.signUp("ada@example.org")
	ada.topUp(25_000_000, "4242424242424242")
	ada.launch("a100-80gb.1g.10gb") // the first goes on
	first.kill()
	until(t, "the second to take its place", func() bool { return strings.Contains(second.text(), "linked to the portal") })
}

// What speaks another version of the protocol is told which side to update.
func TestAgentFromTheFuture(t *testing.T) {
	t.Parallel()
	p := &berth{t: t, dir: shortTempDir(t)}
	p.serve("127.0.0.1:0")
	var join struct{ Token string }
	p.operator().must(http.StatusCreated, http.MethodPost, "/api/v1/nodes/join-tokens", nil, &join)
	key := "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	for version, says := range map[int]string{9: "Update this portal first", 0: "Update the agent on the node"} {
		status, text := p.operator().call(http.MethodPost, "/agent/v1/join", map[string]any{"token": join.Token, "name": "x", "public_key": key, "version": version}, nil)
		if status != http.StatusConflict || !strings.Contains(text, says) {
			t.Errorf("version %d: %d %s", version, status, text)
		}
	}
	// The token is not used up by that; the next release of the protocol may join.
	if status, text := p.operator().call(http.MethodPost, "/agent/v1/join", map[string]any{"token": join.Token, "name": "x", "public_key": key, "version": 2}, nil); status != http.StatusCreated {
		t.Errorf("a neighbouring version: %d %s", status, text)
	}
}

// The line of the fleet page, on a host: repeated, with a used token, at another
// portal, at one that is away; and what doctor says before and after.
func TestJoinAndDoctor(t *testing.T) {
	t.Parallel()
	p := apart(t)
	other := &berth{t: t, dir: shortTempDir(t)}
	other.serve("127.0.0.1:0")
	data := filepath.Join(p.dir, "agent")
	run := func(args ...string) (string, bool) {
		if args[0] == "join" {
			args = append(args, "--no-service", "--simulate", "a100-80gb:1")
		}
		out, err := exec.Command(binary(t), append([]string{"agent"}, args...)...).CombinedOutput()
		return string(out), err == nil
	}
	token := func(b *berth) string {
		var join struct{ Token string }
		b.operator().must(http.StatusCreated, http.MethodPost, "/api/v1/nodes/join-tokens", nil, &join)
		return join.Token
	}
	spare := token(p)
	if out, ok := run("join", p.base, "--token", spare, "--data", data); !ok || !strings.Contains(out, "already; no token was used") {
		t.Errorf("repeated: %s", out)
	}
	fresh := filepath.Join(p.dir, "fresh")
	if out, ok := run("join", p.base, "--token", spare, "--data", fresh, "--name", "second"); !ok || !strings.Contains(out, "as node second") {
		t.Errorf("the token that was spared: %s", out)
	}
	for name, tc := range map[string]struct {
		args []string
		says []string
	}{
		"used":           {[]string{p.base, "--token", spare, "--data", filepath.Join(p.dir, "third")}, []string{"was used before", "fleet page"}},
		"made up":        {[]string{p.base, "--token", "nonsense", "--data", filepath.Join(p.dir, "third")}, []string{"no such join token", "fleet page"}},
		"another portal": {[]string{other.base, "--token", token(other), "--data", data}, []string{"belongs to another portal", "--replace"}},
		"away":           {[]string{"http://127.0.0.1:1", "--token", "x", "--data", filepath.Join(p.dir, "third")}, []string{"refused", "berth agent doctor"}},
		"no address":     {[]string{"berth.example", "--token", "x", "--data", filepath.Join(p.dir, "third")}, []string{"https://portal.example"}},
		"no token":       {[]string{p.base, "--data", filepath.Join(p.dir, "third")}, []string{"token is needed", "fleet page"}},
	} {
		out, ok := run(append([]string{"join"}, tc.args...)...)
		for _, text := range tc.says {
			if ok || !strings.Contains(out, text) {
				t.Errorf("%s: %q is not in %s", name, text, out)
			}
		}
	}
	cardless := filepath.Join(p.dir, "cardless")
	kept := token(p)
	if out, err := exec.Command(binary(t), "agent", "join", p.base, "--token", kept, "--data", cardless, "--no-service").CombinedOutput(); err == nil || !strings.Contains(string(out), "--simulate") {
		t.Errorf("without cards: %v %s", err, out)
	}
	if out, ok := run("join", p.base, "--token", kept, "--data", cardless); !ok {
		t.Errorf("the token was spent on a host without cards: %s", out)
	}
	for _, address := range []string{"http://127.0.0.1:1", other.base} { // away, and no such token there
		if out, ok := run("join", address, "--token", "bjt_no", "--data", fresh, "--replace"); ok || strings.Contains(out, "does not know this node") {
			t.Errorf("leaving for %s: %s", address, out)
		}
		if out, ok := run("join", p.base, "--data", fresh); !ok || !strings.Contains(out, "is node second of "+p.base+" already") {
			t.Errorf("it left its portal for nothing: %s", out)
		}
	}
	if out, ok := run("join", other.base, "--token", token(other), "--data", fresh, "--replace"); !ok || !strings.Contains(out, "Joined "+other.base) {
		t.Errorf("leaving: %s", out)
	}

	out, ok := run("doctor", "--data", data, "--simulate", "a100-80gb:1")
	if !ok || !strings.Contains(out, "simulated cards") || !strings.Contains(out, "answers in") || !strings.Contains(out, "isolation") {
		t.Errorf("doctor: %s", out)
	}
	var checks []struct{ Name, State, Seen, Next string }
	asJSON, err := exec.Command(binary(t), "agent", "doctor", "--data", data, "--portal", "http://127.0.0.1:1", "--json").Output()
	if err == nil || json.Unmarshal(asJSON, &checks) != nil || len(checks) < 5 {
		t.Fatalf("doctor --json: %v %s", err, asJSON)
	}
	for _, c := range checks {
		if c.Name == "portal" && (c.State != "problem" || c.Next == "") {
			t.Errorf("%+v", c)
		}
	}
}

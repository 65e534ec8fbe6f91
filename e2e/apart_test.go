package e2e

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// apart starts a portal and an agent that each can be killed alone.
func apart(t testing.TB, agentArgs ...string) *berth {
	t.Helper()
	p := &berth{t: t, dir: shortTempDir(t)}
	p.serve("127.0.0.1:0")
	p.join(agentArgs...)
	return p
}

// join starts the agent, the first time by the command that the portal shows.
func (p *berth) join(args ...string) {
	t := p.t
	t.Helper()
	var join struct{ Command string }
	p.operator().must(http.StatusCreated, http.MethodPost, "/api/v1/nodes/join-tokens", nil, &join)
	shown := strings.Fields(join.Command)[1:] // without the program's name
	if len(args) == 0 {
		args = []string{"--simulate", "a100-80gb:1"}
	}
	data := []string{"--data", filepath.Join(p.dir, "agent")}
	out, err := exec.Command(binary(t), slices.Concat(shown, data, args, []string{"--name", "harbour", "--no-service"})...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "as node harbour.") || !strings.Contains(string(out), "agent --data "+data[1]) {
		t.Fatalf("%v: %s", err, out)
	}
	p.agent = start(t, nil, slices.Concat([]string{"agent"}, data, args)...)
	p.untilOnline()
}

// restartAgent starts the agent again after it was killed.
func (p *berth) restartAgent() {
	p.t.Helper()
	p.agent = start(p.t, nil, "agent", "--data", filepath.Join(p.dir, "agent"), "--simulate", "a100-80gb:1")
}

func (p *berth) untilOnline() {
	t := p.t
	t.Helper()
	until(t, "the node to be online", func() bool {
		var nodes struct{ Items []struct{ State string } }
		p.operator().must(http.StatusOK, http.MethodGet, "/api/v1/nodes", nil, &nodes)
		return len(nodes.Items) == 1 && nodes.Items[0].State == "online"
	})
}

// serve starts the portal alone at an address and waits until it serves.
func (b *berth) serve(address string) {
	b.t.Helper()
	b.up = start(b.t, nil, "serve", "--listen", address, "--data", b.dir)
	until(b.t, "the portal to serve", func() bool {
		_, rest, ok := strings.Cut(b.up.text(), "Portal: ")
		if !ok {
			return false
		}
		b.base = strings.Fields(rest)[0]
		res, err := http.Get(b.base + "/readyz")
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
}

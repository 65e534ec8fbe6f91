package e2e

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// The portal is killed under an open terminal and open charts, and started again
// at the same address: both go on by themselves, in the same shell.
func TestBrowserOutlivesThePortal(t *testing.T) {
	p := apart(t)
	b := startBrowser(t).tab(p.base)
	b.signUp("Ada", "ada@example.org")
	ada := b.api()
	ada.topUp(25_000_000, "4242424242424242")
	in := ada.launch("a100-80gb.1g.10gb")
	b.open("/instances/" + in.ID + "/terminal")
	b.untilReads("[data-terminal-state]", "Connected")
	b.shell("kept=$((40+2))", "")
	charts := b.another()
	charts.open("/instances/" + in.ID)
	charts.until("live samples", "document.querySelectorAll('#live canvas').length === 4")
	eval[bool](b, "window.samePage = true")
	eval[bool](charts, "window.samePage = true")

	p.up.kill()
	b.untilReads("[data-terminal-state]", "Connection lost.")
	charts.until("the charts to say that they wait", "document.querySelector('[data-live-state]').innerText.includes('reconnecting')")
	charts.untilReads("#link-state:not([hidden])", "Figures may be old")
	p.serve(strings.TrimPrefix(p.base, "http://"))

	b.untilReads("[data-terminal-state]", "Connected")
	b.shell("echo again=$kept", "again=42")
	charts.until("the charts to go on", "document.querySelector('[data-live-state]').innerText === ''")
	charts.until("the link to be back", "document.querySelector('#link-state').hidden")
	b.shell("berth-load 90 & echo load=$((1+1))", "load=2")
	charts.until("the charts to follow the load", "parseFloat(document.querySelector('#chart-utilization_percent [data-now]').innerText) >= 50")
	if !eval[bool](b, "window.samePage") || !eval[bool](charts, "window.samePage") {
		t.Error("a page was loaded anew")
	}
	if got := ada.get(in.ID); got.State != "running" {
		t.Errorf("the instance is %s", got.State)
	}
	for _, tab := range []*tab{b, charts} {
		tab.forgive("ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_EMPTY_RESPONSE", "WebSocket connection to")
		tab.allWell()
	}
}

// apart starts a portal and an agent that each can be killed alone.
func apart(t testing.TB) *berth {
	t.Helper()
	p := &berth{t: t, dir: shortTempDir(t)}
	p.serve("127.0.0.1:0")
	var join struct{ Token string }
	p.operator().must(http.StatusCreated, http.MethodPost, "/api/v1/nodes/join-tokens", nil, &join)
	start(t, []string{"BERTH_TOKEN=" + join.Token}, "agent", "--portal", p.base, "--name", "harbour",
		"--data", filepath.Join(p.dir, "agent"), "--simulate", "a100-80gb:1")
	until(t, "the node to be online", func() bool {
		var nodes struct{ Items []struct{ State string } }
		p.operator().must(http.StatusOK, http.MethodGet, "/api/v1/nodes", nil, &nodes)
		return len(nodes.Items) == 1 && nodes.Items[0].State == "online"
	})
	return p
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

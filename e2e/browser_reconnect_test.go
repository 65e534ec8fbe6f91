package e2e

import (
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

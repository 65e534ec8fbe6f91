package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An operator divides a card under a running instance: the plan keeps what is in
// use, what stands in the way is named, and the real slices follow.
func TestBrowserDividesACard(t *testing.T) {
	p := up(t)
	ada := p.signUp("ada@example.org")
	ada.topUp(25_000_000, "4242424242424242")
	in := ada.launch("a100-80gb.1g.10gb")
	card, place := in.Slices[0].DeviceUUID, in.Slices[0].Start
	b := startBrowser(t).tab(p.base)
	b.signIn(p.operatorSignIn())
	b.open("/fleet")
	node := strings.TrimPrefix(eval[string](b, `document.querySelector('a[href^="/fleet/nod_"]').getAttribute("href")`), "/fleet/")
	b.open("/fleet/" + node)
	b.accessible("node with an instance")
	b.clickOn("Divide of the card", `document.querySelector('a[href$="`+card+`/layout"]')`)
	b.untilAt("/fleet/" + node + "/devices/" + card + "/layout")
	b.accessible("divide a card")
	b.fill(`[name="n-4g.40gb"]`, "1")
	b.fill(`[name="n-3g.40gb"]`, "1")
	b.press("Show the plan")
	b.untilReads("main", "of instance "+in.Name)
	b.open("/fleet/" + node + "/devices/" + card + "/layout?plan=1&n-1g.10gb=2&n-4g.40gb=1")
	b.untilReads("#plan", "Keeps 1: 1 × 1g.10gb, 1 of them in use.")
	b.untilReads("#plan", "Makes 2:")
	b.accessible("the plan")
	b.press("Divide it so")
	b.untilAt("/fleet/" + node)
	// What the simulated card itself has in the end.
	until(t, "the real slices to lie ready", func() bool {
		hardware, err := os.ReadFile(filepath.Join(p.dir, "agent", "simulator.json"))
		return err == nil && strings.Count(string(hardware), `"1g.10gb"`) == 2 && strings.Count(string(hardware), `"4g.40gb"`) == 1
	})
	if o := ada.get(in.ID); o.State != "running" || o.Slices[0].Start != place {
		t.Errorf("what was in use is %s at %d, was at %d", o.State, o.Slices[0].Start, place)
	}
	b.untilReads("main", "1 × 4g.40gb, 2 × 1g.10gb")
	if status, text := ada.call(http.MethodPost, "/api/v1/instances", map[string]any{"sku": "a100-80gb.4g.40gb", "disk_gib": 10}, &in); status != http.StatusCreated {
		t.Fatalf("%d %s", status, text)
	}
	ada.await(in.ID, "running")
	b.allWell()
}

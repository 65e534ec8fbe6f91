package e2e

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// An operator goes from the fleet to a card: its charts are live, its past can be
// asked for, and a fault shows by itself with what to do.
func TestBrowserDevicePage(t *testing.T) {
	p := up(t)
	browser := startBrowser(t)
	b, renter := browser.tab(p.base), browser.tab(p.base)
	renter.signUp("Ada", "ada@example.org")
	ada := renter.api()
	ada.topUp(25_000_000, "4242424242424242")
	in := ada.launch("a100-80gb.1g.10gb")
	card := in.Slices[0].DeviceUUID

	b.signIn(p.operatorSignIn())
	b.open("/fleet")
	b.untilReads(".gpus [data-card] [data-reading]", "°C")
	b.press("GPU 0")
	b.until("the card's page", `location.pathname.endsWith("/devices/`+card+`")`)
	b.untilReads("main", in.Name)
	b.until("the charts to be drawn live", `document.querySelectorAll(".plot canvas").length === 4`)
	b.untilReads("#chart-power_w [data-now]", ".")
	b.press("1 h")
	b.until("the past", `location.search === "?range=1h" && document.getElementById("past")`)
	b.press("Live")
	b.until("the charts again", `document.querySelectorAll(".plot canvas").length === 4`)
	out, err := exec.Command(binary(t), "agent", "fault", card, "79", "--data", filepath.Join(p.dir, "agent")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b.untilReads(".page-head .status", "Xid 79") // by itself
	b.untilReads("main", "reseat or replace the card")
	b.accessible("device")
	b.allWell()
}

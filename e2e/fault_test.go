package e2e

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A card falls off the bus under an instance: its page and the fleet page say so
// by themselves, what is charged ends there, the other cards are sold on, and a
// reset brings the card back.
func TestCardFallsOffTheBus(t *testing.T) {
	p := up(t)
	ada := p.signUp("ada@example.org")
	ada.topUp(25_000_000, "4242424242424242")
	in := ada.launch("h100-80gb")
	other := ada.launch("a100-80gb.1g.10gb")
	card := in.Slices[0].DeviceUUID
	fault := func(xid string) {
		t.Helper()
		out, err := exec.Command(binary(t), "agent", "fault", card, xid, "--data", filepath.Join(p.dir, "agent")).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "Simulated: "+card) {
			t.Fatalf("%v: %s", err, out)
		}
	}
	free := func() (n int) {
		var offers struct {
			Items []struct {
				SKU       string `json:"sku"`
				Available int    `json:"available"`
			}
		}
		ada.must(http.StatusOK, http.MethodGet, "/api/v1/offers?sku=h100-80gb", nil, &offers)
		for _, o := range offers.Items {
			n += o.Available
		}
		return n
	}
	until(t, "a second to be charged", func() bool {
		ada.must(http.StatusOK, http.MethodGet, "/api/v1/instances/"+in.ID, nil, &in)
		return in.Seconds >= 1
	})

	fault("79")
	began := time.Now()
	failed := ada.await(in.ID, "failed")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v until the portal said so", took)
	}
	if failed.Reason != "device_fault" || failed.Seconds-in.Seconds > int64(time.Since(began).Seconds())+2 {
		t.Errorf("%+v, at the fault %d s", failed, in.Seconds)
	}
	if want := failed.Seconds * failed.PricePerHour.Micros / 3600; failed.Charged.Micros != want {
		t.Errorf("charged %d for %d s, want %d", failed.Charged.Micros, failed.Seconds, want)
	}
	var devices struct {
		Items []struct{ UUID, State string }
	}
	until(t, "the card to be off sale", func() bool {
		p.operator().must(http.StatusOK, http.MethodGet, "/api/v1/devices", nil, &devices)
		for _, d := range devices.Items {
			if d.UUID == card {
				return d.State == "sick"
			}
		}
		return false
	})
	if n := free(); n != 0 {
		t.Errorf("%d H100 are sold while the only one is sick", n)
	}
	if status, text := ada.call(http.MethodPost, "/api/v1/instances/"+in.ID+"/start", nil, nil); status != http.StatusConflict || !strings.Contains(text, "that is well now") {
		t.Errorf("started on a node without a well card: %d %s", status, text)
	}
	if o := ada.get(other.ID); o.State != "running" {
		t.Errorf("the instance on another card is %s", o.State)
	}
	ada.launch("a100-80gb.1g.10gb") // the others are sold on

	fault("0")
	until(t, "the card to be sold again", func() bool { return free() == 1 })
	ada.must(http.StatusAccepted, http.MethodPost, "/api/v1/instances/"+in.ID+"/start", nil, nil)
	ada.await(in.ID, "running")
}

// The pages of the same, open in a browser.
func TestBrowserSeesACardFail(t *testing.T) {
	p := up(t)
	b := startBrowser(t).tab(p.base)
	b.signUp("Ada", "ada@example.org")
	ada := b.api()
	ada.topUp(25_000_000, "4242424242424242")
	in := ada.launch("h100-80gb")
	b.open("/instances/" + in.ID)
	b.untilReads(".page-head .status", "Running")
	out, err := exec.Command(binary(t), "agent", "fault", in.Slices[0].DeviceUUID, "79", "--data", filepath.Join(p.dir, "agent")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b.untilReads(".page-head .status", "Failed") // by itself
	b.untilReads("main", "fallen off the bus")
	b.accessible("instance whose card failed")
	b.allWell()
}

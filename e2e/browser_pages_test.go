package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// sight is a page as somebody sees it.
type sight struct {
	name, path string
	tab        *tab
	ready      string           // an expression that is true once it shows all it will
	prepare    func(*testing.T) // what to click before looking; may be nil
	mayFail    string           // what the browser logs when it is as it should be
}

// Every page in every state it is usual to see, wide and light, then narrow and
// dark: accessible, nothing wider than the window, nothing wrong in the browser.
// With BERTH_SHOTS=DIR pictures of all are written to DIR.
func TestBrowserPages(t *testing.T) {
	p := up(t, "--simulate", "a100-80gb:4,h100-80gb:2,rtx4090:2")
	browser := startBrowser(t)
	dir := os.Getenv("BERTH_SHOTS")
	seconds := 10
	if dir != "" {
		seconds = 100 // pictures need something to see in the charts
	}
	for _, s := range gallery(t, p, browser, seconds) {
		t.Run(s.name, func(t *testing.T) {
			s.tab.t = t
			for _, theme := range []string{"light", "dark"} {
				for _, width := range []int64{1280, 390} {
					if dir == "" && (theme == "dark") != (width == 390) {
						continue
					}
					s.show(t, width, theme)
					s.tab.accessible(fmt.Sprintf("%s, %d wide, %s", s.name, width, theme))
					if wide := eval[int64](s.tab, "document.documentElement.scrollWidth"); wide > width {
						t.Errorf("%d wide, it scrolls to %d: %s", width, wide, eval[string](s.tab, widest))
					}
					if dir != "" {
						s.tab.shoot(filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", s.name, width, theme)), width)
					}
				}
			}
			if s.mayFail != "" {
				s.tab.forgive(s.mayFail)
			}
			s.tab.allWell()
		})
	}
}

// widest names what reaches furthest to the right.
const widest = `[...document.querySelectorAll("main *")].sort((a, b) => b.getBoundingClientRect().right - a.getBoundingClientRect().right)[0].outerHTML.slice(0, 200)`

func (s sight) show(t *testing.T, width int64, theme string) {
	s.tab.look(width, 900, theme)
	s.tab.open(s.path)
	if s.prepare != nil {
		s.prepare(t)
	}
	ready := s.ready
	if ready == "" {
		ready = "true"
	}
	s.tab.until("all of "+s.name, ready+" && document.readyState === 'complete' && document.fonts.status === 'loaded'")
	s.tab.settled()
}

// shoot writes a picture of the whole page.
func (b *tab) shoot(file string, width int64) {
	b.t.Helper()
	height := min(4000, max(900, eval[int64](b, "document.documentElement.scrollHeight")))
	b.do(chromedp.EmulateViewport(width, height))
	b.settled()
	picture := call(b, page.CaptureScreenshot, page.CaptureScreenshotParams{})
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(file, picture.Data, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// gallery makes a Berth with some seconds of life in it, and lists what there is
// to see.
func gallery(t *testing.T, p *berth, browser *chromium, seconds int) []sight {
	t.Helper()
	guest, newcomer, renter, operator := browser.tab(p.base), browser.tab(p.base), browser.tab(p.base), browser.tab(p.base)
	newcomer.signUp("Grace Hopper", "grace@example.org")
	renter.signUp("Ada Lovelace", "ada@example.org")
	operator.signIn(p.operatorSignIn())

	ada := renter.api()
	ada.topUp(100_000_000, "4242424242424242")
	ada.pay(ada.startTopUp(25_000_000), "4000000000000002") // declined
	bob := p.signUp("bob@example.org")
	bob.topUp(50_000_000, "4242424242424242")
	for _, sku := range []string{"a100-80gb.3g.40gb", "a100-80gb", "h100-80gb.4g.40gb", "rtx4090", "rtx4090"} {
		bob.launch(sku)
	}
	order := func(name, sku, script string) string {
		var in instance
		ada.must(http.StatusCreated, http.MethodPost, "/api/v1/instances", map[string]any{
			"sku": sku, "billing_mode": "on_demand", "name": name, "image": "host system", "disk_gib": 20, "startup_script": script}, &in)
		return in.ID
	}
	busy := order("fine-tune", "a100-80gb.2g.20gb", "")
	idle := order("notebook", "a100-80gb.1g.10gb", "")
	train := order("pretrain", "h100-80gb", "")
	failed := order("eval-nightly", "h100-80gb.1g.10gb", "echo fetching weights\necho no such model >&2\nexit 3\n")
	ada.await(train, "running")
	ada.await(busy, "running")
	ada.await(idle, "running")
	ada.await(failed, "failed")
	load := ada.dial(busy, "terminal")
	t.Cleanup(func() { _ = load.Close() })
	command(t, load, "(timeout 20 berth-load 40 --memory 6000; timeout 30 berth-load 92 --memory 14200; berth-load 87 --memory 15400) >/dev/null & echo load=$((1+1))=", "load=2=")
	ada.watch(busy, seconds)

	until(t, "some seconds of use", func() bool { return ada.get(idle).Seconds >= 3 })
	ada.must(http.StatusAccepted, http.MethodPost, "/api/v1/instances/"+idle+"/stop", nil, nil)
	ada.await(idle, "stopped")
	var me struct{ Account struct{ ID string } }
	ada.must(http.StatusOK, http.MethodGet, "/api/v1/me", nil, &me)
	var invoice struct{ ID string }
	p.operator().must(http.StatusCreated, http.MethodPost, "/api/v1/invoices/close", map[string]any{"account": me.Account.ID}, &invoice)
	starting := order("llm-serve", "a100-80gb.1g.10gb", "sleep 600")
	ada.await(starting, "starting")
	var nodes struct{ Items []struct{ ID string } }
	p.operator().must(http.StatusOK, http.MethodGet, "/api/v1/nodes", nil, &nodes)
	at := func(id string) string { return "/instances/" + id }
	charts := "document.querySelectorAll('#live canvas').length === 4"
	return []sight{
		{name: "catalogue-guest", tab: guest, path: "/"},
		{name: "signup", tab: guest, path: "/signup"},
		{name: "login", tab: guest, path: "/login"},
		{name: "not-found", tab: guest, path: "/nowhere", mayFail: "404 (Not Found)"},
		{name: "instances-empty", tab: newcomer, path: "/instances"},
		{name: "wallet-empty", tab: newcomer, path: "/wallet"},
		{name: "invoices-empty", tab: newcomer, path: "/invoices"},
		{name: "launch-no-money", tab: newcomer, path: "/launch?sku=a100-80gb.1g.10gb"},
		{name: "catalogue", tab: renter, path: "/"},
		{name: "launch", tab: renter, path: "/launch?sku=a100-80gb.1g.10gb"},
		{name: "instances", tab: renter, path: "/instances"},
		{name: "instance-starting", tab: renter, path: at(starting)},
		{name: "instance", tab: renter, path: at(busy), ready: charts},
		{name: "instance-dialog", tab: renter, path: at(busy), ready: charts, prepare: func(*testing.T) { renter.click("[popovertarget=do-terminate]") }},
		{name: "instance-failed", tab: renter, path: at(failed)},
		{name: "instance-stopped", tab: renter, path: at(idle)},
		{name: "logs", tab: renter, path: at(failed) + "/logs"},
		{name: "terminal", tab: renter, path: at(busy) + "/terminal", ready: screen + ".includes('load=2')"},
		{name: "wallet", tab: renter, path: "/wallet"},
		{name: "invoices", tab: renter, path: "/invoices"},
		{name: "invoice", tab: renter, path: "/invoices/" + invoice.ID, prepare: func(*testing.T) { renter.click("tr.spans summary") }},
		{name: "account", tab: renter, path: "/account"},
		{name: "fleet", tab: operator, path: "/fleet"},
		{name: "node", tab: operator, path: "/fleet/" + nodes.Items[0].ID, ready: charts},
		{name: "device", tab: operator, path: "/fleet/" + nodes.Items[0].ID + "/devices/0", ready: charts},
		{name: "device-past", tab: operator, path: "/fleet/" + nodes.Items[0].ID + "/devices/0?range=24h"},
		{name: "prices", tab: operator, path: "/prices"},
		{name: "accounts", tab: operator, path: "/fleet/accounts"},
	}
}

// watch reads n live samples of an instance: one comes every second.
func (c *caller) watch(id string, n int) {
	c.t.Helper()
	ws := c.dial(id, "live")
	defer ws.Close()
	for range n {
		_ = ws.SetReadDeadline(time.Now().Add(patience))
		if _, _, err := ws.ReadMessage(); err != nil {
			c.t.Fatal(err)
		}
	}
}

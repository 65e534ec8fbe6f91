package web

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/gorilla/websocket"
)

// TestLiveUpdateKeepsWhatIsInHand: a change on the portal is drawn into the open
// page, and the dialog, the focus and the text being typed stay.
func TestLiveUpdateKeepsWhatIsInHand(t *testing.T) {
	p := startPortal(t)
	b := startBrowser(t) // after the portal, so that it ends before
	v := runningView()
	v.Live = nil
	p.show("/instances/i-1", InstancePage(v))
	b.do(chromedp.Navigate(p.server.URL+"/instances/i-1"), chromedp.Click(chromedp.CSS(".page-head .btn.danger")), chromedp.SendKeys(chromedp.CSS("#confirm"), "qwen-se"))

	v.State, v.Tone, v.Stop = "Stopping", ToneStarting, nil
	v.Purse = &Purse{Balance: "$7.00", Lasts: "5 h left"}
	p.show("/instances/i-1", InstancePage(v))
	p.changed("instance:i-1")
	b.until(css(".page-head .status")+".textContent", "Stopping")
	for expression, want := range map[string]string{
		css("#confirm") + ".value":                      "qwen-se",
		"document.activeElement.id":                     "confirm",
		css("#do-terminate:popover-open") + " !== null": "true",
		css("#do-stop") + " === null":                   "true",
	} {
		if got := b.eval(expression); got != want {
			t.Errorf("%s is %q, want %q", expression, got, want)
		}
	}
	p.changed("wallet")
	b.until(css("#purse")+".textContent.includes('$7.00')", "true")
	b.nothingWrong()
}

// TestTerminalOpensWhenItCan: a terminal's page that was opened too early becomes
// the terminal by itself.
func TestTerminalOpensWhenItCan(t *testing.T) {
	p := startPortal(t)
	b := startBrowser(t) // after the portal, so that it ends before
	early := TerminalView{Layout: runningView().Layout, ID: "i-1", Name: "qwen-serve-02", Problem: &Problem{What: "It is starting.", Next: "This page turns into the terminal."}}
	early.Return = "/instances/i-1/terminal"
	p.show("/instances/i-1/terminal", TerminalPage(early))
	b.do(chromedp.Navigate(p.server.URL + "/instances/i-1/terminal"))
	late := early
	late.Problem = nil
	p.show("/instances/i-1/terminal", TerminalPage(late))
	p.changed("instance:i-1")
	b.until(css(".termbox .xterm-screen")+" !== null", "true")
}

func TestCostTicks(t *testing.T) {
	p := startPortal(t)
	b := startBrowser(t) // after the portal, so that it ends before
	v := runningView()
	v.Live = nil
	v.Cost.Ticker.RateMicrosPerHour = 3_600_000_000 // one dollar a second
	v.Cost.Ticker.ChargedMicros = 1_234_560_000
	p.show("/instances/i-1", InstancePage(v))
	b.do(chromedp.Navigate(p.server.URL + "/instances/i-1"))
	b.until("parseFloat("+css(".cost .gauge")+".textContent.replace(/[$,]/g, '')) >= 1236.56", "true")
	if got := b.eval(css(".cost .gauge") + ".textContent"); !strings.HasPrefix(got, "$1,2") || !strings.HasSuffix(got, ".5600") {
		t.Errorf("the cost reads %q", got)
	}
	if got := b.eval(css(".cost [data-count]") + ".textContent"); !strings.HasPrefix(got, "2 h 14 min ") {
		t.Errorf("the duration reads %q", got)
	}
	b.nothingWrong()
}

// TestChartsFollowTheSocket: samples move the figures and draw a line with gaps; a
// lost connection is said, and taken up after the last sample.
func TestChartsFollowTheSocket(t *testing.T) {
	p := startPortal(t)
	b := startBrowser(t) // after the portal, so that it ends before
	p.show("/instances/i-1", InstancePage(runningView()))
	b.do(chromedp.Navigate(p.server.URL + "/instances/i-1"))
	c, query := p.connection()
	if query != "after=0" {
		t.Errorf("first connection asks for %q", query)
	}
	send := func(c *websocket.Conn, seq int, utilization string) {
		t.Helper()
		text := fmt.Sprintf(`{"seq":%d,"at":"2026-12-01T10:00:%02dZ","utilization_percent":%s,"memory_mib":512,"temperature_c":40.25,"power_w":null}`, seq, seq, utilization)
		if err := c.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	send(c, 1, "10")
	send(c, 2, "null")
	send(c, 3, "42")
	now := func(key string) string { return css("#chart-"+key+" [data-now]") + ".textContent" }
	b.until(now("utilization_percent"), "42")
	b.until(now("temperature_c"), "40.3")
	b.until(now("power_w"), "not measurable")
	b.until(css("#chart-utilization_percent [data-peak]")+".textContent", "42")
	b.until("document.querySelectorAll('#live canvas').length", "4")

	_ = c.Close() // no goodbye, as when the portal dies
	c, query = p.connection()
	if query != "after=3" {
		t.Errorf("taking up asks for %q", query)
	}
	send(c, 3, "42") // sent again: changes nothing
	send(c, 4, "55")
	b.until(now("utilization_percent"), "55")
	b.until(css("#live-state")+".textContent", "")

	// Drawn anew by a live update, the charts stay as they are.
	v := runningView()
	v.State = "Running still"
	p.show("/instances/i-1", InstancePage(v))
	p.changed("instance:i-1")
	b.until(css(".page-head .status")+".textContent", "Running still")
	b.until("document.querySelectorAll('#live canvas').length", "4")
	send(c, 5, "60")
	b.until(now("utilization_percent"), "60")
	b.nothingWrong()
}

// TestTerminal: keys go out and output comes in; after a lost connection the
// replay takes the place of what was on the screen; an ended shell says so.
func TestTerminal(t *testing.T) {
	p := startPortal(t)
	b := startBrowser(t) // after the portal, so that it ends before
	p.show("/instances/i-1/terminal", samples()["terminal"])
	b.do(chromedp.Navigate(p.server.URL + "/instances/i-1/terminal"))
	read := func(c *websocket.Conn, kind int) string {
		t.Helper()
		for {
			k, data, err := c.ReadMessage()
			if err != nil {
				t.Fatal(err)
			}
			if k == kind {
				return string(data)
			}
		}
	}
	write := func(c *websocket.Conn, text string) {
		t.Helper()
		if err := c.WriteMessage(websocket.BinaryMessage, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	screen := css(".xterm-rows") + ".textContent.trim().replace(/\\s+/g, ' ')"

	c, _ := p.connection()
	if got := read(c, websocket.TextMessage); !strings.HasPrefix(got, `{"resize":{"cols":`) {
		t.Errorf("the first text is %s", got)
	}
	write(c, "$ \x1b[38;2;10;120;200mready\x1b[0m")
	b.until(screen, "$ ready")
	b.until(css("[data-terminal-state]")+".textContent", "Connected")
	b.do(chromedp.KeyEvent("é\r"))
	if got := read(c, websocket.BinaryMessage) + read(c, websocket.BinaryMessage); got != "é\r" {
		t.Errorf("keys came as %q", got)
	}

	_ = c.Close()
	c, _ = p.connection()
	write(c, "$ replayed")
	b.until(screen, "$ replayed")
	b.until(css("[data-terminal-state]")+".textContent", "Connected")

	bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "The shell ended with status 0.")
	if err := c.WriteMessage(websocket.CloseMessage, bye); err != nil {
		t.Fatal(err)
	}
	b.until(css("[data-terminal-state]")+".textContent", "The shell ended with status 0. Press Enter to open a new one.")
	b.do(chromedp.KeyEvent("\r"))
	p.connection()
	b.until(css("[data-terminal-state]")+".textContent", "Connected")
	b.nothingWrong()
}

// TestLaunchSummaryFollowsTheChoice: the price is asked for with the choices that
// make it and nothing else, and what was typed stays.
func TestLaunchSummaryFollowsTheChoice(t *testing.T) {
	p := startPortal(t)
	b := startBrowser(t) // after the portal, so that it ends before
	v := launchView()
	p.show("/launch", LaunchPage(v))
	b.do(chromedp.Navigate(p.server.URL+"/launch?sku=a100-80gb.3g.40gb"), chromedp.Click(chromedp.CSS(".others summary")), chromedp.SendKeys(chromedp.CSS("#env"), "TOKEN=secret"), chromedp.SendKeys(chromedp.CSS("#name"), "mine"))

	v.SKUs[0].Selected, v.SKUs[1].Selected = false, true
	v.Summary.PerHour, v.PerHour = "$0.42", "$0.42"
	p.show("/launch", LaunchPage(v))
	b.do(chromedp.Click(chromedp.CSS(`input[value="a100-80gb.1g.10gb"]`)))
	b.until(css("#summary .btn.primary")+".textContent", "Launch for $0.42 per hour")
	b.until(css("#billing b + .unit, #billing .num b")+".textContent", "$0.42")
	for expression, want := range map[string]string{
		css("#env") + ".value": "TOKEN=secret", css("#name") + ".value": "mine",
		css("input[name=sku]:checked") + ".value": "a100-80gb.1g.10gb",
		"location.search":                         "?sku=a100-80gb.1g.10gb&image=host&disk_gib=20",
	} {
		if got := b.eval(expression); got != want {
			t.Errorf("%s is %q, want %q", expression, got, want)
		}
	}
	if asked, _ := p.requests(); strings.Contains(asked, "secret") || strings.Contains(asked, "mine") {
		t.Errorf("what prices nothing went into an address:\n%s", asked)
	}
	b.nothingWrong()
}

func TestThemeAndSelection(t *testing.T) {
	p := startPortal(t)
	b := startBrowser(t) // after the portal, so that it ends before
	p.show("/instances", samples()["instances"])
	b.do(chromedp.Navigate(p.server.URL+"/instances"), chromedp.Click(chromedp.CSS(`.foot button[value="dark"]`)))
	b.until("document.documentElement.dataset.theme", "dark")
	b.until("getComputedStyle(document.body).backgroundColor", "rgb(17, 22, 26)")
	b.do(chromedp.Click(chromedp.CSS("[data-select-all]")))
	b.until(css("[data-selected]")+".textContent", "2 selected")
	b.do(chromedp.Click(chromedp.CSS(".bulk .btn")))
	b.until(css(".bulk .btn")+".getAttribute('aria-busy')", "true")
	want := "/theme return=%2Finstances&theme=dark\n/instances/stop ids=i-1&ids=i-2"
	_, posted := p.requests()
	for end := time.Now().Add(patience); posted != want && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		_, posted = p.requests()
	}
	if posted != want {
		t.Errorf("posted:\n%s", posted)
	}
	b.nothingWrong()
}

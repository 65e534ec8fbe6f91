package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
)

// Without JavaScript every step still works; a page shows news when it is loaded
// again.
func TestBrowserWithoutScript(t *testing.T) {
	p := up(t)
	b := startBrowser(t).tab(p.base)
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})

	b.open("/")
	b.press("Sign up")
	b.untilAt("/signup")
	if eval[bool](b, "document.documentElement.classList.contains('js')") {
		t.Fatal("the page's scripts run all the same")
	}
	b.fill("#name", "Grace")
	b.fill("#email", "grace@example.org")
	b.fill("#password", "short")
	b.submit("main button[type=submit]")
	b.untilReads("form", "Use 12 characters or more.")
	b.until("what was typed to be kept", "document.querySelector('#email').value === 'grace@example.org'")
	b.forgive("422 (Unprocessable Entity)")
	b.fill("#password", "correct horse battery")
	b.click("main button[type=submit]")
	b.untilAt("/")

	b.press("Wallet: $0.00 nothing running")
	b.untilAt("/wallet")
	b.press("Top up $10")
	double := b.payByCard("4242 4242 4242 4242")
	b.reloadUntilReads("main", "$10.00 has arrived.")

	b.press("Catalogue")
	b.untilAt("/")
	b.press("Launch A100 80GB · 1g.10gb")
	b.untilAt("/launch")
	b.fill("#name", "plain")
	b.click(".others summary")
	b.clickOn("the choice of an RTX 4090", `document.querySelector('input[value="rtx4090"]').closest("label")`)
	b.press("Update price")
	b.untilReads("#summary", "RTX 4090, on demand")
	b.click("#summary button.primary")
	b.until("the page of the instance", "location.pathname.startsWith('/instances/') && document.readyState === 'complete'")
	id := strings.TrimPrefix(eval[string](b, "location.pathname"), "/instances/")
	b.reloadUntilReads(".page-head .status", "Running")
	if got := b.text("main h1"); got != "plain" {
		t.Errorf("the instance is called %q, want plain", got)
	}
	b.until("the charts drawn by the portal", "document.querySelectorAll('#live svg').length === 4")
	b.press("Stop")
	b.submit("#do-stop button.primary")
	b.untilAt("/instances/" + id)
	b.reloadUntilReads(".page-head .status", "Stopped")

	b.press("Account")
	b.untilAt("/account")
	b.press("Sign out")
	b.until("to be signed out", "location.pathname !== '/account' && document.querySelector('.bar a[href=\"/login\"]')")
	b.open("/instances/" + id)
	b.untilAt("/login")
	b.allWell(double)
}

// reloadUntilReads loads the page again and again until it says what is awaited.
func (b *tab) reloadUntilReads(selector, text string) {
	b.t.Helper()
	until(b.t, fmt.Sprintf("%q in %s", text, selector), func() bool {
		if got, err := try[bool](b, fmt.Sprintf("document.querySelector(%q).innerText.includes(%q)", selector, text)); err == nil && got {
			return true
		}
		b.open(eval[string](b, "location.pathname + location.search"))
		return false
	})
}

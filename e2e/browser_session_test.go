package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A session revoked on the account page is over at once: the other browser's
// open page stops being fed, and it is asked to sign in and comes back.
func TestBrowserRevokedSession(t *testing.T) {
	p := up(t)
	browser := startBrowser(t)
	here, there := browser.tab(p.base), browser.tab(p.base)
	here.signUp("Ada", "ada@example.org")
	ada := here.api()
	ada.topUp(25_000_000, "4242424242424242")
	in := ada.launch("a100-80gb.1g.10gb")
	there.signIn("ada@example.org", "correct horse battery")
	there.open("/instances/" + in.ID)
	there.until("live samples", "document.querySelectorAll('#live canvas').length === 4")

	here.open("/account")
	here.until("two sessions", "document.querySelectorAll('form[action^=\"/account/sessions/\"][action$=\"/revoke\"]').length === 1 && document.body.innerText.includes('This one')")
	here.submit(`form[action^="/account/sessions/"][action$="/revoke"] button`)
	here.untilReads("main", "This one")
	here.until("one session", "document.querySelectorAll('form[action^=\"/account/sessions/\"][action$=\"/revoke\"]').length === 0")

	there.untilAt("/login")
	there.open("/wallet")
	there.untilAt("/login")
	there.fill("#email", "ada@example.org")
	there.fill("#password", "correct horse battery")
	there.click("main button[type=submit]")
	there.untilAt("/wallet") // where the click had been for
	here.open("/instances")
	here.untilAt("/instances") // the one that revoked is still signed in
	here.allWell()
	there.allWell()
}

// With nothing but the keyboard: from the catalogue to a running instance and
// into and out of its dialogs.
func TestBrowserKeyboard(t *testing.T) {
	p := up(t)
	b := startBrowser(t).tab(p.base)
	b.signUp("Ada", "ada@example.org")
	b.api().topUp(25_000_000, "4242424242424242")
	b.open("/")

	b.keys(kb.Tab)
	if got := b.focused(); got != "Skip to content" {
		t.Errorf("the first stop is %q, want the way past the navigation", got)
	}
	b.keys(kb.Enter)
	b.tabTo("Launch A100 80GB · 1g.10gb")
	b.keys(kb.Enter)
	b.untilAt("/launch")
	b.tabTo("#name")
	b.keys("typed")
	b.tabTo("Launch for $0.27 per hour")
	b.keys(kb.Enter)
	b.until("the page of the instance", "location.pathname.startsWith('/instances/') && document.readyState === 'complete'")
	b.untilReads(".page-head .status", "Running")
	if got := b.text("main h1"); got != "typed" {
		t.Errorf("the instance is called %q, want typed", got)
	}

	b.tabTo("Terminate…")
	b.keys(kb.Enter)
	b.until("the dialog", "document.querySelector('#do-terminate:popover-open')")
	b.tabTo("#confirm")
	b.keys(kb.Escape)
	b.until("the dialog to close", "!document.querySelector(':popover-open')")
	if got := b.focused(); got != "Terminate…" {
		t.Errorf("the focus came back to %q, want the button that opened the dialog", got)
	}
	b.do(chromedp.KeyEvent(kb.Tab, chromedp.KeyModifiers(kb.ModifierShift)))
	if got := b.focused(); got != "Stop" {
		t.Errorf("before it stands %q, want Stop", got)
	}
	b.keys(kb.Enter)
	b.until("the dialog", "document.querySelector('#do-stop:popover-open')")
	b.tabTo("#do-stop .primary")
	b.keys(kb.Enter)
	b.untilReads(".page-head .status", "Stopped")
	b.allWell()
}

// focused names what has the focus, by its text.
func (b *tab) focused() string {
	b.t.Helper()
	return eval[string](b, "(document.activeElement.innerText ?? '').replace(/\\s+/g, ' ').trim()")
}

// tabTo presses Tab until the focus is on what reads as said, or matches a
// selector that begins with #. All that it passes has to be in view and to show
// that it has the focus.
func (b *tab) tabTo(target string) {
	b.t.Helper()
	is := fmt.Sprintf("(document.activeElement.innerText ?? '').replace(/\\s+/g, ' ').trim() === %q", target)
	if strings.HasPrefix(target, "#") {
		is = fmt.Sprintf("document.activeElement.matches(%q)", target)
	}
	var passed []string
	for range 120 {
		b.keys(kb.Tab)
		if unseen := eval[string](b, `(() => {
			const e = document.activeElement;
			if (e === document.body) return "";
			const shown = e.matches("input[type=radio], input[type=checkbox]") ? e.closest("label") ?? e : e;
			const look = getComputedStyle(shown);
			const r = shown.getBoundingClientRect();
			const ringed = look.outlineStyle !== "none" && parseFloat(look.outlineWidth) > 0;
			const top = document.elementFromPoint(r.x + r.width / 2, r.y + Math.min(r.height, 20) / 2);
			return ringed && top && (shown.contains(top) || top.contains(shown)) ? "" : e.outerHTML.slice(0, 200) + " " + look.outline;
		})()`); unseen != "" {
			b.t.Errorf("the focus cannot be seen on %s", unseen)
		}
		if eval[bool](b, is) {
			return
		}
		passed = append(passed, b.focused())
	}
	b.t.Fatalf("Tab does not reach %q; it passed %q", target, passed)
}

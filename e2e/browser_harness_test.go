package e2e

import (
	"context"
	"fmt"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// chromium is one browser; each of its tabs has cookies of its own.
type chromium struct {
	t   testing.TB
	ctx context.Context
}

// startBrowser is called after the portal is up, so that the browser ends before.
func startBrowser(t testing.TB) *chromium {
	t.Helper()
	if testing.Short() {
		t.Skip("-short leaves the browser out")
	}
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("no Chromium here: install the package chromium to test the pages in a browser")
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path),
		chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-component-update", true))
	alloc, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	return &chromium{t: t, ctx: ctx}
}

// tab is one page of a browser and all that went wrong in it.
type tab struct {
	t    testing.TB
	ctx  context.Context
	base string

	mu      sync.Mutex
	at      string // the page last asked for
	wrong   []string
	origins map[string]bool // everywhere that a request went
}

// tab opens a page with fresh cookies.
func (c *chromium) tab(base string) *tab {
	c.t.Helper()
	return openTab(c.t, c.ctx, base, chromedp.WithNewBrowserContext())
}

// another opens a page with the cookies of this one.
func (b *tab) another() *tab {
	b.t.Helper()
	return openTab(b.t, b.ctx, b.base, chromedp.WithExistingBrowserContext(chromedp.FromContext(b.ctx).BrowserContextID))
}

func openTab(t testing.TB, parent context.Context, base string, cookies chromedp.ContextOption) *tab {
	t.Helper()
	b := &tab{t: t, base: base, origins: map[string]bool{}}
	var cancel context.CancelFunc
	b.ctx, cancel = chromedp.NewContext(parent, cookies, chromedp.WithListener(b.hear))
	t.Cleanup(cancel)
	// The first use opens the page and must have no deadline, which would end it.
	if err := chromedp.Do(b.ctx, chromedp.EmulateViewport(1280, 900)); err != nil {
		t.Fatal(err)
	}
	call(b, audits.Enable, cdp.Empty{})
	return b
}

// hear notes errors, exceptions, breaches of the content policy and where
// requests go.
func (b *tab) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			text += " " + x.Description
		}
		b.wrong = append(b.wrong, fmt.Sprintf("exception: %s (at %s)", text, b.at))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeAssert || e.Type == runtime.ConsoleAPICalledTypeWarning {
			text := ""
			for _, a := range e.Args {
				text += fmt.Sprintf(" %s%s", a.Value, a.Description)
			}
			b.wrong = append(b.wrong, "console "+string(e.Type)+":"+text)
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			b.wrong = append(b.wrong, fmt.Sprintf("log: %s %s", e.Entry.Text, e.Entry.URL))
		}
	case *audits.EventIssueAdded:
		if d := e.Issue.Details.ContentSecurityPolicyIssueDetails; d != nil {
			b.wrong = append(b.wrong, fmt.Sprintf("content policy: %s %s", d.ViolatedDirective, d.BlockedURL))
		}
	case *network.EventRequestWillBeSent:
		if e.Type == network.ResourceTypeDocument {
			b.at = e.Request.URL
		}
		b.went(e.Request.URL)
	case *network.EventWebSocketCreated:
		b.went(strings.Replace(e.URL, "ws", "http", 1))
	}
}

func (b *tab) went(address string) {
	if u, err := url.Parse(address); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		b.origins[u.Scheme+"://"+u.Host] = true
	}
}

// forgive takes what a test has done wrong on purpose off the list.
func (b *tab) forgive(parts ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrong = slices.DeleteFunc(b.wrong, func(w string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(w, p) })
	})
}

// allWell fails the test for whatever went wrong, and for a request to any place
// but the portal and the others named.
func (b *tab) allWell(others ...string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range b.wrong {
		b.t.Errorf("in the browser: %s", w)
	}
	b.wrong = nil
	for origin := range b.origins {
		if origin != b.base && !slices.Contains(others, origin) {
			b.t.Errorf("a request went to %s", origin)
		}
	}
}

// call runs one command of the browser's protocol, within patience.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	out, err := chromedp.Call(ctx, command, params)
	if err != nil {
		b.t.Fatalf("%s: %v", command.Method, err)
	}
	return out
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// open types an address of the portal.
func (b *tab) open(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.base + path))
}

// try evaluates an expression; an error is expected while a page gives way to
// the next.
func try[T any](b *tab, expression string) (T, error) {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	out, err := try[T](b, expression)
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return out
}

// until waits for an expression to be true.
func (b *tab) until(what, expression string) {
	b.t.Helper()
	var now bool
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(30 * time.Millisecond) { // a page: there is no event to wait on
		if now, err = try[bool](b, "Boolean("+expression+")"); now {
			return
		}
	}
	text, _ := try[string](b, "location.href + '\\n' + document.body.innerText")
	b.t.Fatalf("%s: not within %s (%v): %s\nThe page:\n%s", what, patience, err, expression, text)
}

// untilAt waits for a page of the portal to have come.
func (b *tab) untilAt(path string) {
	b.t.Helper()
	b.until("the page "+path, fmt.Sprintf("document.readyState === 'complete' && location.origin === %q && location.pathname === %q", b.base, path))
}

// untilReads waits for a text to stand in an element.
func (b *tab) untilReads(selector, text string) {
	b.t.Helper()
	b.until(fmt.Sprintf("%q in %s", text, selector), fmt.Sprintf("document.querySelector(%q)?.innerText.includes(%q)", selector, text))
}

func (b *tab) text(selector string) string {
	b.t.Helper()
	return eval[string](b, fmt.Sprintf("document.querySelector(%q).innerText", selector))
}

// place finds where to click on what an expression gives: visible, and not
// covered by anything else.
const place = `(() => {
	const e = %s;
	if (!e || e.disabled || !e.checkVisibility({ visibilityProperty: true, opacityProperty: true })) return null;
	e.scrollIntoView({ block: "center", behavior: "instant" });
	const r = e.getClientRects()[0];
	if (!r) return null;
	const x = r.x + r.width / 2, y = r.y + r.height / 2;
	const top = document.elementFromPoint(x, y);
	return top && (e.contains(top) || top.contains(e) && top.closest("label")) ? { x, y } : null;
})()`

func (b *tab) clickOn(what, expression string) {
	b.t.Helper()
	type point struct{ X, Y float64 }
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(30 * time.Millisecond) {
		at, err := try[*point](b, fmt.Sprintf(place, expression))
		if err == nil && at != nil {
			b.do(chromedp.MouseClickXY(at.X, at.Y))
			return
		}
	}
	text, _ := try[string](b, "location.href + '\\n' + document.body.innerText")
	b.t.Fatalf("nothing to click on that is %s\nThe page:\n%s", what, text)
}

// click clicks on the first element of a selector with the mouse, once it is
// there to be clicked.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.clickOn(selector, fmt.Sprintf("document.querySelector(%q)", selector))
}

// press clicks on the link or button that reads as said.
func (b *tab) press(text string) {
	b.t.Helper()
	b.clickOn(fmt.Sprintf("%q", text), fmt.Sprintf(`[...document.querySelectorAll("a[href], button, summary")]
		.find((e) => e.innerText.replace(/\s+/g, " ").trim() === %q && e.checkVisibility({ visibilityProperty: true }))`, text))
}

// submit clicks on a button and waits for the page that comes of it, which may
// well have the same address.
func (b *tab) submit(selector string) {
	b.t.Helper()
	eval[bool](b, "window.stale = true")
	b.click(selector)
	b.until("a new page after "+selector, "document.readyState === 'complete' && !window.stale")
}

// fill clicks into a field and types, in place of what was there.
func (b *tab) fill(selector, text string) {
	b.t.Helper()
	b.click(selector)
	b.do(chromedp.KeyEvent("a", chromedp.KeyModifiers(kb.ModifierCtrl)))
	b.keys(text)
	b.until("the text typed into "+selector, fmt.Sprintf("document.querySelector(%q).value === %q", selector, text))
}

// keys types at whatever has the focus. The text goes with the key's going down,
// as from a keyboard: a page that takes that for itself gets no character more,
// which chromedp.KeyEvent sends in any case.
func (b *tab) keys(text string) {
	b.t.Helper()
	for _, r := range text {
		var written string
		for _, k := range kb.Encode(r) {
			if k.Type == kb.KeyChar {
				written = k.Text
			}
		}
		for _, k := range kb.Encode(r) {
			switch k.Type {
			case kb.KeyChar:
				continue
			case kb.KeyDown:
				k.Text = written
			}
			call(b, input.DispatchKeyEvent, *k)
		}
	}
}

// look sets width, height and theme.
func (b *tab) look(width, height int64, theme string) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height))
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
}

// signUp makes an account by the form and ends on the catalogue.
func (b *tab) signUp(name, email string) {
	b.t.Helper()
	b.open("/signup")
	b.fill("#name", name)
	b.fill("#email", email)
	b.fill("#password", "correct horse battery")
	b.click("main button[type=submit]")
	b.untilAt("/")
}

// signIn signs in by the form.
func (b *tab) signIn(email, password string) {
	b.t.Helper()
	b.open("/login")
	b.fill("#email", email)
	b.fill("#password", password)
	b.click("main button[type=submit]")
	b.untilAt("/")
}

// shell types a line into the web terminal and waits for what it prints.
func (b *tab) shell(line, want string) {
	b.t.Helper()
	b.keys(line + "\r")
	b.until("the terminal to print "+want, fmt.Sprintf("%s.split('\\n').includes(%q)", screen, want))
}

// screen is an expression for what the web terminal shows, a line for a line.
const screen = `[...document.querySelectorAll(".xterm-rows > div")].map((r) => r.textContent.replaceAll("\u00a0", " ").trimEnd()).join("\n")`

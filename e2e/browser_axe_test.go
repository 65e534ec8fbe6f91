package e2e

import (
	"os"
	"strings"
	"testing"
)

// loadAxe puts axe-core into the page, past its content policy.
func (b *tab) loadAxe() {
	b.t.Helper()
	source, err := os.ReadFile("testdata/axe/axe.min.js")
	if err != nil {
		b.t.Fatal(err)
	}
	eval[bool](b, string(source)+"\n;true")
}

// accessible fails the test for what axe-core finds serious or critical on the
// page as it stands.
func (b *tab) accessible(name string) {
	b.t.Helper()
	if !eval[bool](b, "'axe' in window") {
		b.loadAxe()
	}
	b.settled()
	found := eval[[]string](b, `axe.run(document, { resultTypes: ["violations"] }).then((r) => r.violations
		.filter((v) => v.impact === "serious" || v.impact === "critical")
		.flatMap((v) => v.nodes.map((n) => v.impact + " " + v.id + ": " + v.help + "\n  " + n.html.slice(0, 200) + "\n  " + n.failureSummary)))`)
	if len(found) > 0 {
		b.t.Errorf("%s: axe finds\n%s", name, strings.Join(found, "\n"))
	}
}

// settled waits for transitions to end: half-way through, a colour is neither.
func (b *tab) settled() {
	b.t.Helper()
	b.until("the page to come to rest", `document.getAnimations().every((a) => a.playState !== "running" || a.effect?.getComputedTiming().endTime === Infinity)`)
}

// The checks are worth nothing if they see nothing: each planted fault is found.
func TestBrowserSeesWhatGoesWrong(t *testing.T) {
	p := up(t)
	b := startBrowser(t).tab(p.base)
	b.open("/")
	eval[bool](b, `console.error("planted error"), setTimeout(() => { throw new Error("planted exception") }), true`)
	eval[bool](b, `document.body.insertAdjacentHTML("beforeend", '<p style="color:red">planted style</p><img src="/planted.png">'), true`)
	eval[bool](b, `fetch("http://127.0.0.1:9/").catch(() => {}), true`)
	for _, want := range []string{"console error: \"planted error\"", "planted exception", "content policy: style-src", "content policy: connect-src", "404 (Not Found) " + p.base + "/planted.png"} {
		until(t, "to hear of "+want, func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return strings.Contains(strings.Join(b.wrong, "\n"), want)
		})
	}
	b.loadAxe()
	if found := eval[string](b, `axe.run().then((r) => r.violations.map((v) => v.id).join())`); !strings.Contains(found, "image-alt") {
		t.Errorf("axe finds %q, want image-alt among it", found)
	}
}

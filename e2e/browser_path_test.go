package e2e

import (
	"encoding/base64"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The whole path as a new user walks it, by clicking and typing only: from the
// catalogue as a guest to the PDF of the invoice.
func TestBrowserWholePath(t *testing.T) {
	p := up(t)
	b := startBrowser(t).tab(p.base)

	b.open("/")
	b.accessible("catalogue of a guest")
	b.press("Sign up")
	b.untilAt("/signup")
	b.accessible("sign-up")
	b.fill("#name", "Ada Lovelace")
	b.fill("#email", "ada@example.org")
	b.fill("#password", "correct horse battery")
	b.click("main button[type=submit]")
	b.untilAt("/")
	b.untilReads("#purse", "$0.00")
	b.accessible("catalogue")

	b.click("#purse")
	b.untilAt("/wallet")
	b.accessible("wallet before the first top-up")
	b.press("Top up $25")
	b.until("the hosted payment page", fmt.Sprintf("location.origin !== %q && document.readyState === 'complete'", b.base))
	b.accessible("the hosted payment page")
	double := b.payByCard("4242 4242 4242 4242")
	b.untilAt("/wallet")
	b.untilReads("main", "$25.00 has arrived.")
	b.untilReads("#purse", "$25.00")
	b.untilReads("[aria-label=Balance] .gauge", "$25.00")
	b.fill("#amount", "5.50")
	b.press("Go to payment")
	b.payByCard("4242424242424242")
	b.untilReads("main", "$5.50 has arrived.")
	b.untilReads("#purse", "$30.50")
	b.accessible("wallet")

	b.press("Catalogue")
	b.untilAt("/")
	b.press("Launch A100 80GB · 1g.10gb")
	b.untilAt("/launch")
	b.fill("#name", "first-berth")
	b.accessible("launch")
	b.click("#summary button.primary")
	b.until("the page of the instance", "location.pathname.startsWith('/instances/') && document.readyState === 'complete'")
	id := strings.TrimPrefix(eval[string](b, "location.pathname"), "/instances/")
	b.untilReads(".page-head .status", "Running")
	b.accessible("instance running")

	b.press("Web terminal")
	b.untilAt("/instances/" + id + "/terminal")
	b.untilReads("[data-terminal-state]", "Connected")
	b.shell("echo $((6*7))", "42")
	b.accessible("terminal")
	b.shell("berth-load 90 & echo started=$((1+1))", "started=2")
	b.press("first-berth")
	b.untilAt("/instances/" + id)
	b.until("the chart to show the load", "parseFloat(document.querySelector('#chart-utilization_percent [data-now]').innerText) >= 50")
	b.until("the four lines to be drawn", "document.querySelectorAll('#live canvas').length === 4")

	b.press("Instances")
	b.untilAt("/instances")
	eval[string](b, "document.querySelector('[data-utilization]').innerText = 'spoilt'")
	b.until("the list to say the load by itself", "parseFloat(document.querySelector('[data-utilization]').innerText) >= 50")
	b.accessible("instances")
	b.press("first-berth")
	b.untilAt("/instances/" + id)

	b.click("[popovertarget=do-stop]")
	b.untilReads("#do-stop", "disk is kept")
	b.accessible("the dialog before a stop")
	b.click("#do-stop button.primary")
	b.untilReads(".page-head .status", "Stopped")
	b.accessible("instance stopped")

	ada := b.api()
	in := ada.get(id)
	b.until("the seconds of the meter", fmt.Sprintf("document.querySelector('.cost').innerText.includes(%q)", spell(in.Seconds)))
	want := new(big.Int).Div(new(big.Int).Mul(big.NewInt(in.PricePerHour.Micros), big.NewInt(in.Seconds)), big.NewInt(3600)).Int64()
	if in.Seconds == 0 || in.Charged.Micros != want {
		t.Errorf("charged %d for %d s at %d an hour, want %d", in.Charged.Micros, in.Seconds, in.PricePerHour.Micros, want)
	}
	if got, want := b.text(".cost .gauge"), fmt.Sprintf("$%d.%04d", want/1e6, want%1e6/100); got != want {
		t.Errorf("the page shows a cost of %s, want %s", got, want)
	}

	b.press("Wallet")
	b.untilAt("/wallet")
	b.untilReads("table", fmt.Sprintf("−%d.%s", want/1e6, strings.TrimRight(fmt.Sprintf("%06d", want%1e6), "0")))
	b.press("Invoices")
	b.untilAt("/invoices")
	b.accessible("invoices")
	var closed struct{ ID, Number string }
	var me struct{ Account struct{ ID string } }
	ada.must(http.StatusOK, http.MethodGet, "/api/v1/me", nil, &me)
	p.operator().must(http.StatusCreated, http.MethodPost, "/api/v1/invoices/close", map[string]any{"account": me.Account.ID}, &closed)
	b.untilReads("main table", closed.Number) // by itself
	b.press(closed.Number)
	b.untilAt("/invoices/" + closed.ID)
	b.click("tr.spans summary")
	b.untilReads(".spantable", "first-berth")
	cells := eval[[]string](b, "[...document.querySelectorAll('.spantable tbody tr:first-child td')].map((d) => d.innerText)")
	if exact := fmt.Sprintf("%d.%06d", want/1e6, want%1e6); len(cells) != 6 || cells[3] != fmt.Sprint(in.Seconds) || strings.TrimRight(strings.TrimPrefix(cells[5], "$"), "0") != strings.TrimRight(exact, "0") {
		t.Errorf("the span reads %q, want %d s and %s", cells, in.Seconds, exact)
	}
	b.accessible("invoice")
	b.pdf(closed.Number, "first-berth", eval[string](b, "document.querySelector('.invoice .totals').innerText.match(/[\\d.]+/)[0]"))

	b.allWell(double)
}

// payByCard types a card on the hosted page, which is at another origin, and
// returns that origin once the browser is back.
func (b *tab) payByCard(number string) (origin string) {
	b.t.Helper()
	b.until("the hosted payment page", fmt.Sprintf("location.origin !== %q && document.querySelector('#card')", b.base))
	origin = eval[string](b, "location.origin")
	b.fill("#card", number)
	b.click("#pay")
	b.untilAt("/wallet")
	return origin
}

// api is a caller with a token made on the account page of whoever is signed in.
func (b *tab) api() *caller {
	b.t.Helper()
	token := eval[string](b, `fetch("/api/v1/tokens", { method: "POST", headers: { "Content-Type": "application/json" }, body: '{"name":"test"}' })
		.then((r) => r.json()).then((j) => j.token)`)
	return &caller{t: b.t, base: b.base, token: token, http: &http.Client{Timeout: patience}}
}

// spell writes a short duration as the pages do.
func spell(seconds int64) string {
	if seconds < 60 {
		return fmt.Sprintf("%d s", seconds)
	}
	return fmt.Sprintf("%d min %02d s", seconds/60, seconds%60)
}

// pdf fetches the page's PDF and reads what stands in it, where this machine can.
func (b *tab) pdf(wants ...string) {
	b.t.Helper()
	encoded := eval[string](b, `fetch([...document.querySelectorAll("a")].find((a) => a.innerText.includes("Download PDF")).href).then((r) => r.bytes()).then((b) => b.toBase64())`)
	content, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || !strings.HasPrefix(string(content), "%PDF-") {
		b.t.Fatalf("not a PDF: %v %.40q", err, content)
	}
	reader, err := exec.LookPath("pdftotext")
	if err != nil {
		b.t.Log("no pdftotext here: what the PDF says is not read")
		return
	}
	file := filepath.Join(b.t.TempDir(), "invoice.pdf")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		b.t.Fatal(err)
	}
	out, err := exec.Command(reader, "-layout", file, "-").CombinedOutput()
	if err != nil {
		b.t.Fatalf("pdftotext: %v\n%s", err, out)
	}
	said := regexp.MustCompile(`\s+`).ReplaceAllString(string(out), " ")
	for _, want := range append(wants, "Test payments") {
		if !strings.Contains(said, want) {
			b.t.Errorf("the PDF does not say %q:\n%s", want, out)
		}
	}
}

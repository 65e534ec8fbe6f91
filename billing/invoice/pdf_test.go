package invoice_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/billing/invoice"
	"berth/models"
	"berth/money"
)

// sample is a document with n lines of two spans each.
func sample(n int) invoice.Document {
	start := time.Date(2026, 10, 31, 23, 0, 0, 0, time.UTC)
	d := invoice.Document{
		Number: "B-2026-000117", Account: "acc_1", Currency: "USD", TimeZone: "Europe/Budapest",
		Seller:      invoice.Party{Name: "Quay Compute GmbH", Address: []string{"Speicherweg 8", "20457 Hamburg"}, TaxID: "DE 000 000 000"},
		Buyer:       invoice.Party{Name: "Łódź 東京 Lab, Ελλάδα & Київ", Address: []string{"4 Example Street", "10115 Berlin"}},
		PeriodStart: start, PeriodEnd: time.Date(2026, 11, 30, 23, 0, 0, 0, time.UTC), IssuedAt: time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC),
		CarryIn: 4_997, CarryOut: 4_663, TestPayments: "Test payments: no real money moves.",
	}
	rate := money.Rate(238_750)
	for i := range n {
		l := invoice.Line{Text: "A100 80GB · 1g.10gb, on demand", Detail: fmt.Sprintf("trainer-%d", i), Share: "1/7 compute, 1/8 memory",
			SKU: "a100-80gb.1g.10gb", BillingMode: models.OnDemand, PricePerHour: rate}
		if i == 1 {
			l.Detail, l.Late = "学習-北京 · used in October 2026, reported late", true
		}
		for k := range 2 {
			at := start.Add(time.Duration(i*7+k*3) * time.Hour)
			seconds := int64(3_661 + i*1_234)
			l.Spans = append(l.Spans, invoice.Span{ID: models.SpanID(fmt.Sprintf("ins_01k9x%d.%d", i, k+1)), Start: at,
				End: at.Add(time.Duration(seconds) * time.Second), Seconds: seconds, Exact: rate.For(seconds)})
			l.Seconds += seconds
			l.Exact += rate.For(seconds)
		}
		l.Amount = l.Exact / 10_000 * 10_000
		d.Total += l.Amount
		d.Lines = append(d.Lines, l)
	}
	return d
}

func draw(t *testing.T, d invoice.Document) (path string) {
	t.Helper()
	pdf, err := invoice.PDF(d)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "invoice.pdf")
	if keep := os.Getenv("BERTH_KEEP_PDF"); keep != "" {
		path = filepath.Join(keep, strings.ReplaceAll(t.Name(), "/", "-")+".pdf")
	}
	if err := os.WriteFile(path, pdf, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// tool runs one of poppler's programs, or skips.
func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("%s is not installed (Debian: apt-get install poppler-utils)", name)
	}
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
	return string(out)
}

func TestPDFSaysWhatTheDocumentSays(t *testing.T) {
	d := sample(5)
	d.Lines[4].Exact, d.Lines[4].Amount = 691, 0 // case A28: some, but no cent
	text := tool(t, "pdftotext", "-layout", draw(t, d), "-")
	for _, want := range []string{"Invoice B-2026-000117", "Quay Compute GmbH", "Speicherweg 8", "VAT DE 000 000 000", "Łódź 東京 Lab, Ελλάδα & Київ",
		"1 Nov 2026 – 30 Nov 2026", "1 Dec 2026", "A100 80GB · 1g.10gb, on demand", "1/7 compute, 1/8 memory", "学習-北京", "reported late",
		"7,322 s", "$0.23875 /h", "USD", "0.48", "< 0.01", "Total", "Paid from wallet", "−" + invoice.Bare(usd(t), d.Total), "To pay", "$0.00",
		"Test payments: no real money moves.", "no legal effect", "$0.004997", "$0.004663", "Page 1 of 2",
		"1 Nov 2026, 00:00:00 – 1 Nov 2026, 01:01:01"} {
		if !strings.Contains(text, want) {
			t.Errorf("the PDF does not say %q", want)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

func usd(t *testing.T) money.Currency {
	t.Helper()
	c, err := money.LookupCurrency("USD")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestPDFFontsAreEmbedded(t *testing.T) {
	rows := strings.Split(strings.TrimSpace(tool(t, "pdffonts", draw(t, sample(2)))), "\n")[2:]
	if len(rows) != 3 {
		t.Errorf("%d fonts, want two weights and the fallback: %q", len(rows), rows)
	}
	for _, row := range rows {
		if f := strings.Fields(row); len(f) < 5 || f[len(f)-5] != "yes" || f[len(f)-3] != "yes" {
			t.Errorf("not embedded, or its text cannot be read: %s", row)
		}
	}
}

func TestPDFIsAlwaysTheSame(t *testing.T) {
	d := sample(40)
	first, err := invoice.PDF(d)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		again, err := invoice.PDF(d)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, again) {
			t.Fatal("two drawings of one document differ")
		}
	}
}

// Whatever the number of lines, the totals are on one page, with what they sum.
func TestTotalsStayTogether(t *testing.T) {
	for n := 0; n <= 24; n++ {
		path := draw(t, sample(n))
		pages := strings.Split(tool(t, "pdftotext", "-layout", path, "-"), "\f")
		found := 0
		for _, p := range pages {
			if strings.Contains(p, "To pay") {
				found++
				for _, want := range []string{"Total", "Paid from wallet", "$0.00"} {
					if !strings.Contains(p, want) {
						t.Errorf("%d lines: the page with the totals lacks %q", n, want)
					}
				}
			}
		}
		if found != 1 {
			t.Errorf("%d lines: totals on %d pages", n, found)
		}
	}
}

func TestPDFDrawsHostileText(t *testing.T) {
	d := sample(1)
	d.Buyer.Name = strings.Repeat("Wide𝔘nbrokenName", 30) + "\x00\x07 🙂 شركة"
	d.Seller.Name = strings.Repeat("M", 300)
	d.Lines[0].Detail = strings.Repeat("x", 500)
	d.Number = ""
	text := tool(t, "pdftotext", draw(t, d), "-")
	if !strings.Contains(text, "Usage so far") || !strings.Contains(text, "This is not an invoice") {
		t.Error("the month so far does not say that it is no invoice")
	}
}

func TestPeriod(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Budapest")
	if err != nil {
		t.Fatal(err)
	}
	for want, tc := range map[string][2]time.Time{
		"1 Nov 2026 – 30 Nov 2026":               {time.Date(2026, 11, 1, 0, 0, 0, 0, zone), time.Date(2026, 12, 1, 0, 0, 0, 0, zone)},
		"1 Nov 2026, 00:00 – 15 Nov 2026, 14:03": {time.Date(2026, 11, 1, 0, 0, 0, 0, zone), time.Date(2026, 11, 15, 14, 3, 0, 0, zone)},
		"1 Mar 2026 – 31 Mar 2026":               {time.Date(2026, 3, 1, 0, 0, 0, 0, zone), time.Date(2026, 4, 1, 0, 0, 0, 0, zone)}, // the clocks change
		"15 Nov 2026, 14:03 – 1 Dec 2026, 00:00": {time.Date(2026, 11, 15, 14, 3, 0, 0, zone), time.Date(2026, 12, 1, 0, 0, 0, 0, zone)},
	} {
		d := invoice.Document{TimeZone: "Europe/Budapest", PeriodStart: tc[0].UTC(), PeriodEnd: tc[1].UTC()}
		if got := d.Period(); got != want {
			t.Errorf("period %q, want %q", got, want)
		}
	}
}

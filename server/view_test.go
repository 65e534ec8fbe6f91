package server

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth/billing"
	"berth/fleet"
	"berth/gpu"
	"berth/models"
	"berth/money"
	"berth/web"
)

func currency(t testing.TB, code string) money.Currency {
	t.Helper()
	c, err := money.LookupCurrency(code)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDurationsInWords(t *testing.T) {
	for seconds, want := range map[int64][2]string{
		0: {"0 s", "0 s"}, 59: {"59 s", "59 s"}, 60: {"1 min 00 s", "1 min 00 s"}, 3599: {"59 min 59 s", "59 min 59 s"},
		8047: {"2 h 14 min 07 s", "2 h 14 min"}, 86400: {"1 d 0 h 00 min", "1 d 0 h"}, 154_920: {"1 d 19 h 02 min", "1 d 19 h"}, 1000 * 86400: {"1000 d 0 h 00 min", "over 999 d"},
	} {
		if got := [2]string{duration(seconds), roughly(seconds)}; got != want {
			t.Errorf("%d s: %q, not %q", seconds, got, want)
		}
	}
	now := models.At(noon)
	for before, want := range map[time.Duration]string{0: "now", 4 * time.Second: "now", 42 * time.Second: "42 s ago", 61 * time.Minute: "1 h ago", 48 * time.Hour: "29 Nov, 12:00"} {
		if got := ago(now.Add(-before), now, time.UTC); got != want {
			t.Errorf("%v before: %q, not %q", before, got, want)
		}
	}
	if ago(0, now, time.UTC) != "never" {
		t.Error("no moment")
	}
}

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func TestNumbersInWords(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 12_345: "12,345", 123_456: "123,456", 1_234_567: "1,234,567"} {
		if got := thousands(n); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
	usd, jpy, kwd := currency(t, "USD"), currency(t, "JPY"), currency(t, "KWD")
	for _, tc := range []struct {
		got, want string
	}{
		{signed(usd, 100_000_000), "+100.00"}, {signed(usd, -2_010_000), "−2.01"}, {signed(usd, -453), "−0.000453"}, {signed(jpy, 800_000_000), "+800"}, {signed(kwd, -1_500_000), "−1.500"},
		{plainAmount(usd, 1_234_560_000), "1,234.56"}, {plainAmount(usd, -300_000), "−0.30"},
		{minus(usd, 4), "< $0.01"}, {minus(usd, 0), "$0.00"},
		{perHour(usd, 7_500), "$0.0075"}, {perSecond(usd, 420_000), "$0.000117"},
		{count(1, "node"), "1 node"}, {count(1200, "slice"), "1,200 slices"},
		{skuName("a100-80gb.1g.10gb"), "A100 80GB · 1g.10gb"}, {skuName("h100-80gb.x4"), "4 × H100 80GB"}, {skuName("what"), "what"},
		{byteRange(4_900_000_000, 7_900_000_000), "4.9 of 7.9 GB"}, {byteRange(1_500_000, 90_000_000), "1.5 of 90.0 MB"},
	} {
		if tc.got != tc.want {
			t.Errorf("%q, not %q", tc.got, tc.want)
		}
	}
}

// What the two parts of a cost say together is the amount, cut to two digits
// beyond the currency's own.
func TestSplitAmountLosesNothingItShows(t *testing.T) {
	for code, want := range map[string][2]string{"USD": {"$3.64", "35"}, "JPY": {"¥3", ".64"}, "KWD": {"KWD 3.643", "57"}} {
		whole, faint := splitAmount(currency(t, code), 3_643_579)
		if whole != want[0] || faint != want[1] {
			t.Errorf("%s: %q %q", code, whole, faint)
		}
	}
	usd := currency(t, "USD")
	rapid.Check(t, func(t *rapid.T) {
		a := money.Amount(rapid.Int64Range(0, 1_000_000_000_000).Draw(t, "amount"))
		whole, faint := splitAmount(usd, a)
		back, err := usd.Parse(whole + faint)
		if err != nil || back != a/100*100 {
			t.Fatalf("%d is %q %q: %d, %v", a, whole, faint, back, err)
		}
	})
}

// A2: the page of an invoice says which share of the card a line is of; A28: what
// is less than a cent is not nothing; A19: late usage has its month, its spans have
// none. Times are in the document's zone, whatever became of the account's since.
func TestInvoicePageSaysWhatTheDocumentSays(t *testing.T) {
	start := time.Date(2026, 10, 31, 23, 0, 0, 0, time.UTC)
	line := func(detail, share string, seconds int64, exact, amount money.Amount) billing.Line {
		return billing.Line{Text: "A100 80GB, on demand", Detail: detail, Share: share, Seconds: seconds, PricePerHour: 2_490_000, Exact: exact, Amount: amount,
			Spans: []billing.LineSpan{{ID: "ins_1.1", Start: start, End: start.Add(time.Duration(seconds) * time.Second), Seconds: seconds, Exact: exact}}}
	}
	for code, small := range map[string]string{"USD": "< 0.01", "JPY": "< 1", "KWD": "< 0.001"} {
		doc := billing.Document{TimeZone: "Europe/Budapest", PeriodStart: start, PeriodEnd: start.AddDate(0, 0, 30), Lines: []billing.Line{
			line("tern-01", "1/7 compute, 1/8 memory", 1, 691, 0),
			line("auk-01 · used in October 2026, reported late", "", 3600, 2_000_000, 2_000_000),
			line("idle", "", 0, 0, 0)}}
		c := currency(t, code)
		v := invoiceView(c, models.Invoice{ID: "inv_1"}, doc)
		tiny, late, none := v.Lines[0], v.Lines[1], v.Lines[2]
		if tiny.Detail != "tern-01 · 1/7 compute, 1/8 memory" || tiny.Used != "1 s" || tiny.Amount != small || tiny.Spans[0].Charged != strings.TrimPrefix(c.FormatExact(691), c.Symbol) {
			t.Errorf("%s: %+v", code, tiny)
		}
		if late.Detail != "auk-01 · used in October 2026, reported late" || late.Spans[0].Instance != "auk-01" || late.Amount != strings.TrimPrefix(c.Format(2_000_000), c.Symbol) {
			t.Errorf("%s: %+v", code, late)
		}
		if none.Amount != strings.TrimPrefix(c.Format(0), c.Symbol) {
			t.Errorf("%s: %+v", code, none)
		}
		if v.Zone != "Europe/Budapest" || tiny.Spans[0].Start != "1 Nov, 00:00:00" || v.Facts[0].Value != "1–30 Nov 2026" {
			t.Errorf("%s: %s, %s, %v", code, v.Zone, tiny.Spans[0].Start, v.Facts)
		}
	}
}

func TestPeriodsOfInvoices(t *testing.T) {
	day := func(m time.Month, d int) time.Time { return time.Date(2026, m, d, 0, 0, 0, 0, time.UTC) }
	for want, tc := range map[string][2]time.Time{
		"1–30 Nov 2026":            {day(11, 1), day(12, 1)},
		"1 Dec 2026":               {day(12, 1), day(12, 1).Add(13 * time.Hour)},
		"15 Nov – 31 Dec 2026":     {day(11, 15), day(13, 1)},
		"15 Dec 2026 – 1 Jan 2027": {day(12, 15), day(13, 2)},
		"3 Dec 2026":               {day(12, 3), day(12, 3)},
	} {
		if got := period(tc[0], tc[1], time.UTC); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

func TestPurseSaysHowLongItLasts(t *testing.T) {
	usd, at := currency(t, "USD"), models.At(noon)
	for name, tc := range map[string]struct {
		wallet billing.Wallet
		want   web.Purse
	}{
		"idle":     {billing.Wallet{Available: 182_400_000}, web.Purse{Balance: "$182.40", Lasts: "nothing running"}},
		"days":     {billing.Wallet{Available: 182_400_000, Burn: 1, RunsOutAt: at.Add(43 * time.Hour)}, web.Purse{Balance: "$182.40", Lasts: "1 d 19 h left"}},
		"low":      {billing.Wallet{Available: 1_000_000, Burn: 1, RunsOutAt: at.Add(3 * time.Hour)}, web.Purse{Balance: "$1.00", Lasts: "3 h 00 min left", Low: true}},
		"over":     {billing.Wallet{Available: 0, Burn: 1, RunsOutAt: at.Add(-time.Second)}, web.Purse{Balance: "$0.00", Lasts: "0 s left", Low: true}},
		"for ever": {billing.Wallet{Available: 9, Burn: 1}, web.Purse{Balance: "$0.00", Lasts: "not running out"}},
	} {
		if got := purseView(usd, tc.wallet, at); *got != tc.want {
			t.Errorf("%s: %+v", name, *got)
		}
	}
}

func TestTimelineOfARun(t *testing.T) {
	at := func(s float64) models.Instant { return models.At(noon.Add(time.Duration(s * float64(time.Second)))) }
	event := func(kind models.InstanceEventKind, to models.InstanceState, s float64) models.InstanceEvent {
		return models.InstanceEvent{Kind: string(kind), To: to, At: at(s), Run: 1}
	}
	placed, pulling, starting, running := event(models.Placed, models.Placing, 0.4), event(models.NodePulling, models.Pulling, 1.5), event(models.NodeStarting, models.Starting, 21.1), event(models.NodeRunning, models.Running, 28.3)
	say := func(state models.InstanceState, now float64, span models.UsageSpan, events ...models.InstanceEvent) string {
		k := instanceFacts{in: fleet.InstanceView{Instance: models.Instance{State: state, Run: 1, RequestedAt: at(0)}, Span: span}, events: events, at: at(now), zone: time.UTC}
		var out []string
		for _, s := range timeline(k) {
			out = append(out, fmt.Sprintf("%s[%s %s]", s.Label, s.Status, s.Detail))
		}
		return strings.Join(out, " ")
	}
	span := models.UsageSpan{ID: "i.1", State: models.SpanRunning, StartAt: at(28.3), Cursor: 60}
	head := "Requested[done 0.4 s] "
	for name, tc := range map[string][2]string{
		"placing":  {say(models.Placing, 1.4, models.UsageSpan{}, placed), head + "Making the slice[now 1 s] Fetching image[todo ] Starting[todo ] Running[todo billing starts here]"},
		"pulling":  {say(models.Pulling, 11.5, models.UsageSpan{}, placed, pulling), head + "Placed[done 1.1 s] Fetching image[now 10 s] Starting[todo ] Running[todo billing starts here]"},
		"running":  {say(models.Running, 100.3, span, placed, pulling, starting, running), head + "Placed[done 1.1 s] Image ready[done 19.6 s] Started[done 7.2 s] Running[now 1 min 12 s]"},
		"skipping": {say(models.Running, 100.3, span, placed, running), head + "Placed[done 0 ms] Image ready[done 0 ms] Started[done 27.9 s] Running[now 1 min 12 s]"},
		"failed": {say(models.Failed, 50, models.UsageSpan{}, placed, pulling, starting, event(models.NodeFailed, models.Failed, 22)),
			head + "Placed[done 1.1 s] Image ready[done 19.6 s] Starting[failed after 0.9 s]"},
		"cancelled": {say(models.Stopped, 50, models.UsageSpan{}, placed, event(models.StopAsked, models.Stopping, 2), event(models.NodeStopped, models.Stopped, 3)),
			head + "Stopped[done ran 0 s]"},
		"stopping": {say(models.Stopping, 90, models.UsageSpan{ID: "i.1", State: models.SpanCapped, Cursor: 60, StartAt: at(28.3)}, placed, pulling, starting, running, event(models.StopAsked, models.Stopping, 88.3)),
			head + "Placed[done 1.1 s] Image ready[done 19.6 s] Started[done 7.2 s] Stopping[now free since 12:01:28]"},
		"lost": {say(models.Lost, 900, models.UsageSpan{ID: "i.1", State: models.SpanClosed, Cursor: 60}, placed, pulling, starting, running, event(models.NodeLost, models.Lost, 700)),
			head + "Placed[done 1.1 s] Image ready[done 19.6 s] Started[done 7.2 s] Node lost[failed at 12:11:40]"},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s:\n%s\nnot\n%s", name, tc[0], tc[1])
		}
	}
}

// Every state of an instance has a page: no action is offered that its table of
// moves refuses, and none that it allows is missing.
func TestActionsFollowTheTable(t *testing.T) {
	usd := currency(t, "USD")
	for _, state := range models.InstanceStates {
		in := fleet.InstanceView{Instance: models.Instance{ID: "ins_1", Name: "tern", State: state, Run: 1, SKU: "a100-80gb.1g.10gb"}}
		v := instanceView(usd, instanceFacts{in: in, at: models.At(noon), zone: time.UTC, allowed: true})
		if v.State == "" || v.State == string(state) {
			t.Errorf("%s has no word", state)
		}
		for on, has := range map[models.InstanceEventKind]bool{models.StopAsked: v.Stop != nil, models.StartAsked: v.Start != nil, models.RestartAsked: v.Restart != nil, models.TerminateAsked: v.Terminate != nil} {
			if has != state.Can(on) {
				t.Errorf("%s offers %s: %v", state, on, has)
			}
		}
		for _, a := range []*web.Action{v.Stop, v.Start, v.Restart, v.Terminate} {
			if a != nil && (a.Label == "" || a.Title == "" || a.Do == "" || len(a.Consequences) < 2 || !a.Consequences[0].Keep) {
				t.Errorf("%s: %+v does not say what it keeps and loses", state, a)
			}
		}
		viewer := instanceView(usd, instanceFacts{in: in, at: models.At(noon), zone: time.UTC})
		if viewer.Stop != nil || viewer.Start != nil || viewer.Restart != nil || viewer.Terminate != nil || viewer.Terminal {
			t.Errorf("a viewer may act on %s", state)
		}
	}
}

func TestEverySoldSliceIsDrawnWhereItLies(t *testing.T) {
	for _, m := range gpu.Models() {
		for _, p := range m.Sold() {
			bar, left, _ := skuBar(m, p)
			if len(bar.Holds) != 1 || bar.Label == "" || left == "" {
				t.Errorf("%s %s: %+v", m.ID, p.Name, bar)
			}
			for _, start := range p.Starts {
				place := p.At(start)
				h := cardBar(m, []gpu.Placement{place}, web.KindGhost, nil).Holds[0]
				if m.Partitions() && (h.Start != start || h.Size != p.Units || h.Compute != p.ComputeSlices || h.Start+h.Size > m.MemoryUnits) {
					t.Errorf("%s %s at %d: %+v", m.ID, p.Name, start, h)
				}
				left, right := captions(m, place)
				if left == "" || m.Partitions() && !strings.HasSuffix(right, fmt.Sprintf("of %d", m.ComputeSlices)) {
					t.Errorf("%s %s at %d: %q %q", m.ID, p.Name, start, left, right)
				}
			}
		}
	}
	a100, err := gpu.Lookup("a100-80gb")
	if err != nil {
		t.Fatal(err)
	}
	if left, right := captions(a100, gpu.Placement{Profile: "3g.40gb", Start: 4, Size: 4}); left != "memory 5–8 of 8" || right != "compute 5–7 of 7" {
		t.Errorf("%q %q", left, right)
	}
	unknown := cardBar(gpu.Model{}, []gpu.Placement{{Profile: "x", Size: 1}}, web.KindYours, nil)
	if unknown.Memory != 0 || len(unknown.Holds) != 1 {
		t.Errorf("a card nobody knows: %+v", unknown)
	}
}

func TestChartsDrawTheWindowAndItsGaps(t *testing.T) {
	a100, err := gpu.Lookup("a100-80gb")
	if err != nil {
		t.Fatal(err)
	}
	now := models.At(noon)
	var samples []fleet.Sample
	for s := 1000; s >= 0; s-- {
		if s > 300 && s < 400 {
			continue // the node was away
		}
		v, used := float64(s%100), int64(7410)
		samples = append(samples, fleet.Sample{At: now.Add(-time.Duration(s) * time.Second), Run: 2, UtilizationPercent: &v, MemoryMiB: &used})
	}
	in := fleet.InstanceView{Slices: []fleet.SliceView{{Lease: models.Lease{Profile: "1g.10gb", Size: 1, MemoryMiB: 9856}, Model: a100}}}
	live := liveView("/live", instanceScale(in), samples, now)
	util := live.Charts[0]
	if util.Peak != "99" || util.Now != "0" || len(util.Points) != chartPoints {
		t.Errorf("peak %s, now %s, %d points", util.Peak, util.Now, len(util.Points))
	}
	gaps := 0
	for i, p := range util.Points {
		if p.Y == nil {
			gaps++
		}
		if p.X < 0 || p.X > 1 || i > 0 && p.X <= util.Points[i-1].X {
			t.Fatalf("point %d at %v", i, p.X)
		}
	}
	if gaps < 18 || gaps > 21 {
		t.Errorf("99 s away is %d empty steps of 5 s", gaps)
	}
	if memory := live.Charts[1]; memory.Now != "7,410" || memory.Unit != " of 9,856 MiB" || memory.Top != 9856 {
		t.Errorf("memory %+v", memory.Now)
	}
	if power := live.Charts[3]; power.Now != "" || power.Right != "of the whole card only" || power.Limit != 0 {
		t.Errorf("power %+v", power)
	}
	if live := liveView("/live", instanceScale(in), nil, now); live.Charts[0].Points != nil || live.Charts[0].Peak != "–" {
		t.Errorf("nothing is drawn as something: %+v", live.Charts[0])
	}
	// A young run has no gap where there is none.
	for _, p := range liveView("/live", instanceScale(in), samples[len(samples)-50:], now).Charts[0].Points {
		if p.Y == nil {
			t.Errorf("a gap at %v of a minute", p.X)
		}
	}
}

func TestLedgerReadsAsADiary(t *testing.T) {
	usd := currency(t, "USD")
	at := models.At(noon)
	rows := ledgerRows(usd, []billing.LedgerRow{
		{At: at, Kind: "usage", Amount: -420_000, BalanceAfter: 182_400_000, Reason: "tern, 3,600 s"},
		{At: at.Add(-time.Hour), Kind: "topup", Amount: 100_000_000, BalanceAfter: 182_820_000, Reason: "Top-up"},
		{At: at.Add(-24 * time.Hour), Kind: "something", Amount: -1, BalanceAfter: 82_820_000, Reason: "Something new"},
	}, time.UTC)
	want := []web.LedgerRow{
		{Day: "Tue 1 Dec", At: "12:00", DateTime: "2026-12-01T12:00:00Z", What: "Usage", Detail: "tern, 3,600 s", Amount: "−0.42", Balance: "182.40"},
		{At: "11:00", DateTime: "2026-12-01T11:00:00Z", What: "Top-up", Amount: "+100.00", Balance: "182.82", In: true},
		{Day: "Mon 30 Nov", At: "12:00", DateTime: "2026-11-30T12:00:00Z", What: "Something new", Amount: "−0.000001", Balance: "82.82"},
	}
	if !reflect.DeepEqual(rows, want) {
		t.Errorf("%+v", rows)
	}
}

func TestEveryTopUpStateHasAWordAndWayOn(t *testing.T) {
	usd := currency(t, "USD")
	for _, tc := range []struct {
		topup models.Topup
		want  web.TopUpState
		href  bool
	}{
		{models.Topup{State: models.TopupCreating}, web.TopUpPending, false},
		{models.Topup{State: models.TopupOpen, CheckoutURL: "https://pay"}, web.TopUpPending, true},
		{models.Topup{State: models.TopupOpen, CheckoutURL: "https://pay", Reason: "The bank declined the card."}, web.TopUpFailed, true},
		{models.Topup{State: models.TopupProcessing, CheckoutURL: "https://pay"}, web.TopUpPending, false},
		{models.Topup{State: models.TopupPaid, CheckoutURL: "https://pay"}, web.TopUpPaid, false},
		{models.Topup{State: models.TopupFailed, Reason: "Refused."}, web.TopUpFailed, false},
		{models.Topup{State: models.TopupExpired}, web.TopUpExpired, false},
		{models.Topup{State: models.TopupCanceled}, web.TopUpExpired, false},
	} {
		r := returnView(usd, tc.topup)
		row := topUpRow(usd, tc.topup, time.UTC)
		if r.State != tc.want || (r.CheckoutHref != "") != tc.href || (row.CheckoutHref != "") != tc.href || row.State == "" || row.Tone == "" {
			t.Errorf("%+v: %+v %+v", tc.topup, r, row)
		}
	}
}

func TestPricesShowWhatHoldsAndWhatIsPlanned(t *testing.T) {
	at := models.At(noon)
	price := func(sku string, rate money.Rate, from models.Instant) models.Price {
		return models.Price{SKU: sku, PricePerHour: rate, EffectiveAt: from}
	}
	v := pricesView(currency(t, "USD"), []models.Price{price("a100-80gb", 1_990_000, at)},
		[]models.Price{price("a100-80gb", 2_100_000, at.Add(time.Hour)), price("h100-80gb", 3_000_000, at.Add(time.Hour)), price("a100-80gb", 2_200_000, at.Add(2*time.Hour))}, nil, "")
	var got []string
	for _, r := range v.Rows {
		got = append(got, r.SKU+" "+r.PerHour+" "+r.State)
	}
	want := []string{"a100-80gb $1.99 Now", "a100-80gb $2.10 Planned", "a100-80gb $2.20 Planned", "h100-80gb $3.00 Planned"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestBrowserNames(t *testing.T) {
	for agent, want := range map[string]string{
		"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0":                                                    "Firefox on Linux",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Safari/604.1": "Safari on iPhone",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36 Edg/140.0":     "Edge on Windows",
		"curl/8.5.0": "curl", "": "An unknown program", "Go-http-client/1.1": "a Go program",
	} {
		if got := browserName(agent); got != want {
			t.Errorf("%q: %q", agent, got)
		}
	}
}

// Amount, seconds and price on an instance's page are of one run, so that they
// multiply; what runs before it cost stands beside.
func TestCostIsOfOneRun(t *testing.T) {
	usd, err := money.LookupCurrency("USD")
	if err != nil {
		t.Fatal(err)
	}
	in := fleet.InstanceView{Instance: models.Instance{State: models.Stopped, Run: 2, PricePerHour: 3_600_000},
		Span: models.UsageSpan{ID: "i.2", State: models.SpanClosed, PricePerHour: 3_600_000, Cursor: 60, Charged: 60_000}}
	v := costView(usd, instanceFacts{in: in, charged: 160_000})
	if v.Heading != "The last run has cost" || v.Whole != "$0.06" {
		t.Errorf("%q %s", v.Heading, v.Whole)
	}
	if !slices.ContainsFunc(v.Lines, func(p web.Pair) bool { return p.Term == "Earlier runs" && p.Value == "$0.10" }) {
		t.Errorf("lines %+v", v.Lines)
	}
}

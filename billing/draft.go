package billing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"berth/billing/invoice"
	"berth/gpu"
	"berth/models"
	"berth/models/store"
	"berth/money"
)

// testPayments is the banner of every document while no real money moves.
const testPayments = "Test payments: no real money moves."

// draft is a document in the making, with what it takes from the spans.
type draft struct {
	doc   Document
	parts []models.InvoicedPart
	spans []models.UsageSpan // with InvoicedTo moved
}

// lineKey is what goes on one line: one instance at one price; what was used
// before the period has lines of its own, by month.
type lineKey struct {
	instance models.InstanceID
	sku      string
	mode     models.BillingMode
	rate     money.Rate
	late     models.Instant // start of the month; zero: in the period
}

// draft gathers an account's seconds that are on no invoice and began before
// until. The parts of one span are cumulative differences, so however often an
// account is invoiced, all parts together are the span's charge, exactly.
func (s *Service) draft(tx *store.Tx, account models.AccountID, until, at models.Instant) (draft, error) {
	payer, err := tx.Account(account)
	if err != nil {
		return draft{}, err
	}
	zone, err := zoneOf(payer)
	if err != nil {
		return draft{}, err
	}
	cur, err := money.LookupCurrency(payer.Currency)
	if err != nil {
		return draft{}, err
	}
	last, _, err := tx.LastInvoice(account)
	if err != nil {
		return draft{}, err
	}
	spans, err := tx.UninvoicedSpans(account)
	if err != nil {
		return draft{}, err
	}
	start := periodStart(spans, last.PeriodEnd, until, zone)
	d := draft{doc: Document{Account: account, Currency: payer.Currency, TimeZone: zone.String(),
		Seller: s.cfg.Seller, Buyer: Party{Name: payer.Name},
		PeriodStart: start.Time(), PeriodEnd: until.Time(), IssuedAt: at.Time(), CarryIn: last.Carry}}
	if s.cfg.TestPayments {
		d.doc.TestPayments = testPayments
	}
	lines := map[lineKey]*Line{}
	for _, u := range spans {
		to := min(u.Cursor, secondsUntil(u.StartAt, until))
		if to <= u.InvoicedTo {
			continue
		}
		for _, cut := range partCuts(u, to, start, zone) {
			part := models.InvoicedPart{SpanID: u.ID, FromSeconds: u.InvoicedTo, ToSeconds: cut,
				Amount: u.PricePerHour.For(cut) - u.PricePerHour.For(u.InvoicedTo)}
			from := after(u.StartAt, u.InvoicedTo)
			key := lineKey{instance: u.InstanceID, sku: u.SKU, mode: u.BillingMode, rate: u.PricePerHour}
			if from < start {
				key.late = monthStart(from, zone)
			}
			if lines[key] == nil {
				lines[key] = newLine(u, key, zone)
			}
			addSpan(lines[key], u, part)
			d.parts = append(d.parts, part)
			u.InvoicedTo = cut
		}
		d.spans = append(d.spans, u)
	}
	d.doc.Lines = inOrder(lines)
	exact := make([]money.Amount, len(d.doc.Lines))
	for i, l := range d.doc.Lines {
		exact[i] = l.Exact
	}
	minor, total, carry := money.SplitInvoice(exact, last.Carry, cur)
	for i, n := range minor {
		if d.doc.Lines[i].Amount, err = cur.FromMinor(n); err != nil {
			return draft{}, err
		}
	}
	d.doc.CarryOut = carry
	d.doc.Total, err = cur.FromMinor(total)
	return d, err
}

// periodStart is where a period that ends at until begins: where the last invoice
// ended, or with the month of the first second since then; of usage that was never
// invoiced since its month is not closed yet, that is not the present month. What
// is older came too late for its invoice.
func periodStart(spans []models.UsageSpan, closed, until models.Instant, zone *time.Location) models.Instant {
	first := until - 1
	for _, u := range spans {
		if after(u.StartAt, u.Cursor) > closed {
			first = min(first, max(closed, after(u.StartAt, u.InvoicedTo)))
		}
	}
	return max(closed, monthStart(first, zone))
}

// partCuts cuts a span's seconds up to to where the period starts, and at the
// borders of the months before it.
func partCuts(u models.UsageSpan, to int64, start models.Instant, zone *time.Location) []int64 {
	cuts := monthCuts(u.StartAt, u.InvoicedTo, to, zone)
	if k := secondsUntil(u.StartAt, start); k > u.InvoicedTo && k < to {
		cuts = append(cuts, k)
	}
	slices.Sort(cuts)
	return slices.Compact(cuts)
}

func newLine(u models.UsageSpan, key lineKey, zone *time.Location) *Line {
	text, share := describe(u.SKU, u.BillingMode)
	l := &Line{Text: text, Detail: u.InstanceName, Share: share, SKU: u.SKU, BillingMode: u.BillingMode,
		Instance: u.InstanceID, PricePerHour: u.PricePerHour}
	if !key.late.IsZero() {
		l.Late = true
		l.Detail += " · used in " + key.late.Time().In(zone).Format("January 2006") + ", reported late"
	}
	return l
}

func addSpan(l *Line, u models.UsageSpan, part models.InvoicedPart) {
	l.Seconds += part.ToSeconds - part.FromSeconds
	l.Exact += part.Amount
	from, to := after(u.StartAt, part.FromSeconds), after(u.StartAt, part.ToSeconds)
	if n := len(l.Spans); n > 0 && l.Spans[n-1].ID == u.ID && models.At(l.Spans[n-1].End) == from {
		s := &l.Spans[n-1]
		s.End, s.Seconds, s.Exact = to.Time(), s.Seconds+part.ToSeconds-part.FromSeconds, s.Exact+part.Amount
		return
	}
	l.Spans = append(l.Spans, invoice.Span{ID: u.ID, Start: from.Time(), End: to.Time(), Seconds: part.ToSeconds - part.FromSeconds, Exact: part.Amount})
}

// inOrder sorts lines by when they first ran; late ones come last.
func inOrder(lines map[lineKey]*Line) []Line {
	out := make([]Line, 0, len(lines))
	for _, l := range lines {
		out = append(out, *l)
	}
	slices.SortFunc(out, func(a, b Line) int {
		if a.Late != b.Late {
			if a.Late {
				return 1
			}
			return -1
		}
		return cmp.Or(a.Spans[0].Start.Compare(b.Spans[0].Start), strings.Compare(string(a.Spans[0].ID), string(b.Spans[0].ID)))
	})
	return out
}

var modeNames = map[models.BillingMode]string{models.OnDemand: "on demand", models.Spot: "spot", models.Reserved: "reserved"}

// describe writes a SKU for an invoice: what it is, and which share of a card.
func describe(id string, mode models.BillingMode) (text, share string) {
	sku, err := gpu.ParseSKU(id)
	if err != nil {
		return id + ", " + modeNames[mode], ""
	}
	m, p, err := sku.Slice()
	if err != nil {
		return id + ", " + modeNames[mode], ""
	}
	text = m.Name
	if p.Name != gpu.Whole {
		text += " · " + p.Name
		if share = fmt.Sprintf("1 of %d time shares", m.Share.N); m.Share.N == 0 {
			share = fmt.Sprintf("%d/%d compute, %d/%d memory", p.ComputeSlices, m.ComputeSlices, p.MemorySlices, m.MemorySlices)
		}
	}
	if sku.Count > 1 {
		text = fmt.Sprintf("%d × %s", sku.Count, text)
		if share != "" {
			share += " each"
		}
	}
	return text + ", " + modeNames[mode], share
}

package server

import (
	"fmt"
	"strings"
	"time"

	"berth/billing"
	"berth/models"
	"berth/money"
	"berth/web"
)

// invoiceView draws a document, and nothing but it: a closed invoice's frozen
// one, or the month so far. inv is the zero value for the latter.
func invoiceView(c money.Currency, inv models.Invoice, doc billing.Document) web.InvoiceView {
	closed, zone := inv.ID != "", doc.Zone()
	v := web.InvoiceView{ID: string(inv.ID), Seller: doc.Seller.Name, From: partyLines(doc.Seller), To: partyLines(doc.Buyer), Zone: zone.String()}
	v.State, v.Tone = invoiceStateView(closed)
	v.Facts = []web.Pair{{Term: "Period", Value: period(doc.PeriodStart, doc.PeriodEnd, zone)}}
	if closed {
		v.Heading = "Invoice " + doc.Number
		v.Facts = append(v.Facts, web.Pair{Term: "Issued", Value: fullDate(doc.IssuedAt, zone)}, web.Pair{Term: "Due", Value: "Nothing to pay"})
		v.PDFHref = "/invoices/" + string(inv.ID) + ".pdf"
	} else {
		v.Heading = doc.PeriodStart.In(zone).Format("January 2006") + ", so far"
	}
	sum := money.Amount(0)
	for _, l := range doc.Lines {
		sum += l.Amount
		v.Lines = append(v.Lines, invoiceLine(c, l, zone))
	}
	if doc.CarryIn != 0 || doc.CarryOut != 0 {
		v.Note = fmt.Sprintf("Rounded once: %s carried in, %s carried to the next invoice. ", c.FormatExact(doc.CarryIn), c.FormatExact(doc.CarryOut))
	}
	v.Note += "Seconds are counted from running to stopped. Lines are rounded once, so that they sum to the total."
	v.Totals = []web.Pair{{Term: "Total", Value: c.Format(doc.Total), Total: true}}
	if closed {
		v.Totals = append(v.Totals, web.Pair{Term: "Paid from wallet", Value: signed(c, -doc.Total)}, web.Pair{Term: "To pay", Value: c.Format(0), Total: true})
	}
	if sum != doc.Total && len(doc.Lines) > 0 {
		// It never happens to a document that billing made; better said than hidden.
		v.Note = "The lines do not sum to the total. Tell the operator. " + v.Note
	}
	return v
}

func partyLines(p billing.Party) []string {
	lines := append([]string{p.Name}, p.Address...)
	if p.TaxID != "" {
		lines = append(lines, "Tax ID "+p.TaxID)
	}
	return lines
}

func invoiceLine(c money.Currency, l billing.Line, zone *time.Location) web.InvoiceLine {
	line := web.InvoiceLine{What: l.Text, Detail: l.Detail, Used: thousands(l.Seconds) + " s", Price: perHour(c, l.PricePerHour), Unit: "per hour", Amount: l.Sum(c)}
	if l.Share != "" {
		line.Detail += " · " + l.Share
	}
	name, _, _ := strings.Cut(l.Detail, " · ") // late usage has its month behind
	for _, s := range l.Spans {
		line.Spans = append(line.Spans, web.InvoiceSpan{Instance: name, Start: dayClock(s.Start, zone), End: dayClock(s.End, zone),
			Seconds: thousands(s.Seconds), PerHour: perHour(c, l.PricePerHour), Charged: plainAmount(c, s.Exact)})
	}
	return line
}

// invoicesView lists closed invoices, and the month to date above them.
func invoicesView(c money.Currency, list []models.Invoice, current *billing.Document, zone *time.Location, at models.Instant) web.InvoicesView {
	now := at.Time().In(zone)
	next := time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, zone)
	v := web.InvoicesView{NextDate: next.Format("2 January")}
	if current != nil && len(current.Lines) > 0 {
		row := web.InvoiceRow{ID: currentID, Period: current.PeriodStart.In(zone).Format("January 2006") + ", so far", Total: c.Format(current.Total)}
		row.State, row.Tone = invoiceStateView(false)
		v.Current = &row
	}
	for _, inv := range list {
		row := web.InvoiceRow{ID: string(inv.ID), Number: inv.Number, Period: period(inv.PeriodStart.Time(), inv.PeriodEnd.Time(), zone),
			Issued: fullDate(inv.CreatedAt.Time(), zone), Total: c.Format(inv.Total)}
		row.State, row.Tone = invoiceStateView(true)
		v.Closed = append(v.Closed, row)
	}
	return v
}

// currentID stands for the month to date in addresses.
const currentID = "current"

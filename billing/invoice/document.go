// Package invoice is the document that a bill is: a frozen struct, kept as JSON,
// from which page and PDF are drawn and from nothing else, so that an invoice
// looks the same for ever. It is pure: it reads no database and no clock.
package invoice

import (
	"strings"
	"time"

	"berth/models"
	"berth/money"
)

// Party is one side of an invoice.
type Party struct {
	Name    string   `json:"name"`
	Address []string `json:"address,omitempty"` // line by line
	TaxID   string   `json:"tax_id,omitempty"`
}

// Document is an invoice, or (without a number) the account of a month so far.
// Times are UTC; TimeZone is the account's, in which dates are written.
type Document struct {
	Number       string           `json:"number"`
	Account      models.AccountID `json:"account"`
	Currency     string           `json:"currency"`
	TimeZone     string           `json:"time_zone"`
	Seller       Party            `json:"seller"`
	Buyer        Party            `json:"buyer"`
	PeriodStart  time.Time        `json:"period_start"`
	PeriodEnd    time.Time        `json:"period_end"` // exclusive
	IssuedAt     time.Time        `json:"issued_at"`
	Lines        []Line           `json:"lines"`
	CarryIn      money.Amount     `json:"carry_in"`  // what rounding the invoice before left to pay, or (negative) took too much
	CarryOut     money.Amount     `json:"carry_out"` // likewise, for the next invoice; at most half a minor unit
	Total        money.Amount     `json:"total"`     // whole minor units, the sum of the lines' amounts
	TestPayments string           `json:"test_payments,omitempty"`
}

// Line is what one instance used at one price, or (Late) used in a month before
// the period and reported after that month's invoice was closed.
type Line struct {
	Text         string             `json:"text"`   // "A100 80GB · 1g.10gb, on demand"
	Detail       string             `json:"detail"` // the instance's name; for late usage also the month
	SKU          string             `json:"sku"`
	BillingMode  models.BillingMode `json:"billing_mode"`
	Share        string             `json:"share,omitempty"` // "1/7 compute, 1/8 memory"; empty: the whole card
	Instance     models.InstanceID  `json:"instance"`
	Late         bool               `json:"late,omitempty"`
	Seconds      int64              `json:"seconds"`
	PricePerHour money.Rate         `json:"price_per_hour"`
	Exact        money.Amount       `json:"exact"`  // before rounding: what the wallet paid
	Amount       money.Amount       `json:"amount"` // whole minor units
	Spans        []Span             `json:"spans"`
}

// Span is the part of one usage span that a line bills.
type Span struct {
	ID      models.SpanID `json:"id"`
	Start   time.Time     `json:"start"`
	End     time.Time     `json:"end"` // exclusive
	Seconds int64         `json:"seconds"`
	Exact   money.Amount  `json:"exact"`
}

// Zone is the time zone that the document's dates are written in.
func (d Document) Zone() *time.Location {
	zone, err := time.LoadLocation(d.TimeZone)
	if err != nil {
		return time.UTC
	}
	return zone
}

// Period writes the period for people: by days where it begins and ends at
// midnight, "1 Nov 2026 – 30 Nov 2026", else with the time of day.
func (d Document) Period() string {
	start, end := d.PeriodStart.In(d.Zone()), d.PeriodEnd.In(d.Zone())
	if midnight(start) && midnight(end) {
		last := end.AddDate(0, 0, -1)
		return start.Format("2 Jan 2006") + " – " + last.Format("2 Jan 2006")
	}
	return start.Format("2 Jan 2006, 15:04") + " – " + end.Format("2 Jan 2006, 15:04")
}

func midnight(t time.Time) bool {
	h, m, s := t.Clock()
	return h == 0 && m == 0 && s == 0 && t.Nanosecond() == 0
}

// Title is the document's heading.
func (d Document) Title() string {
	if d.Number == "" {
		return "Usage so far"
	}
	return "Invoice " + d.Number
}

// Notes is the small print: how the sums came about, sentence by sentence.
func (d Document) Notes(c money.Currency) []string {
	notes := []string{"Time is counted from running to stopped, to the second. Each line is the sum of its usage, rounded once, and the lines sum to the total."}
	switch {
	case d.CarryIn > 0:
		notes = append(notes, "The total takes in "+c.FormatExact(d.CarryIn)+" that rounding the invoice before had left.")
	case d.CarryIn < 0:
		notes = append(notes, "The total is lower by "+c.FormatExact(-d.CarryIn)+" that rounding the invoice before had added.")
	}
	switch {
	case d.CarryOut > 0:
		notes = append(notes, c.FormatExact(d.CarryOut)+", left by rounding, goes on the next invoice.")
	case d.CarryOut < 0:
		notes = append(notes, c.FormatExact(-d.CarryOut)+", added by rounding, is taken off the next invoice.")
	}
	for _, l := range d.Lines {
		if l.Late {
			notes = append(notes, "Usage marked late was reported after its month's invoice had been closed.")
			break
		}
	}
	if d.Number == "" {
		notes = append(notes, "This is not an invoice: the month goes on.")
	}
	if d.TestPayments != "" {
		notes = append(notes, "This document has no legal effect.")
	}
	return notes
}

// Sum writes what a line comes to, without symbol. What is too little for a minor
// unit is said to be some: "< 0.01".
func (l Line) Sum(c money.Currency) string {
	if l.Amount == 0 {
		return strings.Replace(c.FormatSmall(l.Exact), c.Symbol, "", 1)
	}
	return Bare(c, l.Amount)
}

// Bare writes an amount without its symbol, for a column headed by the currency.
func Bare(c money.Currency, a money.Amount) string {
	return strings.Replace(strings.Replace(c.Format(a), c.Symbol, "", 1), "-", "−", 1)
}

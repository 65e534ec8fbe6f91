package billing

// The exported face of billing while its bodies are being written; each moves to
// the file of its subject.

import (
	"context"
	"time"

	"berth/models"
	"berth/money"
)

func (s *Service) Run(ctx context.Context) error                { panic("being written") }
func (s *Service) Verify(ctx context.Context) ([]string, error) { panic("being written") }

// Document is a frozen invoice: page and PDF are drawn from it and from nothing else.
type Document struct {
	Number       string           `json:"number"` // empty: the month so far
	Account      models.AccountID `json:"account"`
	Currency     string           `json:"currency"`
	TimeZone     string           `json:"time_zone"`
	Seller       Party            `json:"seller"`
	Buyer        Party            `json:"buyer"`
	PeriodStart  time.Time        `json:"period_start"`
	PeriodEnd    time.Time        `json:"period_end"`
	IssuedAt     time.Time        `json:"issued_at"`
	Lines        []Line           `json:"lines"`
	CarryIn      money.Amount     `json:"carry_in"`
	CarryOut     money.Amount     `json:"carry_out"`
	Total        money.Amount     `json:"total"`
	TestPayments string           `json:"test_payments,omitempty"` // the banner's text
}

// Line is one line of an invoice: one instance at one price.
type Line struct {
	Text         string             `json:"text"`   // "A100 80GB · 1g.10gb, on demand"
	Detail       string             `json:"detail"` // the instance's name, and when for late usage
	SKU          string             `json:"sku"`
	BillingMode  models.BillingMode `json:"billing_mode"`
	Share        string             `json:"share"` // "1/7 compute, 1/8 memory"
	Instance     models.InstanceID  `json:"instance"`
	Late         bool               `json:"late,omitempty"` // used before the period
	Seconds      int64              `json:"seconds"`
	PricePerHour money.Rate         `json:"price_per_hour"`
	Exact        money.Amount       `json:"exact"`  // before rounding
	Amount       money.Amount       `json:"amount"` // whole minor units
	Spans        []LineSpan         `json:"spans"`
}

// LineSpan is the part of one usage span that a line bills.
type LineSpan struct {
	ID      models.SpanID `json:"id"`
	Start   time.Time     `json:"start"`
	End     time.Time     `json:"end"`
	Seconds int64         `json:"seconds"`
	Exact   money.Amount  `json:"exact"`
}

func (s *Service) MonthToDate(ctx context.Context, account models.AccountID, at models.Instant) (Document, error) {
	panic("being written")
}
func (s *Service) CloseInvoice(ctx context.Context, account models.AccountID, until, at models.Instant) (models.Invoice, error) {
	panic("being written")
}
func (s *Service) Invoices(ctx context.Context, account models.AccountID, cursor string, limit int) ([]models.Invoice, string, error) {
	panic("being written")
}
func (s *Service) Invoice(ctx context.Context, account models.AccountID, id models.InvoiceID) (models.Invoice, Document, error) {
	panic("being written")
}
func (s *Service) PDF(doc Document) ([]byte, error) { panic("being written") }
func (s *Service) InvoicePDF(ctx context.Context, account models.AccountID, id models.InvoiceID) ([]byte, error) {
	panic("being written")
}

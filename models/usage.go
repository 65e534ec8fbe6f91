package models

import "berth/money"

// BillingMode is how an offer is paid.
type BillingMode string

// The billing modes of the contract. Only OnDemand is sold so far.
const (
	OnDemand BillingMode = "on_demand"
	Spot     BillingMode = "spot"
	Reserved BillingMode = "reserved"
)

// Span states.
const (
	SpanRunning = "running"
	SpanCapped  = "capped" // the renter stopped it: CapSeconds holds, the node's last word is awaited
	SpanClosed  = "closed"
)

// UsageSpan is a half-open interval [StartAt, EndAt) in which one run of an
// instance ran at one price. Cursor is the cumulative seconds accepted so far
// and never falls; Charged = floor(price × Cursor / 3,600); Posted is the part
// of Charged already in the ledger.
type UsageSpan struct {
	ID           SpanID `gorm:"primaryKey"` // <instance>.<run>
	InstanceID   InstanceID
	AccountID    AccountID
	Run          int
	InstanceName string
	SKU          string
	BillingMode  BillingMode
	PricePerHour money.Rate
	Currency     string
	State        string
	StartAt      Instant
	EndAt        Instant // zero while open
	CapSeconds   int64   // −1: none
	Cursor       int64
	Charged      money.Amount
	Posted       money.Amount
	PostedTo     int64   // cursor at the last posting
	InvoicedTo   int64   // cursor at the last invoice
	Reported     int64   // the highest the node ever claimed, evidence beyond what was accepted
	CloseReason  string  // stopped, exited, paid_until, lost …
	UpdatedAt    Instant `gorm:"autoUpdateTime:false"`
}

// Price is a row of the price list: from EffectiveAt on, until the next row of
// the same SKU and mode. Rows are only ever added.
type Price struct {
	ID           string `gorm:"primaryKey"`
	SKU          string
	BillingMode  BillingMode
	PricePerHour money.Rate
	Currency     string
	EffectiveAt  Instant
	CreatedBy    UserID  // empty: the default list
	CreatedAt    Instant `gorm:"autoCreateTime:false"`
}

// Invoice states.
const (
	InvoiceDraft = "draft"
	InvoiceFinal = "final"
)

// Invoice is a closed bill: Document is frozen, page and PDF are drawn from it.
// One per account and period.
type Invoice struct {
	ID          InvoiceID `gorm:"primaryKey"`
	AccountID   AccountID
	Number      string // B-2026-000117, gap-free per series and year
	State       string
	Currency    string
	PeriodStart Instant
	PeriodEnd   Instant
	Total       money.Amount // a whole number of minor units
	Carry       money.Amount // what rounding left (or, negative, added); goes on the next invoice
	Document    []byte       // JSON
	PDFHash     string       // sha256 of the first rendering
	CreatedAt   Instant      `gorm:"autoCreateTime:false"`
}

// InvoicedPart records that the seconds (FromSeconds, ToSeconds] of a span are
// on an invoice. It makes "nothing lost, nothing twice" a rule of the database.
type InvoicedPart struct {
	SpanID      SpanID `gorm:"primaryKey"`
	FromSeconds int64  `gorm:"primaryKey"`
	ToSeconds   int64
	InvoiceID   InvoiceID
	Amount      money.Amount
}

// Counter numbers invoices: one row per series and year.
type Counter struct {
	Series string `gorm:"primaryKey"`
	Next   int64
}

package models

import "berth/money"

// LedgerAccount is one side of postings: wallet:<account>, revenue:<account>,
// stripe:<currency>. Balance is the sum of its entries, kept beside them and
// checked against them. Held and Accrued matter for wallets only:
// available = Balance − Held − Accrued.
type LedgerAccount struct {
	Code     string `gorm:"primaryKey"`
	Currency string
	Balance  money.Amount
	Held     money.Amount // Σ active holds
	Accrued  money.Amount // Σ charged − posted over usage spans
	Version  int64        // number of its entries
}

// Available is what can still be spent.
func (a LedgerAccount) Available() money.Amount { return a.Balance - a.Held - a.Accrued }

// WalletCode and its kin name ledger accounts.
func WalletCode(id AccountID) string      { return "wallet:" + string(id) }
func RevenueCode(id AccountID) string     { return "revenue:" + string(id) }
func ClearingCode(currency string) string { return "stripe:" + currency }

// Transfer is one movement of money; its entries sum to zero. Key makes it
// happen once: the same key with other legs is refused.
type Transfer struct {
	ID     string `gorm:"primaryKey"`
	Key    string // unique
	Kind   string // topup, usage, refund, dispute, adjustment …
	Hash   string // of kind and legs
	Reason string // a sentence, shown
	At     Instant
}

// Leg is one side of a transfer about to be posted.
type Leg struct {
	Code   string
	Amount money.Amount
}

// Entry is one leg of a transfer. Version numbers the entries of one ledger
// account without gaps, so a lost update cannot happen.
type Entry struct {
	ID           string `gorm:"primaryKey"`
	TransferID   string
	AccountCode  string
	Version      int64
	Amount       money.Amount
	BalanceAfter money.Amount
}

// Hold states.
const (
	HoldActive   = "active"
	HoldReleased = "released"
)

// Hold is a part of a wallet set aside before a launch. Ref is unique: one
// hold per run of an instance.
type Hold struct {
	Ref          string `gorm:"primaryKey"`
	AccountID    AccountID
	Amount       money.Amount
	PricePerHour money.Rate // of the run it is for
	State        string
	CreatedAt    Instant `gorm:"autoCreateTime:false"`
	ExpiresAt    Instant
}

// Topup states; a top-up never moves backwards.
const (
	TopupCreating   = "creating" // the row exists, the provider was not yet heard
	TopupOpen       = "open"     // the renter may pay at CheckoutURL
	TopupProcessing = "processing"
	TopupPaid       = "paid"
	TopupFailed     = "failed"
	TopupExpired    = "expired"
	TopupCanceled   = "canceled"
)

// Topup is one payment into a wallet through the payment provider.
type Topup struct {
	ID            TopupID `gorm:"primaryKey"`
	AccountID     AccountID
	UserID        UserID
	Amount        money.Amount
	Currency      string
	State         string
	Reason        string // why it failed, a sentence
	ClientKey     string // the caller's Idempotency-Key; unique per account, empty when none was sent
	SessionID     string // cs_…
	CheckoutURL   string
	PaymentIntent string // pi_…
	ReturnURL     string // where the provider sends the browser; part of the stored row so that a retry sends equal bytes
	ExpiresAt     Instant
	CreatedAt     Instant `gorm:"autoCreateTime:false"`
	ChangedAt     Instant
}

// StripeEvent is a webhook as it came: verified, stored once, then processed.
type StripeEvent struct {
	ID          string `gorm:"primaryKey"` // evt_…
	Type        string
	ObjectID    string
	CreatedAt   Instant `gorm:"autoCreateTime:false"` // by the provider
	Payload     []byte
	ReceivedAt  Instant
	ProcessedAt Instant
	Attempts    int
	NextAt      Instant // when to try again
	Error       string
}

package web

// WalletView is the page /wallet. Its forms post amount and idempotency_key to
// /wallet/topups.
type WalletView struct {
	Layout
	// BalanceWhole and BalanceCents are "$182" and ".40", drawn large.
	BalanceWhole, BalanceCents string
	// Facts are held, accrued, available, each with its amount.
	Facts []Pair
	// Burn is "$4.19" per hour, BurnNote "3 instances"; both empty when nothing burns.
	Burn, BurnNote string
	// RunsOut is "1 d 19 h" and RunsOutAt "Thu 3 Dec, 07:27"; RunsOut "not running out" without burn.
	RunsOut, RunsOutAt string
	// Low warns when the money ends soon.
	Low *Problem

	// Presets are amounts to top up with one click.
	Presets []Preset
	// Amount is the other amount as typed, without a symbol.
	Amount Field
	// AmountHint says the limits: "From $5.00 to $10,000.00."
	AmountHint string
	Symbol     string
	// IdempotencyKey is posted with the other amount; a preset posts it with "-"
	// and its value behind, so that each choice is made once.
	IdempotencyKey string
	// Returned is the top-up that the payment page has just sent back from.
	Returned *TopUpReturn
	TopUps   []TopUpRow

	Ledger []LedgerRow
	// NextHref leads to older postings; empty on the last page. FirstHref leads
	// back to the newest; empty on the first page.
	NextHref, FirstHref string
}

// Preset is one amount: Value is posted ("25.00"), Label shown ("$25").
type Preset struct {
	Value, Label string
}

// TopUpState is how far a top-up is.
type TopUpState string

// States of a top-up.
const (
	TopUpPending TopUpState = "pending"
	TopUpPaid    TopUpState = "paid"
	TopUpFailed  TopUpState = "failed"
	TopUpExpired TopUpState = "expired"
)

// TopUpReturn is the banner after coming back from the payment page.
type TopUpReturn struct {
	State  TopUpState
	Amount string
	// Reason is why it failed, in words: "The bank declined the card."
	Reason string
	// CheckoutHref leads back to the payment page while it is open; empty if not.
	CheckoutHref string
}

// TopUpRow is one top-up in the list.
type TopUpRow struct {
	ID, At, DateTime, Amount string
	// State is a word, Note a line under it.
	State string
	Tone  Tone
	Note  string
	// CheckoutHref continues an open payment; empty if there is none.
	CheckoutHref string
}

// LedgerRow is one posting on the wallet.
type LedgerRow struct {
	// Day is set on the first row of a day: "Tue 1 Dec"; At is "11:00".
	Day, At, DateTime string
	What, Detail      string
	// Amount has its sign, "−2.01" or "+100.00"; Balance is what was left.
	Amount, Balance string
	// In marks money coming in.
	In bool
	// Pending marks the row of what has accrued and is not yet posted.
	Pending bool
}

package stripedouble

// The double's own memory of each object: what cannot be derived, and nothing
// else. render_*.go turns them into Stripe's shape. Amounts are in minor units of
// the currency, times are Unix seconds, as in Stripe's API.

type customer struct {
	ID, Email, Name, Phone, Description string
	Metadata                            map[string]string
	Created                             int64
}

type session struct {
	ID, Mode, Status, PaymentStatus        string
	Customer, CustomerEmail                string
	ClientReference, SuccessURL, CancelURL string
	Currency                               string
	AmountTotal                            int64
	Lines                                  []line
	MethodTypes                            []string
	Metadata                               map[string]string

	// What the PaymentIntent or SetupIntent of this session will carry.
	FutureUsage, IntentDescription string
	IntentMetadata                 map[string]string

	PaymentIntent, SetupIntent string
	Created, ExpiresAt         int64
	Settle                     *settlement // a bank debit on its way
}

type line struct {
	Name, Description    string
	UnitAmount, Quantity int64
}

// settlement is a bank debit that will end by itself at At.
type settlement struct {
	At      int64
	Succeed bool
}

type intent struct {
	ID, Status, Currency                 string
	Amount, Received                     int64
	Customer, Method, Charge             string
	Description, FutureUsage, Session    string
	Secret                               string
	MethodTypes                          []string
	Metadata                             map[string]string
	LastError                            *failure
	Created, CanceledAt                  int64
	CancelReason, NextURL, NextReturnURL string
}

type setupIntent struct {
	ID, Status, Customer, Method, Session string
	Description, Secret, NextURL          string
	MethodTypes                           []string
	Metadata                              map[string]string
	LastError                             *failure
	Created                               int64
}

// failure is why a charge or a set-up did not go through.
type failure struct {
	Code, DeclineCode, Message string
	Charge, Method             string
}

type charge struct {
	ID, Intent, Status, Currency  string // Status: pending, succeeded, failed
	Amount, Refunded              int64
	Customer, Method, Description string
	Metadata                      map[string]string
	Failure                       *failure
	Dispute                       string
	Created                       int64
}

type refund struct {
	ID, Charge, Intent, Currency, Reason, Status, FailureReason string
	Amount                                                      int64
	Metadata                                                    map[string]string
	Created                                                     int64
}

type dispute struct {
	ID, Charge, Intent, Currency, Reason, Status string
	Amount                                       int64
	Withdrawn, Reinstated                        bool
	Created                                      int64
}

type method struct {
	ID, Type, Customer         string // Type: card, us_bank_account, sepa_debit
	Brand, Last4, Fingerprint  string
	ExpMonth, ExpYear, Created int64
	Card                       string // the test card's number, which decides how it behaves
	DelayedFailure             bool   // a bank debit that comes back
}

type portal struct {
	ID, Customer, ReturnURL string
	Created                 int64
}

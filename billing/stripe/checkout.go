package stripe

import (
	"context"

	sdk "github.com/stripe/stripe-go/v76"
)

// States of a checkout, and how far its payment is.
const (
	CheckoutOpen     = "open"
	CheckoutComplete = "complete"
	CheckoutExpired  = "expired"

	PaymentPaid       = "paid"
	PaymentUnpaid     = "unpaid"              // completed, but the money is still on its way
	PaymentNotNeeded  = "no_payment_required" // nothing was to be paid: never money
	IntentSucceeded   = "succeeded"
	IntentProcessing  = "processing"
	IntentNeedsMethod = "requires_payment_method" // after a refusal
	IntentNeedsAction = "requires_action"         // the payer must confirm at the bank
	IntentCanceled    = "canceled"
)

// CheckoutRequest is a payment page to be made. It must be built from stored
// values alone: Stripe refuses an idempotency key that comes back with other
// bytes.
type CheckoutRequest struct {
	TopupID    string
	Customer   string
	Currency   string // lower case
	Amount     int64  // minor units
	Name       string // of what is bought, on the page
	SuccessURL string
	CancelURL  string
	ExpiresAt  int64 // Unix seconds, 30 min to 24 h after it is made
}

// Checkout is a payment page.
type Checkout struct {
	ID, URL       string
	Status        string
	PaymentStatus string
	TopupID       string
	Amount        int64
	Currency      string
	Intent        Intent // only ID is sure to be set, and only once there is one
}

// Intent is one payment.
type Intent struct {
	ID, Status     string
	AmountReceived int64
	Currency       string
	TopupID        string
	Failure        string // of the last attempt, a sentence for the payer
}

// CreateCheckout makes a payment page for a top-up. The same key and request
// give the same page.
func (g *Gateway) CreateCheckout(ctx context.Context, key string, r CheckoutRequest) (Checkout, error) {
	params := &sdk.CheckoutSessionParams{
		Mode:              sdk.String(string(sdk.CheckoutSessionModePayment)),
		Customer:          sdk.String(r.Customer),
		ClientReferenceID: sdk.String(r.TopupID),
		SuccessURL:        sdk.String(r.SuccessURL),
		CancelURL:         sdk.String(r.CancelURL),
		ExpiresAt:         sdk.Int64(r.ExpiresAt),
		LineItems: []*sdk.CheckoutSessionLineItemParams{{
			Quantity: sdk.Int64(1),
			PriceData: &sdk.CheckoutSessionLineItemPriceDataParams{
				Currency:    sdk.String(r.Currency),
				UnitAmount:  sdk.Int64(r.Amount),
				ProductData: &sdk.CheckoutSessionLineItemPriceDataProductDataParams{Name: sdk.String(r.Name)},
			},
		}},
		// On the payment too: its events do not carry the page's metadata.
		PaymentIntentData: &sdk.CheckoutSessionPaymentIntentDataParams{Metadata: map[string]string{"topup_id": r.TopupID}},
	}
	params.Context = ctx
	params.SetIdempotencyKey(key)
	params.AddMetadata("topup_id", r.TopupID)
	made, err := g.api.CheckoutSessions.New(params)
	if err != nil {
		return Checkout{}, explain("create the payment page", err)
	}
	return checkout(made), nil
}

// GetCheckout reads a payment page with its payment.
func (g *Gateway) GetCheckout(ctx context.Context, id string) (Checkout, error) {
	params := &sdk.CheckoutSessionParams{}
	params.Context = ctx
	params.AddExpand("payment_intent")
	got, err := g.api.CheckoutSessions.Get(id, params)
	if err != nil {
		return Checkout{}, explain("read the payment page", err)
	}
	return checkout(got), nil
}

// ExpireCheckout closes a payment page that is still open.
func (g *Gateway) ExpireCheckout(ctx context.Context, id string) (Checkout, error) {
	params := &sdk.CheckoutSessionExpireParams{}
	params.Context = ctx
	params.SetIdempotencyKey("expire:" + id)
	got, err := g.api.CheckoutSessions.Expire(id, params)
	if err != nil {
		return Checkout{}, explain("close the payment page", err)
	}
	return checkout(got), nil
}

func checkout(s *sdk.CheckoutSession) Checkout {
	c := Checkout{
		ID: s.ID, URL: s.URL, Status: string(s.Status), PaymentStatus: string(s.PaymentStatus),
		TopupID: s.Metadata["topup_id"], Amount: s.AmountTotal, Currency: string(s.Currency),
	}
	if c.TopupID == "" {
		c.TopupID = s.ClientReferenceID
	}
	if s.PaymentIntent != nil {
		c.Intent = intent(s.PaymentIntent)
	}
	return c
}

func intent(p *sdk.PaymentIntent) Intent {
	i := Intent{ID: p.ID, Status: string(p.Status), AmountReceived: p.AmountReceived, Currency: string(p.Currency), TopupID: p.Metadata["topup_id"]}
	if p.LastPaymentError != nil {
		i.Failure = p.LastPaymentError.Msg
	}
	return i
}

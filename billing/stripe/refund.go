package stripe

import (
	"context"

	sdk "github.com/stripe/stripe-go/v76"
)

// States of a refund that matter to the ledger.
const (
	RefundFailed   = "failed"
	RefundCanceled = "canceled"
)

// Refund is money that goes, or went, back to the payer.
type Refund struct {
	ID, Status string
	Charge     string
	Intent     string
	Amount     int64
	Currency   string
}

// ListRefunds returns all refunds of a charge. The charge's own event only says
// how much was refunded in all, so what is new can be told from here alone.
func (g *Gateway) ListRefunds(ctx context.Context, charge string) ([]Refund, error) {
	params := &sdk.RefundListParams{Charge: sdk.String(charge)}
	params.Context = ctx
	params.Limit = sdk.Int64(100)
	var out []Refund
	it := g.api.Refunds.List(params)
	for it.Next() {
		out = append(out, refund(it.Refund()))
	}
	return out, explain("list the refunds of a charge", it.Err())
}

func refund(r *sdk.Refund) Refund {
	out := Refund{ID: r.ID, Status: string(r.Status), Amount: r.Amount, Currency: string(r.Currency)}
	if r.Charge != nil {
		out.Charge = r.Charge.ID
	}
	if r.PaymentIntent != nil {
		out.Intent = r.PaymentIntent.ID
	}
	return out
}

package server

import (
	"context"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"berth/api"
	"berth/billing"
	"berth/models"
	"berth/money"
)

func (a *restAPI) walletOperations() {
	operate(a, mayView, huma.Operation{OperationID: "wallet", Method: http.MethodGet, Path: "/wallet", Summary: "The wallet now"}, a.getWallet)
	operate(a, mayPay, huma.Operation{OperationID: "topup", Method: http.MethodPost, Path: "/wallet/topups", Summary: "Pay into the wallet; pay it at checkout_url", DefaultStatus: http.StatusCreated}, a.createTopup)
	operate(a, mayView, huma.Operation{OperationID: "list-topups", Method: http.MethodGet, Path: "/wallet/topups", Summary: "Payments into the wallet, newest first"}, a.listTopups)
	operate(a, mayView, huma.Operation{OperationID: "get-topup", Method: http.MethodGet, Path: "/wallet/topups/{id}", Summary: "One payment"}, a.getTopup)
	operate(a, mayPay, huma.Operation{OperationID: "cancel-topup", Method: http.MethodPost, Path: "/wallet/topups/{id}/cancel", Summary: "Close its payment page; one paid meanwhile is credited"}, a.cancelTopup)
	operate(a, mayView, huma.Operation{OperationID: "ledger", Method: http.MethodGet, Path: "/ledger", Summary: "Every posting on the wallet, newest first"}, a.listLedger)
	operate(a, mayView, huma.Operation{OperationID: "usage", Method: http.MethodGet, Path: "/usage", Summary: "Usage spans, newest first"}, a.listUsage)
}

func (a *restAPI) getWallet(ctx context.Context, who caller, _ *empty) (*one[api.Wallet], error) {
	w, err := a.billing.Wallet(ctx, who.Account.ID, models.At(a.now()))
	if err != nil {
		return nil, err
	}
	return oneOf(api.Wallet{Balance: moneyJSON(w.Balance, w.Currency), Held: moneyJSON(w.Held, w.Currency), Accrued: moneyJSON(w.Accrued, w.Currency),
		Available: moneyJSON(w.Available, w.Currency), BurnPerHour: rateJSON(w.Burn, w.Currency), RunsOutAt: timeJSON(w.RunsOutAt)}), nil
}

type topupIn struct {
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"255" doc:"The same key makes one payment"`
	Body           api.NewTopup
}

func (a *restAPI) createTopup(ctx context.Context, who caller, in *topupIn) (*one[api.Topup], error) {
	if in.Body.Amount.Currency != who.Account.Currency {
		return nil, models.Fieldset{"amount.currency": fmt.Sprintf("This account pays in %s.", who.Account.Currency)}.Problem()
	}
	top, err := a.billing.StartTopup(ctx, who.Account.ID, who.User.ID, money.Amount(in.Body.Amount.Micros), in.IdempotencyKey, who.base+"/wallet", models.At(a.now()))
	if err != nil {
		return nil, err
	}
	return oneOf(topupJSON(top)), nil
}

func topupJSON(t models.Topup) api.Topup {
	return api.Topup{ID: string(t.ID), State: t.State, Amount: moneyJSON(t.Amount, t.Currency), CheckoutURL: t.CheckoutURL, Reason: t.Reason, CreatedAt: t.CreatedAt.Time()}
}

func (a *restAPI) listTopups(ctx context.Context, who caller, in *Paging) (*list[api.Topup], error) {
	tops, next, err := a.billing.Topups(ctx, who.Account.ID, in.Cursor, in.Limit)
	return listOf(tops, next, topupJSON), err
}

func (a *restAPI) getTopup(ctx context.Context, who caller, in *ByID) (*one[api.Topup], error) {
	top, err := a.billing.Topup(ctx, who.Account.ID, models.TopupID(in.ID))
	if err != nil {
		return nil, err
	}
	return oneOf(topupJSON(top)), nil
}

func (a *restAPI) cancelTopup(ctx context.Context, who caller, in *ByID) (*one[api.Topup], error) {
	top, err := a.billing.CancelTopup(ctx, who.Account.ID, models.TopupID(in.ID), models.At(a.now()))
	if err != nil {
		return nil, err
	}
	return oneOf(topupJSON(top)), nil
}

func (a *restAPI) listLedger(ctx context.Context, who caller, in *Paging) (*list[api.LedgerRow], error) {
	rows, next, err := a.billing.Ledger(ctx, who.Account.ID, in.Cursor, in.Limit)
	return listOf(rows, next, func(r billing.LedgerRow) api.LedgerRow {
		return api.LedgerRow{ID: r.ID, At: r.At.Time(), Kind: r.Kind, Key: r.Key,
			Amount: moneyJSON(r.Amount, who.Account.Currency), BalanceAfter: moneyJSON(r.BalanceAfter, who.Account.Currency)}
	}), err
}

type usageIn struct {
	Paging
	Instance string `query:"instance" maxLength:"100" doc:"Only of this instance"`
}

func (a *restAPI) listUsage(ctx context.Context, who caller, in *usageIn) (*list[api.Span], error) {
	spans, next, err := a.billing.Usage(ctx, who.Account.ID, models.InstanceID(in.Instance), in.Cursor, in.Limit)
	return listOf(spans, next, func(s models.UsageSpan) api.Span {
		return api.Span{ID: string(s.ID), Instance: string(s.InstanceID), Start: s.StartAt.Time(), End: timeJSON(s.EndAt), Seconds: s.Cursor,
			PricePerHour: rateJSON(s.PricePerHour, s.Currency), Charged: moneyJSON(s.Charged, s.Currency)}
	}), err
}

func (a *restAPI) invoiceOperations() {
	operate(a, mayView, huma.Operation{OperationID: "list-invoices", Method: http.MethodGet, Path: "/invoices", Summary: "Closed invoices, newest first"}, a.listInvoices)
	operate(a, mayView, huma.Operation{OperationID: "get-invoice", Method: http.MethodGet, Path: "/invoices/{id}", Summary: "One invoice; {id}.pdf is the same as a PDF"}, a.getInvoice)
}

func (a *restAPI) listInvoices(ctx context.Context, who caller, in *Paging) (*list[api.Invoice], error) {
	invoices, next, err := a.billing.Invoices(ctx, who.Account.ID, in.Cursor, in.Limit)
	return listOf(invoices, next, func(i models.Invoice) api.Invoice { return invoiceJSON(i, billing.Document{}) }), err
}

func (a *restAPI) getInvoice(ctx context.Context, who caller, in *ByID) (*one[api.Invoice], error) {
	invoice, doc, err := a.billing.Invoice(ctx, who.Account.ID, models.InvoiceID(in.ID))
	if err != nil {
		return nil, err
	}
	return oneOf(invoiceJSON(invoice, doc)), nil
}

func invoiceJSON(i models.Invoice, doc billing.Document) api.Invoice {
	out := api.Invoice{ID: string(i.ID), Number: i.Number, State: i.State, Total: moneyJSON(i.Total, i.Currency), Lines: []api.InvoiceLine{}, TestPayments: doc.TestPayments != ""}
	out.Period.Start, out.Period.End = i.PeriodStart.Time(), i.PeriodEnd.Time()
	for _, l := range doc.Lines {
		line := api.InvoiceLine{Text: l.Text, Detail: l.Detail, Share: l.Share, Instance: string(l.Instance), Seconds: l.Seconds,
			PricePerHour: rateJSON(l.PricePerHour, i.Currency), Amount: moneyJSON(l.Amount, i.Currency), Spans: []string{}}
		for _, s := range l.Spans {
			line.Spans = append(line.Spans, string(s.ID))
		}
		out.Lines = append(out.Lines, line)
	}
	return out
}

// sendPDF answers with the frozen invoice as a PDF.
func (s *Server) sendPDF(c echo.Context, id models.InvoiceID) error {
	account := identityOf(c).Account.ID
	invoice, _, err := s.billing.Invoice(c.Request().Context(), account, id)
	if err != nil {
		return err
	}
	pdf, err := s.billing.InvoicePDF(c.Request().Context(), account, id)
	if err != nil {
		return err
	}
	c.Response().Header().Set("Content-Disposition", fmt.Sprintf("inline; filename=%q", invoice.Number+".pdf"))
	return c.Blob(http.StatusOK, "application/pdf", pdf)
}

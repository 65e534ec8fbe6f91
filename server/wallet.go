package server

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"berth/models"
	"berth/models/store"
	"berth/web"
)

// topupsShown is how many top-ups the wallet lists.
const topupsShown = 10

// wallet handles GET /wallet. The payment page sends browsers back to it with
// ?topup=, and then the provider is asked what became of the payment: its
// webhook may be later than the browser.
func (s *Server) wallet(c echo.Context) error {
	amount := web.Field{Value: clip(c.QueryParam("amount"), 40)}
	return s.showWallet(c, http.StatusOK, amount, newKey())
}

func (s *Server) showWallet(c echo.Context, status int, amount web.Field, key string) error {
	ctx, id, at := c.Request().Context(), identityOf(c), models.At(s.now())
	k := walletFacts{at: at, zone: zoneOf(id.Account), first: c.QueryParam("before") == ""}
	var err error
	if k.returned, err = s.returnedTopup(c); err != nil {
		return err
	}
	if k.wallet, err = s.walletOf(c); err != nil {
		return err
	}
	if k.topups, _, err = s.billing.Topups(ctx, id.Account.ID, "", topupsShown); err != nil {
		return err
	}
	if k.ledger, k.next, err = s.billing.Ledger(ctx, id.Account.ID, c.QueryParam("before"), rowsPerPage); err != nil {
		return err
	}
	err = s.store.View(ctx, func(tx *store.Tx) error {
		counts, err := tx.InstanceCounts(id.Account.ID)
		k.running = counts[models.Running]
		return err
	})
	if err != nil {
		return err
	}
	v := walletView(s.currency, k)
	v.Amount, v.IdempotencyKey = amount, key
	if v.Layout, err = s.layout(c, "Wallet", web.NavWallet); err != nil {
		return err
	}
	return s.render(c, status, web.WalletPage(v))
}

// returnedTopup is the top-up that the payment page has just sent back from; nil
// for none, or another account's.
func (s *Server) returnedTopup(c echo.Context) (*models.Topup, error) {
	ctx, topup := c.Request().Context(), models.TopupID(c.QueryParam("topup"))
	if topup == "" {
		return nil, nil
	}
	t, err := s.billing.Topup(ctx, identityOf(c).Account.ID, topup)
	if models.HasCode(err, models.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	switch t.State {
	case models.TopupPaid, models.TopupFailed, models.TopupExpired, models.TopupCanceled:
		return &t, nil
	}
	fresh, err := s.billing.SyncTopup(ctx, t.ID, models.At(s.now()))
	if err != nil {
		// The webhook will tell too; the page is not worth less for a provider away.
		s.log.Warn("ask what became of a top-up", "request", requestID(c), "topup", t.ID, "error", err)
		return &t, nil
	}
	return &fresh, nil
}

// topUp handles POST /wallet/topups and sends the browser on to pay.
func (s *Server) topUp(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	id, typed, key := identityOf(c), clip(f.text("amount"), 60), f.text("idempotency_key")
	amount, err := s.currency.ParseMinor(f.text("amount"))
	if err != nil {
		return s.showWallet(c, http.StatusUnprocessableEntity, web.Field{Value: typed, Error: "Write an amount like 25.00."}, newKey())
	}
	if len(key) > 200 {
		return malformed("The form's key is too long.")
	}
	t, err := s.billing.StartTopup(c.Request().Context(), id.Account.ID, id.User.ID, amount, key, s.base(c)+"/wallet", models.At(s.now()))
	var p *models.Problem
	if errors.As(err, &p) {
		switch p.Code {
		case models.Invalid:
			return s.showWallet(c, statusOf(p), web.Field{Value: typed, Error: p.Fields["amount"]}, newKey())
		case models.KeyReused, models.Unavailable, models.PaymentFailed:
			return s.showWallet(c, statusOf(p), web.Field{Value: typed, Error: p.What + " " + p.Next}, keyAfter(p, key))
		}
	}
	if err != nil {
		return err
	}
	if t.CheckoutURL == "" || t.State != models.TopupOpen {
		return back(c, "/wallet?topup="+string(t.ID))
	}
	return back(c, t.CheckoutURL)
}

// keyAfter keeps the key when the same top-up may be tried again, and makes
// another when the old one belongs to another amount.
func keyAfter(p *models.Problem, key string) string {
	if p.Code == models.KeyReused || key == "" {
		return newKey()
	}
	return key
}

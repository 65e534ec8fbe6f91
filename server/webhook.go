package server

import (
	"io"
	"net/http"

	"github.com/labstack/echo/v4"

	"berth/models"
)

// stripeWebhook handles POST /webhooks/stripe: the raw body, as it was signed,
// goes to billing, which verifies it, stores it once and answers fast.
func (s *Server) stripeWebhook(c echo.Context) error {
	body, err := io.ReadAll(http.MaxBytesReader(c.Response(), c.Request().Body, webhookMax))
	if err != nil {
		return unread(err)
	}
	err = s.billing.ReceiveWebhook(c.Request().Context(), body, c.Request().Header.Get("Stripe-Signature"), models.At(s.now()))
	if models.HasCode(err, models.Invalid) {
		p := problemOf(err)
		return &models.Problem{Code: codeMalformed, What: p.What, Next: p.Next} // what Stripe's senders expect: 400
	}
	if err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

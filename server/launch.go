package server

import (
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/labstack/echo/v4"

	"berth/fleet"
	"berth/models"
	"berth/web"
)

// newKey is an idempotency key for a form: sent twice, it acts once.
func newKey() string { return hex.EncodeToString(randomBytes(16)) }

func launchFormOf(f form) launchForm {
	return launchForm{sku: f.text("sku"), name: f.text("name"), image: f.text("image"), disk: f.text("disk_gib"),
		env: f.raw("env"), startup: f.raw("startup_script"), key: f.text("idempotency_key")}
}

// launchPage handles GET /launch: the form, priced by what the query chooses.
func (s *Server) launchPage(c echo.Context) error {
	f := launchFormOf(form(c.QueryParams()))
	if f.disk == "" {
		f.disk = strconv.Itoa(fleet.DefaultDiskGiB)
	}
	f.key = newKey()
	return s.showLaunch(c, http.StatusOK, f, nil, nil)
}

// launchPrice handles POST /launch/price: the form again with its price, for
// browsers without script; nothing is launched.
func (s *Server) launchPrice(c echo.Context) error {
	posted, err := readForm(c)
	if err != nil {
		return err
	}
	f := launchFormOf(posted)
	_, bad := f.order(identityOf(c))
	return s.showLaunch(c, http.StatusOK, f, bad, nil)
}

// launch handles POST /launch.
func (s *Server) launch(c echo.Context) error {
	posted, err := readForm(c)
	if err != nil {
		return err
	}
	f := launchFormOf(posted)
	order, bad := f.order(identityOf(c))
	// What the whole order is checked for is told in one go.
	var p *models.Problem
	if err := order.Check(); errors.As(err, &p) {
		for field, what := range p.Fields {
			bad.Add(field, what)
		}
	}
	if len(bad) > 0 {
		return s.showLaunch(c, http.StatusUnprocessableEntity, f, bad, nil)
	}
	in, err := s.fleet.Launch(c.Request().Context(), order, models.At(s.now()))
	if errors.As(err, &p) {
		switch p.Code {
		case models.Invalid:
			return s.showLaunch(c, statusOf(p), f, p.Fields, nil)
		case models.NoCapacity, models.InsufficientFunds, models.AccountFrozen, models.KeyReused, models.Conflict:
			return s.showLaunch(c, statusOf(p), f, nil, p)
		}
	}
	if err != nil {
		return err
	}
	return back(c, "/instances/"+string(in.ID))
}

// showLaunch draws the form with what was typed. refused is why the launch as a
// whole was, or nil.
func (s *Server) showLaunch(c echo.Context, status int, f launchForm, bad models.Fieldset, refused *models.Problem) error {
	ctx, id, at := c.Request().Context(), identityOf(c), models.At(s.now())
	k := launchFacts{hold: s.billing.Config().HoldSeconds, frozen: id.Account.Frozen, allowed: mayRun.check(id) == nil}
	var err error
	if k.offers, err = s.offersWith(c, f.sku, at); err != nil {
		return err
	}
	if k.wallet, err = s.walletOf(c); err != nil {
		return err
	}
	if f.sku != "" {
		landing, err := s.fleet.Preview(ctx, identityOf(c).Account.ID, f.sku)
		var p *models.Problem
		switch {
		case err == nil:
			k.landing = &landing
		case errors.As(err, &p) && p.Code == models.Invalid:
			if bad == nil {
				bad = models.Fieldset{}
			}
			bad.Add("sku", p.Fields["sku"])
		case errors.As(err, &p):
			k.reason = p.What
		default:
			return err
		}
	}
	if k.landing == nil {
		if k.images, err = s.fleet.Images(ctx); err != nil {
			return err
		}
	}
	v := launchView(s.currency, f, bad, k)
	if v.Layout, err = s.layout(c, "Launch", web.NavCatalogue); err != nil {
		return err
	}
	v.Return = launchReturn(f)
	switch {
	case refused != nil && refused.Code == models.KeyReused:
		v.IdempotencyKey = newKey() // the old one has launched something else
		v.Problem = &web.Problem{What: "This form has launched an instance before, with other choices.", Next: "Look whether it is the one you want; to launch another, send the form again.", Href: "/instances", Link: "Your instances"}
	case refused != nil && refused.Code != models.InsufficientFunds:
		v.Problem = &web.Problem{What: refused.What, Next: refused.Next}
	case k.frozen:
		v.Problem = &web.Problem{What: "This account is frozen while a payment is disputed.", Next: "Nothing new starts until that is settled."}
	}
	return s.render(c, status, web.LaunchPage(v))
}

// offersWith lists what is sold, and the SKU asked for even if it is not among
// the singles of the catalogue ("h100-80gb.x4").
func (s *Server) offersWith(c echo.Context, sku string, at models.Instant) ([]fleet.Offer, error) {
	offers, err := s.fleet.OffersTo(c.Request().Context(), identityOf(c).Account.ID, "", at)
	if err != nil || sku == "" {
		return offers, err
	}
	for _, o := range offers {
		if o.SKU.ID == sku {
			return offers, nil
		}
	}
	more, err := s.fleet.OffersTo(c.Request().Context(), identityOf(c).Account.ID, sku, at)
	return append(more, offers...), err
}

// launchReturn is the address that draws this form again by GET. Names,
// variables and scripts are nobody's business in an address.
func launchReturn(f launchForm) string {
	q := url.Values{}
	for name, value := range map[string]string{"sku": f.sku, "image": f.image, "disk_gib": f.disk} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if len(q) == 0 {
		return "/launch"
	}
	return "/launch?" + q.Encode()
}

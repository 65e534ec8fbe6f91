package server

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"berth/models"
	"berth/web"
)

// catalogue handles GET /.
func (s *Server) catalogue(c echo.Context) error {
	offers, err := s.fleet.OffersTo(c.Request().Context(), identityOf(c).Account.ID, "", models.At(s.now()))
	if err != nil {
		return err
	}
	l, err := s.layout(c, "Catalogue", web.NavCatalogue)
	if err != nil {
		return err
	}
	v := web.CatalogueView{Layout: l}
	v.Filters, v.Purposes = catalogueView(s.currency, offers, c.QueryParam("for"))
	return s.render(c, http.StatusOK, web.CataloguePage(v))
}

// cheapest is the lowest price on offer now; empty when nothing is.
func (s *Server) cheapest(ctx context.Context) (string, error) {
	offers, err := s.fleet.Offers(ctx, "", models.At(s.now()))
	return cheapestOf(s.currency, offers), err
}

package server

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"berth/models"
	"berth/web"
)

// invoices handles GET /invoices.
func (s *Server) invoices(c echo.Context) error {
	ctx, id, at := c.Request().Context(), identityOf(c), models.At(s.now())
	list, next, err := s.billing.Invoices(ctx, id.Account.ID, c.QueryParam("before"), rowsPerPage)
	if err != nil {
		return err
	}
	doc, err := s.billing.MonthToDate(ctx, id.Account.ID, at)
	if err != nil {
		return err
	}
	v := invoicesView(s.currency, list, &doc, zoneOf(id.Account), at)
	if v.Layout, err = s.layout(c, "Invoices", web.NavWallet); err != nil {
		return err
	}
	if next != "" {
		v.NextHref = "/invoices?before=" + next
	}
	return s.render(c, http.StatusOK, web.InvoicesPage(v))
}

// invoice handles GET /invoices/{id}: a closed one, "current" for the month to
// date, and with ".pdf" behind its id the document to keep.
func (s *Server) invoice(c echo.Context) error {
	if number, ok := strings.CutSuffix(c.Param("id"), ".pdf"); ok {
		return s.invoicePDF(c, models.InvoiceID(number))
	}
	ctx, id := c.Request().Context(), identityOf(c)
	var inv models.Invoice
	var v web.InvoiceView
	if c.Param("id") == currentID {
		doc, err := s.billing.MonthToDate(ctx, id.Account.ID, models.At(s.now()))
		if err != nil {
			return err
		}
		v = invoiceView(s.currency, inv, doc)
	} else {
		inv, doc, err := s.billing.Invoice(ctx, id.Account.ID, models.InvoiceID(c.Param("id")))
		if err != nil {
			return err
		}
		v = invoiceView(s.currency, inv, doc)
	}
	var err error
	if v.Layout, err = s.layout(c, v.Heading, web.NavWallet); err != nil {
		return err
	}
	return s.render(c, http.StatusOK, web.InvoicePage(v))
}

// invoicePDF sends a closed invoice as the frozen document.
func (s *Server) invoicePDF(c echo.Context, id models.InvoiceID) error {
	account := identityOf(c).Account.ID
	inv, _, err := s.billing.Invoice(c.Request().Context(), account, id)
	if err != nil {
		return err
	}
	pdf, err := s.billing.InvoicePDF(c.Request().Context(), account, id)
	if err != nil {
		return err
	}
	h := c.Response().Header()
	h.Set("Cache-Control", "private, no-store")
	h.Set("Content-Disposition", fmt.Sprintf("inline; filename=%q", "invoice-"+inv.Number+".pdf"))
	return c.Blob(http.StatusOK, "application/pdf", pdf)
}

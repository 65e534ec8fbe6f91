package server

import (
	"fmt"

	"github.com/labstack/echo/v4"

	"berth/fleet"
	"berth/gpu"
	"berth/models"
	"berth/web"
)

// setCardSharing handles POST /fleet/{id}/devices/{uuid}/sharing.
func (s *Server) setCardSharing(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	d, err := s.fleet.SetSharing(c.Request().Context(), c.Param("uuid"), f.text("sharing"), f.text("mixed") != "", models.At(s.now()))
	if err != nil {
		return err
	}
	said := "The card is sold whole" // and in slices, where it can
	if share := d.Share(); share.N > 0 {
		said += fmt.Sprintf(" or in %d time shares", share.N)
	}
	if err := s.done(c, said+" from now on."); err != nil {
		return err
	}
	return back(c, "/fleet/"+c.Param("id"))
}

// sharesOffered are the numbers of shares that the form has; the API takes any.
var sharesOffered = []int{2, 4, 8, 16}

func sharingView(d fleet.DeviceView) *web.CardSharing {
	v := &web.CardSharing{ID: d.UUID, Action: "/fleet/" + string(d.NodeID) + "/devices/" + d.UUID + "/sharing", Mixed: d.Mixed}
	add := func(value, label string) {
		v.Ways = append(v.Ways, web.SharingWay{Value: value, Label: label, Selected: value == d.Sharing})
	}
	usual := "not shared"
	if n := d.Facts.DefaultShare.N; n > 0 {
		usual = fmt.Sprintf("whole or in %d time shares", n)
	}
	add("", "As is usual for the model: "+usual)
	add(models.SharingNone, "Not shared")
	numbers := sharesOffered
	if own, err := gpu.ParseShare(d.Sharing); err == nil && own.N > 2 && own.N&(own.N-1) != 0 { // set by API
		numbers = append([]int{own.N}, numbers...)
	}
	for _, n := range numbers {
		add(gpu.Share{N: n}.Name(), fmt.Sprintf("Whole or in %d time shares", n))
	}
	return v
}

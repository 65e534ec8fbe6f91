package stripedouble

import "net/http"

// showPortal is the stand-in for Stripe's customer portal: the saved cards, and a
// way to remove one.
func (s *Server) showPortal(w http.ResponseWriter, r *http.Request) {
	var view portalView
	err := s.update(func(x *tx) error {
		view = x.portalView(r.PathValue("id"))
		return errNothing
	})
	s.drawPortal(w, err, view)
}

// postPortal removes the card that the form names, if it is this customer's.
func (s *Server) postPortal(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 1<<16)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "The form could not be read: send it again.", http.StatusBadRequest)
		return
	}
	var view portalView
	var removed bool
	err := s.update(func(x *tx) error {
		p, ok := x.state.portals.get(r.PathValue("id"))
		m, known := x.state.methods.get(r.PostForm.Get("remove"))
		if removed = ok && known && m.Customer == p.Customer; removed {
			x.detach(m)
			return nil
		}
		view = x.portalView(r.PathValue("id"))
		view.Problem = "This card is not saved any more."
		return errNothing
	})
	if removed && err == nil {
		w.Header().Set("Location", r.PathValue("id"))
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	s.drawPortal(w, err, view)
}

// brandNames are the brands of the test cards as people write them.
var brandNames = map[string]string{"visa": "Visa", "mastercard": "Mastercard", "amex": "American Express"}

func (x *tx) portalView(id string) portalView {
	p, ok := x.state.portals.get(id)
	if !ok {
		return portalView{State: "unknown", Title: "No such page"}
	}
	c, _ := x.state.customers.get(p.Customer)
	v := portalView{State: "cards", Title: "Saved cards", Email: c.Email, Return: p.ReturnURL}
	for _, m := range x.state.methods.newestFirst() {
		if m.Customer == p.Customer && m.Type == "card" {
			v.Cards = append(v.Cards, savedCard{m.ID, brandNames[m.Brand], m.Last4, m.ExpMonth, m.ExpYear})
		}
	}
	return v
}

func (s *Server) drawPortal(w http.ResponseWriter, err error, view portalView) {
	status := http.StatusOK
	if view.State == "unknown" {
		status = http.StatusNotFound
	}
	s.draw(w, err, "portal", view, status, view.Return)
}

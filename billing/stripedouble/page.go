package stripedouble

import (
	"bytes"
	_ "embed"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strings"
)

//go:embed page.html
var pageSource string

//go:embed double.css
var pageStyle []byte

var pages = template.Must(template.New("page").Parse(pageSource))

// checkoutView is the hosted page, decided before it is drawn.
type checkoutView struct {
	State      string // pay, authenticate, paid, processing, returned, saved, expired, unknown
	Title      string
	Amount     string
	Lines      []lineView
	Setup      bool
	Debit      bool
	Problem    string
	Card, Exp  string // what was typed
	Success    string
	Cancel     string
	Cards      []testCard
	SubmitText string
}

type lineView struct{ Name, Description, Quantity, Total string }

// portalView is the page of saved cards.
type portalView struct {
	State   string // cards, unknown
	Title   string
	Email   string
	Cards   []savedCard
	Return  string
	Problem string
}

type savedCard struct {
	ID, Brand, Last4 string
	Month, Year      int64
}

func (s *Server) showCheckout(w http.ResponseWriter, r *http.Request) {
	var view checkoutView
	err := s.update(func(x *tx) error {
		ses, ok := x.state.sessions.get(r.PathValue("id"))
		view = x.checkoutView(ses, ok)
		return errNothing
	})
	s.drawCheckout(w, err, view, 0)
}

// postCheckout is one step of the payer: a card, a bank debit, or the end of the
// 3D Secure step. What is done sends the browser on with 303; what is refused
// shows the page again with the reason.
func (s *Server) postCheckout(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 1<<16)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "The form could not be read: send it again.", http.StatusBadRequest)
		return
	}
	var view checkoutView
	var next string
	status := 0
	err := s.update(func(x *tx) error {
		ses, ok := x.state.sessions.get(r.PathValue("id"))
		if ok && ses.Status == "complete" { // a second click: nothing is charged again
			next = successURL(ses)
			return errNothing
		}
		if !ok || ses.Status != "open" {
			view = x.checkoutView(ses, ok)
			return errNothing
		}
		typed := r.PostForm
		wrong, refused := x.payStep(ses, typed)
		ses, _ = x.state.sessions.get(ses.ID)
		if ses.Status == "complete" {
			next = successURL(ses)
			return nil
		}
		view = x.checkoutView(ses, true)
		switch {
		case wrong != "":
			view.Problem, view.Card, view.Exp, status = wrong, typed.Get("card"), typed.Get("exp"), http.StatusUnprocessableEntity
		case refused != "":
			view.Problem, view.Card, view.Exp, status = refused, typed.Get("card"), typed.Get("exp"), http.StatusPaymentRequired
		default:
			next = r.URL.Path // the 3D Secure step, by a GET that can be reloaded
			if i := strings.LastIndex(next, "/"); i >= 0 {
				next = next[i+1:] // relative, so that a prefix in front of the double stays
			}
		}
		return nil
	})
	if err == nil || errors.Is(err, errNothing) {
		if next != "" {
			w.Header().Set("Cache-Control", "no-store")
			w.Header().Set("Location", next)
			w.WriteHeader(http.StatusSeeOther)
			return
		}
	}
	s.drawCheckout(w, err, view, status)
}

// payStep does what the form asks. wrong is a form to correct, with nothing
// done; refused is a payment that was tried and declined.
func (x *tx) payStep(ses session, typed url.Values) (wrong, refused string) {
	if x.authenticating(ses) {
		switch typed.Get("authenticate") {
		case "complete":
			return "", x.authenticate(ses, true)
		case "fail":
			return "", x.authenticate(ses, false)
		}
		return "Complete or fail the authentication first.", ""
	}
	switch choice := typed.Get("card"); choice {
	case "delayed_success", "delayed_failure":
		if !hasDebit(ses) {
			return "This payment takes cards only.", ""
		}
		x.payDebit(ses, choice == "delayed_success")
		return "", ""
	}
	card, wrong := findCard(typed.Get("card"))
	if wrong != "" {
		return wrong, ""
	}
	month, year, wrong := parseExpiry(typed.Get("exp"), x.now)
	if wrong != "" {
		return wrong, ""
	}
	if wrong := checkCVC(typed.Get("cvc")); wrong != "" {
		return wrong, ""
	}
	return "", x.payCard(ses, card, month, year)
}

func hasDebit(ses session) bool {
	for _, kind := range ses.MethodTypes {
		if ses.Mode == "payment" && kind != "card" && kind == debitKind(ses.Currency) {
			return true
		}
	}
	return false
}

func successURL(ses session) string {
	return strings.ReplaceAll(ses.SuccessURL, "{CHECKOUT_SESSION_ID}", ses.ID)
}

func (x *tx) checkoutView(ses session, ok bool) checkoutView {
	v := checkoutView{State: "pay", Title: "Pay", Setup: ses.Mode == "setup", Debit: hasDebit(ses), Cards: testCards,
		Success: successURL(ses), Cancel: strings.ReplaceAll(ses.CancelURL, "{CHECKOUT_SESSION_ID}", ses.ID)}
	if !ok {
		v.State, v.Title = "unknown", "No such payment"
		return v
	}
	if v.Setup {
		v.Title, v.SubmitText = "Save a card", "Save card"
	} else {
		v.Amount = display(ses.AmountTotal, ses.Currency)
		v.SubmitText = "Pay " + v.Amount
	}
	for _, l := range ses.Lines {
		lv := lineView{Name: l.Name, Description: l.Description, Total: display(l.UnitAmount*l.Quantity, ses.Currency)}
		if l.Quantity > 1 {
			lv.Quantity = display(l.UnitAmount, ses.Currency)
		}
		v.Lines = append(v.Lines, lv)
	}
	switch {
	case ses.Status == "expired":
		v.State, v.Title = "expired", "This payment page has expired"
	case ses.Status == "complete" && ses.Settle != nil:
		v.State, v.Title = "processing", "Your bank debit is on its way"
	case ses.Status == "complete" && ses.PaymentStatus == "unpaid":
		v.State, v.Title = "returned", "Your bank returned the debit"
	case ses.Status == "complete" && v.Setup:
		v.State, v.Title = "saved", "Your card is saved"
	case ses.Status == "complete":
		v.State, v.Title = "paid", "This payment is complete"
	case x.authenticating(ses):
		v.State, v.Title = "authenticate", "3D Secure test page"
	}
	return v
}

func (s *Server) drawCheckout(w http.ResponseWriter, err error, view checkoutView, status int) {
	if status == 0 {
		switch view.State {
		case "unknown":
			status = http.StatusNotFound
		case "expired":
			status = http.StatusGone
		default:
			status = http.StatusOK
		}
	}
	s.draw(w, err, "checkout", view, status, view.Success, view.Cancel)
}

// draw writes one page. targets are the addresses a form may send the browser on
// to: a browser holds redirects after a form to form-action too, and the portal
// is another origin than the double.
func (s *Server) draw(w http.ResponseWriter, err error, name string, view any, status int, targets ...string) {
	if err != nil && !errors.Is(err, errNothing) {
		s.log.Error("test payment page", "page", name, "error", err)
		http.Error(w, "The test payments could not answer: "+err.Error(), http.StatusInternalServerError)
		return
	}
	var page bytes.Buffer
	if err := pages.ExecuteTemplate(&page, name, view); err != nil {
		s.log.Error("test payment page", "page", name, "error", err)
		http.Error(w, "The page could not be drawn.", http.StatusInternalServerError)
		return
	}
	actions := "'self'"
	for _, target := range targets {
		if u, err := url.Parse(target); err == nil && u.Host != "" && !strings.ContainsAny(u.Host, " ;,'\"") {
			actions += " " + u.Scheme + "://" + u.Host
		}
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; frame-ancestors 'none'; form-action "+actions)
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	w.Write(page.Bytes())
}

func serveStyle(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-cache")
	w.Write(pageStyle)
}

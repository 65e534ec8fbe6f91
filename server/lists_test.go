package server

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"berth/models"
)

// A list goes on only from a row that was shown, and filters only by what there
// is: an empty answer to a wrong question would be taken for "nothing there".
func TestListsRefuseWhatTheyDoNotKnow(t *testing.T) {
	w := newWorld(t)
	b := w.signUp("ada@example.org")
	_, a := w.who("ada@example.org")
	id := w.instanceOf(a.ID)
	_, other := w.who(func() string { w.signUp("eve@example.org"); return "eve@example.org" }())
	theirs := w.instanceOf(other.ID, func(in *models.Instance) { in.Name = "tern-02" })
	for _, list := range []string{"instances", "wallet/topups", "usage", "ledger", "invoices"} {
		b.get("/api/v1/"+list+"?cursor=made-up").wants(t, http.StatusUnprocessableEntity, "cursor")
	}
	b.get("/api/v1/instances?cursor="+string(theirs)).wants(t, http.StatusUnprocessableEntity, "cursor")
	b.get("/api/v1/instances?cursor="+string(id)).wants(t, http.StatusOK, `"items":[]`)
	b.get("/api/v1/instances?limit=%zz").wants(t, http.StatusBadRequest, "broken escape")
	b.get("/api/v1/instances?state=bogus").wants(t, http.StatusUnprocessableEntity, "state")
	b.get("/api/v1/instances?state=stopped").wants(t, http.StatusOK, string(id))
}

func TestPricesDoNotBeginInTheYearOne(t *testing.T) {
	w := newWorld(t)
	op := w.operator()
	op.do(http.MethodPost, "/api/v1/prices", strings.NewReader(`{"sku":"rtx4090","price_per_hour":{"micros":1000000,"currency":"USD"},"effective_at":"0001-01-01T00:00:00Z"}`),
		http.Header{"Content-Type": {"application/json"}}).wants(t, http.StatusUnprocessableEntity, "cannot begin in the past")
}

// What is called a character is one, also outside ASCII.
func TestLimitsCountCharacters(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	b.post("/signup", "name", strings.Repeat("é", 101), "email", "a@example.org", "password", password).wants(t, http.StatusUnprocessableEntity, "at most 100 characters", strings.Repeat("é", 101))
	b.post("/signup", "name", strings.Repeat("é", 100), "email", "a@example.org", "password", password).leadsTo(t, "/")
	b.post("/account/tokens", "name", strings.Repeat("é", 65)).wants(t, http.StatusUnprocessableEntity, "at most 64 characters")
	b.post("/account/tokens", "name", strings.Repeat("é", 64)).wants(t, http.StatusCreated)
}

// The way back from the payment page is made of the Host header, where no base
// address is configured.
func TestHostThatIsNone(t *testing.T) {
	w := newWorld(t)
	b := w.signUp("ada@example.org")
	for _, host := range []string{"", "a%zz", "[::1", "a:b:c", "a/b", "*", "a b"} {
		req, err := http.NewRequest(http.MethodPost, "http://x/wallet/topups", strings.NewReader("amount=25&idempotency_key=k"))
		w.must(err)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for _, c := range b.http.Jar.Cookies(must(url.Parse(w.url))) {
			req.AddCookie(c)
		}
		req.Host = host
		rec := httptest.NewRecorder()
		w.server.ServeHTTP(rec, req)
		if rec.Code != http.StatusBadRequest || !strings.Contains(rec.Body.String(), "Host header") {
			t.Errorf("%q: %d", host, rec.Code)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

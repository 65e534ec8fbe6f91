package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"berth/models"
	"berth/models/store"
	"berth/wire"
)

// access is who may call each address of the portal: the whole table once more,
// by hand, so that a route which is new or has changed its need fails here until
// somebody has thought about it.
var access = map[string]need{
	"GET /healthz": anyone, "GET /readyz": anyone, "GET /metrics": anyone, "GET /assets/*": anyone,
	"POST /webhooks/stripe": anyone,
	"GET /signup":           anyone, "POST /signup": anyone, "GET /login": anyone, "POST /login": anyone, "POST /logout": anyone, "POST /theme": anyone,
	"GET /": anyone, "GET /launch": mayView, "POST /launch/price": mayView, "POST /launch": mayRun,
	"GET /instances": mayView, "GET /instances/live": mayView, "POST /instances/stop": mayRun, "GET /instances/:id": mayView,
	"POST /instances/:id/stop": mayRun, "POST /instances/:id/start": mayRun, "POST /instances/:id/restart": mayRun, "POST /instances/:id/terminate": mayRun,
	"GET /instances/:id/logs": mayView, "GET /instances/:id/live": mayView, "GET /instances/:id/terminal": mayRun, "GET /instances/:id/terminal/socket": mayRun,
	"GET /wallet": mayView, "POST /wallet/topups": mayPay,
	"GET /invoices": mayView, "GET /invoices/:id": mayView,
	"GET /account": mayView, "POST /account/sessions/revoke-all": mayView, "POST /account/sessions/:id/revoke": mayView,
	"POST /account/password": mayView, "POST /account/tokens": mayView, "POST /account/tokens/:id/revoke": mayView,
	"GET /live":  mayView,
	"GET /fleet": mayOperate, "POST /fleet/join-tokens": mayOperate, "GET /fleet/accounts": mayOperate, "GET /fleet/:id": mayOperate,
	"GET /fleet/live": mayOperate, "GET /fleet/:id/live": mayOperate, "GET /fleet/:id/devices/:uuid": mayOperate, "GET /fleet/:id/devices/:uuid/live": mayOperate,
	"GET /fleet/:id/devices/:uuid/layout": mayOperate, "POST /fleet/:id/devices/:uuid/layout": mayOperate,
	"POST /fleet/:id/devices/:uuid/sharing": mayOperate,
	"POST /fleet/:id/maintenance":           mayOperate, "POST /fleet/:id/maintenance/end": mayOperate,
	"POST /fleet/:id/cordon": mayOperate, "POST /fleet/:id/uncordon": mayOperate, "POST /fleet/:id/retire": mayOperate,
	"POST /accounts/:id/close-invoice": mayOperate, "GET /prices": mayOperate, "POST /prices": mayOperate,

	// Nodes prove themselves by token, challenge and key.
	"POST /agent/v1/join": anyone, "GET /agent/v1/challenge": anyone, "GET /agent/v1/link": anyone,

	"GET /api/v1/openapi.json": anyone,
	"GET /api/v1/me":           mayView, "GET /api/v1/tokens": mayView, "POST /api/v1/tokens": mayView, "DELETE /api/v1/tokens/:id": mayView,
	"GET /api/v1/skus": anyone, "GET /api/v1/offers": anyone,
	"GET /api/v1/instances": mayView, "GET /api/v1/instances/live": mayView, "POST /api/v1/instances": mayRun, "GET /api/v1/instances/:id": mayView,
	"POST /api/v1/instances/:id/stop": mayRun, "POST /api/v1/instances/:id/start": mayRun, "POST /api/v1/instances/:id/restart": mayRun, "POST /api/v1/instances/:id/terminate": mayRun,
	"GET /api/v1/instances/:id/events": mayView, "GET /api/v1/instances/:id/live": mayView, "GET /api/v1/instances/:id/terminal": mayRun,
	"GET /api/v1/usage": mayView, "GET /api/v1/wallet": mayView, "GET /api/v1/wallet/topups": mayView, "POST /api/v1/wallet/topups": mayPay, "GET /api/v1/wallet/topups/:id": mayView, "POST /api/v1/wallet/topups/:id/cancel": mayPay,
	"GET /api/v1/ledger": mayView, "GET /api/v1/invoices": mayView, "GET /api/v1/invoices/:id": mayView,
	"GET /api/v1/instances/:id/history": mayView, "GET /api/v1/devices/:uuid/history": mayOperate, "GET /api/v1/nodes/:id/history": mayOperate,
	"GET /api/v1/nodes": mayOperate, "GET /api/v1/devices": mayOperate, "POST /api/v1/nodes/join-tokens": mayOperate, "GET /api/v1/prices": mayOperate, "POST /api/v1/prices": mayOperate,
	"POST /api/v1/invoices/close":        mayOperate,
	"POST /api/v1/devices/:uuid/layout":  mayOperate,
	"POST /api/v1/devices/:uuid/sharing": mayOperate,
	"POST /api/v1/nodes/:id/maintenance": mayOperate, "DELETE /api/v1/nodes/:id/maintenance": mayOperate,
	"POST /api/v1/nodes/:id/cordon": mayOperate, "POST /api/v1/nodes/:id/uncordon": mayOperate, "POST /api/v1/nodes/:id/retire": mayOperate,
}

// unserved are addresses that the router lists and that serve nothing of ours:
// other spellings of the API's description, which its guard refuses.
func unserved(r *echo.Route) bool {
	return strings.HasPrefix(r.Path, "/api/v1/openapi") && r.Path != "/api/v1/openapi.json" || r.Method == echo.RouteNotFound
}

func TestEveryRouteIsGuarded(t *testing.T) {
	w := newWorld(t)
	seen := map[string]bool{}
	for _, r := range w.server.echo.Routes() {
		key := r.Method + " " + r.Path
		if unserved(r) {
			continue
		}
		if _, ok := access[key]; !ok {
			t.Errorf("%s is new: say in access who may call it", key)
		}
		seen[key] = true
	}
	for key := range access {
		if !seen[key] {
			t.Errorf("%s is no route any more", key)
		}
	}

	// Somebody of each kind, each signed in.
	w.signUp("owner@example.org")
	_, account := w.who("owner@example.org")
	people := map[string]*browser{"anonymous": w.browser(), "other tenant": w.signUp("other@example.org"), "operator": w.operator()}
	for _, role := range []models.Role{models.Viewer, models.Billing, models.Developer, models.Owner} {
		people[string(role)] = w.member(account.ID, role)
	}
	id := w.instanceOf(account.ID)
	for key, n := range access {
		method, path, _ := strings.Cut(key, " ")
		if slices.Contains([]string{"/webhooks/stripe", "/logout", "/live", "/account/sessions/revoke-all", "/login", "/signup", "/api/v1/openapi.json"}, path) ||
			strings.HasPrefix(path, "/agent/") || strings.HasPrefix(path, "/assets") {
			continue // open to all, or they would end the session; each has its own test
		}
		for who, b := range people {
			res := b.call(method, strings.NewReplacer(":id", string(id), "*", "x").Replace(path))
			switch allowed := may(n, who); {
			case res.StatusCode >= 500 && res.StatusCode != http.StatusServiceUnavailable:
				t.Errorf("%s as %s: %d %s", key, who, res.StatusCode, mainPart(res.body))
			case n == anyone:
			case who == "anonymous":
				to, _, _ := strings.Cut(res.Header.Get("Location"), "?")
				page := method == http.MethodGet && !strings.HasPrefix(path, "/api/")
				if page && to != "/login" || !page && res.StatusCode != http.StatusUnauthorized {
					t.Errorf("%s as nobody: %d to %q", key, res.StatusCode, to)
				}
			case !allowed:
				if res.StatusCode != http.StatusForbidden {
					t.Errorf("%s as %s: %d, not 403", key, who, res.StatusCode)
				}
			case res.StatusCode == http.StatusForbidden || res.StatusCode == http.StatusUnauthorized:
				t.Errorf("%s as %s: %d, though it is allowed: %s", key, who, res.StatusCode, mainPart(res.body))
			case strings.Contains(path, "/instances/:id") && (who == "other tenant" || who == "operator"):
				if res.StatusCode != http.StatusNotFound {
					t.Errorf("%s of another's instance as %s: %d, not 404", key, who, res.StatusCode)
				}
			}
		}
	}
}

// may says by the words of the design who may do what.
func may(n need, who string) bool {
	switch n {
	case mayOperate:
		return who == "operator"
	case mayRun:
		return who != string(models.Viewer) && who != string(models.Billing)
	case mayPay:
		return who != string(models.Viewer) && who != string(models.Developer)
	}
	return true
}

// call sends an empty form, or an empty JSON object to the API.
func (b *browser) call(method, path string) answer {
	b.Helper()
	if method == http.MethodGet {
		return b.get(path)
	}
	kind, body := "application/x-www-form-urlencoded", ""
	if strings.HasPrefix(path, "/api/") {
		kind, body = "application/json", "{}"
	}
	return b.do(method, path, strings.NewReader(body), http.Header{"Content-Type": {kind}})
}

// member is somebody who acts for an account in a role.
func (w *world) member(account models.AccountID, role models.Role) *browser {
	w.Helper()
	at := time.Now()
	u := models.User{ID: models.UserID(store.NewID("usr", at)), Email: string(role) + "@example.org", Name: string(role)}
	secret := newSecret()
	w.must(w.store.InTx(context.Background(), func(tx *store.Tx) error {
		if err := tx.CreateUser(u); role != models.Owner && err != nil {
			return err
		} else if role == models.Owner {
			owner, err := tx.UserByEmail(u.Email)
			if err != nil {
				return err
			}
			u = owner
		} else if err := tx.AddMember(models.Member{AccountID: account, UserID: u.ID, Role: role}); err != nil {
			return err
		}
		return tx.CreateSession(models.Session{IDHash: hashSecret(secret), UserID: u.ID, AccountID: account, SeenAt: models.At(at), ExpiresAt: models.At(at.Add(time.Hour))})
	}))
	b := w.browser()
	b.head.Set("Cookie", "berth="+secret)
	return b
}

// instanceOf puts an instance of an account into the database.
func (w *world) instanceOf(account models.AccountID, change ...func(*models.Instance)) models.InstanceID {
	w.Helper()
	at := time.Now()
	in := models.Instance{ID: models.InstanceID(store.NewID("ins", at)), AccountID: account, NodeID: w.addNode(), Name: "tern-01", SKU: "a100-80gb.1g.10gb", State: models.Stopped,
		BillingMode: models.OnDemand, PricePerHour: 420_000, Currency: "USD", Image: "host", DiskGiB: 20, Run: 1, Want: models.WantStopped, CreatedAt: models.At(at), RequestedAt: models.At(at), ChangedAt: models.At(at)}
	for _, f := range change {
		f(&in)
	}
	w.must(w.store.InTx(context.Background(), func(tx *store.Tx) error { return tx.InsertInstance(in) }))
	return in.ID
}

func TestNobodyMayNothing(t *testing.T) {
	for _, n := range []need{mayView, mayRun, mayPay, mayOperate, "", "a need that was never written"} {
		for name, id := range map[string]identity{
			"nobody":              {},
			"an operator unknown": {Operator: true},
			"a role alone":        {Role: models.Owner},
			"a user alone":        {User: models.User{ID: "usr_1"}, Role: models.Owner, Operator: true},
		} {
			if n.check(id) == nil {
				t.Errorf("%s may %q", name, n)
			}
		}
	}
	full := identity{User: models.User{ID: "usr_1"}, Account: models.Account{ID: "acc_1"}, Role: models.Owner, Operator: true}
	if need("a need that was never written").check(full) == nil {
		t.Error("an unknown need is met")
	}
}

func TestHeadersOfEveryAnswer(t *testing.T) {
	w := newWorld(t)
	b := w.signUp("ada@example.org")
	for _, path := range []string{"/", "/wallet", "/nowhere", "/healthz", "/api/v1/me", "/assets/none.js"} {
		res := b.get(path)
		csp := res.Header.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self' " + w.server.cfg.CheckoutOrigin, "style-src 'self';"} {
			if !strings.Contains(csp+";", part) {
				t.Errorf("%s: no %s in %s", path, part, csp)
			}
		}
		if strings.Contains(csp, "unsafe") || res.Header.Get("X-Content-Type-Options") != "nosniff" || res.Header.Get("Referrer-Policy") != "same-origin" ||
			res.Header.Get("Strict-Transport-Security") != "" || res.Header.Get("X-Request-Id") == "" {
			t.Errorf("%s: %v", path, res.Header)
		}
	}
	// D1: no other origin is ever let in.
	for _, origin := range []string{"https://evil.example", "null", strings.Replace(w.url, "http://", "https://", 1) + ".evil.example"} {
		res := b.do(http.MethodGet, "/api/v1/me", nil, http.Header{"Origin": {origin}})
		res.wants(t, http.StatusOK)
		for name := range res.Header {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s for %s", name, origin)
			}
		}
	}
	if _, err := New(Config{Store: w.store, Billing: w.billing, Fleet: w.fleet, BaseURL: "https://*"}); err == nil {
		t.Error("a wildcard origin is taken")
	}
}

func TestAnotherSitesFormsAreRefused(t *testing.T) {
	w := newWorld(t)
	b := w.signUp("ada@example.org")
	for name, tc := range map[string]struct {
		head   http.Header
		status int
	}{
		"own page":           {http.Header{"Sec-Fetch-Site": {"same-origin"}, "Origin": {w.url}}, http.StatusSeeOther},
		"typed address":      {http.Header{"Sec-Fetch-Site": {"none"}}, http.StatusSeeOther},
		"script, no browser": {nil, http.StatusSeeOther},
		"other site":         {http.Header{"Sec-Fetch-Site": {"cross-site"}, "Origin": {"https://evil.example"}}, http.StatusForbidden},
		"sister site":        {http.Header{"Sec-Fetch-Site": {"same-site"}}, http.StatusForbidden},
		"old browser":        {http.Header{"Origin": {"https://evil.example"}}, http.StatusForbidden},
		"old, own":           {http.Header{"Origin": {w.url}}, http.StatusSeeOther},
	} {
		t.Run(name, func(t *testing.T) {
			tc.head = tc.head.Clone()
			if tc.head == nil {
				tc.head = http.Header{}
			}
			tc.head.Set("Content-Type", "application/x-www-form-urlencoded")
			b.do(http.MethodPost, "/theme", strings.NewReader("theme=dark"), tc.head).wants(t, tc.status)
		})
	}
}

func TestBadBodiesAreProblems(t *testing.T) {
	w := newWorld(t)
	b := w.signUp("ada@example.org")
	form := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	for name, tc := range map[string]struct {
		head   http.Header
		body   string
		status int
	}{
		"too large":       {form, "name=" + strings.Repeat("a", formMax), http.StatusRequestEntityTooLarge},
		"broken escape":   {form, "name=%zz", http.StatusBadRequest},
		"not UTF-8":       {form, "name=%ff%fe", http.StatusBadRequest},
		"NUL":             {form, "name=a%00b", http.StatusBadRequest},
		"NUL in a name":   {form, "na%00me=a", http.StatusBadRequest},
		"too many fields": {form, strings.Repeat("name=a&", maxFields+1), http.StatusBadRequest},
		"JSON":            {http.Header{"Content-Type": {"application/json"}}, `{"name":"a"}`, http.StatusUnsupportedMediaType},
		"no type":         {nil, "name=a", http.StatusUnsupportedMediaType},
		"half a type":     {http.Header{"Content-Type": {"application/;;"}}, "name=a", http.StatusUnsupportedMediaType},
	} {
		for _, path := range []string{"/account/tokens", "/launch", "/wallet/topups", "/instances/stop", "/theme", "/login", "/signup"} {
			t.Run(name+" to "+path, func(t *testing.T) {
				res := b.do(http.MethodPost, path, strings.NewReader(tc.body), tc.head).wants(t, tc.status)
				if !strings.Contains(res.body, "<h1") {
					t.Error("no page")
				}
				head := tc.head.Clone()
				if head == nil {
					head = http.Header{}
				}
				head.Set("Accept", "application/json")
				b.do(http.MethodPost, path, strings.NewReader(tc.body), head).wants(t, tc.status, `"detail":`)
			})
		}
	}
	b.get("/account").wants(t, http.StatusOK, "You have no tokens")
}

// TestAddressesThatAreNoText: PostgreSQL refuses them in a statement, which then
// looked like a fault of ours.
func TestAddressesThatAreNoText(t *testing.T) {
	w := newWorld(t)
	b := w.signUp("owner@example.org")
	for _, path := range []string{"/instances/a%00b", "/invoices/%ff.pdf", "/wallet?topup=%c3%28", "/wallet?%00=1", "/api/v1/usage?instance=%00",
		"/api/v1/instances/%ff", "/login?next=%ff", "/%00"} {
		b.get(path).wants(t, http.StatusBadRequest)
	}
	for _, name := range []string{"Idempotency-Key", wire.NodeHeader} {
		b.do(http.MethodGet, "/agent/v1/challenge", nil, http.Header{name: {"\xff"}}).wants(t, http.StatusBadRequest)
	}
	b.get("/wallet?topup=%C3%BC").wants(t, http.StatusOK)
}

func TestErrorsArePagesForPeopleAndProblemsForPrograms(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	b.get("/nowhere").wants(t, http.StatusNotFound, "There is nothing at this address.", "Request")
	b.do(http.MethodDelete, "/wallet", nil, nil).wants(t, http.StatusMethodNotAllowed, "does not take that kind of request")
	res := b.get("/api/v1/nowhere").wants(t, http.StatusNotFound, `"code":"not_found"`, `"request":"`)
	if res.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("type %s", res.Header.Get("Content-Type"))
	}
	b.do(http.MethodGet, "/wallet", nil, http.Header{"Accept": {"application/json"}}).wants(t, http.StatusUnauthorized, `"status":401`)
}

func TestPanicIsAPageWithANumber(t *testing.T) {
	w := newWorld(t)
	e := w.server.echo
	c := e.NewContext(httptest.NewRequest(http.MethodGet, "/boom", nil), httptest.NewRecorder())
	if err := w.server.observe(func(echo.Context) error { panic("boom: a secret detail") })(c); err != nil {
		t.Fatal(err)
	}
	rec := c.Response().Writer.(*httptest.ResponseRecorder)
	number := rec.Header().Get("X-Request-Id")
	if rec.Code != http.StatusInternalServerError || !strings.Contains(rec.Body.String(), number) || strings.Contains(rec.Body.String(), "secret detail") {
		t.Errorf("%d %s", rec.Code, mainPart(rec.Body.String()))
	}
	if log := w.log.String(); !strings.Contains(log, "boom") || !strings.Contains(log, number) || !strings.Contains(log, "access_test.go") {
		t.Error("the log does not tell where")
	}
}

func TestTheLogHasNoQueries(t *testing.T) {
	w := newWorld(t)
	w.signUp("ada@example.org").get("/wallet?amount=31415926")
	if log := w.log.String(); strings.Contains(log, "31415926") || !strings.Contains(log, "path=/wallet") {
		t.Errorf("the log: %s", log)
	}
}

func TestTrustedProxyTellsWhoAsks(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.TrustedProxies = prefixes(t, "127.0.0.0/8") })
	b := w.browser()
	b.head.Set("X-Forwarded-For", "203.0.113.9, 198.51.100.7")
	b.get("/healthz").wants(t, http.StatusOK)
	if log := w.log.String(); !strings.Contains(log, "address=198.51.100.7") {
		t.Errorf("the log: %s", log)
	}
}

func prefixes(t *testing.T, list ...string) (out []netip.Prefix) {
	t.Helper()
	for _, text := range list {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}

func TestMetricsAreForThisMachineAndOperators(t *testing.T) {
	w := newWorld(t)
	w.addNode()
	b := w.browser()
	b.get("/").wants(t, http.StatusOK)
	b.get("/healthz").wants(t, http.StatusOK, "ok")
	b.get("/readyz").wants(t, http.StatusOK, "ready")
	b.get("/metrics").wants(t, http.StatusOK, "berth_sql_statements_total ", `berth_nodes{state="online"} 1`, `berth_instances{state="running"} 0`, "berth_webhook_inbox 0", "berth_meter_lag_seconds 0",
		`berth_http_requests_total{method="GET",route="/",status="200"} 1`)
	// What somebody makes up is no label: there would be no end of them.
	b.get("/made-up-1").wants(t, http.StatusNotFound)
	b.do("MADEUP", "/made-up-2", nil, nil)
	if page := b.get("/metrics").body; strings.Contains(strings.ToLower(page), "made-up") || strings.Contains(page, "MADEUP") {
		t.Error("made-up addresses and methods are labels")
	}
	b.head.Set("X-Forwarded-For", "203.0.113.9")
	b.get("/metrics").leadsToProblem(t, http.StatusUnauthorized)
	tenant := w.signUp("ada@example.org")
	tenant.head.Set("X-Forwarded-For", "203.0.113.9")
	tenant.get("/metrics").leadsToProblem(t, http.StatusForbidden)
	operator := w.operator()
	operator.head.Set("X-Forwarded-For", "203.0.113.9")
	operator.get("/metrics").wants(t, http.StatusOK, `berth_money_micros{currency="USD",kind="wallets"} 0`)
}

// leadsToProblem fails unless the figures were refused with a status.
func (a answer) leadsToProblem(t *testing.T, status int) {
	t.Helper()
	if a.StatusCode != status || strings.Contains(a.body, "berth_nodes") {
		t.Errorf("%s: %d", a.Request.URL.Path, a.StatusCode)
	}
}

func TestPagesAreSmall(t *testing.T) {
	w := newWorld(t)
	w.addNode()
	b := w.browser()
	res := b.do(http.MethodGet, "/", nil, http.Header{"Accept-Encoding": {"gzip"}}).wants(t, http.StatusOK)
	if res.Header.Get("Content-Encoding") != "gzip" || len(res.body) > 20_000 {
		t.Errorf("%d bytes, %q", len(res.body), res.Header.Get("Content-Encoding"))
	}
	if res := b.do(http.MethodGet, "/", nil, http.Header{"Accept-Encoding": {"gzip;q=0"}}); res.Header.Get("Content-Encoding") != "" {
		t.Error("compressed for who refuses it")
	}
	t.Logf("the catalogue of one model is %d bytes compressed", len(res.body))
}

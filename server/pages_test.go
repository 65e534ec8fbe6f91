package server

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/models"
	"berth/models/store"
	"berth/money"
	"berth/wire"
)

// fund puts money into the wallet of an e-mail, as a payment would.
func (w *world) fund(email string, amount money.Amount) {
	w.Helper()
	b := w.browser()
	b.post("/login", "email", email, "password", password).leadsTo(w.T, "/")
	checkout := b.post("/wallet/topups", "amount", fmt.Sprint(amount/money.Unit), "idempotency_key", newKey()).wants(w.T, http.StatusSeeOther).Header.Get("Location")
	back := b.post(checkout, "card", "4242424242424242").wants(w.T, http.StatusSeeOther).Header.Get("Location")
	b.get(strings.TrimPrefix(back, w.url)).wants(w.T, http.StatusOK)
	_, a := w.who(email)
	w.within("the money", func() bool {
		wallet, err := w.billing.Wallet(context.Background(), a.ID, models.At(time.Now()))
		return err == nil && wallet.Available >= amount
	})
}

// keyIn is the key that a drawn form carries.
func keyIn(page string) string {
	return regexp.MustCompile(`name="idempotency_key" value="([^"]+)"`).FindStringSubmatch(page)[1]
}

// happens reports an event of an instance as its node would.
func (w *world) happens(node models.NodeID, seq int64, id models.InstanceID, phase wire.Phase, change ...func(*wire.Event)) {
	w.Helper()
	ev := wire.Event{Seq: seq, BootID: "boot", At: time.Now(), Instance: string(id), Run: 1, Phase: phase}
	for _, f := range change {
		f(&ev)
	}
	w.must(w.fleet.NodeEvent(context.Background(), node, ev, models.At(time.Now())))
}

const slice = "a100-80gb.1g.10gb"

func TestCatalogueShowsWhatIsSold(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	b.get("/").wants(t, http.StatusOK, "Nothing to rent yet")
	w.addNode()
	b.get("/").wants(t, http.StatusOK, "A100 80GB · 1g.10gb", "9,856", "14 slices free", "2 of 2 GPUs free", "/launch?sku="+slice, "1/8 memory", "1/7 compute")
	page := b.get("/?for=try").wants(t, http.StatusOK, "A100 80GB · 1g.10gb").body
	if strings.Contains(page, "2 of 2 GPUs free") {
		t.Error("the filter hides nothing")
	}
}

func TestLaunchByTheForm(t *testing.T) {
	w := newWorld(t)
	node := w.addNode()
	b := w.signUp("ada@example.org")
	b.get("/launch").wants(t, http.StatusOK, "Choose a GPU to see what it costs")
	b.get("/launch?sku="+slice).wants(t, http.StatusOK, "Where it will land", "kestrel, GPU 0", "Not enough in the wallet", "Host system")
	b.get("/launch?sku=nonsense").wants(t, http.StatusOK, "There is no &#34;nonsense&#34;")

	b.post("/launch", "sku", slice, "disk_gib", "20", "idempotency_key", "k").wants(t, http.StatusPaymentRequired, "Not enough in the wallet", `value="k"`)
	w.fund("ada@example.org", 25*money.Unit)
	page := b.get("/launch?sku="+slice).wants(t, http.StatusOK, "Launch for")
	for name, tc := range map[string]struct{ field, value, says string }{
		"name":    {"name", "Qwen Serve", "lower-case letters"},
		"disk":    {"disk_gib", "lots", "Write a whole number of GiB"},
		"disk -1": {"disk_gib", "-1", "from 1 to"},
		"env":     {"env", "HF_HOME=/x\nnonsense", "Line 2 has no name before a ="},
		"env 2":   {"env", "A=1\nA=2", "Line 2 sets A a second time"},
		"sku":     {"sku", "a100-80gb.9g.90gb", "There is no"},
		"image":   {"image", "nothing:latest", "No node offers this image now."},
	} {
		t.Run(name, func(t *testing.T) {
			fields := map[string]string{"sku": slice, "disk_gib": "20", "name": "tern-01", "idempotency_key": "k2", "startup_script": "echo <hi>"}
			fields[tc.field] = tc.value
			var pairs []string
			for k, v := range fields {
				pairs = append(pairs, k, v)
			}
			b.post("/launch", pairs...).wants(t, http.StatusUnprocessableEntity, tc.says, "echo &lt;hi&gt;")
		})
	}
	b.post("/launch/price", "sku", slice, "disk_gib", "20", "name", "kept").wants(t, http.StatusOK, `value="kept"`)

	// Sent twice at once, it launches once.
	order := []string{"sku", slice, "disk_gib", "20", "name", "tern-01", "image", hostImage, "env", "A=1\r\nB=two words", "idempotency_key", keyIn(page.body)}
	places := make([]string, 4)
	var racing sync.WaitGroup
	for i := range places {
		racing.Go(func() { places[i] = b.post("/launch", order...).wants(t, http.StatusSeeOther).Header.Get("Location") })
	}
	racing.Wait()
	for _, p := range places {
		if p != places[0] {
			t.Fatalf("launched %v", places)
		}
	}
	order[5] = "tern-02"
	b.post("/launch", order...).wants(t, http.StatusConflict, "This form has launched an instance before")

	id := models.InstanceID(strings.TrimPrefix(places[0], "/instances/"))
	b.get(places[0]).wants(t, http.StatusOK, "tern-01", "Making the slice", "Cancel, costs nothing", "Billing starts when it is running", "starts with the instance", "kestrel, GPU 0")
	b.get("/instances").wants(t, http.StatusOK, "1 starting.", "kestrel · GPU 0", "Current 1", "Active 1")
	b.get(places[0]+"/terminal").wants(t, http.StatusConflict, "There is no shell while it is not running")
	b.get(places[0]+"/logs").wants(t, http.StatusServiceUnavailable, "not connected right now")

	w.happens(node, 1, id, wire.PhasePulling)
	w.happens(node, 2, id, wire.PhaseStarting)
	w.happens(node, 3, id, wire.PhaseRunning)
	running := b.get(places[0]).wants(t, http.StatusOK, "Running", "This run has cost", "/terminal", "GPU utilisation", "Restart", "Terminate…", "data-rate=")
	if strings.Contains(running.body, "Cancel, costs nothing") {
		t.Error("a running instance can be cancelled")
	}
	terminal := b.get(places[0]+"/terminal").wants(t, http.StatusOK, "/terminal/socket")
	nonce := regexp.MustCompile(`data-nonce="([^"]+)"`).FindStringSubmatch(terminal.body)[1]
	if csp := terminal.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "'nonce-"+nonce+"'; style-src-attr 'unsafe-inline'") {
		t.Errorf("the terminal's policy: %s", csp)
	}
	b.get("/wallet").wants(t, http.StatusOK, "1 instance")

	b.post(places[0]+"/terminate", "confirm", "tern").wants(t, http.StatusUnprocessableEntity, "The name did not match. Type tern-01")
	b.post(places[0]+"/stop").leadsTo(t, places[0])
	b.get(places[0]).wants(t, http.StatusOK, "Stopping", "You stopped it.")
	b.post(places[0]+"/stop").leadsTo(t, places[0])
	b.get(places[0]).wants(t, http.StatusOK, "Stopping") // asked twice, it stops once
	b.post(places[0]+"/start").leadsTo(t, places[0])
	b.get(places[0]).wants(t, http.StatusOK, "tern-01 is stopping: it cannot be started now.")
	w.happens(node, 4, id, wire.PhaseStopped, func(e *wire.Event) { e.Reason = wire.ReasonAsked; e.Seconds = 1 })
	b.get(places[0]).wants(t, http.StatusOK, "Stopped, disk kept", "It has cost", "Start for", "A stopped instance holds nothing.")
	b.post(places[0]+"/terminate", "confirm", "tern-01").leadsTo(t, places[0])
	w.happens(node, 5, id, wire.PhaseGone)
	b.get(places[0]).wants(t, http.StatusOK, "Terminated")
	b.get("/instances?show=terminated").wants(t, http.StatusOK, "tern-01", "Terminated 1")
	b.get("/instances").wants(t, http.StatusOK, "Current 0", "under Terminated 1", `href="/instances?show=terminated">Show them`)
}

func TestBulkStopSaysWhatItDid(t *testing.T) {
	w := newWorld(t)
	w.addNode()
	b := w.signUp("ada@example.org")
	w.fund("ada@example.org", 25*money.Unit)
	var ids []string
	for i := range 2 {
		at := b.post("/launch", "sku", slice, "disk_gib", "20", "name", fmt.Sprintf("tern-%d", i), "idempotency_key", newKey()).wants(t, http.StatusSeeOther).Header.Get("Location")
		ids = append(ids, strings.TrimPrefix(at, "/instances/"))
	}
	b.post("/instances/stop").leadsTo(t, "/instances")
	b.get("/instances").wants(t, http.StatusOK, "Nothing was selected.")
	if long := b.post("/instances/stop", "ids", strings.Repeat("x", 70_000)).leadsTo(t, "/instances").Header.Get("Set-Cookie"); len(long) > 1000 {
		t.Errorf("a message of %d bytes in a cookie", len(long)) // a browser drops it, others stop reading
	}
	other := w.signUp("mallory@example.org")
	other.post("/instances/stop", "ids", ids[0]).leadsTo(t, "/instances")
	other.get("/instances").wants(t, http.StatusOK, "1 instance could not be stopped.")
	b.get("/instances").wants(t, http.StatusOK, "2 starting.")
	b.post("/instances/stop", "ids", ids[0], "ids", ids[1], "ids", ids[0]).leadsTo(t, "/instances")
	b.get("/instances").wants(t, http.StatusOK, "tern-0, tern-1 stopping.", "2 stopping.")
}

func TestFailureSaysWhyAndWhatNext(t *testing.T) {
	w := newWorld(t)
	node := w.addNode()
	b := w.signUp("ada@example.org")
	w.fund("ada@example.org", 25*money.Unit)
	at := b.post("/launch", "sku", slice, "disk_gib", "20", "name", "tern-01", "idempotency_key", "k").wants(t, http.StatusSeeOther).Header.Get("Location")
	id := models.InstanceID(strings.TrimPrefix(at, "/instances/"))
	w.happens(node, 1, id, wire.PhaseStarting)
	w.happens(node, 2, id, wire.PhaseStopped, func(e *wire.Event) {
		e.Reason, e.Detail = wire.ReasonStartup, "The start-up script ended with status 127: <python> not found."
	})
	b.get(at).wants(t, http.StatusOK, "Failed to start", "Its start-up script failed.", "ended with status 127: &lt;python&gt; not found.", "launch a new one with a corrected script", "A start that fails is free.")
	b.get("/instances").wants(t, http.StatusOK, "1 failed.", "Its start-up script failed<")
}

func TestNothingIsFreeIsSaid(t *testing.T) {
	w := newWorld(t)
	w.addNode()
	b := w.signUp("ada@example.org")
	w.fund("ada@example.org", 100*money.Unit)
	for i := range 2 {
		b.post("/launch", "sku", "a100-80gb", "disk_gib", "20", "name", fmt.Sprintf("tern-%d", i), "idempotency_key", newKey()).wants(t, http.StatusSeeOther)
	}
	b.get("/launch?sku="+slice).wants(t, http.StatusOK, "Nowhere to land.", "none free")
	b.post("/launch", "sku", slice, "disk_gib", "20", "name", "tern-3", "idempotency_key", newKey()).wants(t, http.StatusConflict, "Nowhere to land.")
	b.get("/").wants(t, http.StatusOK, "0 of 2 GPUs free", "0 slices free")
}

func TestOperatorsPages(t *testing.T) {
	w := newWorld(t)
	op := w.operator()
	op.get("/fleet").wants(t, http.StatusOK, "No nodes yet.")
	page := op.post("/fleet/join-tokens").wants(t, http.StatusCreated, "berth agent join "+w.url+" --token bjt_", "It joins one node")
	token := regexp.MustCompile(`bjt_[a-z0-9]+`).FindString(page.body)
	if strings.Contains(op.get("/fleet").body, token) || strings.Contains(w.log.String(), token) {
		t.Error("a join token is shown or logged a second time")
	}
	node := w.addNode()
	op.get("/fleet").wants(t, http.StatusOK, "1 node, 2 GPUs.", "2 × A100 80GB, agent test", "Healthy", "kestrel GPU 0: free")
	ada := w.signUp("ada@example.org")
	w.fund("ada@example.org", 25*money.Unit)
	at := ada.post("/launch", "sku", slice, "disk_gib", "20", "name", "tern-01", "idempotency_key", "k").wants(t, http.StatusSeeOther).Header.Get("Location")
	op.get("/fleet/"+string(node)).wants(t, http.StatusOK, "tern-01", "Ada Keel", "1 of 8 memory slices sold", "physical model", "not permitted", "64 CPUs, 512 GiB RAM")
	op.get("/fleet/nod_none").wants(t, http.StatusNotFound)
	w.must(w.fleet.NodeDisconnected(context.Background(), node, models.At(time.Now())))
	op.get("/fleet").wants(t, http.StatusOK, "No heartbeat", "Its 1 instance may go on there")
	op.get(at).wants(t, http.StatusNotFound) // an operator is no member of the account

	op.get("/prices").wants(t, http.StatusOK, slice, "from the start")
	for name, tc := range map[string]struct{ sku, price, from, says string }{
		"sku":      {"nonsense", "1", "", "Unknown"},
		"price":    {slice, "-1", "", "Write a price like 1.99"},
		"too fine": {slice, "0.0000001", "", "Write a price like 1.99"},
		"past":     {slice, "1", "2020-01-01T00:00", "cannot begin in the past"},
		"no date":  {slice, "1", "tomorrow", "Write a date and time"},
	} {
		t.Run(name, func(t *testing.T) {
			op.post("/prices", "sku", tc.sku, "price_per_hour", tc.price, "effective_at", tc.from).wants(t, http.StatusUnprocessableEntity, tc.says)
		})
	}
	op.post("/prices", "sku", slice, "price_per_hour", "0.5", "effective_at", "2999-01-01T00:00").leadsTo(t, "/prices")
	op.post("/prices", "sku", slice, "price_per_hour", "0.61").leadsTo(t, "/prices")
	op.get("/prices").wants(t, http.StatusOK, "has a new price", "$0.61", "1 Jan 2999, 00:00", "Planned")
	op.get("/fleet/accounts").wants(t, http.StatusOK, "ada@example.org", "$25.00", "operator@berth.local")
}

func TestInvoiceOfARun(t *testing.T) {
	w := newWorld(t)
	node := w.addNode()
	op, b := w.operator(), w.signUp("ada@example.org")
	w.fund("ada@example.org", 25*money.Unit)
	at := b.post("/launch", "sku", slice, "disk_gib", "20", "name", "tern-01", "idempotency_key", "k").wants(t, http.StatusSeeOther).Header.Get("Location")
	id := models.InstanceID(strings.TrimPrefix(at, "/instances/"))
	b.get("/invoices").wants(t, http.StatusOK)
	w.happens(node, 1, id, wire.PhaseRunning)
	// The skew that a report may be ahead by is all it can have used by now.
	w.happens(node, 2, id, wire.PhaseStopped, func(e *wire.Event) { e.Reason = wire.ReasonAsked; e.Seconds = 5 })
	b.get("/invoices").wants(t, http.StatusOK, "so far")
	b.get("/invoices/current").wants(t, http.StatusOK, "tern-01", "so far", "Test payments: no real money")
	_, a := w.who("ada@example.org")
	b.post("/accounts/"+string(a.ID)+"/close-invoice").wants(t, http.StatusForbidden)
	op.post("/accounts/"+string(a.ID)+"/close-invoice").leadsTo(t, "/fleet/accounts")
	op.get("/fleet/accounts").wants(t, http.StatusOK, "is closed")
	list := b.get("/invoices").wants(t, http.StatusOK, "Paid from wallet")
	href := regexp.MustCompile(`/invoices/(inv_[a-z0-9]+)`).FindString(list.body)
	b.get(href).wants(t, http.StatusOK, "tern-01", href+".pdf", "Nothing to pay")
	pdf := b.get(href+".pdf").wants(t, http.StatusOK)
	if !strings.HasPrefix(pdf.body, "%PDF-") || pdf.Header.Get("Content-Type") != "application/pdf" || !strings.Contains(pdf.Header.Get("Content-Disposition"), "invoice-") {
		t.Errorf("%v %.20q", pdf.Header, pdf.body)
	}
	eve := w.signUp("eve@example.org")
	eve.get(href).wants(t, http.StatusNotFound)
	eve.get(href+".pdf").wants(t, http.StatusNotFound)
	op.get(href).wants(t, http.StatusNotFound)
	op.post("/accounts/acc_none/close-invoice").wants(t, http.StatusNotFound)
}

// D9: a long list is one short page, whatever its length.
func TestLongListsArePaged(t *testing.T) {
	w := newWorld(t)
	b := w.signUp("ada@example.org")
	_, a := w.who("ada@example.org")
	node := w.addNode()
	at := models.At(time.Now())
	w.must(w.store.InTx(context.Background(), func(tx *store.Tx) error {
		for i := range 2_000 {
			in := models.Instance{ID: models.InstanceID(fmt.Sprintf("ins_%05d", i)), AccountID: a.ID, NodeID: node, Name: fmt.Sprintf("tern-%05d", i), SKU: slice, BillingMode: models.OnDemand,
				Currency: "USD", State: models.Stopped, Run: 1, Want: models.WantStopped, CreatedAt: at, RequestedAt: at, ChangedAt: at}
			if err := tx.InsertInstance(in); err != nil {
				return err
			}
		}
		return nil
	}))
	page := b.get("/instances").wants(t, http.StatusOK, "tern-01999", "2,000", "/instances?after=ins_01950")
	if len(page.body) > 400_000 {
		t.Errorf("%d bytes", len(page.body))
	}
	b.get("/instances?after=ins_01950").wants(t, http.StatusOK, "tern-01949")
	b.get("/instances?after=ins_00001").wants(t, http.StatusOK, "tern-00000")
	began := time.Now()
	const times = 10
	for range times {
		b.get("/instances").wants(t, http.StatusOK)
	}
	t.Logf("a page of %d rows out of 2,000 takes %v, %d bytes before compression", rowsPerPage, time.Since(began)/times, len(page.body))
}

func TestOperatorCordonsAndRetiresANode(t *testing.T) {
	w := newWorld(t)
	op := w.operator()
	node := w.addNode()
	at := "/fleet/" + string(node)
	op.get(at).wants(t, http.StatusOK, "Cordon</button>")
	op.post(at+"/cordon").leadsTo(t, at)
	op.get(at).wants(t, http.StatusOK, "Cordoned", "Open to rentals", "Nothing new starts there now.")
	op.post(at+"/retire", "confirm", "kestrel").wants(t, http.StatusConflict, "kestrel is connected, so it cannot be retired.")
	op.post(at+"/uncordon").leadsTo(t, at)
	w.must(w.fleet.NodeDisconnected(t.Context(), node, models.At(time.Now())))
	op.post(at+"/retire", "confirm", "kestrl").wants(t, http.StatusUnprocessableEntity, "Type kestrel to confirm", "Retire kestrel?")
	op.post(at+"/retire", "confirm", "kestrel").leadsTo(t, "/fleet")
	op.get("/fleet").wants(t, http.StatusOK, "kestrel is retired")
	op.get(at).wants(t, http.StatusNotFound)
}

// Without a script: what is wanted, the plan, then the deed.
func TestOperatorDividesACard(t *testing.T) {
	w := newWorld(t)
	op := w.operator()
	node := w.addNode()
	at := "/fleet/" + string(node) + "/devices/GPU-0/layout"
	op.get("/fleet/"+string(node)).wants(t, http.StatusOK, at)
	op.get(at).wants(t, http.StatusOK, "Divide GPU 0", "made as they are asked for", `name="n-1g.10gb"`, "9,856 MiB, 1 of 7 compute slices, at most 7")
	op.get(at+"?plan=1&n-1g.10gb=4&n-3g.40gb=1").wants(t, http.StatusOK, "The plan", "Makes 5:", "4 × 1g.10gb", `value="1g.10gb 1g.10gb 1g.10gb 1g.10gb 3g.40gb"`)
	op.get(at+"?plan=1&n-1g.10gb=4&n-3g.40gb=2").wants(t, http.StatusOK, "needs 12 memory units", "Nothing was changed.")
	op.get(at+"?plan=1&n-1g.10gb=-1").wants(t, http.StatusUnprocessableEntity)
	op.post(at, "profiles", "4g.40gb 4g.40gb").wants(t, http.StatusUnprocessableEntity, "Nothing was changed.")
	op.post(at, "profiles", "1g.10gb 1g.10gb 3g.40gb").leadsTo(t, "/fleet/"+string(node))
	op.get(at).wants(t, http.StatusOK, "Divided into 2 × 1g.10gb, 1 × 3g.40gb; it is sold in these only.", "Lies ready")
	op.get(at+"?plan=1&n-1g.10gb=2&n-3g.40gb=1").wants(t, http.StatusOK, "nothing is to be done")
	op.get(at+"?plan=1").wants(t, http.StatusOK, "Sell it as is asked for", "Removes 3 that nobody uses")
	op.get("/fleet/"+string(node)+"/devices/GPU-none/layout").wants(t, http.StatusNotFound)
}

// What was posted and then reloaded, or typed, leads back to the form's page; a
// program is told what an address takes.
func TestWrongMethod(t *testing.T) {
	w := newWorld(t)
	b := w.signUp("ada@example.org")
	for path, home := range map[string]string{"/wallet/topups": "/wallet", "/account/password": "/account", "/logout": "/"} {
		b.get(path).leadsTo(t, home)
	}
	b.get("/nowhere").wants(t, http.StatusNotFound, "There is nothing at this address.", "Account<")
	for path, allow := range map[string]string{"/api/v1/me": "GET", "/api/v1/instances": "GET, POST", "/api/v1/tokens/tok_1": "DELETE"} {
		a := b.do(http.MethodPatch, path, nil, nil)
		a.wants(t, http.StatusMethodNotAllowed, "method_not_allowed")
		if got := a.Header.Get("Allow"); got != allow {
			t.Errorf("%s allows %q, want %q", path, got, allow)
		}
	}
	b.do(http.MethodPatch, "/api/v1/nothing", nil, nil).wants(t, http.StatusNotFound, "not_found")
	node := w.addNode()
	w.fund("ada@example.org", 25*money.Unit)
	at := b.post("/launch", "sku", slice, "disk_gib", "20", "name", "tern-01", "idempotency_key", "k").wants(t, http.StatusSeeOther).Header.Get("Location")
	w.happens(node, 1, models.InstanceID(strings.TrimPrefix(at, "/instances/")), wire.PhaseRunning)
	for head, status := range map[string]int{"": http.StatusBadRequest, "https://evil.example": http.StatusForbidden} {
		h := http.Header{}
		if head != "" {
			h = http.Header{"Origin": {head}, "Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}}
		}
		a := b.do(http.MethodGet, "/api/v1"+at+"/live", nil, h)
		a.wants(t, status)
		if got := a.Header.Get("Content-Type"); got != "application/problem+json" {
			t.Errorf("from %q: %d, %s", head, a.StatusCode, got)
		}
	}
}

func TestOperatorAnnouncesMaintenance(t *testing.T) {
	w := newWorld(t)
	op := w.operator()
	node := w.addNode()
	at := "/fleet/" + string(node)
	b := w.signUp("ada@example.org")
	w.fund("ada@example.org", 25*money.Unit)
	mine := b.post("/launch", "sku", slice, "disk_gib", "20", "name", "tern-01", "idempotency_key", "k").wants(t, http.StatusSeeOther).Header.Get("Location")
	op.get(at).wants(t, http.StatusOK, "Announce maintenance of kestrel")
	op.post(at+"/maintenance", "from", "soon").wants(t, http.StatusUnprocessableEntity, "Write when the maintenance begins")
	op.post(at+"/maintenance", "from", "2020-01-01T00:00").wants(t, http.StatusUnprocessableEntity, "That has passed")
	op.post(at+"/maintenance", "from", "2999-01-01T00:00", "until", "2999-01-02T06:30").leadsTo(t, at)
	op.get(at).wants(t, http.StatusOK, "Worked on from 1 Jan, 00:00 UTC until 2 Jan, 06:30 UTC", "End it now")
	b.get(mine).wants(t, http.StatusOK, "<b>Maintenance.</b> Its node kestrel is worked on from 1 Jan 00:00 UTC", "It is started again at 2 Jan 06:30 UTC")
	op.post(at+"/maintenance/end").leadsTo(t, at)
	b.get(mine).wants(t, http.StatusOK, "The maintenance of its node kestrel was called off.")
	json := http.Header{"Content-Type": {"application/json"}}
	op.do(http.MethodPost, "/api/v1/nodes/"+string(node)+"/maintenance", strings.NewReader(`{"from":"2999-01-01T00:00:00Z"}`), json).wants(t, http.StatusOK, `"maintenance":{"from":"2999-01-01T00:00:00Z"`)
	b.get("/api/v1"+mine).wants(t, http.StatusOK, `"notice":"Its node kestrel is worked on`)
	op.do(http.MethodDelete, "/api/v1/nodes/"+string(node)+"/maintenance", nil, nil).wants(t, http.StatusOK, `"maintenance":null`)
}

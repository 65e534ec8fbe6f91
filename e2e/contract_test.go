package e2e

import (
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// The whole path with nothing but HTTP and the names of the outside contract.
func TestContractEndToEnd(t *testing.T) {
	b := up(t)
	ada := b.signUp("ada@example.org")

	var me struct {
		User    struct{ ID, Email, Name string }
		Account struct{ ID, Name, Currency string }
		Role    string
	}
	ada.must(http.StatusOK, http.MethodGet, "/api/v1/me", nil, &me)
	if me.User.Email != "ada@example.org" || me.Role != "owner" || me.Account.Currency != "USD" {
		t.Fatalf("me: %+v", me)
	}

	var skus struct {
		Items []struct {
			ID            string
			MemoryMiB     int `json:"memory_mib"`
			ComputeSlices int `json:"compute_slices"`
			MemorySlices  int `json:"memory_slices"`
		}
	}
	ada.must(http.StatusOK, http.MethodGet, "/api/v1/skus", nil, &skus)
	found := false
	for _, s := range skus.Items {
		found = found || s.ID == "a100-80gb.1g.10gb" && s.MemoryMiB == 9856 && s.ComputeSlices == 1 && s.MemorySlices == 1
	}
	if !found {
		t.Fatalf("no a100-80gb.1g.10gb of 9,856 MiB among %+v", skus.Items)
	}

	status, text := ada.call(http.MethodPost, "/api/v1/instances", map[string]any{"sku": "a100-80gb.1g.10gb", "billing_mode": "on_demand"}, nil)
	if status != http.StatusPaymentRequired || !strings.Contains(text, `"code":"insufficient_funds"`) || !strings.Contains(text, `"have":{`) || !strings.Contains(text, `"need":{`) {
		t.Fatalf("a launch without money: %d %s", status, text)
	}

	ada.topUp(25_000_000, "4242 4242 4242 4242")

	key := []string{"Idempotency-Key", "launch-1"}
	order := map[string]any{"sku": "a100-80gb.1g.10gb", "billing_mode": "on_demand", "name": "first", "image": "host system", "disk_gib": 10}
	var first, again instance
	ada.must(http.StatusCreated, http.MethodPost, "/api/v1/instances", order, &first, key...)
	ada.must(http.StatusCreated, http.MethodPost, "/api/v1/instances", order, &again, key...)
	if first.ID != again.ID {
		t.Fatalf("one key made two instances: %s, %s", first.ID, again.ID)
	}
	running := ada.await(first.ID, "running")
	if len(running.Slices) != 1 || running.Slices[0].Profile != "1g.10gb" || running.Slices[0].Size != 1 {
		t.Fatalf("slices %+v", running.Slices)
	}

	if got := ada.type42(first.ID); !strings.Contains(got, "42") {
		t.Errorf("the terminal said %q", got)
	}
	ada.sample(first.ID)

	until(t, "three charged seconds", func() bool { return ada.get(first.ID).Seconds >= 3 })
	var stopped instance
	ada.must(http.StatusAccepted, http.MethodPost, "/api/v1/instances/"+first.ID+"/stop", nil, &stopped)
	stopped = ada.await(first.ID, "stopped")
	want := new(big.Int).Div(new(big.Int).Mul(big.NewInt(stopped.PricePerHour.Micros), big.NewInt(stopped.Seconds)), big.NewInt(3600)).Int64()
	if stopped.Charged.Micros != want {
		t.Errorf("charged %d for %d s at %d, want %d", stopped.Charged.Micros, stopped.Seconds, stopped.PricePerHour.Micros, want)
	}

	var usage struct {
		Items []struct {
			ID, Instance string
			Start        time.Time
			End          *time.Time
			Seconds      int64
			Charged      amount
		}
	}
	ada.must(http.StatusOK, http.MethodGet, "/api/v1/usage?instance="+first.ID, nil, &usage)
	if len(usage.Items) != 1 || usage.Items[0].Charged.Micros != want || usage.Items[0].End == nil || usage.Items[0].End.Sub(usage.Items[0].Start) != time.Duration(usage.Items[0].Seconds)*time.Second {
		t.Errorf("usage %+v, want one closed span of %d", usage.Items, want)
	}
	var wallet walletAnswer
	ada.must(http.StatusOK, http.MethodGet, "/api/v1/wallet", nil, &wallet)
	if wallet.Available.Micros != 25_000_000-want || wallet.Held.Micros != 0 || wallet.Accrued.Micros != 0 {
		t.Errorf("wallet %+v after a charge of %d", wallet, want)
	}
	var ledger struct {
		Items []struct {
			Kind         string
			Amount       amount
			BalanceAfter amount `json:"balance_after"`
		}
	}
	ada.must(http.StatusOK, http.MethodGet, "/api/v1/ledger", nil, &ledger)
	used, paid := int64(0), int64(0) // what accrued may have been posted in parts
	for _, row := range ledger.Items {
		switch row.Kind {
		case "usage":
			used -= row.Amount.Micros
		case "topup":
			paid += row.Amount.Micros
		}
	}
	if used != want || paid != 25_000_000 || ledger.Items[0].BalanceAfter.Micros != 25_000_000-want {
		t.Errorf("ledger %+v", ledger.Items)
	}

	operator := b.operator()
	var invoice struct {
		ID, Number, State string
		Total             amount
		Lines             []struct {
			Seconds int64
			Amount  amount
		}
	}
	operator.must(http.StatusCreated, http.MethodPost, "/api/v1/invoices/close", map[string]any{"account": me.Account.ID}, &invoice)
	ada.must(http.StatusOK, http.MethodGet, "/api/v1/invoices/"+invoice.ID, nil, &invoice)
	if invoice.State != "final" || len(invoice.Lines) != 1 || invoice.Lines[0].Seconds != stopped.Seconds || invoice.Lines[0].Amount != invoice.Total {
		t.Errorf("invoice %+v", invoice)
	}
	if status, pdf := ada.call(http.MethodGet, "/api/v1/invoices/"+invoice.ID+".pdf", nil, nil); status != http.StatusOK || !strings.HasPrefix(pdf, "%PDF-") {
		t.Errorf("PDF: %d %.40q", status, pdf)
	}

	ada.must(http.StatusAccepted, http.MethodPost, "/api/v1/instances/"+first.ID+"/terminate", nil, nil)
	ada.await(first.ID, "terminated")
	if status, _ := ada.call(http.MethodGet, "/api/v1/nodes", nil, nil); status != http.StatusForbidden {
		t.Errorf("a renter lists nodes: %d", status)
	}
	bob := b.signUp("bob@example.org")
	if status, _ := bob.call(http.MethodGet, "/api/v1/instances/"+first.ID, nil, nil); status != http.StatusNotFound {
		t.Errorf("another account sees the instance: %d", status)
	}
	var token struct{ ID, Token string }
	bob.must(http.StatusCreated, http.MethodPost, "/api/v1/tokens", map[string]any{"name": "gone"}, &token)
	bob.must(http.StatusNoContent, http.MethodDelete, "/api/v1/tokens/"+token.ID, nil, nil)
	bob.token = token.Token
	if status, _ := bob.call(http.MethodGet, "/api/v1/me", nil, nil); status != http.StatusUnauthorized {
		t.Errorf("a revoked token: %d", status)
	}
}

func (c *caller) get(id string) instance {
	c.t.Helper()
	var in instance
	c.must(http.StatusOK, http.MethodGet, "/api/v1/instances/"+id, nil, &in)
	return in
}

// dial opens one of an instance's sockets.
func (c *caller) dial(id, what string) *websocket.Conn {
	c.t.Helper()
	ws, res, err := c.tryDial(id, what)
	if err != nil {
		c.t.Fatalf("open %s: %v (%v)", what, err, res)
	}
	return ws
}

func (c *caller) tryDial(id, what string) (*websocket.Conn, *http.Response, error) {
	ws, res, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(c.base, "http")+"/api/v1/instances/"+id+"/"+what,
		http.Header{"Authorization": {"Bearer " + c.token}})
	if err == nil {
		_ = ws.SetReadDeadline(time.Now().Add(patience))
	}
	return ws, res, err
}

// type42 types a sum into the terminal and returns what the shell printed after
// the line that was typed.
func (c *caller) type42(id string) string {
	c.t.Helper()
	ws := c.dial(id, "terminal")
	defer ws.Close()
	return command(c.t, ws, "echo sum=$((6*7))=", "sum=42=")
}

// command types a line and returns all that was shown once want is in it.
func command(t testing.TB, ws *websocket.Conn, line, want string) string {
	t.Helper()
	if err := ws.WriteMessage(websocket.TextMessage, []byte(`{"resize":{"cols":100,"rows":30}}`)); err != nil {
		t.Fatal(err)
	}
	if err := ws.WriteMessage(websocket.BinaryMessage, []byte(line+"\n")); err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	for !strings.Contains(shown.String(), want) {
		_, b, err := ws.ReadMessage()
		if err != nil {
			t.Fatalf("after %q the terminal ended: %v", shown.String(), err)
		}
		shown.Write(b)
	}
	return shown.String()
}

// sample reads one live sample.
func (c *caller) sample(id string) map[string]any {
	c.t.Helper()
	ws := c.dial(id, "live")
	defer ws.Close()
	var s map[string]any
	if err := ws.ReadJSON(&s); err != nil {
		c.t.Fatal(err)
	}
	for _, field := range []string{"seq", "at", "utilization_percent", "memory_mib", "temperature_c", "power_w"} {
		if _, ok := s[field]; !ok {
			c.t.Errorf("a sample without %s: %v", field, s)
		}
	}
	return s
}

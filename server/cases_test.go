package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"berth/api"
	"berth/fleet"
	"berth/models"
	"berth/money"
)

var jsonBody = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}}

// launchAPI posts a launch, with a key if there is one.
func (b *browser) launchAPI(key, body string) answer {
	b.Helper()
	head := jsonBody.Clone()
	if key != "" {
		head.Set("Idempotency-Key", key)
	}
	return b.do(http.MethodPost, "/api/v1/instances", strings.NewReader(body), head)
}

// C4: the connection is lost again and again before the answer, and the launch
// sent anew with its key, also twice at once. It is one instance in every answer.
func TestLaunchRepeatedOverLostConnections(t *testing.T) {
	w := newWorld(t)
	w.addNode()
	b := w.signUp("ada@example.org")
	w.fund("ada@example.org", 25*money.Unit)
	body := `{"sku":"` + slice + `","disk_gib":20}`
	address := strings.TrimPrefix(w.url, "http://")
	cookies := b.do(http.MethodGet, "/healthz", nil, nil).Request.Cookies()
	_, account := w.who("ada@example.org")
	for lost := range 4 { // one after it was launched, the others before the answer was made
		conn, err := net.Dial("tcp", address)
		w.must(err)
		_, err = fmt.Fprintf(conn, "POST /api/v1/instances HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\nContent-Type: application/json\r\nIdempotency-Key: K\r\nContent-Length: %d\r\n\r\n%s",
			address, cookies[0], len(body), body)
		w.must(err)
		if lost == 1 {
			w.within("a launch whose answer nobody reads", func() bool {
				made, _, err := w.fleet.Instances(context.Background(), account.ID, fleet.InstanceFilter{}, "", 0)
				return err == nil && len(made) == 1
			})
		}
		w.must(conn.Close())
	}
	ids := make([]string, 5)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			var in api.Instance
			res := b.launchAPI("K", body)
			if err := json.Unmarshal([]byte(res.body), &in); err != nil || res.StatusCode != http.StatusCreated {
				t.Errorf("%d %s", res.StatusCode, res.body)
			}
			ids[i] = in.ID
		})
	}
	all.Wait()
	for _, id := range ids {
		if id != ids[0] || id == "" {
			t.Errorf("answers of several instances: %v", ids)
		}
	}
	var list api.List[api.Instance]
	for range 3 { // coming back reads, and launches nothing
		b.get("/instances").wants(t, http.StatusOK)
		w.must(json.Unmarshal([]byte(b.do(http.MethodGet, "/api/v1/instances", nil, jsonBody).body), &list))
	}
	if len(list.Items) != 1 || list.Items[0].ID != ids[0] {
		t.Errorf("%d instances", len(list.Items))
	}
	b.launchAPI("K", `{"sku":"`+slice+`","disk_gib":21}`).wants(t, http.StatusConflict, `"code":"idempotency_reused"`)
}

// A17 as scripts see it: two launches at one instant, money for one.
func TestTwoSpendersOneBalance(t *testing.T) {
	w := newWorld(t)
	w.addNode()
	b := w.signUp("ada@example.org")
	w.fund("ada@example.org", 5*money.Unit)
	_, err := w.billing.SetPrice(context.Background(), models.Price{SKU: slice, BillingMode: models.OnDemand, PricePerHour: 225_000_000}, models.At(time.Now()))
	w.must(err)
	for _, first := range []bool{true, false} { // then a hundred more
		made, refused := 0, 0
		var mu sync.Mutex
		var all sync.WaitGroup
		n := 2
		if !first {
			n = 100
		}
		for range n {
			all.Go(func() {
				res := b.launchAPI("", `{"sku":"`+slice+`","disk_gib":1}`)
				var p api.Problem
				err := json.Unmarshal([]byte(res.body), &p)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case res.StatusCode == http.StatusCreated:
					made++
				case err == nil && res.StatusCode == http.StatusPaymentRequired && p.Code == "insufficient_funds" && p.Have != nil && p.Need != nil &&
					*p.Have == api.Money{Micros: 1_250_000, Currency: "USD"} && *p.Need == api.Money{Micros: 3_750_000, Currency: "USD"}:
					refused++
				default:
					t.Errorf("%d %s", res.StatusCode, res.body)
				}
			})
		}
		all.Wait()
		want := 0
		if first {
			want = 1
		}
		if made != want || refused != n-want {
			t.Errorf("of %d: %d launched, %d refused", n, made, refused)
		}
	}
	_, a := w.who("ada@example.org")
	wallet, err := w.billing.Wallet(context.Background(), a.ID, models.At(time.Now()))
	w.must(err)
	if wallet.Held != 3_750_000 || wallet.Balance != 5*money.Unit || wallet.Available != 1_250_000 {
		t.Errorf("wallet %+v", wallet)
	}
}

// D1: a preflight of another origin is told nothing, on any route, and D15: a key
// in an address is refused with a hint, and not logged.
func TestOtherOriginsAndKeysInAddresses(t *testing.T) {
	w := newWorld(t)
	b := w.signUp("ada@example.org")
	for _, origin := range []string{"https://evil.example", "null", w.url + ".evil.example", strings.Replace(w.url, "127.0.0.1", "127.0.0.1.evil.example", 1), "https://berth.example.evil"} {
		for _, path := range []string{"/api/v1/me", "/api/v1/instances", "/api/v1/wallet/topups", "/wallet", webhookPath, "/nowhere"} {
			for _, method := range []string{http.MethodOptions, http.MethodGet, http.MethodPost} {
				res := b.do(method, path, nil, http.Header{"Origin": {origin}, "Access-Control-Request-Method": {"POST"}, "Access-Control-Request-Headers": {"authorization"}})
				for name := range res.Header {
					if strings.HasPrefix(name, "Access-Control-") {
						t.Errorf("%s %s for %s: %s", method, path, origin, name)
					}
				}
			}
		}
		b.do(http.MethodPost, "/api/v1/tokens", strings.NewReader(`{"name":"x"}`), http.Header{"Origin": {origin}, "Content-Type": {"application/json"}}).wants(t, http.StatusForbidden)
	}
	const key = "brt_abcdefghijklmnopqrstuvwxyz"
	for _, query := range []string{"token=" + key, "x=1&access_token=" + key, key} {
		w.browser().do(http.MethodGet, "/api/v1/me?"+query, nil, jsonBody).wants(t, http.StatusBadRequest, "Authorization: Bearer")
	}
	if strings.Contains(w.log.String(), key) {
		t.Error("the key is in the log")
	}
}

// D1 for sockets: what a page of another origin opens with the visitor's cookie is
// refused before anything is opened behind it, be it a terminal's shell on a node.
func TestSocketsOfOtherOrigins(t *testing.T) {
	w := newWorld(t)
	b := w.signUp("ada@example.org")
	_, a := w.who("ada@example.org")
	id := string(w.instanceOf(a.ID, func(in *models.Instance) { in.State, in.Want = models.Running, models.WantRunning }))
	dialer := websocket.Dialer{Jar: b.http.Jar, HandshakeTimeout: patience}
	for path, own := range map[string]int{ // the node of the terminal is away
		"/instances/" + id + "/live": http.StatusSwitchingProtocols, "/api/v1/instances/" + id + "/live": http.StatusSwitchingProtocols,
		"/instances/live?id=" + id: http.StatusSwitchingProtocols, "/api/v1/instances/live?id=" + id: http.StatusSwitchingProtocols,
		"/instances/" + id + "/terminal/socket": http.StatusServiceUnavailable, "/api/v1/instances/" + id + "/terminal": http.StatusServiceUnavailable,
	} {
		for origin, want := range map[string]int{w.url: own, "": own, "https://evil.example": http.StatusForbidden, "null": http.StatusForbidden, w.url + ".evil.example": http.StatusForbidden,
			w.url + "@evil.example": http.StatusForbidden, w.url + "0": http.StatusForbidden, strings.Replace(w.url, "127.0.0.1", "evil.example", 1): http.StatusForbidden} {
			head := http.Header{}
			if origin != "" {
				head.Set("Origin", origin)
			}
			ws, res, err := dialer.Dial("ws"+strings.TrimPrefix(w.url, "http")+path, head)
			if err == nil {
				ws.Close()
			}
			if res == nil || res.StatusCode != want {
				t.Errorf("%s for %q: %v, %v, want %d", path, origin, res, err, want)
			}
		}
	}
	b.get("/instances/"+id+"/terminal/socket").wants(t, http.StatusBadRequest, "is a WebSocket")
}

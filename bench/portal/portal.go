// Package portal sets up a whole portal in this process, on a real database and
// a real port, with one account that has instances: what the benchmarks measure.
package portal

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"time"

	"berth/billing"
	"berth/billing/stripe"
	"berth/fleet"
	"berth/gpu"
	"berth/models"
	"berth/models/store"
	"berth/money"
	"berth/server"
	"berth/wire"
)

// Portal is a portal that serves, and the nodes of it that this process plays.
type Portal struct {
	Store   *store.Store
	Billing *billing.Service
	Fleet   *fleet.Service
	Server  *server.Server
	URL     string // http://127.0.0.1:port
	Account models.AccountID
	User    models.UserID
	Nodes   []*Node
}

// Node is a node whose agent is this process: it only ticks.
type Node struct {
	ID        models.NodeID
	Instances []models.InstanceID
	seconds   int64
}

// Open opens the database, serves on a free port of loopback until ctx ends, and
// signs a renter up.
func Open(ctx context.Context, dsn string) (*Portal, error) {
	log := slog.New(slog.DiscardHandler)
	gateway, err := stripe.New(stripe.Config{Key: "sk_test_nothing", WebhookSecrets: []string{"whsec_nothing"}}, log)
	if err != nil {
		return nil, err
	}
	p := &Portal{}
	if p.Store, err = store.Open(ctx, dsn); err != nil {
		return nil, err
	}
	p.Billing = billing.New(p.Store, gateway, billing.Config{TestPayments: true}, log)
	p.Fleet = fleet.New(p.Store, p.Billing, fleet.Config{}, log)
	if p.Server, err = server.New(server.Config{Store: p.Store, Billing: p.Billing, Fleet: p.Fleet, Log: log, Version: "bench"}); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p.URL = "http://" + l.Addr().String()
	go func() {
		if err := p.Server.Serve(ctx, l); err != nil {
			panic(err)
		}
	}()
	return p, p.signUp(ctx)
}

// signUp makes the account through the page that people use.
func (p *Portal) signUp(ctx context.Context) error {
	const email = "bench@example.org"
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	res, err := (&http.Client{Jar: jar, Timeout: time.Minute}).PostForm(p.URL+"/signup", url.Values{"name": {"Bench"}, "email": {email}, "password": {"a long enough password"}})
	if err != nil {
		return err
	}
	if err := res.Body.Close(); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("sign-up: %s", res.Status)
	}
	return p.Store.InTx(ctx, func(tx *store.Tx) error {
		u, err := tx.UserByEmail(email)
		if err != nil {
			return err
		}
		home, err := tx.HomeAccount(u.ID)
		if err != nil {
			return err
		}
		p.User, p.Account = u.ID, home.ID
		_, err = tx.Post(models.Transfer{Key: "bench", Kind: "adjustment", Reason: "bench", At: models.At(time.Now())},
			models.Leg{Code: models.WalletCode(p.Account), Amount: 1_000_000 * money.Unit}, models.Leg{Code: models.ClearingCode("USD"), Amount: -1_000_000 * money.Unit})
		return err
	})
}

// Cookies makes sessions of the renter and returns the Cookie header of each.
func (p *Portal) Cookies(ctx context.Context, n int) (out []string, err error) {
	now := models.At(time.Now())
	return out, p.Store.InTx(ctx, func(tx *store.Tx) error {
		for range n {
			secret := rand.Text()
			sum := sha256.Sum256([]byte(secret))
			if err := tx.CreateSession(models.Session{IDHash: hex.EncodeToString(sum[:]), UserID: p.User, AccountID: p.Account, CreatedAt: now, SeenAt: now, ExpiresAt: now.Add(time.Hour)}); err != nil {
				return err
			}
			out = append(out, "berth="+secret)
		}
		return nil
	})
}

// Join adds a node with one card and that many running instances on it. They
// hold no slices: placement is not what is measured.
func (p *Portal) Join(ctx context.Context, name string, instances int) error {
	now := models.At(time.Now())
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	token, _, err := p.Fleet.CreateJoinToken(ctx, p.User, now)
	if err != nil {
		return err
	}
	got, err := p.Fleet.Join(ctx, wire.JoinRequest{Token: token, Name: name, PublicKey: public, Version: wire.Version}, now)
	if err != nil {
		return err
	}
	m, err := gpu.Lookup("rtx4090")
	if err != nil {
		return err
	}
	n := &Node{ID: models.NodeID(got.NodeID)}
	_, err = p.Fleet.NodeConnected(ctx, n.ID, wire.State{Version: wire.Version, BootID: "bench", At: now.Time(),
		Host:    wire.Host{Name: name, MilliCPU: 64_000, MemoryMiB: 512 << 10, DiskGiB: 4000, Simulated: true, Runtime: wire.Runtime{Driver: "sandbox", Images: []string{"host"}}},
		Devices: []wire.Device{{UUID: "GPU-" + name, Model: m.ID, Name: m.Product, MemoryMiB: m.MemoryMiB, Health: "ok"}}}, now)
	if err != nil {
		return err
	}
	err = p.Store.InTx(ctx, func(tx *store.Tx) error {
		for i := range instances {
			in := models.Instance{ID: models.InstanceID(store.NewID("ins", now.Time())), AccountID: p.Account, NodeID: n.ID, Name: fmt.Sprintf("%s-%d", name, i), SKU: "rtx4090", Image: "host", DiskGiB: 10,
				BillingMode: models.OnDemand, PricePerHour: 390_000, Currency: "USD", State: models.Running, Want: models.WantRunning, Run: 1, RequestedAt: now, RunningAt: now}
			if err := tx.InsertInstance(in); err != nil {
				return err
			}
			if err := p.Billing.OpenSpan(tx, in, 0, now); err != nil {
				return err
			}
			n.Instances = append(n.Instances, in.ID)
		}
		return nil
	})
	p.Nodes = append(p.Nodes, n)
	return err
}

// Tick sends one second of a node: meter and readings of all its instances.
func (p *Portal) Tick(ctx context.Context, n *Node) error {
	n.seconds++
	now := time.Now()
	t := wire.Tick{Seq: n.seconds, BootID: "bench", At: now}
	utilization, memory, temperature, power := 37.5, int64(8123), 61.5, 243.75
	for _, id := range n.Instances {
		t.Instances = append(t.Instances, wire.InstanceSample{ID: string(id), Run: 1, Phase: wire.PhaseRunning, Seconds: n.seconds,
			UtilizationPercent: &utilization, MemoryMiB: &memory, TemperatureC: &temperature, PowerW: &power})
	}
	return p.Fleet.NodeTick(ctx, n.ID, t, models.At(now))
}

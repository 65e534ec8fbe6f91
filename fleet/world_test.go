package fleet_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"berth/billing"
	"berth/fleet"
	"berth/gpu"
	"berth/models"
	"berth/models/store"
	"berth/money"
	"berth/wire"
)

// world is a portal without its edges: a real store, real billing, real fleet,
// and a clock that tests turn.
type world struct {
	testing.TB
	ctx   context.Context
	st    *store.Store
	bill  *billing.Service
	fleet *fleet.Service
	now   models.Instant
}

func newWorld(t testing.TB, st *store.Store) *world {
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	w := &world{TB: t, ctx: t.Context(), st: st, now: models.At(time.Date(2026, 1, 15, 10, 0, 0, 0, time.UTC))}
	w.bill = billing.New(st, nil, billing.Config{}, log)
	w.fleet = fleet.New(st, w.bill, fleet.Config{StartedAt: w.now}, log)
	return w
}

func (w *world) pass(d time.Duration) { w.now = w.now.Add(d) }

// listen passes time as a portal does that is there: with a sweep every so often.
func (w *world) listen(d time.Duration) {
	w.Helper()
	for end := w.now.Add(d); w.now < end; {
		w.pass(15 * time.Second)
		w.must(w.fleet.Sweep(w.ctx, w.now))
	}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) inTx(work func(tx *store.Tx) error) {
	w.Helper()
	w.must(w.st.InTx(w.ctx, work))
}

// account opens an account with that much in its wallet.
func (w *world) account(id models.AccountID, funds money.Amount) models.AccountID {
	w.Helper()
	a := models.Account{ID: id, Name: string(id), Currency: "USD", TimeZone: "UTC", CreatedAt: w.now}
	w.inTx(func(tx *store.Tx) error {
		if err := tx.CreateAccount(a, "usr_"+models.UserID(id)); err != nil {
			return err
		}
		return w.bill.OpenWallet(tx, a)
	})
	if funds > 0 {
		w.fund(id, funds, "first")
	}
	return id
}

func (w *world) fund(id models.AccountID, amount money.Amount, key string) {
	w.Helper()
	w.inTx(func(tx *store.Tx) error {
		if _, err := tx.LockWallet(id); err != nil {
			return err
		}
		tx.Changed("account:" + string(id))
		_, err := tx.Post(models.Transfer{Key: string(id) + ":" + key, Kind: "adjustment", Reason: "test", At: w.now},
			models.Leg{Code: models.WalletCode(id), Amount: amount}, models.Leg{Code: models.ClearingCode("USD"), Amount: -amount})
		return err
	})
}

func (w *world) wallet(id models.AccountID) models.LedgerAccount {
	w.Helper()
	var out models.LedgerAccount
	w.must(w.st.View(w.ctx, func(tx *store.Tx) (err error) {
		out, err = tx.LedgerAccount(models.WalletCode(id))
		return err
	}))
	return out
}

func (w *world) order(account models.AccountID, sku string) fleet.Order {
	return fleet.Order{Account: account, User: "usr", SKU: sku, DiskGiB: 10}
}

func (w *world) launch(o fleet.Order) models.Instance {
	w.Helper()
	in, err := w.fleet.Launch(w.ctx, o, w.now)
	w.must(err)
	return in
}

func (w *world) instance(in models.Instance) fleet.InstanceView {
	w.Helper()
	v, err := w.fleet.Instance(w.ctx, in.AccountID, in.ID)
	w.must(err)
	return v
}

func (w *world) inState(in models.Instance, want models.InstanceState) fleet.InstanceView {
	w.Helper()
	v := w.instance(in)
	if v.State != want {
		w.Fatalf("%s is %s (%s: %s), want %s", in.Name, v.State, v.Reason, v.Detail, want)
	}
	return v
}

func (w *world) span(in models.Instance, run int) models.UsageSpan {
	w.Helper()
	in.Run = run
	list, err := w.bill.Spans(w.ctx, billing.SpanID(in))
	w.must(err)
	if len(list) == 0 {
		return models.UsageSpan{}
	}
	return list[0]
}

// available returns how many of a SKU can be placed now.
func (w *world) available(sku string) int {
	w.Helper()
	list, err := w.fleet.Offers(w.ctx, sku, w.now)
	w.must(err)
	if len(list) != 1 {
		w.Fatalf("%d offers of %s", len(list), sku)
	}
	return list[0].Available
}

// sound checks what must hold at any moment: the books, and leases against units.
func (w *world) sound(accounts ...models.AccountID) {
	w.Helper()
	for _, a := range accounts {
		if l := w.wallet(a); l.Available() < 0 || l.Held < 0 || l.Accrued < 0 {
			w.Errorf("wallet %+v", l)
		}
	}
	devices, err := w.fleet.Devices(w.ctx)
	w.must(err)
	for _, d := range devices {
		var placed []gpu.Placement
		for _, l := range d.Leases {
			placed = append(placed, l.Placement())
		}
		if err := d.Facts.CheckLayout(placed); err != nil {
			w.Errorf("card %s: %v", d.UUID, err)
		}
	}
}

// box is a node's agent as the portal sees it: it keeps a journal, has what it
// was told to have, and counts seconds. It does only what a test tells it.
type box struct {
	*world
	id      models.NodeID
	devices []wire.Device
	host    wire.Host
	has     map[string]*wire.Observed
	journal []wire.Event
	sent    int // how many of the journal the portal has acknowledged
	gen     int64
	tick    int64
	skew    time.Duration // its clock is ahead by this much
}

func cards(model gpu.ModelID, uuids ...string) (out []wire.Device) {
	m, err := gpu.Lookup(model)
	if err != nil {
		panic(err)
	}
	for i, u := range uuids {
		out = append(out, wire.Device{UUID: u, Index: i, Model: model, Name: m.Product, MemoryMiB: m.MemoryMiB, Health: "ok"})
	}
	return out
}

// join makes a node with these cards and connects it.
func (w *world) join(name string, devices ...wire.Device) *box {
	w.Helper()
	public, _, err := ed25519.GenerateKey(rand.Reader)
	w.must(err)
	token, _, err := w.fleet.CreateJoinToken(w.ctx, "usr", w.now)
	w.must(err)
	got, err := w.fleet.Join(w.ctx, wire.JoinRequest{Token: token, Name: name, PublicKey: public, Version: wire.Version}, w.now)
	w.must(err)
	for i := range devices {
		devices[i].Index = i
	}
	b := &box{world: w, id: models.NodeID(got.NodeID), devices: devices, has: map[string]*wire.Observed{},
		host: wire.Host{Name: name, MilliCPU: 64_000, MemoryMiB: 512 << 10, DiskGiB: 4000, Simulated: true, Sharing: []string{gpu.TimeShare}, Runtime: wire.Runtime{Driver: "sandbox", Images: []string{"host"}}}}
	b.connect()
	return b
}

func (b *box) clock() time.Time { return b.now.Add(b.skew).Time() }

func (b *box) state() wire.State {
	st := wire.State{Version: wire.Version, BootID: "boot", Generation: b.gen, LastEvent: int64(len(b.journal)), At: b.clock(), Host: b.host}
	for _, d := range b.devices {
		d.Slices = slices.Clone(d.Slices) // what lies ready
		for _, o := range b.has {
			for _, s := range o.Slices {
				if s.DeviceUUID == d.UUID && s.Placement.Profile != gpu.Whole && !slices.Contains(d.Slices, s.Placement) {
					d.Slices = append(d.Slices, s.Placement)
				}
			}
		}
		st.Devices = append(st.Devices, d)
	}
	for _, o := range b.has {
		st.Instances = append(st.Instances, *o)
	}
	slices.SortFunc(st.Instances, func(a, c wire.Observed) int { return int(a.Seconds - c.Seconds) })
	return st
}

// connect is what the portal's link does first: state, then the events after it.
func (b *box) connect() {
	b.Helper()
	cursor, err := b.fleet.NodeConnected(b.ctx, b.id, b.state(), b.now)
	b.must(err)
	b.sent = int(cursor)
	b.deliver()
}

func (b *box) disconnect() {
	b.Helper()
	b.must(b.fleet.NodeDisconnected(b.ctx, b.id, b.now))
}

// write journals an event without sending it.
func (b *box) write(o *wire.Observed) {
	b.journal = append(b.journal, wire.Event{Seq: int64(len(b.journal)) + 1, BootID: "boot", At: b.clock(), Instance: o.ID, Run: o.Run,
		Phase: o.Phase, Reason: o.Reason, Detail: o.Detail, ExitCode: o.ExitCode, Seconds: o.Seconds, Slices: o.Slices})
}

// deliver sends what the portal has not acknowledged. Each event is sent twice,
// since any may be.
func (b *box) deliver() {
	b.Helper()
	for ; b.sent < len(b.journal); b.sent++ {
		for range 2 {
			b.must(b.fleet.NodeEvent(b.ctx, b.id, b.journal[b.sent], b.now))
		}
	}
}

// desired fetches the desired state and tells the portal that it is known.
func (b *box) desired() wire.Desired {
	b.Helper()
	d, err := b.fleet.NextDesired(b.ctx, b.id, -1)
	b.must(err)
	b.gen = d.Generation
	return d
}

func (b *box) wanted(in models.Instance) *wire.DesiredInstance {
	b.Helper()
	for _, d := range b.desired().Instances {
		if d.ID == string(in.ID) {
			return &d
		}
	}
	return nil
}

// take makes the slices of an instance's run and journals each phase up to the
// one given, sending nothing.
func (b *box) take(in models.Instance, upTo wire.Phase) *wire.Observed {
	b.Helper()
	d := b.wanted(in)
	if d == nil || d.Want != wire.WantRunning {
		b.Fatalf("%s is not wanted running: %+v", in.Name, d)
	}
	o := &wire.Observed{ID: d.ID, Run: d.Run, Slices: d.Slices}
	b.has[o.ID] = o
	for _, p := range []wire.Phase{wire.PhaseSlicing, wire.PhasePulling, wire.PhaseStarting, wire.PhaseRunning} {
		o.Phase = p
		b.write(o)
		if p == upTo {
			break
		}
	}
	return o
}

// run brings an instance to running and sends it.
func (b *box) run(in models.Instance) *wire.Observed {
	b.Helper()
	o := b.take(in, wire.PhaseRunning)
	b.deliver()
	return o
}

// end ends a run for a reason, sending nothing.
func (b *box) end(o *wire.Observed, reason string, exit *int) {
	o.Phase, o.Reason, o.ExitCode, o.Slices = wire.PhaseStopped, reason, exit, nil
	b.write(o)
}

// gone erases an instance, sending nothing.
func (b *box) gone(o *wire.Observed) {
	o.Phase, o.Slices = wire.PhaseGone, nil
	b.write(o)
	delete(b.has, o.ID)
}

// run for some seconds: counts, and sends one tick at the end.
func (b *box) count(seconds int64) {
	b.Helper()
	b.pass(time.Duration(seconds) * time.Second)
	for _, o := range b.has {
		if o.Phase == wire.PhaseRunning {
			o.Seconds += seconds
		}
	}
	b.sendTick()
}

func (b *box) sendTick() {
	b.Helper()
	b.must(b.fleet.NodeTick(b.ctx, b.id, b.nextTick(), b.now))
}

func (b *box) nextTick() wire.Tick {
	b.tick++
	t := wire.Tick{Seq: b.tick, BootID: "boot", At: b.clock()}
	for _, d := range b.devices {
		t.Devices = append(t.Devices, wire.DeviceSample{UUID: d.UUID, TemperatureC: ptr(40.0)})
	}
	for _, o := range b.has {
		t.Instances = append(t.Instances, wire.InstanceSample{ID: o.ID, Run: o.Run, Phase: o.Phase, Seconds: o.Seconds, Progress: o.Progress, UtilizationPercent: ptr(12.5)})
	}
	return t
}

// answer is the state that a PUT of the desired state is answered with.
func (b *box) answer() {
	b.Helper()
	b.desired()
	b.must(b.fleet.NodeState(b.ctx, b.id, b.state(), b.now))
}

func ptr[T any](v T) *T { return &v }

func code(err error) string {
	for _, c := range []models.Code{models.Invalid, models.NotFound, models.Unauthorized, models.Conflict, models.Stale, models.KeyReused,
		models.InsufficientFunds, models.AccountFrozen, models.NoCapacity} {
		if models.HasCode(err, c) {
			return string(c)
		}
	}
	return fmt.Sprint(err)
}

// quiet is a log for tests in which warnings are what should happen.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

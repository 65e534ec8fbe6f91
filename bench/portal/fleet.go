package portal

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"berth/gpu"
	"berth/models"
	"berth/models/store"
	"berth/wire"
)

// patterns are what the cards of a fleet hold, in turn: profile, start, units.
var patterns = [][]gpu.Placement{
	{{Profile: "3g.40gb", Start: 4, Size: 4}, {Profile: "1g.10gb", Start: 0, Size: 1}},
	{{Profile: "1g.10gb", Start: 6, Size: 1}},
	{},
	{{Profile: "2g.20gb", Start: 0, Size: 2}, {Profile: "2g.20gb", Start: 2, Size: 2}, {Profile: "3g.40gb", Start: 4, Size: 4}},
	{{Profile: "7g.80gb", Start: 0, Size: 8}},
	{{Profile: "4g.40gb", Start: 0, Size: 4}, {Profile: "1g.10gb", Start: 4, Size: 1}, {Profile: "1g.10gb", Start: 6, Size: 1}},
	{{Profile: "1g.10gb", Start: 0, Size: 1}, {Profile: "1g.10gb", Start: 3, Size: 1}},
}

// JoinCards joins nodes with so many H100 each, most of them partly leased, and returns
// the Cookie header of an operator and the UUIDs of the cards by node.
func (p *Portal) JoinCards(ctx context.Context, nodes, cards int) (cookie string, uuids map[models.NodeID][]string, err error) {
	now := models.At(time.Now())
	m, err := gpu.Lookup("h100-80gb")
	if err != nil {
		return "", nil, err
	}
	uuids = map[models.NodeID][]string{}
	for i := range nodes {
		public, _, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return "", nil, err
		}
		token, _, err := p.Fleet.CreateJoinToken(ctx, p.User, now)
		if err != nil {
			return "", nil, err
		}
		name := fmt.Sprintf("quay-%03d", i)
		got, err := p.Fleet.Join(ctx, wire.JoinRequest{Token: token, Name: name, PublicKey: public, Version: wire.Version}, now)
		if err != nil {
			return "", nil, err
		}
		id := models.NodeID(got.NodeID)
		st := wire.State{Version: wire.Version, AgentVersion: "bench", BootID: "bench", At: now.Time(), Host: wire.Host{Name: name, MilliCPU: 64_000, MemoryMiB: 512 << 10, DiskGiB: 4000, Simulated: true}}
		var leases []models.Lease
		for j := range cards {
			random := make([]byte, 16)
			if _, err := rand.Read(random); err != nil {
				return "", nil, err
			}
			uuid := fmt.Sprintf("GPU-%x-%x-%x-%x-%x", random[:4], random[4:6], random[6:8], random[8:10], random[10:])
			uuids[id] = append(uuids[id], uuid)
			d := wire.Device{UUID: uuid, Index: j, Model: m.ID, Name: m.Product, MemoryMiB: m.MemoryMiB, MIG: true, Health: "ok", Slices: patterns[(i*cards+j)%len(patterns)]}
			st.Devices = append(st.Devices, d)
			for _, s := range d.Slices {
				leases = append(leases, models.Lease{ID: store.NewID("lea", now.Time()), InstanceID: models.InstanceID(store.NewID("ins", now.Time())), AccountID: p.Account, NodeID: id,
					DeviceUUID: uuid, Profile: s.Profile, Start: s.Start, Size: s.Size, MemoryMiB: 10_000 * s.Size, CreatedAt: now})
			}
		}
		if _, err := p.Fleet.NodeConnected(ctx, id, st, now); err != nil {
			return "", nil, err
		}
		if err := p.Store.InTx(ctx, func(tx *store.Tx) error { return tx.TakeLeases(leases) }); err != nil {
			return "", nil, err
		}
	}
	if _, err := p.Server.Bootstrap(ctx, "", false); err != nil {
		return "", nil, err
	}
	secret := rand.Text()
	sum := sha256.Sum256([]byte(secret))
	return "berth=" + secret, uuids, p.Store.InTx(ctx, func(tx *store.Tx) error {
		operator, err := tx.FirstOperator()
		if err != nil {
			return err
		}
		home, err := tx.HomeAccount(operator.ID)
		if err != nil {
			return err
		}
		return tx.CreateSession(models.Session{IDHash: hex.EncodeToString(sum[:]), UserID: operator.ID, AccountID: home.ID, CreatedAt: now, SeenAt: now, ExpiresAt: now.Add(time.Hour)})
	})
}

// TickCards sends one second of a node's cards, which get warmer as time goes.
func (p *Portal) TickCards(ctx context.Context, id models.NodeID, uuids []string, second int64) error {
	now := time.Now()
	t := wire.Tick{Seq: second, BootID: "bench", At: now}
	for i, uuid := range uuids {
		utilization, memory, temperature, power := 37.5, int64(8123), float64(40+(second+int64(i)*7)%40), 243.75
		t.Devices = append(t.Devices, wire.DeviceSample{UUID: uuid, UtilizationPercent: &utilization, MemoryMiB: &memory, TemperatureC: &temperature, PowerW: &power})
	}
	return p.Fleet.NodeTick(ctx, id, t, models.At(now))
}

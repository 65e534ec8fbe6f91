package pages

import (
	"context"
	"path/filepath"
	"testing"

	"berth/bench/portal"
	"berth/models"
)

// BenchmarkFleetPages are the operator's pages with 1,000 cards on 125 nodes: the
// time inside the server and the bytes of a page, and what a first view loads.
//
//	go test ./pages -bench FleetPages -benchtime 50x
func BenchmarkFleetPages(b *testing.B) {
	ctx, cancel := context.WithCancel(context.Background())
	b.Cleanup(cancel)
	p, err := portal.Open(ctx, filepath.Join(b.TempDir(), "berth.db"))
	if err != nil {
		b.Fatal(err)
	}
	cookie, uuids, err := p.JoinCards(ctx, 125, 8)
	if err != nil {
		b.Fatal(err)
	}
	var one models.NodeID
	for id, cards := range uuids {
		one = id
		for second := range int64(60) {
			if err := p.TickCards(ctx, id, cards, second+1); err != nil {
				b.Fatal(err)
			}
		}
	}
	node := "/fleet/" + string(one)
	for name, path := range map[string]string{"fleet": "/fleet", "node": node, "device": node + "/devices/" + uuids[one][0], "device, 24 h": node + "/devices/" + uuids[one][0] + "?range=24h"} {
		b.Run(name, func(b *testing.B) {
			benchmarkPage(b, p, cookie, path)
			b.ReportMetric(float64(firstView(b, p, cookie, path)), "B/view")
		})
	}
}

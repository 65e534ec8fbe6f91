package server

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth/fleet"
	"berth/gpu"
	"berth/models"
	"berth/money"
	"berth/web"
)

// fleetFacts is what the portal knows when it draws the fleet.
type fleetFacts struct {
	nodes   []fleet.NodeView
	samples map[string]fleet.Sample // the present reading of a card, by UUID
	burn    money.Rate              // of all accounts
	at      models.Instant
}

// fleetView draws all nodes with their cards, and what needs a person.
func fleetView(c money.Currency, k fleetFacts) web.FleetView {
	v := web.FleetView{Summary: "No nodes yet."}
	if len(k.nodes) == 0 {
		return v
	}
	cards, instances, memory, held := 0, 0, 0, 0
	watts, measured := 0.0, false
	for _, n := range k.nodes {
		cards += len(n.Devices)
		instances += n.Instances
		v.Nodes = append(v.Nodes, nodeRack(n, k))
		v.Needs = append(v.Needs, nodeNeeds(n, k.at)...)
		for _, d := range n.Devices {
			memory += d.MemoryMiB
			for _, l := range d.Leases {
				held += d.MemoryMiB * l.Size / max(1, d.Facts.MemoryUnits)
			}
			if s, ok := k.samples[d.UUID]; ok && s.PowerW != nil {
				watts, measured = watts+*s.PowerW, true
			}
		}
	}
	v.Summary = count(len(k.nodes), "node") + ", " + count(cards, "GPU") + "."
	if len(v.Needs) > 0 {
		v.Summary += " " + count(len(v.Needs), "thing") + " to look at."
	}
	v.Metrics = []web.Metric{
		{Label: "Sold now", Value: fmt.Sprint(held * 100 / max(1, memory)), Unit: " %", Note: "of memory"},
		{Label: "Instances", Value: fmt.Sprint(instances), Note: "on " + count(len(k.nodes), "node")},
		{Label: "Burn", Value: c.Format(money.Amount(k.burn)), Unit: " /h", Note: "all accounts"},
		{Label: "Power", Value: "–", Note: "not measured"},
	}
	if measured {
		v.Metrics[3] = web.Metric{Label: "Power", Value: fmt.Sprintf("%.1f", watts/1000), Unit: " kW", Note: "measured"}
	}
	return v
}

// nodeState is a node's state in words, worst first.
func nodeState(n fleet.NodeView) (string, web.Tone) {
	if n.State != models.NodeOnline {
		return "No heartbeat", web.ToneFailed
	}
	if n.MaintenanceFrom != 0 {
		return "Maintenance", web.ToneDrain
	}
	if n.Cordoned {
		return "Cordoned", web.ToneWarn
	}
	sick := 0
	for _, d := range n.Devices {
		if d.State != models.DeviceOK {
			sick++
		}
	}
	if sick > 0 {
		return count(sick, "GPU") + " not sold", web.ToneWarn
	}
	return "Healthy", web.ToneRunning
}

// cardsOf writes "2 × A100 80GB, 1 × RTX 4090".
func cardsOf(n fleet.NodeView) string {
	counts, order := map[string]int{}, []string{}
	for _, d := range n.Devices {
		name := cardName(d)
		if counts[name] == 0 {
			order = append(order, name)
		}
		counts[name]++
	}
	parts := make([]string, len(order))
	for i, name := range order {
		parts[i] = fmt.Sprintf("%d × %s", counts[name], name)
	}
	if len(parts) == 0 {
		return "no GPUs reported"
	}
	return strings.Join(parts, ", ")
}

func cardName(d fleet.DeviceView) string {
	if d.Facts.Name != "" {
		return d.Facts.Name
	}
	return d.Name
}

// cardTail is how much of a card's UUID the fleet page has of each: the last group,
// which is random. The whole of 1,000 of them would be a third of the page.
const cardTail = 12

func nodeRack(n fleet.NodeView, k fleetFacts) web.NodeRack {
	r := web.NodeRack{ID: string(n.ID), Name: n.Name, Lost: n.State != models.NodeOnline, Simulated: n.HostInfo.Simulated,
		Detail: cardsOf(n) + agentOf(n) + ", seen " + ago(n.SeenAt, k.at, time.UTC)}
	r.State, r.Tone = nodeState(n)
	for _, d := range n.Devices {
		cell := web.DeviceCell{Name: fmt.Sprintf("GPU %d", d.Index), Tail: d.UUID[max(0, len(d.UUID)-cardTail):], Href: "/fleet/" + string(n.ID) + "/devices/" + strconv.Itoa(d.Index), Bar: deviceBar(n.Name, d), Note: "–", Bad: d.State != models.DeviceOK}
		cell.Bar.Tall = true
		if s, ok := k.samples[d.UUID]; ok && s.TemperatureC != nil {
			cell.Note = fmt.Sprintf("%.0f °C", *s.TemperatureC)
		}
		if cell.Bad {
			cell.Note = briefly(deviceState(d))
		}
		r.Devices = append(r.Devices, cell)
	}
	return r
}

func agentOf(n fleet.NodeView) string {
	if n.AgentVersion == "" {
		return ""
	}
	return ", agent " + n.AgentVersion
}

// briefly is how a card's state begins, for where there is little room: "Xid 79".
func briefly(state string) string {
	if i := strings.IndexAny(state, ",:"); i > 0 {
		state = state[:i]
	}
	return strings.TrimSuffix(state, ".")
}

// deviceState is a card's state in words.
func deviceState(d fleet.DeviceView) string {
	switch d.State {
	case models.DeviceOK:
		return "Healthy"
	case models.DeviceAbsent:
		return "Absent"
	}
	if d.Detail != "" {
		return d.Detail
	}
	return "Not sold"
}

// deviceBar draws who holds what of a card, as an operator sees it. Slices that
// no lease explains, and cards that are sick, are drawn as faults.
func deviceBar(node string, d fleet.DeviceView) web.SliceBar {
	name := fmt.Sprintf("%s GPU %d", node, d.Index)
	bar := emptyBar(d.Facts)
	if d.State == models.DeviceSick {
		bar.Label = name + ": " + deviceState(d)
		bar.Holds = []web.Hold{{Size: bar.Memory, Compute: bar.Compute, Kind: web.KindFault}}
		return bar
	}
	var placed []gpu.Placement
	for _, l := range d.Leases {
		placed = append(placed, l.Placement())
		bar.Holds = append(bar.Holds, holdOf(d.Facts, l.Placement(), web.KindOther))
	}
	var ready []gpu.Placement
	for _, p := range d.Layout {
		if !slices.Contains(placed, p) {
			ready = append(ready, p)
			bar.Holds = append(bar.Holds, holdOf(d.Facts, p, web.KindReady))
		}
	}
	for _, p := range d.Foreign {
		bar.Holds = append(bar.Holds, holdOf(d.Facts, p, web.KindFault))
	}
	bar.Label = name + ": free"
	if len(placed) > 0 {
		bar.Label = name + ", held: " + strings.Join(spans(d.Facts, placed), ", ")
	}
	if len(ready) > 0 {
		bar.Label += "; lying ready: " + strings.Join(spans(d.Facts, ready), ", ")
	}
	if len(d.Foreign) > 0 {
		bar.Label += "; unexplained: " + strings.Join(spans(d.Facts, d.Foreign), ", ")
	}
	return bar
}

// pricesView lists prices in force and planned.
func pricesView(c money.Currency, now, planned []models.Price, skus []string, chosen string) web.PricesView {
	v := web.PricesView{Symbol: c.Symbol, Zone: "UTC"}
	row := func(p models.Price) web.PriceRow {
		return web.PriceRow{SKU: p.SKU, Name: skuName(p.SKU), PerHour: perHour(c, p.PricePerHour), PerSecond: perSecond(c, p.PricePerHour)}
	}
	later := map[string][]models.Price{}
	for _, p := range planned {
		later[p.SKU] = append(later[p.SKU], p)
	}
	add := func(p models.Price) {
		r := row(p)
		r.State, r.Tone, r.From = "Planned", web.ToneWaiting, p.EffectiveAt.Time().Format("2 Jan 2006, 15:04")
		v.Rows = append(v.Rows, r)
	}
	for _, p := range now {
		r := row(p)
		r.State, r.Tone, r.From = "Now", web.ToneRunning, "from the start"
		if !p.EffectiveAt.IsZero() {
			r.From = "since " + fullDate(p.EffectiveAt.Time(), time.UTC)
		}
		v.Rows = append(v.Rows, r)
		for _, next := range later[p.SKU] {
			add(next)
		}
		delete(later, p.SKU)
	}
	for _, p := range planned { // of SKUs that have no price yet
		if _, left := later[p.SKU]; left {
			add(p)
		}
	}
	for _, id := range skus {
		v.SKUs = append(v.SKUs, web.ImageOption{Value: id, Label: skuName(id), Selected: id == chosen})
	}
	return v
}

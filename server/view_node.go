package server

import (
	"fmt"
	"strings"
	"time"

	"berth/fleet"
	"berth/models"
	"berth/web"
	"berth/wire"
)

// doubleFor is how long a second host with a node's key is shown: it dials at least
// every half minute.
const doubleFor = 5 * time.Minute

// clockLost is how far a node's clock may be off before a person should look: that
// of berth agent doctor.
const clockLost = time.Minute

// nodeNeeds is what a person should look at on a node, worst first.
func nodeNeeds(n fleet.NodeView, at models.Instant) (out []web.Alert) {
	href, link := "/fleet/"+string(n.ID), "Look at "+n.Name
	if n.State != models.NodeOnline {
		a := web.Alert{Tone: web.ToneFailed, Word: "No heartbeat", At: clockTime(n.SeenAt, time.UTC), Lead: n.Name + " was last seen " + ago(n.SeenAt, at, time.UTC) + ".",
			Text: "Nothing of it is sold.", Next: "look whether the agent runs there and reaches this portal; if the machine never comes back, retire it on its page.", Href: href, Link: link}
		if n.SeenAt.IsZero() {
			a.Lead, a.At = n.Name+" has joined and was never linked.", ""
		}
		if n.Instances > 0 {
			a.Text = "Its " + count(n.Instances, "instance") + " may go on there; nothing is charged beyond what it confirmed."
		}
		out = append(out, a)
	}
	if n.Double.At != 0 && at.Sub(n.Double.At) < doubleFor {
		out = append(out, web.Alert{Tone: web.ToneFailed, Word: "Key in use twice", At: clockTime(n.Double.At, time.UTC), Lead: "Another host, at " + n.Double.Address + ", dials with the key of " + n.Name + ".",
			Text: "It was refused; the node goes on.", Next: "give that host an empty folder and a token of its own, or end its agent; if it is the right one, end the agent on the other.", Href: href, Link: link})
	}
	if off := time.Duration(n.ClockSkewMS) * time.Millisecond; n.State == models.NodeOnline && off.Abs() >= clockLost {
		way := "ahead of"
		if off < 0 {
			way = "behind"
		}
		out = append(out, web.Alert{Tone: web.ToneWarn, Word: "Clock is off", Lead: fmt.Sprintf("The clock of %s is %s %s this portal's.", n.Name, off.Abs().Round(time.Second), way),
			Text: "Nothing is billed by it; its logs and certificates suffer.", Next: "have it set there: apt install chrony.", Href: href, Link: link})
	}
	for _, d := range n.Devices {
		if a, ok := cardNeed(n.Name, d); ok {
			out = append(out, a)
		}
	}
	return out
}

// cardNeed is what a person should do about a card, if anything.
func cardNeed(node string, d fleet.DeviceView) (a web.Alert, ok bool) {
	switch {
	case d.State == models.DeviceSick:
		a = web.Alert{Tone: web.ToneWarn, Word: "GPU not sold", Lead: fmt.Sprintf("%s, GPU %d: %s.", node, d.Index, strings.TrimSuffix(deviceState(d), ".")),
			Text: "It takes no new rentals.", Next: "look at the card; it is sold again when the driver reports it well."}
	case d.State == models.DeviceAbsent && len(d.Leases) > 0:
		a = web.Alert{Tone: web.ToneFailed, Word: "GPU gone", Lead: fmt.Sprintf("%s no longer reports GPU %d.", node, d.Index),
			Text: count(len(d.Leases), "slice") + " of it are held.", Next: "reseat or replace the card, or terminate what holds it."}
	case len(d.Foreign) > 0:
		a = web.Alert{Tone: web.ToneWarn, Word: "Unexplained slices", Lead: fmt.Sprintf("%s, GPU %d carries %s that no lease explains.", node, d.Index, count(len(d.Foreign), "slice")),
			Text: "They are not sold.", Next: "the agent removes them when it connects; if they stay, look at the card."}
	default:
		return a, false
	}
	a.Href, a.Link = cardHref(d), fmt.Sprintf("Look at GPU %d", d.Index)
	return a, true
}

// nodeView draws one node in full.
func nodeView(n fleet.NodeView, on []fleet.InstanceView, accounts map[models.AccountID]string, k fleetFacts) web.NodeView {
	v := web.NodeView{ID: string(n.ID), Name: n.Name, Detail: cardsOf(n) + agentOf(n) + ", seen " + ago(n.SeenAt, k.at, time.UTC)}
	v.State, v.Tone = nodeState(n)
	h := n.HostInfo
	if h.Simulated {
		v.Simulated = "These devices are a physical model of GPUs, not hardware, and CPU, memory and disk are those of the modelled host. Processes in instances are real, and so are their files."
	}
	v.Facts = nodeFacts(n, k.at)
	v.Ladder = ladder(h.Runtime)
	for _, d := range n.Devices {
		v.Devices = append(v.Devices, nodeDevice(n.Name, d, k.samples))
	}
	for _, in := range on {
		row := web.NodeInstance{ID: string(in.ID), Name: in.Name, Account: accounts[in.AccountID], SKU: skuName(in.SKU), Where: "–"}
		row.State, row.Tone = stateView(in.Instance)
		if len(in.Slices) > 0 {
			s := in.Slices[0]
			left, _ := captions(s.Model, s.Placement())
			row.Where = fmt.Sprintf("GPU %d, %s", s.Device.Index, left)
		}
		v.Instances = append(v.Instances, row)
	}
	return v
}

func nodeFacts(n fleet.NodeView, at models.Instant) []web.Pair {
	h := n.HostInfo
	facts := []web.Pair{{Term: "Agent", Value: orDash(n.AgentVersion)}, {Term: "Kernel", Value: orDash(h.Kernel)}}
	if h.MilliCPU > 0 {
		facts = append(facts, web.Pair{Term: "Host", Value: fmt.Sprintf("%s, %s GiB RAM, %s GiB disk", cpus(h.MilliCPU), thousands(int64(h.MemoryMiB>>10)), thousands(int64(h.DiskGiB)))})
	}
	if h.Runtime.Driver != "" {
		facts = append(facts, web.Pair{Term: "Runtime", Value: h.Runtime.Driver + ", " + h.Runtime.Mode})
	}
	for _, limit := range []string{"cpu", "memory", "pids", "disk"} {
		if how, ok := h.Runtime.Limits[limit]; ok {
			facts = append(facts, web.Pair{Term: "Limit of " + limit, Value: how})
		}
	}
	facts = append(facts, web.Pair{Term: "Joined", Value: dayTime(n.CreatedAt, time.UTC)}, web.Pair{Term: "Seen", Value: ago(n.SeenAt, at, time.UTC)})
	if n.ClockSkewMS > 1000 || n.ClockSkewMS < -1000 {
		facts = append(facts, web.Pair{Term: "Clock", Value: fmt.Sprintf("off by %.1f s; never billed by", float64(n.ClockSkewMS)/1000)})
	}
	return facts
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

// ladder shows the ways of isolation as they were tried, best first.
func ladder(r wire.Runtime) (out []web.LadderStep) {
	below := false
	for _, rung := range r.Ladder {
		step := web.LadderStep{Name: rung.Mode, Reason: rung.Detail, Tried: !below, Chosen: rung.Mode == r.Mode}
		below = below || step.Chosen
		out = append(out, step)
	}
	return out
}

func nodeDevice(node string, d fleet.DeviceView, samples map[string]fleet.Sample) web.NodeDevice {
	v := web.NodeDevice{Name: fmt.Sprintf("GPU %d", d.Index), UUID: d.UUID, Href: cardHref(d), Model: cardName(d), State: deviceState(d), Tone: web.ToneRunning}
	if d.State != models.DeviceOK {
		v.Tone = web.ToneWarn
		if v.State = briefly(v.State); v.State != strings.TrimSuffix(d.Detail, ".") {
			v.Note = d.Detail
		}
	}
	v.Part.Bar = deviceBar(node, d)
	if d.Facts.Partitions() {
		v.LayoutHref = cardLayoutHref(d.NodeID, d.UUID)
		memory, compute := 0, 0
		for _, l := range d.Leases {
			h := holdOf(d.Facts, l.Placement(), web.KindOther)
			memory, compute = memory+h.Size, compute+h.Compute
		}
		v.Part.Left = fmt.Sprintf("%d of %d memory slices sold", memory, d.Facts.MemoryUnits)
		v.Part.Right = fmt.Sprintf("%d of %d compute", compute, d.Facts.ComputeSlices)
	} else if n := d.Facts.Share.N; n > 0 {
		held := 0
		for _, l := range d.Leases {
			held += l.Size
		}
		v.Part.Left, v.Part.Right = fmt.Sprintf("%d of %d shares sold", held, n), "sold whole or in time shares"
	} else {
		v.Part.Left = "whole card, not sliced"
	}
	if d.Facts.ID != "" {
		v.Sharing = sharingView(d)
	}
	if len(d.Layout) > 0 {
		v.Divided = "Divided into " + profileCounts(d.Layout) + "."
	}
	sample, known := samples[d.UUID]
	v.Readings = cardReadings(d, sample, known)
	return v
}

// cardReadings are the newest readings of a card; known tells whether there are any.
func cardReadings(d fleet.DeviceView, s fleet.Sample, known bool) (out []web.Reading) {
	read := func(key, term string, value *float64, unit string) {
		text := "not measurable"
		if !known {
			text = "–"
		} else if value != nil {
			text = reading(*value) + unit
		}
		out = append(out, web.Reading{Key: key, Term: term, Value: text, Unit: unit})
	}
	read("temperature_c", "Temperature", s.TemperatureC, " °C")
	read("power_w", "Power", s.PowerW, " W")
	var used *float64
	if s.MemoryMiB != nil {
		mib := float64(*s.MemoryMiB)
		used = &mib
	}
	read("memory_mib", "Memory", used, " of "+thousands(int64(d.MemoryMiB))+" MiB")
	read("utilization_percent", "Utilisation", s.UtilizationPercent, " %")
	return out
}

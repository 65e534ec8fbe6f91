package web

import "github.com/a-h/templ"

func operatorSamples() map[string]templ.Component {
	fault := Hold{0, 8, 7, KindFault}
	cardReadings := []Reading{{"temperature_c", "Temperature", "66 °C", " °C"}, {"power_w", "Power", "268 W", " W"}, {"memory_mib", "Memory", "41,230 of 81,920 MiB", " of 81,920 MiB"}, {"utilization_percent", "Utilisation", "not measurable", " %"}}
	fleet := FleetView{
		Layout: operator("Fleet", "/fleet"), Summary: "2 nodes, 5 GPUs.",
		Metrics: []Metric{{"Sold now", "41", " %", "of memory"}, {"Instances", "3", "", "on 2 nodes"}, {"Burn", "$4.19", " /h", "all accounts"}, {"Power", "0.9", " kW", "measured"}},
		Nodes: []NodeRack{
			{ID: "n-1", Name: "kestrel", Detail: "2 × A100 80GB, 1 × RTX 4090, agent 0.1.0, seen 2 s ago", State: "1 GPU faulted", Tone: ToneWarn, Simulated: true, Devices: []DeviceCell{
				{Name: "GPU 0", Tail: "0", Href: "/fleet/n-1/devices/GPU-0", Bar: tall(mig("kestrel GPU 0: 2 slices held", other(0, 4, 3), other(6, 1, 1))), Note: "66 °C"},
				{Name: "GPU 1", Tail: "1", Href: "/fleet/n-1/devices/GPU-1", Bar: tall(mig("kestrel GPU 1: faulted", fault)), Note: "XID 79", Bad: true},
				{Name: "GPU 2", Tail: "2", Href: "/fleet/n-1/devices/GPU-2", Bar: tall(whole("kestrel GPU 2: held", KindOther)), Note: "61 °C"},
				{Name: "GPU 3", Tail: "3", Href: "/fleet/n-1/devices/GPU-3", Bar: tall(SliceBar{Label: "kestrel GPU 3: free", Memory: 4, Compute: 4}), Note: "31 °C"},
			}},
			{ID: "n-2", Name: "tern", Detail: "1 × H100 80GB, agent 0.1.0, seen 4 min ago", State: "No heartbeat", Tone: ToneFailed, Lost: true, Devices: []DeviceCell{{Name: "GPU 0", Bar: tall(mig("tern GPU 0: 1 slice held", other(0, 1, 1))), Note: "–"}}},
		},
		Needs: []Alert{{Tone: ToneFailed, Word: "No heartbeat", At: "11:51", Lead: "tern was last seen 4 min ago.", Text: "Billing on its 1 instance is paused since then.", Next: "look whether the agent runs there.", Href: "/fleet/n-2", Link: "Look at tern"}},
	}
	joined := fleet
	joined.Join = &JoinCommand{Command: "berth agent join https://quay.example.org --token bjt_example", Expires: "It works until 12:30."}
	node := NodeView{
		Layout: operator("kestrel", "/fleet/n-1"), ID: "n-1", Name: "kestrel", State: "Healthy", Tone: ToneRunning, Detail: "seen 2 s ago",
		Simulated: "These devices are a physical model of GPUs, not hardware. Processes in instances are real.",
		Facts:     []Pair{{Term: "Agent", Value: "0.1.0"}, {Term: "Kernel", Value: "Linux 6.1"}, {Term: "Joined", Value: "1 Dec, 09:00"}, {Term: "Seen", Value: "2 s ago"}},
		Ladder: []LadderStep{
			{Name: "User namespace with own root", Tried: true, Reason: "clone: operation not permitted."},
			{Name: "Own mount and process namespaces", Tried: true, Chosen: true, Reason: "Own processes and root view; the host's user."},
			{Name: "Own process group", Reason: "Only if nothing better starts."},
		},
		Devices: []NodeDevice{{
			Name: "GPU 0", UUID: "GPU-3f2a9c1e-0000-4000-8000-000000000000", Model: "A100 80GB", State: "Healthy", Tone: ToneRunning,
			Part:     SlicePart{Bar: mig("GPU 0: 2 slices held", other(0, 4, 3), other(6, 1, 1)), Left: "5 of 8 memory slices sold", Right: "4 of 7 compute"},
			Sharing:  &CardSharing{ID: "GPU-0", Action: "/fleet/nod_1/devices/GPU-0/sharing", Mixed: true, Ways: []SharingWay{{Label: "As is usual for the model: not shared"}, {Value: "none", Label: "Not shared"}, {Value: "ts4", Label: "Whole or in 4 time shares", Selected: true}}},
			Readings: cardReadings, Href: "/fleet/n-1/devices/GPU-3f2a9c1e",
		}},
		Instances: []NodeInstance{{ID: "i-1", Name: "qwen-serve-02", Account: "Ada Keel", SKU: "A100 80GB · 1g.10gb", Where: "GPU 0, memory 7 of 8", State: "Running", Tone: ToneRunning}},
		Events:    []Event{{At: "09:00:02", DateTime: "2026-12-01T09:00:02Z", Lead: "Joined.", Text: "3 devices reported."}},
	}
	node.Measured = Measured{Ranges: ranges("/fleet/n-1", ""), Live: liveView()}
	device := DeviceView{Layout: operator("GPU 0 of kestrel", "/fleet/n-1/devices/GPU-3f2a9c1e"), NodeHref: "/fleet/n-1", Node: "kestrel", Name: "GPU 0", Model: "A100 80GB",
		UUID: "GPU-3f2a9c1e-0000-4000-8000-000000000000", State: "Healthy", Tone: ToneRunning, Simulated: true, LayoutHref: "/fleet/n-1/devices/GPU-3f2a9c1e/layout",
		Part:     SlicePart{Bar: mig("GPU 0: 2 slices held", other(0, 4, 3), other(6, 1, 1)), Left: "5 of 8 memory slices sold", Right: "4 of 7 compute"},
		Measured: Measured{Ranges: ranges("/fleet/n-1/devices/GPU-3f2a9c1e", ""), Live: liveView()},
		Health:   []Pair{{Term: "State", Value: "Healthy"}, {Term: "Last Xid", Value: "Xid 31, memory page fault, 1 Dec, 08:12"}}, Facts: []Pair{{Term: "Memory", Value: "81,920 MiB"}},
		Leases: []CardLease{{Instance: "qwen-serve-02", Account: "Ada Keel", Slice: "1g.10gb@6", State: "Running", From: "1 Dec, 09:41", Until: "held"}, {Instance: "sdxl", Account: "Tidemark Lab", Slice: "3g.40gb@0", From: "30 Nov, 09:41", Until: "to 30 Nov, 12:00"}},
		Events: []Event{{At: "1 Dec, 08:12", DateTime: "2026-12-01T08:12:02Z", Lead: "Healthy.", Text: "Sold again."}}}
	sick := device
	sick.State, sick.Tone, sick.Measured.Live, sick.Measured.LiveNote, sick.Leases, sick.LayoutHref = "Xid 79", ToneWarn, nil, "nothing is heard of it now", nil, ""
	sick.Measured.Past = nil
	sick.Need = &Alert{Tone: ToneWarn, Word: "GPU not sold", Lead: "Xid 79, the GPU has fallen off the bus.", Text: "It takes no new rentals.", Next: "restart the machine."}
	sick.Part.Bar = mig("GPU 0: faulted", fault)
	skus := []ImageOption{{"a100-80gb", "A100 80GB", false}, {"a100-80gb.1g.10gb", "A100 80GB · 1g.10gb", true}}
	prices := PricesView{
		Layout: operator("Prices", "/prices"), SKUs: skus, Symbol: "$", Zone: "UTC",
		Rows: []PriceRow{
			{SKU: "a100-80gb.1g.10gb", Name: "A100 80GB · 1g.10gb", PerHour: "$0.42", PerSecond: "$0.000117", From: "since 1 Dec 2026", State: "Now", Tone: ToneRunning},
			{SKU: "a100-80gb.1g.10gb", Name: "A100 80GB · 1g.10gb", PerHour: "$0.45", PerSecond: "$0.000125", From: "1 Jan 2027, 00:00", State: "Planned", Tone: ToneWaiting},
		},
	}
	bad := prices
	bad.Rows, bad.SKUError = nil, "Choose a SKU."
	bad.Price, bad.EffectiveAt = Field{Value: "-1", Error: "A price is above zero, with at most 6 digits after the point."}, Field{Value: "2020-01-01T00:00", Error: "That has passed. Leave it empty for now."}
	ready := func(start, size, compute int) Hold { return Hold{start, size, compute, KindReady} }
	cardLayout := CardLayoutView{
		Layout: operator("GPU 0 of kestrel", "/fleet/n-1/devices/GPU-1/layout?plan=1"), NodeHref: "/fleet/n-1", Node: "kestrel", Card: "GPU 0", Model: "A100 80GB",
		Action: "/fleet/n-1/devices/GPU-1/layout", Now: mig("GPU 0 of kestrel: one slice held", other(4, 4, 3)), NowText: "Its slices are made as they are asked for.",
		Profiles: []ProfileCount{{Name: "3g.40gb", Field: "n-3g.40gb", Value: "1", Hint: "40,192 MiB, 3 of 7 compute slices, at most 2", Most: 2}},
		Plan: &CardPlan{Then: mig("Afterwards", other(4, 4, 3), ready(0, 2, 2)), Profiles: "3g.40gb 2g.20gb", Button: "Divide it so",
			Steps: []Consequence{{Keep: true, Text: "Keeps 1: 1 × 3g.40gb, 1 of them in use."}, {Keep: true, Text: "Makes 1: 1 × 2g.20gb."}}},
	}
	blocked := cardLayout
	blocked.Plan, blocked.Problem = nil, &Problem{What: "Slices in use are in the way: 3g.40gb@4 of instance qwen-serve-02.", Next: "Nothing was changed."}
	return map[string]templ.Component{
		"fleet":       FleetPage(fleet),
		"fleet-join":  FleetPage(joined),
		"fleet-empty": FleetPage(FleetView{Layout: operator("Fleet", "/fleet"), Summary: "No nodes yet."}),
		"device":      DevicePage(device),
		"device-sick": DevicePage(sick),
		"node":        NodePage(node),
		"card-layout": CardLayoutPage(cardLayout), "card-layout-blocked": CardLayoutPage(blocked),
		"node-empty": NodePage(NodeView{Layout: operator("tern", "/fleet/n-2"), ID: "n-2", Name: "tern", State: "No heartbeat", Tone: ToneFailed, Detail: "seen 4 min ago",
			Upkeep: Upkeep{Cordoned: true, Retire: []Consequence{{Text: "2 instances there will be terminated, and their disks are gone."}, {Keep: true, Text: "What they hold is free."}}}}),
		"prices": PricesPage(prices), "prices-error": PricesPage(bad),
		"accounts": AccountsPage(AccountsView{Layout: operator("Accounts", "/fleet/accounts"), Rows: []AccountRow{
			{ID: "a-1", Name: "Ada Keel", Owner: "ada@example.org", Balance: "$182.40", MonthToDate: "$3.91", Instances: "2 running", CanClose: true},
			{ID: "a-2", Name: "Tidemark Lab", Owner: "lab@example.org", Balance: "$0.00", MonthToDate: "$0.00", Instances: "none"},
		}}),
		"accounts-empty": AccountsPage(AccountsView{Layout: operator("Accounts", "/fleet/accounts")}),
	}
}

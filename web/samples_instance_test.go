package web

import (
	"math"

	"github.com/a-h/templ"
)

func wave(base, swing float64, gap bool) []Point {
	var out []Point
	for i := range 60 {
		x := float64(i) / 59
		v := base + swing*math.Sin(float64(i)/3) + swing/2*math.Cos(float64(i)/1.7)
		p := Point{X: math.Round(x*1000) / 1000, Y: &v}
		if gap && i > 20 && i < 28 {
			p.Y = nil
		}
		out = append(out, p)
	}
	return out
}

func liveView() *Live {
	return &Live{Socket: "/instances/i-1/live", Window: "15 minutes are kept", WindowSeconds: 900, Charts: []Chart{
		{Key: "utilization_percent", Label: "GPU utilisation", Now: "87", Unit: " %", Top: 100, Points: wave(78, 12, true), Left: "−15 min", Peak: "98"},
		{Key: "memory_mib", Label: "Memory", Now: "7,410", Unit: " of 9,856 MiB", Top: 9856, Limit: 9363, Points: wave(7200, 200, false), Left: "−15 min", Right: "limit 9,363 MiB"},
		{Key: "temperature_c", Label: "Temperature", Now: "64", Unit: " °C", Top: 100, Limit: 87, Points: wave(60, 4, false), Left: "−15 min", Right: "limit 87 °C"},
		{Key: "power_w", Label: "Power", Unit: " W", Top: 400, Left: "−15 min", Right: "of the whole card only"},
	}}
}

func ranges(page, current string) (out []FilterLink) {
	for _, r := range []FilterLink{{Label: "Live", Href: page}, {Label: "1 h", Href: page + "?range=1h"}, {Label: "24 h", Href: page + "?range=24h"}, {Label: "30 d", Href: page + "?range=30d"}} {
		r.Current = r.Label == current || current == "" && r.Label == "Live"
		out = append(out, r)
	}
	return out
}

func pastView(source string) *Past {
	p := &Past{Source: source, StepSeconds: 300, Note: "each point is 5 minutes: the mean, and from the lowest to the highest second"}
	for _, c := range liveView().Charts {
		c.Left, c.Unit = "24 h ago", c.Unit+" mean"
		for _, at := range c.Points {
			r := Reach{X: at.X}
			if at.Y != nil {
				low, high := *at.Y*.8, *at.Y*1.1
				r.Low, r.High = &low, &high
			}
			c.Band = append(c.Band, r)
		}
		p.Charts = append(p.Charts, c)
	}
	return p
}

func runningView() InstanceView {
	return InstanceView{
		Layout: signedIn("qwen-serve-02", NavInstances, "/instances/i-1"),
		ID:     "i-1", Name: "qwen-serve-02", State: "Running", Tone: ToneRunning, Billing: "On demand", What: "A100 80GB · 1g.10gb on kestrel, GPU 0", Simulated: true,
		Steps: []Step{
			{Label: "Requested", Detail: "0.4 s", Status: StepDone}, {Label: "Placed", Detail: "1.1 s", Status: StepDone},
			{Label: "Image ready", Detail: "0.2 s", Status: StepDone}, {Label: "Started", Detail: "0.9 s", Status: StepDone},
			{Label: "Running", Detail: "2 h 14 min 07 s", Status: StepNow, Ticking: true, Seconds: 8047},
		},
		Terminal: true, Measured: Measured{Live: liveView(), Ranges: ranges("/instances/i-1", "")}, Logs: true,
		Cost: Cost{
			Heading: "This run has cost", Whole: "$0.93", Faint: "88", Duration: "2 h 14 min 07 s", PerSecond: "$0.000117",
			Lines:  []Pair{{Term: "Today", Value: "$0.94"}, {Term: "Wallet lasts", Value: "1 d 19 h"}},
			Ticker: Ticker{ChargedMicros: 938816, RateMicrosPerHour: 420000, Seconds: 8047, SinceUnixMilli: 1000, NowUnixMilli: 1400, Symbol: "$", Decimals: 2, Running: true},
		},
		Slices: []SlicePart{{Where: "kestrel, GPU 0", Bar: mig("GPU 0 on kestrel. Yours: memory slice 7 and compute slice 7.", other(0, 4, 3), yours(6, 1, 1)), Left: "memory 7 of 8", Right: "compute 7 of 7"}},
		Events: []Event{
			{At: "09:41:12", DateTime: "2026-12-01T09:41:12Z", Lead: "Running.", Text: "Billing started at $0.000117 per second."},
			{At: "09:41:05", DateTime: "2026-12-01T09:41:05Z", Text: "Slice 1g.10gb made on kestrel, GPU 0."},
			{At: "09:41:04", DateTime: "2026-12-01T09:41:04Z", Text: "Requested by you from the launch page."},
		},
		Restart: &Action{Label: "Restart", Title: "Restart qwen-serve-02?", Do: "Restart", Consequences: []Consequence{{true, "Slice and disk stay yours. The seconds in between are free."}, {false, "Programs inside are ended."}}},
		Stop:    &Action{Label: "Stop", Title: "Stop qwen-serve-02?", Do: "Stop", Consequences: []Consequence{{true, "GPU billing stops at once. The disk is kept."}, {false, "The slice goes back; starting again may find none free."}}},
		Terminate: &Action{Label: "Terminate…", Title: "Terminate qwen-serve-02?", Do: "Terminate", Note: "To keep the disk, stop instead.", Consequences: []Consequence{
			{true, "Billing stops at once. You have paid $0.93."}, {false, "The 20 GiB disk is erased and can’t be recovered."}}},
	}
}

func instanceSamples() map[string]templ.Component {
	starting := runningView()
	starting.State, starting.Tone, starting.Terminal, starting.Live, starting.Logs = "Fetching image, 62 %", ToneStarting, false, nil, false
	starting.Loading, starting.LiveNote = true, "starts with the instance"
	starting.Steps = []Step{
		{Label: "Requested", Detail: "0.4 s", Status: StepDone}, {Label: "Placed", Detail: "1.1 s on kestrel", Status: StepDone},
		{Label: "Fetching image", Detail: "62 %, 4.9 of 7.9 GB", Status: StepNow, Progress: &Progress{"Fetching image", 4900, 7900}},
		{Label: "Starting", Detail: "about 2 s", Status: StepTodo}, {Label: "Running", Detail: "billing starts here", Status: StepTodo},
	}
	starting.Pull = &Pull{Image: "pytorch:2.8-cuda12.8", Detail: "4.9 of 7.9 GB at 410 MB/s, 8 s left", Progress: Progress{"Fetching image", 4900, 7900}}
	starting.Cost = Cost{Heading: "This run has cost", Whole: "$0.00", Faint: "00", Note: "Billing starts when it is running, at $0.000117 per second."}
	starting.Restart, starting.Terminate = nil, nil
	starting.Stop = &Action{Label: "Cancel, costs nothing", Title: "Cancel qwen-serve-02?", Do: "Cancel it", Consequences: []Consequence{{true, "Nothing has been charged."}, {false, "The slice goes back."}}}

	stopped := runningView()
	stopped.State, stopped.Tone, stopped.Terminal, stopped.Live = "Stopped, disk kept", ToneStopped, false, nil
	stopped.LiveNote = "nothing to measure while it is stopped"
	stopped.Steps[4] = Step{Label: "Stopped", Detail: "ran 2 h 14 min 07 s", Status: StepDone}
	stopped.Slices, stopped.SliceNote = nil, "A stopped instance holds nothing."
	stopped.Cost.Ticker.Running, stopped.Cost.Heading = false, "It has cost"
	stopped.Stop, stopped.Restart = nil, nil
	stopped.Start = &Action{Label: "Start for $0.42 per hour", Title: "Start qwen-serve-02?", Do: "Start", Consequences: []Consequence{{true, "Its disk is as you left it."}, {false, "Costs $0.42 per hour from when it runs."}}}
	stopped.TerminateError = "The name did not match. Type qwen-serve-02 to confirm."

	failed := runningView()
	failed.State, failed.Tone, failed.Terminal, failed.Live, failed.Stop, failed.Restart = "Failed to start", ToneFailed, false, nil, nil, nil
	failed.Steps = failed.Steps[:4]
	failed.Steps[3] = Step{Label: "Starting", Detail: "after 0.9 s", Status: StepFailed}
	failed.Failure = &Failure{Title: "It did not start.", Cause: "The start-up script ended with status 127: python: not found.", Next: "Correct the script, then start it again. Nothing was charged.", Output: "sh: 3: python: not found\n<exit 127>"}
	failed.Cost = Cost{Heading: "It has cost", Whole: "$0.00", Faint: "00", Note: "A start that fails is free."}
	failed.Slices, failed.SliceNote = nil, "It holds nothing any more."
	failed.Start = stopped.Start

	past, young := runningView(), runningView()
	past.Measured = Measured{Past: pastView("/api/v1/instances/i-1/history?range=24h"), Ranges: ranges("/instances/i-1", "24 h")}
	young.Measured = Measured{Past: &Past{Source: "/api/v1/instances/i-1/history?range=1h", StepSeconds: 60, Note: "each point is 1 minute", Empty: "The first minute is not over yet."}, Ranges: ranges("/instances/i-1", "1 h")}

	rows := []InstanceRow{
		{ID: "i-1", Name: "qwen-serve-02", Where: "kestrel · GPU 0", Bar: tall(mig("1g.10gb", yours(6, 1, 1))), State: "Running", Tone: ToneRunning, SKU: "A100 80GB · 1g.10gb", Billing: "On demand", Utilization: "87 %", Live: true, Rate: "$0.42", Run: "2 h 14 min", Cost: "$0.93", CanStop: true},
		{ID: "i-2", Name: "sdxl-batch", Where: "fulmar · GPU 0", Bar: tall(whole("RTX 4090", KindYours)), State: "Fetching image, 62 %", Tone: ToneStarting, SKU: "RTX 4090", Billing: "On demand", Utilization: "–", Rate: "$0.00", Run: "22 s", Cost: "$0.00", CanStop: true},
		{ID: "i-3", Name: "course-lab-4", Bar: tall(mig("Holds nothing")), State: "Stopped, disk kept", Tone: ToneStopped, SKU: "A100 80GB · 1g.10gb", Billing: "On demand", Utilization: "–", Rate: "$0.00", Run: "–", Cost: "$4.10"},
		{ID: "i-4", Name: "vllm-test", Bar: tall(mig("Holds nothing")), State: "Failed to start", Tone: ToneFailed, Note: "start-up script ended with 127", SKU: "A100 80GB · 2g.20gb", Billing: "On demand", Utilization: "–", Rate: "$0.00", Run: "0 s", Cost: "$0.00"},
	}
	instances := InstancesView{
		Layout: signedIn("Instances", NavInstances, "/instances"), Summary: "1 running, 1 starting.", Burn: "$0.42 per hour", Any: true, Rows: rows,
		Filters: []FilterLink{{"Current 4", "/instances", true}, {"Active 2", "/instances?show=active", false}}, NextHref: "/instances?after=i-4",
	}
	flashed := instances
	flashed.Flash = &Flash{Tone: ToneRunning, Text: "course-lab-4 stopped. Its disk is kept.", Href: "/instances/i-3", Link: "Start again"}
	refused := instances
	refused.Flash = &Flash{Tone: ToneFailed, Text: "sdxl-batch cannot be stopped: it is already stopping."}
	hidden := instances
	hidden.Elsewhere = FilterLink{"Terminated 3", "/instances?show=terminated", false}
	hidden.Rows, hidden.Burn, hidden.NextHref = nil, "", ""
	l := signedIn("Output of qwen-serve-02", NavInstances, "/instances/i-1/logs")
	return map[string]templ.Component{
		"instance":            InstancePage(runningView()),
		"instance-past":       InstancePage(past),
		"instance-past-empty": InstancePage(young),
		"instance-starting":   InstancePage(starting),
		"instance-stopped":    InstancePage(stopped),
		"instance-failed":     InstancePage(failed),
		"instances":           InstancesPage(instances),
		"instances-flash":     InstancesPage(flashed),
		"instances-refused":   InstancesPage(refused),
		"instances-filtered":  InstancesPage(hidden),
		"instances-empty":     InstancesPage(InstancesView{Layout: instances.Layout, Summary: "None yet.", From: "$0.39"}),
		"logs":                LogsPage(LogsView{Layout: l, ID: "i-1", Name: "qwen-serve-02", Text: "listening on :8000\n<b>not markup</b>\n", Note: "The last 256 KiB."}),
		"logs-empty":          LogsPage(LogsView{Layout: l, ID: "i-1", Name: "qwen-serve-02"}),
		"logs-error":          LogsPage(LogsView{Layout: l, ID: "i-1", Name: "qwen-serve-02", Problem: &Problem{What: "The node cannot be reached.", Next: "The output is kept there; try again in a moment."}}),
		"terminal":            TerminalPage(TerminalView{Layout: l, ID: "i-1", Name: "qwen-serve-02", Nonce: "bm9uY2U"}),
		"terminal-error":      TerminalPage(TerminalView{Layout: l, ID: "i-1", Name: "qwen-serve-02", Problem: &Problem{What: "It is stopped.", Next: "Start it first.", Href: "/instances/i-1", Link: "To the instance"}}),
	}
}

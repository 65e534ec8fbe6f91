package server

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"berth/api"
	"berth/fleet"
	"berth/gpu"
	"berth/models"
	"berth/money"
	"berth/web"
	"berth/wire"
)

// instanceFacts is what the portal knows when it draws an instance's page.
type instanceFacts struct {
	in      fleet.InstanceView
	events  []models.InstanceEvent // oldest first
	samples []fleet.Sample         // of the charts' window and the present run, oldest first
	past    fleet.History          // asked for in place of the live charts; Name empty: it was not
	charged money.Amount           // over all runs
	purse   *web.Purse
	allowed bool // the role may act
	at      models.Instant
	zone    *time.Location
}

// instanceView draws an instance's page in every state.
func instanceView(c money.Currency, k instanceFacts) web.InstanceView {
	in := k.in
	v := web.InstanceView{ID: string(in.ID), Name: in.Name, Billing: billingName(in.BillingMode), What: skuName(in.SKU), Simulated: in.Simulated,
		Steps: timeline(k), Failure: failureView(in.Instance), Terminal: in.State == models.Running && k.allowed, Cost: costView(c, k),
		Events: eventsView(k.events, k.zone), Logs: in.NodeID != ""}
	v.State, v.Tone = stateView(in.Instance)
	v.Notice = in.Notice
	if len(in.Slices) > 0 {
		v.What += " on " + whereOf(in, ", ")
	}
	if in.State == models.Pulling {
		v.Pull = pullView(in.Instance, k.at)
	}
	switch {
	case in.State == models.Running:
		v.Live = liveView("/instances/"+v.ID+"/live", instanceScale(in), k.samples, k.at)
	case slices.Contains([]models.InstanceState{models.Queued, models.Placing, models.Pulling, models.Starting}, in.State):
		v.Loading, v.LiveNote = true, "starts with the instance"
	case in.State == models.Terminated:
		v.LiveNote = "nothing to measure any more"
	default:
		v.LiveNote = "nothing to measure while it is not running"
	}
	v.Ranges = rangeLinks("/instances/"+v.ID, k.past.Name)
	if k.past.Name != "" {
		v.Past = pastView(api.Prefix+"/instances/"+v.ID+"/history", instanceScale(in), k.past)
	}
	for _, s := range in.Slices {
		part := web.SlicePart{Where: fmt.Sprintf("%s, GPU %d", in.NodeName, s.Device.Index)}
		if s.Model.ID == "" {
			part.Bar = web.SliceBar{Label: s.Device.Name, Holds: []web.Hold{{Kind: web.KindYours}}}
		} else {
			part.Bar = cardBar(s.Model, []gpu.Placement{s.Placement()}, web.KindYours, s.Others)
			part.Left, part.Right = captions(s.Model, s.Placement())
			part.Sharing = sharedWords(s.Model, s.Placement(), s.Device.Mixed)
		}
		v.Slices = append(v.Slices, part)
	}
	switch {
	case len(v.Slices) > 0:
		v.SliceNote = in.Why
	case in.State == models.Stopped:
		v.SliceNote = "A stopped instance holds nothing."
	default:
		v.SliceNote = "It holds nothing now."
	}
	if k.allowed {
		addActions(&v, c, in, k.charged)
	}
	return v
}

// milestones are the events of a start, in their order, with what the time up
// to each was spent on.
var milestones = []struct {
	kind        models.InstanceEventKind
	done, doing string
	at          models.InstanceState // while it is being done
}{
	{models.NodePulling, "Placed", "Making the slice", models.Placing},
	{models.NodeStarting, "Image ready", "Fetching image", models.Pulling},
	{models.NodeRunning, "Started", "Starting", models.Starting},
}

// timeline shows the present run step by step with measured times.
func timeline(k instanceFacts) []web.Step {
	in := k.in.Instance
	when := map[models.InstanceEventKind]models.Instant{}
	var ended models.Instant
	for _, ev := range k.events {
		if ev.Run != in.Run {
			continue
		}
		if _, seen := when[models.InstanceEventKind(ev.Kind)]; !seen {
			when[models.InstanceEventKind(ev.Kind)] = ev.At
		}
		if ev.To == models.Failed || ev.To == models.Stopped || ev.To == models.Stopping || ev.To == models.Lost || ev.To == models.Terminated {
			ended = ev.At
		}
	}
	placed := when[models.Placed]
	for _, again := range []models.InstanceEventKind{models.StartAsked, models.RestartAsked, models.NodeRebooted} {
		placed = max(placed, when[again])
	}
	if placed.IsZero() {
		return []web.Step{{Label: "Waiting for a place", Detail: "since " + clockTime(in.RequestedAt, k.zone), Status: web.StepNow}}
	}
	steps := []web.Step{{Label: "Requested", Detail: took(placed.Sub(in.RequestedAt)), Status: web.StepDone}}
	last := placed
	over := !in.State.Active() || in.State == models.Stopping || in.State == models.Lost
	for i, m := range milestones {
		at, reached := when[m.kind]
		if !reached { // a node may skip a step: a later one tells that this is done too
			for _, later := range milestones[i+1:] {
				if t, ok := when[later.kind]; ok && (!reached || t < at) {
					at, reached = last, true
				}
			}
		}
		switch {
		case reached:
			steps = append(steps, web.Step{Label: m.done, Detail: took(at.Sub(last)), Status: web.StepDone})
			last = at
		case over:
			if in.State == models.Failed {
				return append(steps, web.Step{Label: m.doing, Detail: "after " + took(ended.Sub(last)), Status: web.StepFailed})
			}
			return append(steps, endStep(k, ended))
		case in.State == m.at:
			step := web.Step{Label: m.doing, Status: web.StepNow, Ticking: true, Seconds: int64(k.at.Sub(last).Seconds())}
			step.Detail = duration(max(0, step.Seconds))
			if percent, ok := pulled(in); ok && m.at == models.Pulling {
				step.Detail, step.Ticking = fmt.Sprintf("%d %%, %s", percent, byteRange(in.PullDone, in.PullTotal)), false
				step.Progress = &web.Progress{Label: m.doing, Value: in.PullDone, Max: in.PullTotal}
			}
			steps = append(steps, step)
			last = k.at
		default:
			steps = append(steps, web.Step{Label: m.doing, Status: web.StepTodo})
		}
	}
	ran := ranFor(k.in, k.at)
	switch {
	case in.State == models.Running:
		steps = append(steps, web.Step{Label: "Running", Detail: duration(ran), Status: web.StepNow, Ticking: true, Seconds: ran})
	case over && in.State == models.Failed:
		steps = append(steps, web.Step{Label: "Failed", Detail: "after " + duration(ran), Status: web.StepFailed})
	case over:
		steps = append(steps, endStep(k, ended))
	default:
		steps = append(steps, web.Step{Label: "Running", Detail: "billing starts here", Status: web.StepTodo})
	}
	return steps
}

// endStep is the last step of a run that is over, or ending.
func endStep(k instanceFacts, ended models.Instant) web.Step {
	step := web.Step{Label: "Stopped", Detail: "ran " + duration(ranFor(k.in, k.at)), Status: web.StepDone}
	switch k.in.State {
	case models.Stopping:
		step = web.Step{Label: "Stopping", Detail: "free since " + clockTime(ended, k.zone), Status: web.StepNow}
	case models.Lost:
		step = web.Step{Label: "Node lost", Detail: "at " + clockTime(ended, k.zone), Status: web.StepFailed}
	case models.Terminated:
		step.Label = "Terminated"
	}
	return step
}

// byteRange writes "4.9 of 7.9 GB".
func byteRange(done, total int64) string {
	unit, size := "MB", 1e6
	if total >= 1e9 {
		unit, size = "GB", 1e9
	}
	return fmt.Sprintf("%.1f of %.1f %s", float64(done)/size, float64(total)/size, unit)
}

func pullView(in models.Instance, at models.Instant) *web.Pull {
	p := &web.Pull{Image: imageName(in.Image), Detail: "on its way", Progress: web.Progress{Label: "Fetching image", Value: in.PullDone, Max: in.PullTotal}}
	if in.PullTotal > 0 {
		p.Detail = byteRange(in.PullDone, in.PullTotal)
		if seconds := at.Sub(in.ChangedAt).Seconds(); seconds >= 1 && in.PullDone > 0 {
			speed := float64(in.PullDone) / seconds
			p.Detail += fmt.Sprintf(" at %.0f MB/s, about %s left", speed/1e6, roughly(int64(float64(in.PullTotal-in.PullDone)/speed)))
		}
	}
	return p
}

// failureTitles say what kind of end a reason is, where that is more than that it
// ended or did not start.
var failureTitles = map[string]string{
	wire.ReasonFault: "The GPU under it failed.", wire.ReasonDisk: "Its disk is full.", wire.ReasonRebooted: "Its node restarted.",
	wire.ReasonStartup: "Its start-up script failed.", wire.ReasonSupervisor: "It was killed on its node.",
}

// failureView says what went wrong. The cause itself ends with what to do.
func failureView(in models.Instance) *web.Failure {
	if in.State != models.Failed && in.State != models.Lost {
		return nil
	}
	f := &web.Failure{Title: "It did not start.", Cause: in.Detail}
	if !in.RunningAt.IsZero() {
		f.Title = "It ended by itself."
	}
	if title, ok := failureTitles[in.Reason]; ok {
		f.Title = title
	}
	if in.State == models.Lost {
		f.Title = "Its node went silent."
		f.Next = "What it ran since its last sign of life is free. Wait for the node, or terminate it and launch elsewhere."
	}
	if f.Cause == "" {
		f.Cause, f.Next = "The node gave no reason.", "Start it again, or launch another."
	}
	return f
}

// costView is what the present run has cost, by what the meter has accepted.
func costView(c money.Currency, k instanceFacts) web.Cost {
	in, span := k.in, k.in.Span
	v := web.Cost{Heading: "This run has cost"}
	running := in.State == models.Running && span.State == models.SpanRunning
	if !running && in.State != models.Stopping {
		v.Heading = "It has cost"
		if in.Run > 1 {
			v.Heading = "The last run has cost"
		}
	}
	// Of one run always, so that amount, seconds and price belong together.
	v.Whole, v.Faint = splitAmount(c, span.Charged)
	switch {
	case span.ID != "":
		v.Duration, v.PerSecond = duration(span.Cursor), perSecond(c, span.PricePerHour)
	case in.State == models.Failed:
		v.Note = "A start that fails is free."
	case in.State == models.Stopped || in.State == models.Terminated || in.State == models.Stopping:
		v.Note = "It never ran, so it is free."
	default:
		v.Note = "Billing starts when it is running, at " + perSecond(c, in.PricePerHour) + " per second."
	}
	v.Lines = append(v.Lines, web.Pair{Term: "Per hour", Value: perHour(c, in.PricePerHour)})
	if in.Run > 1 {
		v.Lines = append(v.Lines, web.Pair{Term: "Earlier runs", Value: c.FormatSmall(k.charged - span.Charged)})
	}
	if k.purse != nil {
		v.Lines = append(v.Lines, web.Pair{Term: "Wallet", Value: k.purse.Balance}, web.Pair{Term: "It lasts", Value: strings.TrimSuffix(k.purse.Lasts, " left")})
	}
	since := span.UpdatedAt
	if since.IsZero() {
		since = k.at
	}
	v.Ticker = web.Ticker{ChargedMicros: int64(span.Charged), RateMicrosPerHour: int64(span.PricePerHour), Seconds: span.Cursor,
		SinceUnixMilli: since.Time().UnixMilli(), NowUnixMilli: k.at.Time().UnixMilli(), Symbol: c.Symbol, Decimals: c.Exponent, Running: running}
	return v
}

// splitAmount writes an amount in the currency's own digits, and two more to be
// drawn faint: "$3.64" and "35". Script writes it in the same way.
func splitAmount(c money.Currency, a money.Amount) (whole, faint string) {
	whole = c.Format(a)
	step := c.Minor() / 100
	faint = fmt.Sprintf("%02d", a%c.Minor()/step)
	if c.Exponent == 0 {
		faint = "." + faint
	}
	return whole, faint
}

// eventLeads are the bold beginnings of an instance's history.
var eventLeads = map[models.InstanceEventKind]string{
	models.Placed: "Placed.", models.NodePulling: "Slice made.", models.NodeStarting: "Image ready.", models.NodeRunning: "Running.",
	models.NodeStopped: "Stopped.", models.NodeFailed: "Failed.", models.NodeGone: "Gone.", models.StopAsked: "Stop asked.",
	models.StartAsked: "Start asked.", models.RestartAsked: "Restart asked.", models.TerminateAsked: "Terminate asked.",
	models.MoneyEnded: "Money ended.", models.NodeLost: "Node lost.", models.NodeRetirement: "Node retired.",
	models.NodeRebooted: "Node restarted.", models.MaintenanceNotice: "Maintenance.",
}

// eventsShown bounds the history on the page; the API has all of it.
const eventsShown = 100

// eventsView is the history, newest first.
func eventsView(events []models.InstanceEvent, zone *time.Location) (out []web.Event) {
	for _, ev := range slices.Backward(events) {
		if len(out) == eventsShown {
			break
		}
		lead, ok := eventLeads[models.InstanceEventKind(ev.Kind)]
		if !ok {
			lead = ev.Kind + "."
		}
		out = append(out, web.Event{At: clockTime(ev.At, zone), DateTime: machineTime(ev.At), Lead: lead, Text: ev.Reason})
	}
	return out
}

// addActions offers what the state allows, each with what it keeps and loses.
func addActions(v *web.InstanceView, c money.Currency, in fleet.InstanceView, charged money.Amount) {
	begun := in.Span.ID != ""
	disk := fmt.Sprintf("The %d GiB disk", in.DiskGiB)
	if in.State.Can(models.StopAsked) {
		v.Stop = &web.Action{Label: "Stop", Title: "Stop " + in.Name + "?", Do: "Stop", Consequences: []web.Consequence{
			{Keep: true, Text: "Billing stops at once. " + disk + " is kept."},
			{Text: "Programs inside are ended. The slice goes back; starting again may find none free."}}}
		if !begun {
			v.Stop.Label, v.Stop.Title, v.Stop.Do = "Cancel, costs nothing", "Cancel "+in.Name+"?", "Cancel it"
			v.Stop.Consequences = []web.Consequence{{Keep: true, Text: "Nothing has been charged for this start."}, {Text: "The slice goes back."}}
		}
	}
	if in.State.Can(models.StartAsked) {
		v.Start = &web.Action{Label: "Start for " + perHour(c, in.PricePerHour) + " per hour", Title: "Start " + in.Name + "?", Do: "Start", Consequences: []web.Consequence{
			{Keep: true, Text: "Its disk is as you left it."},
			{Text: "Costs " + perHour(c, in.PricePerHour) + " per hour from when it runs."}}}
	}
	if in.State.Can(models.RestartAsked) {
		v.Restart = &web.Action{Label: "Restart", Title: "Restart " + in.Name + "?", Do: "Restart", Consequences: []web.Consequence{
			{Keep: true, Text: "Slice and disk stay yours. The seconds in between are free."},
			{Text: "Programs inside are ended."}}}
	}
	if in.State.Can(models.TerminateAsked) && in.Want != models.WantGone {
		paid := "Nothing is billed now. It has cost " + c.FormatSmall(charged) + "."
		if in.State == models.Running {
			paid = "Billing stops at once. It has cost " + c.FormatSmall(charged) + "."
		}
		v.Terminate = &web.Action{Label: "Terminate…", Title: "Terminate " + in.Name + "?", Do: "Terminate", Consequences: []web.Consequence{
			{Keep: true, Text: paid},
			{Text: disk + " is erased and can’t be recovered."}}}
		if v.Stop != nil {
			v.Terminate.Note = "To keep the disk, stop instead."
		}
	}
}

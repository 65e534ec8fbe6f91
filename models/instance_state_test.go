package models_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"berth/models"
)

var update = flag.Bool("update", false, "write docs/lifecycle.md from the table")

// TestEveryPair walks all states × events: a pair is in the table once, or is a
// Conflict that names both.
func TestEveryPair(t *testing.T) {
	moves := 0
	for _, from := range models.InstanceStates {
		for _, on := range models.InstanceEventKinds {
			var rows []models.Move
			for _, m := range models.InstanceMoves {
				if m.From == from && m.On == on {
					rows = append(rows, m)
				}
			}
			got, err := from.Next(on)
			switch {
			case len(rows) > 1:
				t.Errorf("%s on %s stands %d times in the table", from, on, len(rows))
			case len(rows) == 1:
				moves++
				if err != nil || got != rows[0] || !from.Can(on) {
					t.Errorf("%s on %s: %+v, %v", from, on, got, err)
				}
			default:
				var p *models.Problem
				if !errors.As(err, &p) || p.Code != models.Conflict || !strings.Contains(p.What, string(from)) || !strings.Contains(p.What, string(on)) {
					t.Errorf("%s on %s: %v, want a Conflict that names both", from, on, err)
				}
				if from.Can(on) {
					t.Errorf("%s says it can take %s", from, on)
				}
			}
		}
	}
	if moves != len(models.InstanceMoves) {
		t.Errorf("the walk met %d of %d moves: the table names a state or event that is in no list", moves, len(models.InstanceMoves))
	}
}

// TestEffects holds what must be true of the columns, whatever moves are added.
func TestEffects(t *testing.T) {
	fromNode := []models.InstanceEventKind{models.NodeStopped, models.NodeFailed, models.NodeGone, models.NodeRetirement}
	for _, m := range models.InstanceMoves {
		name := fmt.Sprintf("%s on %s", m.From, m.On)
		if m.Lease == models.LeaseRelease && !slices.Contains(fromNode, m.On) {
			t.Errorf("%s releases a lease, though the node did not say that the slice is free, and is there", name)
		}
		if m.From.Active() && !m.To.Active() && m.Lease != models.LeaseRelease {
			t.Errorf("%s leaves the slices behind", name)
		}
		if !m.From.Active() && m.To == models.Placing && m.Lease != models.LeaseTake {
			t.Errorf("%s places without taking a lease", name)
		}
		if (m.Meter == models.MeterOpen) != (m.On == models.NodeRunning) {
			t.Errorf("%s: the first second paid is the first second usable, and no other", name)
		}
		if m.From == models.Running && m.Meter == models.MeterKeep {
			t.Errorf("%s lets the meter run on", name)
		}
		asked := m.On == models.StopAsked || m.On == models.TerminateAsked || m.On == models.RestartAsked
		if m.From == models.Running && asked && m.Meter != models.MeterCap {
			t.Errorf("%s: the renter does not pay after the click", name)
		}
		if m.From == models.Terminated {
			t.Errorf("%s: what is terminated stays so", name)
		}
	}
}

// TestEveryLifeEnds looks for states that cannot be reached, or from which an
// instance can never be terminated.
func TestEveryLifeEnds(t *testing.T) {
	reached := map[models.InstanceState]bool{models.Queued: true}
	for range models.InstanceStates {
		for _, m := range models.InstanceMoves {
			reached[m.To] = reached[m.To] || reached[m.From]
		}
	}
	ends := map[models.InstanceState]bool{models.Terminated: true}
	for range models.InstanceStates {
		for _, m := range models.InstanceMoves {
			ends[m.From] = ends[m.From] || ends[m.To]
		}
	}
	for _, s := range models.InstanceStates {
		if s == models.Interrupted {
			continue // spot is not sold yet
		}
		if !reached[s] || !ends[s] {
			t.Errorf("%s: reached %v, ends %v", s, reached[s], ends[s])
		}
	}
}

// TestLifecyclePage keeps docs/lifecycle.md what the table says.
func TestLifecyclePage(t *testing.T) {
	path := filepath.Join("..", "docs", "lifecycle.md")
	want := lifecyclePage()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the table says. Run: go test ./models -run TestLifecyclePage -update", path)
	}
}

// lifecyclePage draws the table, a picture of it, and what each event means.
func lifecyclePage() string {
	var b strings.Builder
	b.WriteString("# The life of an instance\n\n" +
		"Made from the table in `models/instance_state.go` by `go test ./models -run TestLifecyclePage -update`. " +
		"Do not edit it: a test compares.\n\n" +
		"An event that a state has no row for is refused (a renter gets 409) or, from a node, is old news and changes nothing. " +
		"Only `running` costs money.\n\n```mermaid\nstateDiagram-v2\n    [*] --> queued\n")
	for _, m := range models.InstanceMoves {
		fmt.Fprintf(&b, "    %s --> %s: %s\n", m.From, m.To, m.On)
	}
	b.WriteString("    terminated --> [*]\n```\n\n| from | on | to | meter | lease |\n|---|---|---|---|---|\n")
	for _, m := range models.InstanceMoves {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", m.From, m.On, m.To, m.Meter, m.Lease)
	}
	b.WriteString("\n## What can happen\n\n| event | who says so | what it means |\n|---|---|---|\n")
	for _, e := range eventMeanings {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", e.on, e.by, e.means)
	}
	b.WriteString("\n## What the effects mean\n\n" +
		"- meter **open**: the usage span begins; the launch's hold is given back.\n" +
		"- meter **cap now**: nothing after the renter's click is paid; the node's last word up to it still is.\n" +
		"- meter **close at report**: the span ends at the node's cumulative seconds, within the cap, and is posted.\n" +
		"- meter **close at confirmed**: the span ends at the last second that was confirmed.\n" +
		"- meter **keep**: no change. A run that ends before it was usable costs nothing, and its hold is given back.\n" +
		"- lease **take**: in the same transaction as the hold; a unit of a card can be held once.\n" +
		"- lease **release**: only when the node said that the slice is free, or is no more itself.\n")
	return b.String()
}

var eventMeanings = []struct {
	on        models.InstanceEventKind
	by, means string
}{
	{models.Placed, "portal", "A node with room was chosen, and money set aside."},
	{models.NodePulling, "node", "The image is on its way."},
	{models.NodeStarting, "node", "Processes start; the GPUs inside are counted."},
	{models.NodeRunning, "node", "It is usable."},
	{models.NodeStopped, "node", "It ended well: asked for, exit code 0, or the wallet ran out. The disk is kept."},
	{models.NodeFailed, "node", "It ended badly; the reason says why and what to do."},
	{models.NodeGone, "node", "Nothing of it is left on the node."},
	{models.StopAsked, "renter", "End the run, keep the disk."},
	{models.StartAsked, "renter", "Begin another run on the same node, where the disk is."},
	{models.RestartAsked, "renter", "End the run and begin the next on the same slices."},
	{models.TerminateAsked, "renter", "End the run and erase the disk."},
	{models.MoneyEnded, "portal", "The wallet does not cover what the node reports. The node usually stops it first."},
	{models.NodeLost, "portal", "The node has been silent for too long."},
	{models.NodeRetirement, "operator", "The node never comes back: what was there, disks too, is gone."},
	{models.NodeRebooted, "node", "Its host restarted under it: the next run begins on the same slices, with its disk. Once in ten minutes; else, and when the wallet does not cover it, it is node_failed."},
}

func TestEveryEventIsExplained(t *testing.T) {
	for _, on := range models.InstanceEventKinds {
		if !slices.ContainsFunc(eventMeanings, func(e struct {
			on        models.InstanceEventKind
			by, means string
		}) bool {
			return e.on == on
		}) {
			t.Errorf("%s is not explained in docs/lifecycle.md", on)
		}
	}
}

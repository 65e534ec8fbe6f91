package server

import (
	"encoding/json"
	"net"
	"strings"
	"sync"

	"github.com/gorilla/websocket"

	"berth/api"
	"berth/fleet"
)

// rooms are what is watched by somebody, and who does. A tick's readings are
// encoded once, however many watch, and handed to their lines by whoever took
// the tick in.
type rooms struct {
	fleet *fleet.Service
	mu    sync.Mutex
	rooms map[string]*room // by scene.name
}

// scene is what a room shows: one subject, sample by sample, or what a list of
// them does now.
type scene struct {
	of   []fleet.Subject
	list bool
}

func (s scene) name() string {
	var b strings.Builder
	if s.list {
		b.WriteString("list")
	}
	for _, id := range s.of {
		b.WriteString(" " + string(id))
	}
	return b.String()
}

type room struct {
	scene
	leave func() // ends the subscription to the readings

	mu    sync.Mutex
	seq   int64           // of one subject: the newest sample that was published
	lines map[*line]int64 // and the newest that each had when it entered
}

// enter has what is watched sent on a line. Of one subject it also returns the
// kept samples after a sequence number, for the caller to write first; a list
// begins with the next tick.
func (r *rooms) enter(what scene, after int64, l *line) (kept net.Buffers) {
	r.mu.Lock()
	defer r.mu.Unlock()
	in := r.rooms[what.name()]
	if in == nil {
		in = &room{scene: what, lines: map[*line]int64{}}
		in.leave = r.fleet.Subscribe(what.of, in.publish)
		r.rooms[what.name()] = in
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	had := int64(0)
	if !what.list {
		for _, s := range r.fleet.Samples(what.of[0], after) {
			kept = append(kept, sampleFrame(s))
			had = s.Seq
		}
	}
	in.lines[l] = had
	return kept
}

// exit ends what enter began. The last to go closes the room.
func (r *rooms) exit(what scene, l *line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	in := r.rooms[what.name()]
	in.mu.Lock()
	defer in.mu.Unlock()
	if delete(in.lines, l); len(in.lines) == 0 {
		in.leave()
		delete(r.rooms, what.name())
	}
}

// publish sends a tick's readings to all who watch, in one message. It never
// waits for one of them.
func (in *room) publish(list []fleet.Reading) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.lines) == 0 {
		return
	}
	if in.list {
		b := listFrame(list)
		for l := range in.lines {
			l.send(b)
		}
		return
	}
	s := list[0].Sample
	if s.Seq <= in.seq {
		return
	}
	in.seq = s.Seq
	b := sampleFrame(s)
	for l, had := range in.lines {
		if s.Seq > had { // else it was published while l entered
			l.send(b)
		}
	}
}

func sampleFrame(s fleet.Sample) []byte { return textFrame(sampleJSON(s)) }

func listFrame(list []fleet.Reading) []byte {
	out := make([]api.InstanceSample, len(list))
	for i, r := range list {
		out[i] = api.InstanceSample{ID: r.ID, Sample: sampleJSON(r.Sample)}
	}
	return textFrame(out)
}

func sampleJSON(s fleet.Sample) api.Sample {
	return api.Sample{Seq: s.Seq, At: s.At.Time(), UtilizationPercent: s.UtilizationPercent, MemoryMiB: s.MemoryMiB, TemperatureC: s.TemperatureC, PowerW: s.PowerW}
}

func textFrame(v any) []byte {
	b, _ := json.Marshal(v) // readings came as JSON, so they can go as such
	return frame(websocket.TextMessage, b)
}

package server

import (
	"encoding/json"
	"net"
	"sync"

	"github.com/gorilla/websocket"

	"berth/api"
	"berth/fleet"
	"berth/models"
)

// rooms are the instances that somebody watches, and who does. A sample is
// encoded once, however many watch, and handed to their lines by whoever
// published it.
type rooms struct {
	fleet *fleet.Service
	mu    sync.Mutex
	rooms map[models.InstanceID]*room
}

// room is one instance's.
type room struct {
	leave func() // ends the subscription to the instance's samples

	mu    sync.Mutex
	seq   int64           // of the newest sample that was published
	lines map[*line]int64 // and the newest that each had when it entered
}

// enter has the samples of an instance after a sequence number sent on a line:
// those that are kept it returns, for the caller to write first, and those that
// follow are sent.
func (r *rooms) enter(id models.InstanceID, after int64, l *line) (kept net.Buffers) {
	r.mu.Lock()
	defer r.mu.Unlock()
	in := r.rooms[id]
	if in == nil {
		in = &room{lines: map[*line]int64{}}
		in.leave = r.fleet.Subscribe(id, in.publish)
		r.rooms[id] = in
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, s := range r.fleet.Samples(id, after) {
		kept = append(kept, sampleFrame(s))
		after = s.Seq
	}
	in.lines[l] = after
	return kept
}

// exit ends what enter began. The last to go closes the room.
func (r *rooms) exit(id models.InstanceID, l *line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	in := r.rooms[id]
	in.mu.Lock()
	defer in.mu.Unlock()
	if delete(in.lines, l); len(in.lines) == 0 {
		in.leave()
		delete(r.rooms, id)
	}
}

// publish sends a sample to all who watch. It never waits for one of them.
func (in *room) publish(s fleet.Sample) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if s.Seq <= in.seq || len(in.lines) == 0 {
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

func sampleFrame(s fleet.Sample) []byte {
	b, _ := json.Marshal(api.Sample{Seq: s.Seq, At: s.At.Time(), UtilizationPercent: s.UtilizationPercent, MemoryMiB: s.MemoryMiB, TemperatureC: s.TemperatureC, PowerW: s.PowerW}) // readings came as JSON, so they can go as such
	return frame(websocket.TextMessage, b)
}

package server

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"berth/api"
	"berth/fleet"
	"berth/models"
	"berth/wire"
)

// viewer opens the live socket of an instance.
func (b *browser) viewer(id models.InstanceID, query string) *websocket.Conn {
	b.Helper()
	return b.socket("/instances/" + string(id) + "/live" + query)
}

func (b *browser) socket(path string) *websocket.Conn {
	b.Helper()
	dialer := websocket.Dialer{Jar: b.http.Jar, HandshakeTimeout: patience}
	ws, res, err := dialer.Dial("ws"+strings.TrimPrefix(b.url, "http")+path, nil)
	if err != nil {
		b.Fatalf("%v %v", err, res)
	}
	b.Cleanup(func() { ws.Close() })
	_ = ws.SetReadDeadline(time.Now().Add(patience))
	return ws
}

func nextSample(t *testing.T, ws *websocket.Conn) (s api.Sample) {
	t.Helper()
	kind, b, err := ws.ReadMessage()
	if err != nil || kind != websocket.TextMessage {
		t.Fatalf("a message of kind %d, %v", kind, err)
	}
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// Two watch, one leaves, one comes back: each has every sample once, in order.
func TestViewersHaveEachSampleOnce(t *testing.T) {
	w := newWorld(t)
	b := w.signUp("ada@example.org")
	_, a := w.who("ada@example.org")
	var node models.NodeID
	id := w.instanceOf(a.ID, func(in *models.Instance) { in.State, in.Want, node = models.Running, models.WantRunning, in.NodeID })
	seq := int64(0)
	tick := func() {
		utilization := 12.5
		seq++
		w.must(w.fleet.NodeTick(t.Context(), node, wire.Tick{Seq: seq, BootID: "boot", At: time.Now(), Instances: []wire.InstanceSample{
			{ID: string(id), Run: 1, Phase: wire.PhaseRunning, UtilizationPercent: &utilization}}}, models.At(time.Now())))
	}
	tick()
	first, second := b.viewer(id, ""), b.viewer(id, "")
	begin := nextSample(t, first)
	if got := nextSample(t, second); got.Seq != begin.Seq || got.UtilizationPercent == nil || got.PowerW != nil {
		t.Fatalf("%+v, and %+v", begin, got)
	}
	for i := range int64(3) {
		tick()
		for _, ws := range []*websocket.Conn{first, second} {
			if got := nextSample(t, ws); got.Seq != begin.Seq+i+1 {
				t.Fatalf("sample %d, want %d", got.Seq, begin.Seq+i+1)
			}
		}
	}
	if err := first.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")); err != nil {
		t.Fatal(err)
	}
	// Browsers call anything after the goodbye an error.
	if rest, err := io.ReadAll(first.NetConn()); err != nil || !bytes.Equal(rest, frame(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))) {
		t.Errorf("its goodbye was answered with %q, %v", rest, err)
	}
	tick()
	tick()
	back := b.viewer(id, "?after="+strconv.FormatInt(begin.Seq+3, 10))
	tick()
	for i := range int64(3) {
		if got := nextSample(t, back); got.Seq != begin.Seq+4+i {
			t.Errorf("resumed with %d, want %d", got.Seq, begin.Seq+4+i)
		}
	}
	pong := make(chan string, 1)
	second.SetPongHandler(func(text string) error { pong <- text; return nil })
	if err := second.WriteControl(websocket.PingMessage, []byte("there?"), time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	for i := range int64(3) {
		if got := nextSample(t, second); got.Seq != begin.Seq+4+i {
			t.Errorf("the one that stayed got %d, want %d", got.Seq, begin.Seq+4+i)
		}
	}
	go func() { _, _, _ = second.ReadMessage() }() // reading is what answers
	select {
	case text := <-pong:
		if text != "there?" {
			t.Errorf("pong %q", text)
		}
	case <-time.After(patience):
		t.Error("no pong")
	}
	back.Close()
	second.Close()
	w.within("the room to be closed", func() bool {
		w.server.sockets.rooms.mu.Lock()
		defer w.server.sockets.rooms.mu.Unlock()
		return len(w.server.sockets.rooms.rooms) == 0
	})
}

// A list is told of all that it watches on a node in one message, and of nobody
// else's.
func TestListSocketCarriesATickInOneMessage(t *testing.T) {
	w := newWorld(t)
	b := w.signUp("ada@example.org")
	_, a := w.who("ada@example.org")
	eve := w.signUp("eve@example.org")
	var node models.NodeID
	runs := func(in *models.Instance) {
		in.State, in.Want = models.Running, models.WantRunning
		if node == "" {
			node = in.NodeID
		}
		in.NodeID = node
	}
	one, two, three := w.instanceOf(a.ID, runs), w.instanceOf(a.ID, runs, func(in *models.Instance) { in.Name = "tern-02" }), w.instanceOf(a.ID, runs, func(in *models.Instance) { in.Name = "tern-03" })
	seq := int64(0)
	tick := func(ids ...models.InstanceID) {
		seq++
		tick := wire.Tick{Seq: seq, BootID: "boot", At: time.Now()}
		for i, id := range ids {
			utilization := float64(i)
			tick.Instances = append(tick.Instances, wire.InstanceSample{ID: string(id), Run: 1, Phase: wire.PhaseRunning, UtilizationPercent: &utilization})
		}
		w.must(w.fleet.NodeTick(t.Context(), node, tick, models.At(time.Now())))
	}
	address := "/api/v1/instances/live?id=" + string(two) + "&id=" + string(one) + "&id=" + string(two)
	eve.get(address).wants(t, http.StatusNotFound)
	b.get("/api/v1/instances/live").wants(t, http.StatusUnprocessableEntity, "Name 1 to 100 instances")
	b.get("/api/v1/instances/live?id=ins_none").wants(t, http.StatusNotFound)
	ws := b.socket(address)
	w.within("the list to be watched", func() bool {
		w.server.sockets.rooms.mu.Lock()
		defer w.server.sockets.rooms.mu.Unlock()
		return len(w.server.sockets.rooms.rooms) == 1
	})
	tick(three)
	tick(one, three, two)
	var got []api.InstanceSample
	if err := ws.ReadJSON(&got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].ID != string(one) || got[1].ID != string(two) || *got[0].UtilizationPercent != 0 || *got[1].UtilizationPercent != 2 {
		t.Errorf("%+v", got)
	}
}

// A browser that does not read loses its oldest messages, keeps whole ones, and
// nobody waits for it.
func TestSlowLineLosesItsOldest(t *testing.T) {
	l, ws := lineTo(t, patience)
	l.finish(nil)
	const n = 20_000
	for i := range n {
		l.send(frame(websocket.TextMessage, []byte(strings.Repeat(strconv.Itoa(i)+" ", 100))))
	}
	l.mu.Lock()
	waiting := len(l.waiting)
	l.mu.Unlock()
	if waiting != lineQueue {
		t.Fatalf("%d messages wait, want %d", waiting, lineQueue)
	}
	last, seen := -1, 0
	for last != n-1 {
		_, b, err := ws.ReadMessage()
		if err != nil {
			t.Fatalf("after %d: %v", last, err)
		}
		words := strings.Fields(string(b))
		i, err := strconv.Atoi(words[0])
		if err != nil || len(words) != 100 || words[99] != words[0] || i <= last {
			t.Fatalf("after %d came %.40q of %d words", last, b, len(words))
		}
		last, seen = i, seen+1
	}
	if seen == n {
		t.Error("nothing was lost, so nothing was tested")
	}
	l.end(websocket.CloseGoingAway, "over")
	if _, _, err := ws.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseGoingAway) {
		t.Errorf("it ended with %v", err)
	}
}

// lineTo is a line and the browser at its other end, over a socket with a small
// buffer.
func lineTo(t *testing.T, patience time.Duration) (*line, *websocket.Conn) {
	t.Helper()
	lines := make(chan *line, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		ws, err := newSockets(nil).upgrade(rw, r)
		if err != nil {
			t.Error(err)
			return
		}
		if err := ws.NetConn().(*net.TCPConn).SetWriteBuffer(4 << 10); err != nil {
			t.Error(err)
		}
		lines <- newLine(ws.NetConn(), patience)
	}))
	t.Cleanup(srv.Close)
	ws, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(srv.URL, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ws.Close() })
	_ = ws.SetReadDeadline(time.Now().Add(30 * time.Second))
	return <-lines, ws
}

// Case D3: messages, pings and a broadcast write to one socket at once, beside a
// browser that does not read. Nothing mixes, and the one that reads has all that
// was not lost for its being slow; the other is dropped.
func TestManyWritersOneSocket(t *testing.T) {
	reads, browser := lineTo(t, patience)
	stuck, _ := lineTo(t, 100*time.Millisecond)
	reads.finish(nil)
	stuck.finish(nil)
	in := &room{scene: scene{list: true}, lines: map[*line]int64{reads: 0, stuck: 0}}
	const n = 10_000
	var writers sync.WaitGroup
	writers.Go(func() {
		for i := range n {
			reads.send(frame(websocket.TextMessage, []byte(strconv.Itoa(i))))
		}
	})
	writers.Go(func() {
		for range n / 10 {
			reads.send(pingFrame)
			stuck.send(pingFrame)
		}
	})
	writers.Go(func() {
		list := make([]fleet.Reading, 40)
		for i := range n {
			list[0].Seq = int64(i)
			in.publish(list)
		}
	})
	go func() {
		writers.Wait()
		// What was lost on the way is the reader's pace; what is said to a line that
		// has caught up arrives.
		caughtUp(t, reads)
		reads.send(pingFrame)
		reads.send(frame(websocket.TextMessage, []byte(strconv.Itoa(n))))
		in.publish([]fleet.Reading{{Sample: fleet.Sample{Seq: n}}})
		caughtUp(t, reads)
		reads.end(websocket.CloseNormalClosure, "done")
	}()
	pings, last, seq := 0, -1, int64(-1)
	browser.SetPingHandler(func(string) error { pings++; return nil })
	for {
		_, b, err := browser.ReadMessage()
		if websocket.IsCloseError(err, websocket.CloseNormalClosure) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		var list []api.InstanceSample
		if i, err := strconv.Atoi(string(b)); err == nil {
			if i <= last {
				t.Fatalf("%d after %d", i, last)
			}
			last = i
		} else if err := json.Unmarshal(b, &list); err != nil || len(list) == 0 || list[0].Seq <= seq {
			t.Fatalf("after %d: %v in %.80q", seq, err, b)
		} else {
			seq = list[0].Seq
		}
	}
	if pings == 0 || last != n || seq != n {
		t.Errorf("%d pings, messages up to %d, broadcasts up to %d", pings, last, seq)
	}
	if !eventually(func() bool { return stuck.conn.SetReadDeadline(time.Time{}) != nil }) { // closed
		t.Error("who does not read is not dropped")
	}
}

// caughtUp waits until nothing is left to be written to a line.
func caughtUp(t *testing.T, l *line) {
	if !eventually(func() bool { l.mu.Lock(); defer l.mu.Unlock(); return !l.busy }) {
		t.Error("the line never caught up")
	}
}

func eventually(is func() bool) bool {
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if is() {
			return true
		}
	}
	return false
}

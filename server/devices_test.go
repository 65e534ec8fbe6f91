package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"berth/api"
	"berth/models"
	"berth/money"
	"berth/wire"
)

// cardTick is a second of the two cards of addNode.
func (w *world) cardTick(node models.NodeID, seq int64, at time.Time, utilization *float64) {
	w.Helper()
	degrees, watts := 41.5, 100.0
	t := wire.Tick{Seq: seq, BootID: "boot", At: at}
	for _, uuid := range []string{"GPU-0", "GPU-1"} {
		t.Devices = append(t.Devices, wire.DeviceSample{UUID: uuid, UtilizationPercent: utilization, TemperatureC: &degrees, PowerW: &watts})
	}
	w.must(w.fleet.NodeTick(w.Context(), node, t, models.At(at)))
}

// TestDevicePage: who holds what of a card and held it, how it is and was, and what
// to do when it is sick.
func TestDevicePage(t *testing.T) {
	w := newWorld(t)
	op, node := w.operator(), w.addNode()
	page := "/fleet/" + string(node) + "/devices/GPU-0"
	op.get(page).wants(t, http.StatusOK, "GPU 0", "A100 80GB", "0 of 8 memory slices sold", "It has never been rented.", "none noted", "400 W")
	op.get("/fleet/"+string(node)+"/devices/0").leadsTo(t, page)
	op.get("/fleet/"+string(node)+"/devices/7").wants(t, http.StatusNotFound)
	op.get("/fleet/"+string(node)+"/devices/GPU-x").wants(t, http.StatusNotFound)
	op.get("/fleet/nod_none/devices/GPU-0").wants(t, http.StatusNotFound)

	ada := w.signUp("ada@example.org")
	w.fund("ada@example.org", 25*money.Unit)
	ada.post("/launch", "sku", slice, "disk_gib", "20", "name", "tern-01", "idempotency_key", "k").wants(t, http.StatusSeeOther)
	op.get(page).wants(t, http.StatusOK, "1 of 8 memory slices sold", "tern-01", "Ada Keel", "held")
	op.get("/fleet").wants(t, http.StatusOK, `href="/fleet/`+string(node)+`/devices/0"`)
	op.get("/fleet/"+string(node)).wants(t, http.StatusOK, `href="`+page+`"`)

	devices := []wire.Device{
		{UUID: "GPU-0", Model: "a100-80gb", Name: "NVIDIA A100-SXM4-80GB", MemoryMiB: 81920, MIG: true, Health: "Xid 79, the GPU has fallen off the bus: restart the machine"},
		{UUID: "GPU-1", Index: 1, Model: "a100-80gb", Name: "NVIDIA A100-SXM4-80GB", MemoryMiB: 81920, MIG: true, Health: "ok"},
	}
	state := func() {
		_, err := w.fleet.NodeConnected(t.Context(), node, wire.State{Version: wire.Version, BootID: "boot", At: time.Now(), Devices: devices}, models.At(time.Now()))
		w.must(err)
	}
	state()
	op.get(page).wants(t, http.StatusOK, "GPU not sold", "restart the machine; if it comes again, reseat or replace the card", "79, the GPU has fallen off the bus", "Not sold.")
	devices[0].Health = "ok"
	state()
	state() // the same again is no event
	well := op.get(page).wants(t, http.StatusOK, "79, the GPU has fallen off the bus")
	if strings.Contains(well.body, "GPU not sold") || strings.Count(well.body, "It is sold.") != 2 || strings.Count(well.body, "Not sold.") != 1 {
		t.Errorf("a card that is well again: %s", mainPart(well.body))
	}
	devices = devices[1:]
	state()
	op.get(page).wants(t, http.StatusOK, "Absent.", "no longer reports")
	op.get("/fleet/"+string(node)).wants(t, http.StatusOK, "GPU 0: absent.")
}

// A node whose clock is off by an hour needs the operator; one that is off by a
// little only says so on its page.
func TestClockOffIsShown(t *testing.T) {
	w := newWorld(t)
	op, node := w.operator(), w.addNode()
	for off, want := range map[time.Duration]string{time.Hour: "The clock of kestrel is 1h0m0s ahead of this portal", -time.Hour: "The clock of kestrel is 1h0m0s behind this portal", 5 * time.Second: ""} {
		at := time.Now()
		_, err := w.fleet.NodeConnected(t.Context(), node, wire.State{Version: wire.Version, BootID: "boot", At: at.Add(off)}, models.At(at))
		w.must(err)
		op.get("/fleet/"+string(node)).wants(t, http.StatusOK, fmt.Sprintf("off by %.1f s; never billed by", off.Seconds()))
		if page := op.get("/fleet").wants(t, http.StatusOK, want); want == "" && strings.Contains(page.body, "Clock is off") {
			t.Error("5 s need nobody")
		}
	}
}

// TestHistoryByPageAndAPI: the same minutes, and null for what was not measured.
func TestHistoryByPageAndAPI(t *testing.T) {
	w := newWorld(t)
	op, node := w.operator(), w.addNode()
	page, address := "/fleet/"+string(node)+"/devices/GPU-0", "/api/v1/devices/GPU-0/history"
	op.get(page+"?range=1h").wants(t, http.StatusOK, "Nothing was measured in this time.", `aria-current="true">1 h`)
	begin := time.Now().Add(-10 * time.Minute).Truncate(time.Minute)
	for i := range 120 {
		var utilization *float64
		if v := float64(i); i < 60 {
			utilization = &v
		}
		w.cardTick(node, int64(i+1), begin.Add(time.Duration(i)*time.Second), utilization)
	}
	w.must(w.fleet.RollUp(t.Context(), models.At(begin.Add(3*time.Minute))))
	read := func(path string) (h api.History) {
		t.Helper()
		if err := json.Unmarshal([]byte(op.get(path).wants(t, http.StatusOK).body), &h); err != nil {
			t.Fatal(err)
		}
		return h
	}
	h := read(address + "?range=1h")
	if h.Range != "1h" || h.StepSeconds != 60 || len(h.Points) != 2 || !h.Points[0].At.Equal(begin) {
		t.Fatalf("%+v", h)
	}
	first, second := h.Points[0], h.Points[1]
	if first.Samples != 60 || *first.UtilizationPercent != (api.Figures{Min: 0, Mean: 29.5, Max: 59}) || first.MemoryMiB != nil || *first.TemperatureC != (api.Figures{Min: 41.5, Mean: 41.5, Max: 41.5}) {
		t.Errorf("%+v", first)
	}
	if second.Samples != 60 || second.UtilizationPercent != nil || second.PowerW.Max != 100 {
		t.Errorf("%+v", second)
	}
	if all := read("/api/v1/nodes/" + string(node) + "/history?range=30d"); all.StepSeconds != 3600 || all.Points[0].PowerW.Mean != 200 {
		t.Errorf("both cards: %+v", all)
	}
	if !strings.Contains(op.get(address+"?range=24h").body, `"memory_mib":null`) {
		t.Error("what was not measured is not null")
	}
	op.get(address+"?range=2h").wants(t, http.StatusUnprocessableEntity, "range")
	op.get("/api/v1/devices/GPU-x/history").wants(t, http.StatusNotFound)
	op.get(page+"?range=1h").wants(t, http.StatusOK, `data-past="`+address+`?range=1h"`, "29.5", "peak <span data-peak>59", "not measurable")
	op.get("/fleet/"+string(node)+"?range=24h").wants(t, http.StatusOK, "GPU utilisation, mean", `data-past="/api/v1/nodes/`+string(node)+`/history?range=24h"`)
	op.get(page+"?range=nonsense").wants(t, http.StatusOK, "data-live-charts")
}

// TestSocketsOfCards: a card's, a node's, and all cards in one message for each tick.
func TestSocketsOfCards(t *testing.T) {
	w := newWorld(t)
	op, node := w.operator(), w.addNode()
	page := "/fleet/" + string(node)
	sockets := map[string]*websocket.Conn{"card": op.socket(page + "/devices/GPU-0/live"), "node": op.socket(page + "/live"),
		"all": op.socket("/fleet/live"), "its": op.socket("/fleet/live?node=" + string(node)), "others": op.socket("/fleet/live?node=nod_x")}
	w.within("all to be watched", func() bool {
		w.server.sockets.rooms.mu.Lock()
		defer w.server.sockets.rooms.mu.Unlock()
		return len(w.server.sockets.rooms.rooms) == len(sockets)
	})
	ten := 10.0
	w.cardTick(node, 1, time.Now(), &ten)
	if s := nextSample(t, sockets["card"]); *s.PowerW != 100 || *s.UtilizationPercent != 10 || s.MemoryMiB != nil {
		t.Errorf("card: %+v", s)
	}
	if s := nextSample(t, sockets["node"]); *s.PowerW != 200 || *s.UtilizationPercent != 10 || *s.TemperatureC != 41.5 || s.MemoryMiB != nil {
		t.Errorf("node: %+v", s)
	}
	for _, name := range []string{"all", "its"} {
		var got []api.InstanceSample
		if err := sockets[name].ReadJSON(&got); err != nil {
			t.Fatal(err)
		}
		if len(got) != 2 || got[0].ID != "GPU-0" || got[1].ID != "GPU-1" || *got[1].PowerW != 100 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	_ = sockets["others"].SetReadDeadline(time.Now()) // it was told nothing, or it would be there by now
	if _, b, err := sockets["others"].ReadMessage(); err == nil {
		t.Errorf("another node's: %s", b)
	}
}

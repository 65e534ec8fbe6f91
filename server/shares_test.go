package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"berth/api"
	"berth/fleet"
	"berth/gpu"
	"berth/models"
	"berth/money"
)

// The operator has a card shared, by form and by API; a renter launches two shares
// of it by API, and every page says plainly what a share is not.
func TestShares(t *testing.T) {
	w := newWorld(t)
	op := w.operator()
	node := w.addNode()
	page := "/fleet/" + string(node)
	op.get(page).wants(t, http.StatusOK, "Share…", "As is usual for the model: not shared", page+"/devices/GPU-0/sharing")
	op.post(page+"/devices/GPU-0/sharing", "sharing", "ts4").leadsTo(t, page)
	op.get(page).wants(t, http.StatusOK, "0 of 4 shares sold", `<option value="ts4" selected>`)
	op.post(page+"/devices/GPU-0/sharing", "sharing", "ts99").wants(t, http.StatusUnprocessableEntity)
	var card api.Device
	got := op.do(http.MethodPost, "/api/v1/devices/GPU-1/sharing", strings.NewReader(`{"sharing":"ts2","mixed":true}`), http.Header{"Content-Type": {"application/json"}})
	if err := json.Unmarshal([]byte(got.body), &card); err != nil || card.Sharing != "ts2" || !card.Mixed {
		t.Fatalf("%d %s", got.StatusCode, got.body)
	}

	b := w.signUp("ada@example.org")
	w.fund("ada@example.org", 25*money.Unit)
	b.get("/").wants(t, http.StatusOK, "A100 80GB · ts4", "1 of 4 time shares: memory is shared, no isolation", "4 shares free", "2 shares free")
	b.get("/launch?sku=a100-80gb.ts4").wants(t, http.StatusOK, "Memory is shared, no isolation", "fair part of 20,480 MiB", "Only your account&#39;s instances share this card.")
	b.get("/launch?sku=a100-80gb.ts2").wants(t, http.StatusOK, "Other accounts&#39; instances may share this card.")
	b.get("/api/v1/skus").wants(t, http.StatusOK, `"id":"a100-80gb.ts4","device":"a100-80gb","profile":"ts4","count":1,"memory_mib":20480,"compute_slices":0,"memory_slices":0`)
	var starts []int
	for _, key := range []string{"a", "b"} {
		var in api.Instance
		res := b.launchAPI(key, `{"sku":"a100-80gb.ts4","disk_gib":20}`)
		if err := json.Unmarshal([]byte(res.body), &in); err != nil || res.StatusCode != http.StatusCreated || len(in.Slices) != 1 || in.Slices[0].DeviceUUID != "GPU-0" || in.Slices[0].Profile != "ts4" {
			t.Fatalf("%d %s", res.StatusCode, res.body)
		}
		starts = append(starts, in.Slices[0].Start)
		b.get("/instances/"+in.ID).wants(t, http.StatusOK, "Memory is shared, no isolation", "a fault of its program ends your run too")
	}
	if starts[0] == starts[1] {
		t.Errorf("both have share %d", starts[0])
	}
	b.get("/api/v1/offers?sku=a100-80gb.ts4").wants(t, http.StatusOK, `"available":2`)
	w.signUp("bob@example.org").get("/api/v1/offers?sku=a100-80gb.ts4").wants(t, http.StatusOK, `"available":0`)
	op.get(page).wants(t, http.StatusOK, "2 of 4 shares sold")
	op.post(page+"/devices/GPU-0/sharing", "sharing", "none").wants(t, http.StatusConflict, "Nothing was changed.")
}

// What cannot be told apart from the neighbours is named so, and memory is drawn
// against all that there is.
func TestSharesLive(t *testing.T) {
	m, p, err := gpu.SKU{Model: "rtx4090", Profile: "ts4", Count: 1}.Slice()
	if err != nil {
		t.Fatal(err)
	}
	in := fleet.InstanceView{Slices: []fleet.SliceView{{Lease: models.Lease{Profile: p.Name, Size: 1, MemoryMiB: p.MemoryMiB}, Model: m}}}
	charts := liveView("/live", instanceScale(in), nil, 0).Charts
	if u, mem, w := charts[0], charts[1], charts[3]; u.Right != "of the whole card only" || w.Right != u.Right || mem.Top != 24564 || mem.Unit != " of 24,564 MiB, shared" {
		t.Errorf("%+v", charts)
	}
}

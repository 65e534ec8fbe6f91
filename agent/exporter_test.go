package agent

import (
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"berth/agent/device/simulator"
	"berth/gpu"
)

func TestExporter(t *testing.T) {
	dir := t.TempDir()
	sim, err := simulator.New(dir, []gpu.ModelID{"a100-80gb", "rtx4090", "h100-80gb"}, 1, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	cards, err := sim.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slice, err := sim.Create(t.Context(), cards[0].UUID, "1g.10gb", 3)
	if err != nil {
		t.Fatal(err)
	}
	sim.Occupy(slice.UUID, "ins_secret")
	if err := simulator.SetFault(dir, cards[2].UUID, 79); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(metricsHandler(sim, "kestrel", dir))
	defer srv.Close()
	res, err := srv.Client().Get(srv.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	text := string(body)
	series := func(name, uuid, profile string) string {
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, name+"{") && strings.Contains(line, `UUID="`+uuid+`"`) && strings.Contains(line, `GPU_I_PROFILE="`+profile+`"`) {
				return line
			}
		}
		return ""
	}
	a100, rtx, lost := cards[0].UUID, cards[1].UUID, cards[2].UUID
	for _, s := range []struct {
		name, uuid, profile string
		there               bool
	}{
		{"DCGM_FI_DEV_GPU_TEMP", a100, "", true}, {"DCGM_FI_DEV_POWER_USAGE", a100, "", true},
		{"DCGM_FI_DEV_GPU_TEMP", a100, "1g.10gb", false}, {"DCGM_FI_DEV_POWER_USAGE", a100, "1g.10gb", false}, // a card has one meter
		{"DCGM_FI_DEV_GPU_UTIL", a100, "", false}, {"DCGM_FI_DEV_FB_USED", a100, "1g.10gb", true}, // in slices
		{"DCGM_FI_DEV_GPU_UTIL", rtx, "", true}, {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", a100, "", true}, {"DCGM_FI_DEV_FB_FREE", rtx, "", true},
		{"DCGM_FI_DEV_GPU_TEMP", lost, "", false}, {"DCGM_FI_DEV_GPU_UTIL", lost, "", false}, // unknown is not 0
		{"DCGM_FI_DEV_XID_ERRORS", lost, "", true},
	} {
		if got := series(s.name, s.uuid, s.profile); (got != "") != s.there {
			t.Errorf("%s of %q: %q", s.name, s.profile, got)
		}
	}
	if !strings.HasSuffix(strings.TrimSpace(series("DCGM_FI_DEV_XID_ERRORS", lost, "")), " 79") || !strings.HasSuffix(strings.TrimSpace(series("DCGM_FI_DEV_XID_ERRORS", rtx, "")), " 0") {
		t.Error("the last Xid is not told")
	}
	if !strings.Contains(series("DCGM_FI_DEV_GPU_TEMP", a100, ""), `DCGM_FI_DRIVER_VERSION="simulated",GPU_I_ID="",GPU_I_PROFILE="",UUID="`+a100+`",device="nvidia0",gpu="0",hostname="kestrel",modelName="NVIDIA A100-SXM4-80GB",pci_bus_id="00000000:01:00.0"`) {
		t.Error(series("DCGM_FI_DEV_GPU_TEMP", a100, ""))
	}
	if !strings.Contains(text, "# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter") || !strings.Contains(text, `berth_node_disk_free_bytes{hostname="kestrel"} `) {
		t.Error(text)
	}
	if strings.Contains(text, "secret") {
		t.Error("who rents is told")
	}
}

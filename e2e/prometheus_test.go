package e2e

import (
	"encoding/json"
	"maps"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// stockQueries are those of the dashboards that people have for dcgm-exporter.
var stockQueries = []string{
	`DCGM_FI_DEV_GPU_TEMP{gpu=~".*"}`, `avg(DCGM_FI_DEV_GPU_TEMP)`, `DCGM_FI_DEV_POWER_USAGE`, `sum(DCGM_FI_DEV_POWER_USAGE)`,
	`rate(DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION[5m]) / 1000`, `DCGM_FI_DEV_GPU_UTIL`, `DCGM_FI_DEV_FB_USED`, `DCGM_FI_DEV_FB_FREE`, `DCGM_FI_PROF_GR_ENGINE_ACTIVE`,
	`avg by (modelName, hostname) (DCGM_FI_DEV_GPU_UTIL)`, `DCGM_FI_DEV_XID_ERRORS`,
	`sum by (GPU_I_PROFILE) (DCGM_FI_DEV_FB_USED{GPU_I_PROFILE!=""})`,
	`DCGM_FI_DEV_FB_USED / (DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE)`,
	`avg by (gpu, pci_bus_id, DCGM_FI_DRIVER_VERSION) (DCGM_FI_DEV_GPU_TEMP)`,
}

// A real Prometheus with the shipped files scrapes a portal and a node; its rules
// load, no alert of a healthy system fires, and every query of every shipped
// dashboard, and of those that people have for dcgm-exporter, returns data.
func TestPrometheus(t *testing.T) {
	for _, tool := range []string{"prometheus", "promtool"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed (Debian: prometheus)", tool)
		}
	}
	t.Parallel()
	p := apart(t, "--simulate", "a100-80gb:1,rtx4090:2", "--metrics-listen", "127.0.0.1:0")
	var node string
	until(t, "the node's metrics", func() bool {
		if m := regexp.MustCompile(`metrics for Prometheus".* address=(\S+)`).FindStringSubmatch(p.agent.text()); m != nil {
			node = m[1]
		}
		return node != ""
	})

	dir := t.TempDir()
	for _, name := range []string{"prometheus.yml", "rules.yml", "alerts.yml"} {
		raw, err := os.ReadFile(filepath.Join("..", "deploy", "prometheus", name))
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		if name == "prometheus.yml" {
			text = strings.NewReplacer("127.0.0.1:8080", strings.TrimPrefix(p.base, "http://"), "127.0.0.1:9400", node, "15s", "1s").Replace(text)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("promtool", "check", "config", filepath.Join(dir, "prometheus.yml")).CombinedOutput(); err != nil {
		t.Fatalf("promtool: %v\n%s", err, out)
	}
	prometheus := startPrometheus(t, dir)

	ada := p.signUp("ada@example.org")
	ada.topUp(25_000_000, "4242424242424242")
	up := func() bool {
		return len(prometheus.query(t, `up == 1`)) == 2
	}
	until(t, "both to be scraped", up)
	whole := ada.launch("rtx4090")
	until(t, "a sample with the first launch", func() bool { return len(prometheus.query(t, `berth_launches_total`)) > 0 })
	ada.launch("a100-80gb.1g.10gb")
	ada.must(http.StatusConflict, http.MethodPost, "/api/v1/instances", map[string]any{"sku": "rtx4090.x2", "disk_gib": 1}, nil)
	ws := ada.dial(whole.ID, "live")
	defer ws.Close()

	queries := map[string]bool{}
	for _, q := range stockQueries {
		queries[q] = true
	}
	boards, err := filepath.Glob("../deploy/grafana/*.json")
	if err != nil || len(boards) < 3 {
		t.Fatalf("dashboards %v, %v", boards, err)
	}
	for _, path := range boards {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var board struct {
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(raw, &board); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, panel := range board.Panels {
			for _, target := range panel.Targets {
				queries[target.Expr] = true
			}
		}
	}
	for q := range queries {
		until(t, "data for "+q, func() bool { return len(prometheus.query(t, q)) > 0 })
	}
	if firing := prometheus.query(t, `ALERTS{alertstate="firing"}`); len(firing) > 0 {
		t.Errorf("firing on a healthy system: %v", firing)
	}
	// The labels of dcgm-exporter, and none that says who rents.
	for _, labels := range prometheus.query(t, `DCGM_FI_DEV_FB_USED{GPU_I_PROFILE="1g.10gb"}`) {
		for _, want := range []string{"gpu", "UUID", "pci_bus_id", "device", "modelName", "GPU_I_ID", "hostname", "DCGM_FI_DRIVER_VERSION"} {
			if labels[want] == "" {
				t.Errorf("no label %s in %v", want, labels)
			}
		}
	}
	// E5: the right tenant while it runs, and nobody's series afterwards.
	mine := `berth_instance_gpu_memory_used_mib{instance_id="` + whole.ID + `",sku="rtx4090"}`
	until(t, "the instance's own series", func() bool { return len(prometheus.query(t, mine)) == 1 })
	ada.must(http.StatusAccepted, http.MethodPost, "/api/v1/instances/"+whole.ID+"/stop", nil, nil)
	until(t, "the series to end with it", func() bool { return len(prometheus.query(t, mine)) == 0 })
	// E5 as it was met: of four who share one card, each has a series of its own, and
	// who comes after one has another.
	shares := map[string]bool{}
	var first instance
	for i := range 4 {
		in := ada.launch("rtx4090.ts4")
		if shares[in.ID] = true; i == 0 {
			first = in
		}
	}
	series := func() map[string]bool {
		seen := map[string]bool{}
		for _, labels := range prometheus.query(t, `berth_instance_gpu_memory_used_mib{sku="rtx4090.ts4"}`) {
			seen[labels["instance_id"]] = true
		}
		return seen
	}
	until(t, "four series", func() bool { return maps.Equal(series(), shares) })
	ada.must(http.StatusAccepted, http.MethodPost, "/api/v1/instances/"+first.ID+"/stop", nil, nil)
	delete(shares, first.ID)
	until(t, "one series less", func() bool { return maps.Equal(series(), shares) })
	shares[ada.launch("rtx4090.ts4").ID] = true
	until(t, "the next one's own series", func() bool { return maps.Equal(series(), shares) })
	if n := prometheus.value(t, `berth_ledger_imbalance_micros{currency="USD"}`); n != 0 {
		t.Errorf("the books are off by %v", n)
	}
	if n := prometheus.value(t, `berth_launches_total{outcome="no_capacity"}`); n != 1 || prometheus.value(t, `berth_device_memory_mib{kind="sold"}`) < 9856 {
		t.Error("the portal's figures are not those of what was done")
	}
}

// server is a Prometheus of a test.
type promServer struct{ base string }

func startPrometheus(t *testing.T, dir string) promServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") // it has no port 0 of its own
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	startCommand(t, nil, "prometheus", exec.Command("prometheus", "--config.file", filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", address, "--log.level", "warn"))
	s := promServer{"http://" + address}
	until(t, "Prometheus to be ready", func() bool {
		res, err := http.Get(s.base + "/-/ready")
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	return s
}

type promAnswer struct {
	Status string
	Error  string
	Data   struct {
		Result []struct {
			Metric map[string]string
			Value  [2]any
		}
	}
}

func (s promServer) ask(t *testing.T, q string) (a promAnswer) {
	t.Helper()
	res, err := http.Get(s.base + "/api/v1/query?query=" + url.QueryEscape(q))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	decode(t, res, &a)
	if a.Status != "success" {
		t.Fatalf("%s: %s", q, a.Error)
	}
	return a
}

// query returns the labels of what a query gives that is a number.
func (s promServer) query(t *testing.T, q string) (labels []map[string]string) {
	t.Helper()
	for _, r := range s.ask(t, q).Data.Result {
		if v, err := strconv.ParseFloat(r.Value[1].(string), 64); err == nil && !math.IsNaN(v) {
			labels = append(labels, r.Metric)
		}
	}
	return labels
}

func (s promServer) value(t *testing.T, q string) float64 {
	t.Helper()
	for _, r := range s.ask(t, q).Data.Result {
		v, err := strconv.ParseFloat(r.Value[1].(string), 64)
		if err == nil {
			return v
		}
	}
	return math.NaN()
}

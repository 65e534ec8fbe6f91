package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"golang.org/x/sys/unix"

	"berth/agent/device"
)

// exporter answers Prometheus with the readings of this node's cards, under the
// names, types, units and hardware labels that dcgm-exporter gives them, so that
// what is drawn from that works here. Who rents a slice is no label: that is for
// the portal's operators. What is not measured has no series, and a card that
// cannot be read costs its own series only.
//
// Source of names, types and units: dcgm-exporter's default-counters.csv.
type exporter struct {
	devices  device.Driver
	hostname string
	dir      string // the agent's: on the disk that holds those of instances
}

var hardware = []string{"gpu", "UUID", "pci_bus_id", "device", "modelName", "GPU_I_PROFILE", "GPU_I_ID", "hostname", "DCGM_FI_DRIVER_VERSION"}

// series is one name of dcgm-exporter and where its value is in a reading.
type series struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(device.Reading) *float64 // nil: not measured
	card  bool                          // only of whole cards: a slice has none of its own
}

var exported = []series{
	{dcgm("DCGM_FI_DEV_SM_CLOCK", "SM clock frequency (in MHz)."), prometheus.GaugeValue, func(r device.Reading) *float64 { return float(r.SMClockMHz) }, true},
	{dcgm("DCGM_FI_DEV_MEM_CLOCK", "Memory clock frequency (in MHz)."), prometheus.GaugeValue, func(r device.Reading) *float64 { return float(r.MemoryClockMHz) }, true},
	{dcgm("DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C)."), prometheus.GaugeValue, func(r device.Reading) *float64 { return r.TemperatureC }, true},
	{dcgm("DCGM_FI_DEV_POWER_USAGE", "Power draw (in W)."), prometheus.GaugeValue, func(r device.Reading) *float64 { return r.PowerW }, true},
	{dcgm("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "Total energy consumption since boot (in mJ)."), prometheus.CounterValue, func(r device.Reading) *float64 { return float(r.EnergyMJ) }, true},
	{dcgm("DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %); absent while the card is in slices."), prometheus.GaugeValue, func(r device.Reading) *float64 { return r.UtilizationPercent }, true},
	{dcgm("DCGM_FI_DEV_MEM_COPY_UTIL", "Memory utilization (in %); absent while the card is in slices."), prometheus.GaugeValue, func(r device.Reading) *float64 { return r.MemoryBusyPercent }, true},
	{dcgm("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "Ratio of time the graphics engine is active; absent without profiling counters."), prometheus.GaugeValue, func(r device.Reading) *float64 { return r.EngineActive }, false},
	{usedDesc, prometheus.GaugeValue, func(r device.Reading) *float64 { return float(r.MemoryMiB) }, false},
}

var (
	usedDesc     = dcgm("DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).")
	freeDesc     = dcgm("DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB).")
	xidDesc      = dcgm("DCGM_FI_DEV_XID_ERRORS", "Value of the last XID error encountered.")
	diskFreeDesc = prometheus.NewDesc("berth_node_disk_free_bytes", "Free bytes of the disk that instances' disks lie on.", []string{"hostname"}, nil)
	diskSizeDesc = prometheus.NewDesc("berth_node_disk_size_bytes", "Size in bytes of the disk that instances' disks lie on.", []string{"hostname"}, nil)
)

func dcgm(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, hardware, nil) }

func float[T int | int64](v *T) *float64 {
	if v == nil {
		return nil
	}
	f := float64(*v)
	return &f
}

// metricsHandler serves GET /metrics.
func metricsHandler(devices device.Driver, hostname, dir string) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(&exporter{devices, hostname, dir})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{Timeout: 10 * time.Second}))
	return mux
}

// serveMetrics answers on l until ctx ends, and closes it.
func serveMetrics(ctx context.Context, l net.Listener, metrics http.Handler, log *slog.Logger) {
	server := &http.Server{Handler: metrics, ReadHeaderTimeout: 5 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	log.Info("metrics for Prometheus", "address", l.Addr().String())
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		log.Error("metrics are not served any more", "error", err)
	}
}

// Describe implements prometheus.Collector.
func (e *exporter) Describe(ch chan<- *prometheus.Desc) {
	for _, s := range exported {
		ch <- s.desc
	}
	for _, d := range []*prometheus.Desc{freeDesc, xidDesc, diskFreeDesc, diskSizeDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (e *exporter) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var disk unix.Statfs_t
	if err := unix.Statfs(e.dir, &disk); err != nil {
		ch <- prometheus.NewInvalidMetric(diskFreeDesc, fmt.Errorf("statfs %s: %w", e.dir, err))
		return
	}
	ch <- prometheus.MustNewConstMetric(diskFreeDesc, prometheus.GaugeValue, float64(disk.Bavail)*float64(disk.Bsize), e.hostname)
	ch <- prometheus.MustNewConstMetric(diskSizeDesc, prometheus.GaugeValue, float64(disk.Blocks)*float64(disk.Bsize), e.hostname)
	cards, err := e.devices.Inventory(ctx)
	if err != nil {
		ch <- prometheus.NewInvalidMetric(xidDesc, fmt.Errorf("list devices: %w", err))
		return
	}
	for _, c := range cards {
		labels := []string{strconv.Itoa(c.Index), c.UUID, busID(c.PCI), "nvidia" + strconv.Itoa(c.Index), c.Name, "", "", e.hostname, c.Driver}
		ch <- prometheus.MustNewConstMetric(xidDesc, prometheus.GaugeValue, float64(c.Xid), labels...)
		e.read(ctx, ch, c.UUID, c.MemoryMiB, labels)
		for _, s := range c.Slices {
			of := append([]string{}, labels...)
			of[5], of[6] = s.Placement.Profile, strconv.Itoa(s.GPUInstance)
			e.read(ctx, ch, s.UUID, s.MemoryMiB, of)
		}
	}
}

// busID writes the kernel's address of a device as NVIDIA's tools do, with a
// domain of eight digits.
func busID(pci string) string {
	if pci == "" {
		return ""
	}
	return "0000" + pci
}

// read tells the readings of a card or a slice. A card that is lost has none.
func (e *exporter) read(ctx context.Context, ch chan<- prometheus.Metric, uuid string, memoryMiB int, labels []string) {
	r, err := e.devices.Sample(ctx, uuid)
	if err != nil {
		return
	}
	slice := labels[5] != ""
	for _, s := range exported {
		if v := s.value(r); v != nil && !(s.card && slice) {
			ch <- prometheus.MustNewConstMetric(s.desc, s.kind, *v, labels...)
		}
	}
	if r.MemoryMiB != nil {
		ch <- prometheus.MustNewConstMetric(freeDesc, prometheus.GaugeValue, float64(max(0, int64(memoryMiB)-*r.MemoryMiB)), labels...)
	}
}

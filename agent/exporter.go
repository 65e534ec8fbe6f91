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

	"berth/agent/device"
)

// exporter answers Prometheus with the readings of this node's cards, under the
// names, units and hardware labels that dcgm-exporter gives them, so that what is
// drawn from that works here. Who rents a slice is no label: that is for the
// portal's operators. What is not measured has no series.
type exporter struct {
	devices  device.Driver
	hostname string
}

var hardware = []string{"gpu", "UUID", "device", "modelName", "GPU_I_PROFILE", "GPU_I_ID", "hostname"}

func dcgm(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, hardware, nil) }

var (
	temperatureDesc = dcgm("DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C).")
	powerDesc       = dcgm("DCGM_FI_DEV_POWER_USAGE", "Power draw (in W).")
	utilDesc        = dcgm("DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %); absent while the card is in slices.")
	activeDesc      = dcgm("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "Ratio of time the graphics engine is active.")
	usedDesc        = dcgm("DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).")
	freeDesc        = dcgm("DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB).")
	xidDesc         = dcgm("DCGM_FI_DEV_XID_ERRORS", "Value of the last XID error encountered.")
)

// metricsHandler serves GET /metrics.
func metricsHandler(devices device.Driver, hostname string) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(&exporter{devices, hostname})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{Timeout: 10 * time.Second}))
	return mux
}

// serveMetrics answers on l until ctx ends, and closes it.
func serveMetrics(ctx context.Context, l net.Listener, devices device.Driver, hostname string, log *slog.Logger) {
	server := &http.Server{Handler: metricsHandler(devices, hostname), ReadHeaderTimeout: 5 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	log.Info("metrics for Prometheus", "address", l.Addr().String())
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		log.Error("metrics are not served any more", "error", err)
	}
}

// Describe implements prometheus.Collector.
func (e *exporter) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{temperatureDesc, powerDesc, utilDesc, activeDesc, usedDesc, freeDesc, xidDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (e *exporter) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	cards, err := e.devices.Inventory(ctx)
	if err != nil {
		ch <- prometheus.NewInvalidMetric(xidDesc, fmt.Errorf("list devices: %w", err))
		return
	}
	for _, c := range cards {
		labels := []string{strconv.Itoa(c.Index), c.UUID, "nvidia" + strconv.Itoa(c.Index), c.Name, "", "", e.hostname}
		ch <- prometheus.MustNewConstMetric(xidDesc, prometheus.GaugeValue, float64(c.Xid), labels...)
		e.read(ctx, ch, c.UUID, c.MemoryMiB, labels)
		for _, s := range c.Slices {
			of := append([]string{}, labels...)
			of[4], of[5] = s.Placement.Profile, strconv.Itoa(s.GPUInstance)
			e.read(ctx, ch, s.UUID, s.MemoryMiB, of)
		}
	}
}

// read tells the readings of a card or a slice. A card that is lost has none.
func (e *exporter) read(ctx context.Context, ch chan<- prometheus.Metric, uuid string, memoryMiB int, labels []string) {
	r, err := e.devices.Sample(ctx, uuid)
	if err != nil {
		return
	}
	gauge := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	slice := labels[4] != ""
	if r.TemperatureC != nil && !slice { // a card has one
		gauge(temperatureDesc, *r.TemperatureC)
	}
	if r.PowerW != nil && !slice {
		gauge(powerDesc, *r.PowerW)
	}
	if r.UtilizationPercent != nil {
		if !slice {
			gauge(utilDesc, *r.UtilizationPercent)
		}
		gauge(activeDesc, *r.UtilizationPercent/100)
	}
	if r.MemoryMiB != nil {
		gauge(usedDesc, float64(*r.MemoryMiB))
		gauge(freeDesc, float64(max(0, int64(memoryMiB)-*r.MemoryMiB)))
	}
}

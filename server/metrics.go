package server

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"berth/fleet"
	"berth/models"
	"berth/models/store"
	"berth/money"
)

// metrics are the portal's figures, in a registry of their own. Requests are
// counted as they come; the rest is read from the database when asked for.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	handler  http.Handler
}

func newMetrics(s *Server) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "berth_http_requests_total", Help: "Requests answered."}, []string{"method", "route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "berth_http_request_seconds", Help: "Time to answer a request; streams count until they end.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}}, []string{"route"}),
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(m.requests, m.seconds, &stateCollector{server: s},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.handler = promhttp.HandlerFor(registry, promhttp.HandlerOpts{Timeout: 10 * time.Second})
	return m
}

// methods that are counted by name; a made-up one would be a label for ever.
var methods = map[string]bool{http.MethodGet: true, http.MethodPost: true, http.MethodPut: true, http.MethodPatch: true, http.MethodDelete: true, http.MethodOptions: true}

func (m *metrics) observe(method, route string, status int, took time.Duration) {
	if !methods[method] {
		method = "other"
	}
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(route).Observe(took.Seconds())
}

// showMetrics handles GET /metrics. They tell how much money there is, so they
// are for operators, and for a scraper on this very machine: one whose request
// no proxy passed on.
func (s *Server) showMetrics(c echo.Context) error {
	if !local(c.Request()) {
		if err := mayOperate.check(identityOf(c)); err != nil {
			return err
		}
	}
	s.metrics.handler.ServeHTTP(c.Response(), c.Request())
	return nil
}

// local tells whether a request comes from this machine and not through a proxy.
func local(r *http.Request) bool {
	for _, h := range []string{"X-Forwarded-For", "Forwarded", "X-Real-Ip", "Via"} {
		if r.Header.Get(h) != "" {
			return false
		}
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// stateCollector reads the figures of the business when they are asked for.
type stateCollector struct{ server *Server }

var (
	instancesDesc  = prometheus.NewDesc("berth_instances", "Instances by state.", []string{"state"}, nil)
	nodesDesc      = prometheus.NewDesc("berth_nodes", "Nodes by state.", []string{"state"}, nil)
	spansDesc      = prometheus.NewDesc("berth_metered_runs", "Runs that cost money now.", nil, nil)
	lagDesc        = prometheus.NewDesc("berth_meter_lag_seconds", "Age of the last report of the metered run heard of longest ago; 0 without runs.", nil, nil)
	inboxDesc      = prometheus.NewDesc("berth_webhook_inbox", "Payment webhooks received and not yet processed.", nil, nil)
	statementDesc  = prometheus.NewDesc("berth_sql_statements_total", "SQL statements run.", nil, nil)
	devicesDesc    = prometheus.NewDesc("berth_devices", "Cards by state.", []string{"state"}, nil)
	memoryDesc     = prometheus.NewDesc("berth_device_memory_mib", "Memory of all cards that are there, and of the slices that are leased, in MiB.", []string{"kind"}, nil)
	launchesDesc   = prometheus.NewDesc("berth_launches_total", "Launches by outcome: placed, or the code of the refusal.", []string{"outcome"}, nil)
	phaseDesc      = prometheus.NewDesc("berth_phase_seconds", "Time that runs spent in each state before they were usable.", []string{"state"}, nil)
	linksDesc      = prometheus.NewDesc("berth_node_links", "Nodes linked to this portal now, by channel.", []string{"channel"}, nil)
	socketsDesc    = prometheus.NewDesc("berth_sockets", "WebSockets of browsers and programs that are open, by kind.", []string{"kind"}, nil)
	instanceLabels = []string{"instance_id", "name", "account", "node", "sku"}
	instanceUtil   = prometheus.NewDesc("berth_instance_gpu_utilization_ratio", "GPU activity of a running instance's slices; absent where it is not measurable.", instanceLabels, nil)
	instanceMemory = prometheus.NewDesc("berth_instance_gpu_memory_used_mib", "GPU memory that a running instance uses, in MiB; absent where it is not measurable.", instanceLabels, nil)
	instanceTotal  = prometheus.NewDesc("berth_instance_seconds", "Seconds of a running instance's present run that its node counted.", instanceLabels, nil)
	buildDesc      = prometheus.NewDesc("berth_build_info", "Always 1; the version is a label.", []string{"version"}, nil)
	imbalanceDesc  = prometheus.NewDesc("berth_ledger_imbalance_micros", "Sum of all balances of the double-entry ledger, in micro-units: anything but 0 is wrong books.", []string{"currency"}, nil)
	moneyDesc      = prometheus.NewDesc("berth_money_micros", "Money in micro-units of its currency: in wallets, held, accrued, and posted as used.", []string{"kind", "currency"}, nil)
)

// Describe implements prometheus.Collector.
func (k *stateCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{imbalanceDesc, instancesDesc, nodesDesc, devicesDesc, memoryDesc, launchesDesc, phaseDesc, linksDesc, socketsDesc, buildDesc, instanceUtil, instanceMemory, instanceTotal, spansDesc, lagDesc, inboxDesc, statementDesc, moneyDesc} {
		ch <- d
	}
}

// scraped is how old, in seconds, a reading may be that is given to Prometheus.
const scraped = 15

// Collect implements prometheus.Collector.
func (k *stateCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(k.server.closing, 5*time.Second)
	defer cancel()
	var st store.Stats
	var running []models.Instance
	err := k.server.store.View(ctx, func(tx *store.Tx) (err error) {
		if st, err = tx.Stats(); err != nil {
			return err
		}
		running, err = tx.RunningInstances()
		return err
	})
	if err != nil {
		ch <- prometheus.NewInvalidMetric(instancesDesc, err)
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, state := range models.InstanceStates {
		gauge(instancesDesc, float64(st.Instances[state]), string(state))
	}
	for _, state := range []string{models.NodeOnline, models.NodeOffline} {
		gauge(nodesDesc, float64(st.Nodes[state]), state)
	}
	for _, state := range []string{models.DeviceOK, models.DeviceSick, models.DeviceAbsent} {
		gauge(devicesDesc, float64(st.Devices[state]), state)
	}
	gauge(memoryDesc, float64(st.CardMiB), "cards")
	gauge(memoryDesc, float64(st.SoldMiB), "sold")
	figures := k.server.fleet.Figures()
	for outcome, n := range figures.Launches {
		ch <- prometheus.MustNewConstMetric(launchesDesc, prometheus.CounterValue, float64(n), outcome)
	}
	for state, h := range figures.Phases {
		buckets := make(map[float64]uint64, len(h.Bounds))
		for i, bound := range h.Bounds {
			buckets[bound] = h.Counts[i]
		}
		ch <- prometheus.MustNewConstHistogram(phaseDesc, h.Count, h.Sum, buckets, string(state))
	}
	for channel, n := range k.server.links.count() {
		gauge(linksDesc, float64(n), string(channel))
	}
	gauge(socketsDesc, float64(k.server.sockets.lives.Load()), "live")
	gauge(socketsDesc, float64(k.server.sockets.terminals.Load()), "terminal")
	for _, in := range running {
		recent := k.server.fleet.Samples(fleet.OfInstance(in.ID), k.server.now().Unix()-scraped)
		if len(recent) == 0 || recent[len(recent)-1].Run != in.Run {
			continue
		}
		s, labels := recent[len(recent)-1], []string{string(in.ID), in.Name, string(in.AccountID), string(in.NodeID), in.SKU}
		gauge(instanceTotal, float64(s.Seconds), labels...)
		if s.UtilizationPercent != nil {
			gauge(instanceUtil, *s.UtilizationPercent/100, labels...)
		}
		if s.MemoryMiB != nil {
			gauge(instanceMemory, float64(*s.MemoryMiB), labels...)
		}
	}
	gauge(buildDesc, 1, k.server.cfg.Version)
	gauge(spansDesc, float64(st.OpenSpans))
	lag := 0.0
	if st.OpenSpans > 0 {
		lag = max(0, models.At(k.server.now()).Sub(st.OldestReport).Seconds())
	}
	gauge(lagDesc, lag)
	gauge(inboxDesc, float64(st.Inbox))
	ch <- prometheus.MustNewConstMetric(statementDesc, prometheus.CounterValue, float64(k.server.store.Statements()))
	for currency, sum := range st.Imbalance {
		gauge(imbalanceDesc, float64(sum), currency)
	}
	for _, part := range []struct {
		kind string
		sums map[string]money.Amount
	}{{"wallets", st.Wallets}, {"held", st.Held}, {"accrued", st.Accrued}, {"revenue", st.Revenue}} {
		for currency, sum := range part.sums {
			gauge(moneyDesc, float64(sum), part.kind, currency)
		}
	}
}

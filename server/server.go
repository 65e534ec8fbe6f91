// Package server is the HTTP edge: routes, sessions, forms, live streams, error
// pages. It reads a request, calls fleet, billing or the store once, and shows
// what came back; no rule of the business and no SQL is here.
//
// What always holds: every route stands in the table of routes.go with who may
// call it, and nothing is answered to an identity that is empty; every list and
// every row is read by the account of that identity, so that another's looks
// like none; an error reaches people in one place (problem.go); secrets are
// never logged, and only their hashes are stored.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"berth/billing"
	"berth/fleet"
	"berth/models"
	"berth/models/store"
	"berth/money"
)

// Config is what the portal is made of and how it is reached. Store, Billing and
// Fleet are needed; the rest has the defaults named.
type Config struct {
	Store   *store.Store
	Billing *billing.Service
	Fleet   *fleet.Service
	Log     *slog.Logger     // slog.Default()
	Now     func() time.Time // time.Now: the clock that all rules are given

	// BaseURL is the origin that browsers use, such as "https://berth.example".
	// With https, cookies are Secure and HSTS is sent, also behind a proxy that
	// ends TLS. Empty: the origin that each request names.
	BaseURL string
	// CheckoutOrigin is where the payment page is: "https://checkout.stripe.com",
	// or that of the local double. Top-up forms may be sent on to there.
	CheckoutOrigin string
	// TrustedProxies may say in X-Forwarded-For who asks. Empty: nobody may.
	TrustedProxies []netip.Prefix

	// LinkSecret signs the challenges that nodes answer, so that replicas accept
	// each other's. Empty: a random one of this process.
	LinkSecret []byte

	Version       string // of this build, in the foot of pages
	OperatorEmail string // of the first operator; "operator@berth.local"

	// Limits on tries. LoginPair counts one e-mail from one address (10, then one
	// each 10 s), LoginAddress all e-mails from it (60, then one a second), Signup
	// new accounts from it (30, then one each 10 s).
	LoginPair, LoginAddress, Signup Limits
	// Heartbeat is how often an idle live stream says that it is alive; 15 s.
	Heartbeat time.Duration
	// BodyPatience is how long a request's body may take to come in; 30 s.
	BodyPatience time.Duration
	// Grace is how long requests under way may go on at shutdown; 10 s.
	Grace time.Duration
}

// Server is the portal's HTTP edge. It is safe for concurrent use.
type Server struct {
	cfg      Config
	log      *slog.Logger
	store    *store.Store
	billing  *billing.Service
	fleet    *fleet.Service
	currency money.Currency
	echo     *echo.Echo
	origins  *http.CrossOriginProtection
	hasher   *hasher
	metrics  *metrics
	limits   struct{ pair, address, signup *limiter }
	links    *links   // to nodes
	sockets  *sockets // of browsers
	door     door     // who holds streams and sockets
	api      *restAPI

	// closing ends when the portal shuts down; streams and sockets end with it.
	closing context.Context
	close   context.CancelFunc
}

// New makes the portal's HTTP edge. It fails on a configuration that cannot work.
func New(cfg Config) (*Server, error) {
	if cfg.Store == nil || cfg.Billing == nil || cfg.Fleet == nil {
		return nil, errors.New("server: Store, Billing and Fleet are needed")
	}
	cfg.defaults()
	currency, err := money.LookupCurrency(cfg.Billing.Config().Currency)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, log: cfg.Log, store: cfg.Store, billing: cfg.Billing, fleet: cfg.Fleet, currency: currency,
		echo: echo.New(), origins: http.NewCrossOriginProtection(), hasher: newHasher()}
	for _, origin := range []string{cfg.BaseURL, cfg.CheckoutOrigin} {
		if err := checkOrigin(origin); err != nil {
			return nil, err
		}
	}
	if cfg.BaseURL != "" {
		if err := s.origins.AddTrustedOrigin(cfg.BaseURL); err != nil {
			return nil, fmt.Errorf("server: BaseURL: %w", err)
		}
	}
	s.limits.pair, s.limits.address, s.limits.signup = newLimiter(cfg.LoginPair), newLimiter(cfg.LoginAddress), newLimiter(cfg.Signup)
	s.closing, s.close = context.WithCancel(context.Background())
	s.metrics = newMetrics(s)
	s.links, s.sockets = newLinks(s.closing, s.fleet, cfg.LinkSecret, s.log), newSockets(s.fleet)
	s.setUp()
	return s, nil
}

func (cfg *Config) defaults() {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.OperatorEmail == "" {
		cfg.OperatorEmail = "operator@berth.local"
	}
	if cfg.Heartbeat == 0 {
		cfg.Heartbeat = 15 * time.Second
	}
	if cfg.BodyPatience == 0 {
		cfg.BodyPatience = 30 * time.Second
	}
	if cfg.Grace == 0 {
		cfg.Grace = 10 * time.Second
	}
	if len(cfg.LinkSecret) == 0 {
		cfg.LinkSecret = randomBytes(32)
	}
	cfg.LoginPair = cfg.LoginPair.or(Limits{Burst: 10, Every: 10 * time.Second})
	cfg.LoginAddress = cfg.LoginAddress.or(Limits{Burst: 60, Every: time.Second})
	cfg.Signup = cfg.Signup.or(Limits{Burst: 30, Every: 10 * time.Second})
}

// checkOrigin refuses what is not an origin: it is compared with those that
// browsers send, and a path or a wildcard would never match, or match too much.
func checkOrigin(origin string) error {
	if origin == "" {
		return nil
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Hostname() == "*" || u.Scheme+"://"+u.Host != origin {
		return fmt.Errorf("server: %q is not an origin; write it like https://berth.example, without a path", origin)
	}
	return nil
}

// setUp makes the router. The order matters: what comes first sees everything.
func (s *Server) setUp() {
	e := s.echo
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = s.fail
	e.IPExtractor = echo.ExtractIPDirect()
	if len(s.cfg.TrustedProxies) > 0 {
		options := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
		for _, p := range s.cfg.TrustedProxies {
			options = append(options, echo.TrustIPRange(&net.IPNet{
				IP: p.Masked().Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}))
		}
		e.IPExtractor = echo.ExtractIPFromXFFHeader(options...)
	}
	e.Use(s.observe, s.headers, s.protect)
	for _, r := range slices.Concat(s.routes(), s.linkRoutes()) {
		e.Add(r.method, r.path, s.guard(r.need, r.handler))
	}
	s.api = newAPI(s)
}

// ServeHTTP answers one request. HEAD is GET without the body, which net/http
// leaves out by itself.
//
// What comes after works on a copy: net/http looks at its own request to see
// whether a body was left half read, and a handler that bounds the body hides
// that. The rest of a body that is too large would be read as the next request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	mine := *r
	if mine.Method == http.MethodHead {
		mine.Method = http.MethodGet
	}
	s.echo.ServeHTTP(w, &mine)
}

// Serve answers on l until ctx ends, then lets requests under way finish for
// Grace; streams and sockets end at once. It closes l. It returns nil when ctx
// ended it.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	h := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(l) }()
	var chores sync.WaitGroup
	chores.Go(s.dropSessions)
	chores.Go(s.keepDoor)
	defer chores.Wait()
	select {
	case err := <-ended:
		s.close()
		return fmt.Errorf("serve HTTP: %w", err)
	case <-ctx.Done():
	}
	s.close()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Grace)
	defer cancel()
	err := h.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		s.log.Warn("requests were cut off at shutdown", "grace", s.cfg.Grace)
		err = h.Close()
	}
	<-ended
	s.links.wait() // upgraded connections are not the HTTP server's to await
	s.sockets.open.Wait()
	return err
}

// dropSessions deletes expired sessions every hour until the portal closes. They
// are refused without that; it keeps the table small.
func (s *Server) dropSessions() {
	hourly := time.NewTicker(time.Hour)
	defer hourly.Stop()
	for {
		err := s.store.InTx(s.closing, func(tx *store.Tx) error { return tx.DropExpiredSessions(models.At(s.now())) })
		if err != nil && s.closing.Err() == nil {
			s.log.Warn("drop expired sessions", "error", err)
		}
		select {
		case <-s.closing.Done():
			return
		case <-hourly.C:
		}
	}
}

// now is the present moment in UTC.
func (s *Server) now() time.Time { return s.cfg.Now().UTC() }

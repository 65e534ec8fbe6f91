package stripedouble

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// apiVersion is the only version the double speaks: the one stripe-go v76 sends
// and accepts in webhooks.
const apiVersion = "2023-10-16"

// Config is what a Server needs. Dir, SecretKey, WebhookSecret and PublicURL are
// required.
type Config struct {
	Dir           string // where the state lives; made when absent, held by one process at a time
	SecretKey     string // the API key it accepts, "sk_test_…"
	WebhookSecret string // signs the webhooks, "whsec_…"; never empty: an empty secret verifies anything
	WebhookURL    string // where events go; empty holds them back until SetWebhookURL
	PublicURL     string // address a browser reaches the hosted pages at, without a trailing slash

	// SettleAfter is how long a bank debit takes. Zero is one minute; below zero it
	// waits for POST /_double/settle/{session}.
	SettleAfter time.Duration

	// RetryMin and RetryMax bound the back-off between two attempts to deliver one
	// event; it doubles each time. Zero is one second and one minute: Stripe waits
	// for hours, which nobody wants on their own machine.
	RetryMin, RetryMax time.Duration

	Log   *slog.Logger     // nil: no log
	Clock func() time.Time // nil: time.Now
}

// Server is the double. It is an http.Handler for the API under /v1, the hosted
// pages under /c and /p, and the control API under /_double. Its methods may be
// called from any goroutine.
type Server struct {
	cfg  Config
	log  *slog.Logger
	mux  *http.ServeMux
	send *http.Client

	deliver chan struct{} // holds one token: who has it delivers
	wake    chan struct{} // something may have become due

	mu         sync.Mutex // guards all below
	state      tables
	journal    *journal
	webhookURL string
	waiting    map[string]bool // sessions that end by themselves at some time
	unsent     map[string]bool // events not delivered yet
	closed     bool
}

// New opens the state and returns a server that answers at once; Run delivers
// its webhooks. It fails on a live key, an empty webhook secret, an address that
// is none, and a directory that another process holds.
func New(cfg Config) (*Server, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, log: cfg.Log, webhookURL: cfg.WebhookURL, state: newTables(),
		deliver: make(chan struct{}, 1), wake: make(chan struct{}, 1),
		waiting: map[string]bool{}, unsent: map[string]bool{},
		send: &http.Client{
			Timeout:   10 * time.Second,
			Transport: &http.Transport{MaxIdleConnsPerHost: 4, IdleConnTimeout: 30 * time.Second},
			// Stripe takes a redirect for a failed delivery.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	j, err := openJournal(cfg.Dir, s.state.load)
	if err != nil {
		return nil, err
	}
	s.journal = j
	if err := s.compact(); err != nil {
		return nil, errors.Join(err, j.close())
	}
	for id, ses := range s.state.sessions.rows {
		s.noteSession(id, ses)
	}
	for id, e := range s.state.events.rows {
		s.noteEvent(id, e)
	}
	s.mux = s.routes()
	return s, nil
}

func (c *Config) check() error {
	c.PublicURL = strings.TrimRight(c.PublicURL, "/")
	switch {
	case strings.HasPrefix(c.SecretKey, "sk_live_") || strings.HasPrefix(c.SecretKey, "rk_live_"):
		return errors.New("a live Stripe key beside the test payments: unset it to use the test payments, or leave the test payments off")
	case !strings.HasPrefix(c.SecretKey, "sk_test_") || len(c.SecretKey) < 12:
		return errors.New("the test payments need a secret key that starts with sk_test_ and has at least 12 characters")
	case c.WebhookSecret == "":
		return errors.New("the test payments need a webhook secret: with an empty one anybody could sign")
	case c.Dir == "":
		return errors.New("the test payments need a directory for their state")
	}
	if err := checkURL("", c.PublicURL); err != nil {
		return fmt.Errorf("the test payments' public address %q is not an http address", c.PublicURL)
	}
	if c.WebhookURL != "" && checkURL("", c.WebhookURL) != nil {
		return fmt.Errorf("the webhook address %q is not an http address", c.WebhookURL)
	}
	if c.SettleAfter == 0 {
		c.SettleAfter = time.Minute
	}
	if c.RetryMin <= 0 {
		c.RetryMin = time.Second
	}
	if c.RetryMax < c.RetryMin {
		c.RetryMax = max(time.Minute, c.RetryMin)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	return nil
}

// compact rewrites the file at start when most of it is superseded.
func (s *Server) compact() error {
	live := 0
	for _, t := range s.state.all() {
		live += t.size()
	}
	if s.journal.rows < 3*live+1000 {
		return nil
	}
	s.state.forgetOld(s.cfg.Clock())
	return s.journal.rewrite(s.state.dump)
}

// SetWebhookURL changes where events go, from the next attempt on. Empty holds
// them back. An address that is not http or https is an error and changes nothing.
func (s *Server) SetWebhookURL(u string) error {
	if u != "" && checkURL("", u) != nil {
		return fmt.Errorf("the webhook address %q is not an http address", u)
	}
	s.mu.Lock()
	s.webhookURL = u
	s.mu.Unlock()
	s.nudge()
	return nil
}

// Close gives the directory back. End Run and the listener first: a request after
// Close is answered 500.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.send.CloseIdleConnections()
	return s.journal.close()
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// pageURL is the address of one of the double's pages, as a browser reaches it.
func (s *Server) pageURL(kind, id string) string {
	return s.cfg.PublicURL + kind + url.PathEscape(id)
}

// newID makes an id that nobody can guess.
func newID(prefix string, letters int) string {
	const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	id := make([]byte, 0, letters)
	var b [64]byte
	for len(id) < letters {
		rand.Read(b[:]) // never fails: crypto/rand ends the program instead
		for _, c := range b {
			if c &= 63; int(c) < len(alphabet) && len(id) < letters {
				id = append(id, alphabet[c])
			}
		}
	}
	return prefix + string(id)
}

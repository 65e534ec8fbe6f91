package cli

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"berth/billing/stripe"
	"berth/billing/stripedouble"
	"berth/models/store"
)

// paymentFlags say who takes the money.
type paymentFlags struct {
	test      bool
	listen    string
	publicURL string
}

func (f *paymentFlags) register(flags *pflag.FlagSet) {
	flags.BoolVar(&f.test, "test-payments", false, "use the local Stripe double even if a Stripe key is set")
	flags.StringVar(&f.listen, "test-payments-listen", "", "address of the double's payment page (default: a free port on 127.0.0.1, kept)")
	flags.StringVar(&f.publicURL, "test-payments-url", "", "how browsers reach that page, if not at its address")
}

// payments is the provider in use: real Stripe, or the double served here.
type payments struct {
	config         stripe.Config
	checkoutOrigin string
	what           string
	live           bool // real money moves
	double         *stripedouble.Server
	listener       net.Listener
}

// secrets are made once and kept in DIR/secrets.json, mode 0600.
type secrets struct {
	Link          string `json:"link"`           // signs the challenges of nodes
	DoubleKey     string `json:"double_key"`     // API key of the double
	DoubleWebhook string `json:"double_webhook"` // signs its webhooks
	DoubleAddress string `json:"double_address"` // where it listened last: open payment pages keep their address
}

func loadSecrets(dir string) (secrets, error) {
	var s secrets
	b, err := os.ReadFile(filepath.Join(dir, "secrets.json"))
	if err == nil {
		if err := json.Unmarshal(b, &s); err != nil {
			return s, hint(fmt.Errorf("secrets.json is damaged: %w", err), "restore %s from a backup, or remove it: nodes stay joined", filepath.Join(dir, "secrets.json"))
		}
		return s, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return s, err
	}
	s = secrets{Link: random(), DoubleKey: "sk_test_" + random(), DoubleWebhook: "whsec_" + random(), DoubleAddress: "127.0.0.1:0"}
	return s, s.save(dir)
}

func (s secrets) save(dir string) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, "secrets.json"), b, 0o600)
}

func random() string {
	var b [24]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand crashes the program instead
	return hex.EncodeToString(b[:])
}

// sameMoney refuses a database whose payments are of the other kind: what was
// paid with test cards must never be spent as real money, nor the other way round.
func sameMoney(ctx context.Context, st *store.Store, live bool) error {
	other := "cs_live_"
	if live {
		other = "cs_test_"
	}
	return st.View(ctx, func(tx *store.Tx) error {
		found, err := tx.HasCheckouts(other)
		switch {
		case err != nil || !found:
			return err
		case live:
			return hint(errors.New("this database has test payments, and the Stripe key is live: test money would be spent as real"), "give the live portal a database of its own: --data DIR, or DATABASE_URL")
		}
		return hint(errors.New("this database has real payments, and no live Stripe key is set: test cards would pay for real"), "set STRIPE_SECRET_KEY and STRIPE_WEBHOOK_SECRET, or use another --data DIR for tests")
	})
}

// stripeKey is the key in the environment, empty if there is none, and whether
// real money moves with it.
func stripeKey() (key string, live bool) {
	key = strings.TrimSpace(os.Getenv("STRIPE_SECRET_KEY"))
	return key, strings.HasPrefix(key, "sk_live_") || strings.HasPrefix(key, "rk_live_")
}

// openPayments decides between Stripe and the double by the environment, and
// refuses what is half of each.
func openPayments(f paymentFlags, dir, portal string, kept secrets, log *slog.Logger) (*payments, error) {
	key, live := stripeKey()
	secret, secretGiven := os.LookupEnv("STRIPE_WEBHOOK_SECRET")
	switch {
	case live && (f.test || f.listen != "" || f.publicURL != ""):
		return nil, hint(errors.New("a live Stripe key is set beside a flag of test payments"), "unset STRIPE_SECRET_KEY for test payments, or leave every --test-payments flag out to take real money")
	case key != "" && !f.test:
		if strings.TrimSpace(secret) == "" {
			return nil, hint(errors.New("STRIPE_SECRET_KEY is set, but STRIPE_WEBHOOK_SECRET is empty: anybody could send us payments"), "set STRIPE_WEBHOOK_SECRET to the endpoint's signing secret (whsec_…)")
		}
		what := "Stripe, test mode: no real money"
		if live {
			what = "Stripe, live"
		}
		return &payments{config: stripe.Config{Key: key, WebhookSecrets: strings.Split(secret, ",")}, checkoutOrigin: "https://checkout.stripe.com", what: what, live: live}, nil
	case secretGiven && !f.test:
		return nil, hint(errors.New("STRIPE_WEBHOOK_SECRET is set, but STRIPE_SECRET_KEY is not"), "set both for real payments, or unset both for test payments")
	}
	return openDouble(f, dir, portal, kept, log)
}

func openDouble(f paymentFlags, dir, portal string, kept secrets, log *slog.Logger) (*payments, error) {
	var l net.Listener
	var err error
	if f.listen != "" {
		l, err = listen(f.listen, "--test-payments-listen")
	} else if l, err = net.Listen("tcp", kept.DoubleAddress); err != nil {
		l, err = net.Listen("tcp", "127.0.0.1:0") // the kept port was taken meanwhile
	}
	if err != nil {
		return nil, err
	}
	kept.DoubleAddress = l.Addr().String()
	if err := kept.save(dir); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	api, public := originOf(l), f.publicURL
	if public == "" {
		public = api
	}
	u, err := url.Parse(public)
	if err != nil || u.Host == "" {
		return nil, errors.Join(usage{fmt.Errorf("--test-payments-url %q is not an address like http://host:port", public)}, l.Close())
	}
	double, err := stripedouble.New(stripedouble.Config{Dir: filepath.Join(dir, "stripe-double"), SecretKey: kept.DoubleKey, WebhookSecret: kept.DoubleWebhook,
		WebhookURL: portal + "/webhooks/stripe", PublicURL: strings.TrimRight(public, "/"), Log: log})
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &payments{config: stripe.Config{Key: kept.DoubleKey, WebhookSecrets: []string{kept.DoubleWebhook}, BaseURL: api},
		checkoutOrigin: u.Scheme + "://" + u.Host, what: "local Stripe double, no real money", double: double, listener: l}, nil
}

// run serves the double, if it is in use, until ctx ends.
func (p *payments) run(ctx context.Context) error {
	if p.double == nil {
		<-ctx.Done()
		return nil
	}
	h := &http.Server{Handler: p.double, ReadHeaderTimeout: 10 * time.Second}
	return together(ctx, p.double.Run,
		func(ctx context.Context) error {
			stop := context.AfterFunc(ctx, func() { _ = h.Close() })
			defer stop()
			if err := h.Serve(p.listener); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		})
}

func (p *payments) close() {
	if p.double != nil {
		_ = p.listener.Close()
		_ = p.double.Close()
	}
}

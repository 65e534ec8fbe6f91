// Package stripe is the only part of Berth that knows Stripe's client library.
// It sends the requests that billing needs, to Stripe itself or to the local
// double at another address, checks webhooks, and hands back plain structs and
// one error type. Amounts here are what Stripe's API takes: integers in the
// currency's minor unit, currencies in lower case.
//
// It uses a client of its own and never the library's package-level key, so that
// several gateways can live in one process.
package stripe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	sdk "github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/client"
)

// APIVersion is the version of Stripe's API that every request names and every
// webhook must carry. Create the webhook endpoint with this api_version.
const APIVersion = sdk.APIVersion

// Config tells which Stripe to talk to.
type Config struct {
	Key            string   // sk_test_… or sk_live_…
	WebhookSecrets []string // whsec_…; two while one replaces the other
	BaseURL        string   // empty: Stripe. Else the local double, with a test key only
}

// Gateway talks to one Stripe. It is safe for concurrent use.
type Gateway struct {
	api     *client.API
	secrets []string
	live    bool
}

// New makes a gateway, or says what is wrong with the configuration. It makes no
// request: call Balance for that.
func New(cfg Config, log *slog.Logger) (*Gateway, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	backend := &sdk.BackendConfig{
		HTTPClient:        &http.Client{Timeout: 20 * time.Second}, // the library's own is 80 s
		MaxNetworkRetries: sdk.Int64(2),
		EnableTelemetry:   sdk.Bool(false),
		LeveledLogger:     logger{log},
	}
	if cfg.BaseURL != "" {
		backend.URL = sdk.String(cfg.BaseURL)
	}
	be := sdk.GetBackendWithConfig(sdk.APIBackend, backend)
	return &Gateway{
		// All three, or a stray call would leave for the real Stripe.
		api:     client.New(cfg.Key, &sdk.Backends{API: be, Connect: be, Uploads: be}),
		secrets: cfg.WebhookSecrets,
		live:    strings.HasPrefix(cfg.Key, "sk_live_") || strings.HasPrefix(cfg.Key, "rk_live_"),
	}, nil
}

// Live tells whether real money moves.
func (g *Gateway) Live() bool { return g.live }

func (c Config) check() error {
	if len(c.WebhookSecrets) == 0 {
		return errors.New("no Stripe webhook secret: set STRIPE_WEBHOOK_SECRET to the endpoint's whsec_… value")
	}
	for _, secret := range c.WebhookSecrets {
		// The library accepts an empty secret, and with it anybody's webhook.
		if strings.TrimSpace(secret) == "" {
			return errors.New("the Stripe webhook secret is empty: set STRIPE_WEBHOOK_SECRET to the endpoint's whsec_… value")
		}
	}
	test := strings.HasPrefix(c.Key, "sk_test_") || strings.HasPrefix(c.Key, "rk_test_")
	live := strings.HasPrefix(c.Key, "sk_live_") || strings.HasPrefix(c.Key, "rk_live_")
	if !test && !live {
		return errors.New("the Stripe key is neither sk_test_… nor sk_live_…: set STRIPE_SECRET_KEY to a secret key from Stripe's dashboard")
	}
	if c.BaseURL == "" {
		return nil
	}
	if !test {
		return errors.New("a live Stripe key must not be sent to another address than Stripe's: leave the address out, or use an sk_test_… key")
	}
	u, err := url.Parse(c.BaseURL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return fmt.Errorf("the address of the test payments, %q, is not an http address", c.BaseURL)
	}
	if u.Scheme == "http" && !loopback(u.Hostname()) {
		return fmt.Errorf("the address of the test payments, %q, is plain http beyond this machine: use https, or 127.0.0.1", c.BaseURL)
	}
	return nil
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// Balance asks for the account's balance: the check at start that the key works.
func (g *Gateway) Balance(ctx context.Context) error {
	params := &sdk.BalanceParams{}
	params.Context = ctx
	_, err := g.api.Balance.Get(params)
	return explain("check the Stripe key", err)
}

// Customer is who pays, as Stripe is told.
type Customer struct {
	AccountID, Name, Email string
}

// CreateCustomer makes a customer and returns its id, cus_….
func (g *Gateway) CreateCustomer(ctx context.Context, key string, c Customer) (string, error) {
	params := &sdk.CustomerParams{Name: sdk.String(c.Name), Email: sdk.String(c.Email)}
	params.Context = ctx
	params.SetIdempotencyKey(key)
	params.AddMetadata("berth_account", c.AccountID)
	made, err := g.api.Customers.New(params)
	if err != nil {
		return "", explain("create the Stripe customer", err)
	}
	return made.ID, nil
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"berth/billing"
	"berth/billing/stripe"
	"berth/fleet"
	"berth/models/store"
	"berth/server"
)

type serveFlags struct {
	listen, data, databaseURL, baseURL, currency, operatorEmail string
	seller                                                      []string
	trustedProxies                                              []string
	payments                                                    paymentFlags
	newOperatorPassword, verbose                                bool
	historyDays                                                 int
}

func newServe() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the portal",
		Long: `Runs the portal. STRIPE_SECRET_KEY and STRIPE_WEBHOOK_SECRET switch real
payments on; without them a local Stripe double stands in, and every page says
so. DATABASE_URL switches from SQLite in DIR to PostgreSQL.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := withLifeline(cmd.Context())
			defer cancel()
			return serve(ctx, f, cmd.OutOrStdout(), logger(cmd.ErrOrStderr(), f.verbose))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", defaultListen, "address to listen on")
	flags.StringVar(&f.data, "data", ".berth", "directory for everything that must survive")
	flags.StringVar(&f.databaseURL, "database-url", "", "postgres://… instead of SQLite in DIR (also DATABASE_URL)")
	flags.StringVar(&f.baseURL, "base-url", "", "origin that browsers use, such as https://berth.example; needed behind a proxy")
	flags.StringVar(&f.currency, "currency", "USD", "currency of this installation, ISO 4217")
	flags.StringVar(&f.operatorEmail, "operator-email", "", "e-mail of the first operator (default operator@berth.local)")
	flags.BoolVar(&f.newOperatorPassword, "new-operator-password", false, "give the operator a new password and print it, for one who has lost it")
	flags.StringArrayVar(&f.seller, "seller", nil, "who sells, on invoices: name, then address lines (repeat)")
	flags.IntVar(&f.historyDays, "history-days", 90, "how many days what was measured is kept, hour by hour; minute by minute for 7 of them")
	flags.StringSliceVar(&f.trustedProxies, "trusted-proxies", nil, "networks whose X-Forwarded-For is believed, such as 10.0.0.0/8")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "debug lines in the log")
	f.payments.register(flags)
	return cmd
}

func serve(ctx context.Context, f serveFlags, stdout io.Writer, log *slog.Logger) error {
	dir, err := makeDataDir(f.data)
	if err != nil {
		return err
	}
	release, err := lock(dir, "portal")
	if err != nil {
		return err
	}
	defer release()
	proxies, err := parsePrefixes(f.trustedProxies)
	if err != nil {
		return err
	}
	if f.historyDays < 1 || f.historyDays > 3650 {
		return usage{hint(fmt.Errorf("--history-days: %d is not 1 to 3650", f.historyDays), "leave it out for 90")}
	}
	listener, err := listen(f.listen, "--listen")
	if err != nil {
		return err
	}
	defer listener.Close()
	origin := originOf(listener)

	kept, err := loadSecrets(dir)
	if err != nil {
		return err
	}
	pay, err := openPayments(f.payments, dir, origin, kept, log)
	if err != nil {
		return err
	}
	defer pay.close()
	gateway, err := stripe.New(pay.config, log)
	if err != nil {
		return hint(err, "check STRIPE_SECRET_KEY and STRIPE_WEBHOOK_SECRET, or unset both for test payments")
	}

	dsn := f.databaseURL
	if dsn == "" {
		dsn = os.Getenv("DATABASE_URL") // not as the flag's default, which --help would print with its password
	}
	if dsn == "" {
		dsn = filepath.Join(dir, "berth.db")
	}
	st, err := store.Open(ctx, dsn)
	if err != nil {
		return err
	}
	defer st.Close()
	leave, err := st.Alone(ctx, 15*time.Second)
	if err != nil {
		return hint(err, "stop the other portal, or give this one a database of its own")
	}
	defer leave()
	if err := sameMoney(ctx, st, pay.live); err != nil {
		return err
	}
	bill := billing.New(st, gateway, billing.Config{Currency: f.currency, TestPayments: !pay.live, Seller: seller(f.seller)}, log)
	if err := bill.CheckCurrency(ctx); err != nil {
		return hint(err, "start it with the --currency it was set up with, or give this one a database of its own")
	}
	boats := fleet.New(st, bill, fleet.Config{HistoryDays: f.historyDays}, log)
	edge, err := server.New(server.Config{Store: st, Billing: bill, Fleet: boats, Log: log, BaseURL: f.baseURL, CheckoutOrigin: pay.checkoutOrigin,
		TrustedProxies: proxies, Version: Version(), OperatorEmail: f.operatorEmail, LinkSecret: []byte(kept.Link)})
	if err != nil {
		return err
	}
	if err := bootstrap(ctx, dir, edge, f.newOperatorPassword, stdout); err != nil {
		return err
	}

	parts := []func(context.Context) error{
		func(ctx context.Context) error { return edge.Serve(ctx, listener) },
		bill.Run, boats.Run, pay.run,
	}
	if err := writeFile(filepath.Join(dir, addressFile), []byte(origin+"\n"), 0o644); err != nil {
		return err
	}
	log.Info("portal listening", "address", origin, "payments", pay.what)
	fmt.Fprintf(stdout, "Portal: %s   Payments: %s\n", origin, pay.what)
	return together(ctx, parts...)
}

// together runs parts until ctx ends or the first of them fails, then ends and
// awaits the others.
func together(ctx context.Context, parts ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(parts))
	for _, part := range parts {
		go func() {
			err := part(ctx)
			if ctx.Err() != nil && errors.Is(err, context.Canceled) {
				err = nil
			}
			cancel()
			ended <- err
		}()
	}
	var errs []error
	for range parts {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}

// bootstrap makes the operator at the first start, and keeps their API token.
func bootstrap(ctx context.Context, dir string, edge *server.Server, newPassword bool, stdout io.Writer) error {
	path := filepath.Join(dir, operatorTokenFile)
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	b, err := edge.Bootstrap(ctx, strings.TrimSpace(string(old)), newPassword)
	if err != nil {
		return err
	}
	if err := writeFile(path, []byte(b.Token+"\n"), 0o600); err != nil {
		return err
	}
	if b.Password != "" {
		fmt.Fprintf(stdout, "Operator sign-in, shown this once: %s  password %s\n", b.Email, b.Password)
	}
	return nil
}

// listen opens a port, or says that another has it.
func listen(address, flag string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, hint(fmt.Errorf("%s is in use by another program", address), "choose another with %s 127.0.0.1:PORT (port 0 takes any)", flag)
	}
	if err != nil {
		return nil, hint(err, "write the address like %s 127.0.0.1:8080", flag)
	}
	return l, nil
}

// originOf is how this machine reaches l.
func originOf(l net.Listener) string {
	a, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return "http://" + l.Addr().String()
	}
	host := a.IP.String()
	if a.IP.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, fmt.Sprint(a.Port))
}

func parsePrefixes(list []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, s := range list {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return nil, usage{hint(fmt.Errorf("--trusted-proxies: %w", err), "write networks like 10.0.0.0/8")}
		}
		out = append(out, p)
	}
	return out, nil
}

func seller(lines []string) billing.Party {
	if len(lines) == 0 {
		return billing.Party{}
	}
	return billing.Party{Name: lines[0], Address: lines[1:]}
}

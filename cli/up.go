package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"berth/api"
	"berth/gpu"
)

// defaultListen is where the portal listens unless told otherwise.
const defaultListen = "127.0.0.1:8080"

// defaultCards are the devices that `berth up` simulates.
const defaultCards = "a100-80gb:2,h100-80gb:1,rtx4090:1"

type upFlags struct {
	listen, data, simulate string
	verbose                bool
}

func newUp() *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Try Berth now: portal, test payments and one node with simulated GPUs, on this machine",
		Long: `Starts the portal on SQLite, the local Stripe double and one agent with
simulated GPUs, and prints the address when all of it is ready. Instances are
real processes on this machine. SIGTERM ends it cleanly; instances go on, and
starting again adopts them. "berth down" ends instances too.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return up(cmd.Context(), f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&f.listen, "listen", defaultListen, "address of the portal")
	cmd.Flags().StringVar(&f.data, "data", ".berth", "directory for everything that must survive")
	cmd.Flags().StringVar(&f.simulate, "simulate", defaultCards, "GPUs of the simulated node, model:count,…")
	cmd.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "debug lines in the logs under DIR/log")
	return cmd
}

func up(ctx context.Context, f upFlags, stdout, stderr io.Writer) error {
	endWithGoRun()
	if _, err := gpu.ParseSimulation(f.simulate); err != nil {
		return usage{hint(err, "for example --simulate %s", defaultCards)}
	}
	if _, live := stripeKey(); live {
		return hint(errors.New("a live Stripe key is set, and \"berth up\" sells simulated GPUs: people would pay real money for them"), "unset STRIPE_SECRET_KEY to try Berth; take real money with \"berth serve\" and agents on GPU hosts")
	}
	dir, err := makeDataDir(f.data)
	if err != nil {
		return err
	}
	release, err := lock(dir, "up")
	if err != nil {
		return err
	}
	defer release()
	log := logger(stderr, f.verbose)

	var verbose []string
	if f.verbose {
		verbose = []string{"--verbose"}
	}
	portal, err := newChild(dir, "portal", stdout, append([]string{"serve", "--listen", f.listen, "--data", dir}, verbose...), nil)
	if err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(dir, addressFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := portal.start(); err != nil {
		return err
	}
	defer portal.stop(15 * time.Second)
	base, err := portalReady(ctx, dir, portal)
	if err != nil {
		return err
	}
	if portal.args, err = samePort(portal.args, base); err != nil {
		return err
	}

	client, err := operator(dir, base)
	if err != nil {
		return err
	}
	token, err := joinToken(ctx, dir, client)
	if err != nil {
		return err
	}
	node, err := newChild(dir, "agent", stdout,
		append([]string{"agent", "--portal", base, "--data", filepath.Join(dir, agentDir), "--simulate", f.simulate, "--name", "harbour"}, verbose...),
		[]string{"BERTH_TOKEN=" + token})
	if err != nil {
		return err
	}
	if err := node.start(); err != nil {
		return err
	}
	defer node.stop(15 * time.Second)
	if err := nodeOnline(ctx, client, node); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "Berth is ready: %s\n", base)
	fmt.Fprintf(stdout, "  Simulated: %s. Real: everything else.\n", simulated(f.simulate))
	fmt.Fprintf(stdout, "  Data: %s   Logs: %s   API token of the operator: %s\n", dir, filepath.Join(dir, "log"), filepath.Join(dir, operatorTokenFile))
	fmt.Fprintf(stdout, "  Ctrl-C stops Berth; instances go on until \"berth down --data %s\".\n", f.data)

	var keepers sync.WaitGroup
	for _, c := range []*child{portal, node} {
		keepers.Go(func() { c.keep(ctx, log) })
	}
	<-ctx.Done()
	keepers.Wait()
	return nil
}

// samePort has a portal that is started again take the port that it has now, where
// --listen left the choice to the system: agents and open pages know that one.
func samePort(args []string, base string) ([]string, error) {
	now, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	args = slices.Clone(args)
	at := slices.Index(args, "--listen") + 1
	host, _, err := net.SplitHostPort(args[at])
	args[at] = net.JoinHostPort(host, now.Port())
	return args, err
}

// simulated says what is not real under up. Whose payments they are is the
// portal's to say, which has printed it, once Stripe's key is set.
func simulated(cards string) string {
	if key, _ := stripeKey(); key != "" {
		return "the GPUs (" + cards + "), and payments only if the line above says so"
	}
	return "the GPUs (" + cards + ") and payments (local Stripe double, no real money)"
}

// endWithGoRun makes this process end with a `go run` above it: go run passes
// no SIGTERM on, and an orphan would hold the port.
func endWithGoRun() {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", os.Getppid()))
	if err == nil && strings.TrimSpace(string(name)) == "go" {
		_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGTERM), 0, 0, 0)
	}
}

// portalReady waits until the portal can serve and returns its address.
func portalReady(ctx context.Context, dir string, portal *child) (string, error) {
	var base string
	err := poll(ctx, portal, func() bool {
		b, err := os.ReadFile(filepath.Join(dir, addressFile))
		if err != nil {
			return false
		}
		base = strings.TrimSpace(string(b))
		res, err := http.Get(base + "/readyz")
		if err != nil {
			return false
		}
		defer res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	return base, err
}

// nodeOnline waits until the portal sells what the agent has.
func nodeOnline(ctx context.Context, portal *api.Client, node *child) error {
	return poll(ctx, node, func() bool {
		list, err := portal.Nodes(ctx)
		return err == nil && slices.ContainsFunc(list.Items, func(n api.Node) bool { return n.State == "online" })
	})
}

// joinToken asks the portal for a one-time token, unless the agent has joined.
func joinToken(ctx context.Context, dir string, portal *api.Client) (string, error) {
	if _, err := os.Stat(filepath.Join(dir, agentDir, "node.json")); err == nil {
		return "", nil
	}
	token, err := portal.CreateJoinToken(ctx)
	return token.Token, err
}

// operator is the portal's API as any script of the operator would use it.
func operator(dir, base string) (*api.Client, error) {
	token, err := os.ReadFile(filepath.Join(dir, operatorTokenFile))
	if err != nil {
		return nil, err
	}
	return api.New(base, strings.TrimSpace(string(token))), nil
}

// poll asks ready until it says yes; the child's death or a minute end it.
func poll(ctx context.Context, c *child, ready func() bool) error {
	deadline := time.After(time.Minute)
	for {
		if ready() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.done:
			return hint(fmt.Errorf("the %s did not start:\n%s", c.name, c.lastWords()), "its whole log: %s", c.log.Name())
		case <-deadline:
			return hint(fmt.Errorf("the %s was not ready within a minute:\n%s", c.name, c.lastWords()), "its whole log: %s", c.log.Name())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

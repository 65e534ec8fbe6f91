package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"

	"github.com/spf13/cobra"

	"berth/agent"
	"berth/agent/device"
	"berth/agent/device/nvml"
	"berth/agent/device/simulator"
	"berth/agent/runtime/sandbox"
	"berth/gpu"
)

type agentFlags struct {
	portal, token, name, data, simulate string
	metrics                             string
	allowUnisolated, verbose            bool
}

func newAgent() *cobra.Command {
	var f agentFlags
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Run the node program on a GPU host",
		Long: `Runs the node program. The first time it joins the portal with a one-time
token (--token, or BERTH_TOKEN) from the fleet page; the node makes its own key,
and the token dies. After that only --data is needed.

It rents out the NVIDIA cards of the host, if this berth was built with NVML
(go build -tags nvml), or with --simulate ones that need no hardware.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := withLifeline(cmd.Context())
			defer cancel()
			return runAgent(ctx, f, logger(cmd.ErrOrStderr(), f.verbose))
		},
	}
	cmd.AddCommand(newAgentJoin(), newAgentDoctor(), newFault())
	flags := cmd.Flags()
	flags.StringVar(&f.portal, "portal", "", "address of the portal, such as https://berth.example")
	flags.StringVar(&f.token, "token", "", "one-time token from the fleet page")
	flags.StringVar(&f.name, "name", "", "what the operator calls this node (default: the host's name)")
	flags.StringVar(&f.data, "data", ".berth-agent", "directory for the node's key, its instances and their disks")
	flags.StringVar(&f.simulate, "simulate", "", "simulate these GPUs instead of real ones, model:count,…")
	flags.StringVar(&f.metrics, "metrics-listen", "", "where Prometheus may read the cards, such as 127.0.0.1:9400 (default: nowhere)")
	flags.BoolVar(&f.allowUnisolated, "allow-unisolated", false, "run instances as plain processes where namespaces are refused: no isolation")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "debug lines in the log")
	return cmd
}

func runAgent(ctx context.Context, f agentFlags, log *slog.Logger) error {
	dir, err := makeDataDir(f.data)
	if err != nil {
		return err
	}
	var devices device.Driver
	var simulated []gpu.ModelID
	if f.simulate == "" {
		cards, err := openCards(dir, log) // before a token is spent on a host without any
		if err != nil {
			return err
		}
		defer func() {
			if err := cards.Close(); err != nil {
				log.Warn("the session with NVIDIA's driver did not end well", "error", err)
			}
		}()
		devices = cards
	} else if simulated, err = simulatedCards(f.simulate); err != nil {
		return err
	}
	if err := joinOnce(ctx, f, dir); err != nil {
		return err
	}
	boxes, err := sandbox.New(sandbox.Config{Dir: filepath.Join(dir, "sandbox"), AllowUnisolated: f.allowUnisolated, Log: log})
	if err != nil {
		return err
	}
	defer boxes.Close()
	if f.simulate != "" { // after the sandbox, whose lock keeps a second agent from the cards' files
		if devices, err = simulator.New(dir, simulated, 1, log); err != nil {
			return err
		}
	}
	var metrics net.Listener
	if f.metrics != "" {
		if metrics, err = listen(f.metrics, "--metrics-listen"); err != nil {
			return err
		}
		defer metrics.Close()
	}
	node, err := agent.New(agent.Config{Dir: dir, PortalURL: f.portal, Version: Version(), Runtime: boxes, Devices: devices, Log: log, Metrics: metrics})
	if err != nil {
		return err
	}
	return node.Run(ctx)
}

// openCards opens the session with NVIDIA's driver.
func openCards(dir string, log *slog.Logger) (*nvml.Driver, error) {
	cards, err := nvml.New(dir, log)
	if errors.Is(err, nvml.ErrNotBuilt) {
		return nil, usage{hint(err, "CGO_ENABLED=1 go build -tags nvml -o berth . (or simulate cards: --simulate %s)", defaultCards)}
	}
	return cards, hint(err, "berth agent doctor looks for what is in the way; --simulate %s has cards without hardware", defaultCards)
}

// simulatedCards reads --simulate.
func simulatedCards(list string) (cards []gpu.ModelID, err error) {
	counts, err := gpu.ParseSimulation(list)
	if err != nil {
		return nil, usage{hint(err, "for example --simulate %s", defaultCards)}
	}
	for _, c := range counts {
		for range c.Count {
			cards = append(cards, c.Model)
		}
	}
	return cards, nil
}

// joinOnce joins the portal unless this directory has.
func joinOnce(ctx context.Context, f agentFlags, dir string) error {
	if _, joined, err := agent.LoadIdentity(dir); err != nil || joined {
		return err
	}
	if f.portal == "" || f.token == "" {
		return usage{hint(fmt.Errorf("%s has not joined a portal yet", dir), "berth agent --portal https://… --token … --data %s (the fleet page of the portal shows the line to copy)", f.data)}
	}
	name := f.name
	if name == "" {
		name = hostname()
	}
	_, err := agent.Join(ctx, f.portal, f.token, name, dir)
	return err
}

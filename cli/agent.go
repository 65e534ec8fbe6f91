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
and the token dies. After that only --data is needed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := withLifeline(cmd.Context())
			defer cancel()
			return runAgent(ctx, f, logger(cmd.ErrOrStderr(), f.verbose))
		},
	}
	cmd.AddCommand(newFault())
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
	if f.simulate == "" {
		return usage{hint(errors.New("this build drives no real GPUs yet"), "simulate some: --simulate %s", defaultCards)}
	}
	counts, err := gpu.ParseSimulation(f.simulate)
	if err != nil {
		return usage{hint(err, "for example --simulate %s", defaultCards)}
	}
	var cards []gpu.ModelID
	for _, c := range counts {
		for range c.Count {
			cards = append(cards, c.Model)
		}
	}
	if err := joinOnce(ctx, f, dir); err != nil {
		return err
	}
	boxes, err := sandbox.New(sandbox.Config{Dir: filepath.Join(dir, "sandbox"), AllowUnisolated: f.allowUnisolated, Log: log})
	if err != nil {
		return err
	}
	defer boxes.Close()
	// After the sandbox, whose lock keeps a second agent from the cards' files.
	devices, err := simulator.New(dir, cards, 1, log)
	if err != nil {
		return err
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

package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"berth/agent"
	"berth/agent/device/nvml"
	"berth/agent/doctor"
	"berth/agent/runtime/sandbox"
)

func newAgentDoctor() *cobra.Command {
	var f agentFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look whether this host can be a node, and say what to do where it cannot",
		Long: `Looks at the GPU driver, at how instances can be isolated and limited (by really
starting something), at disk, ports, the portal and the clock. It changes nothing.
It ends with 1 if something keeps this host from being a node.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := filepath.Abs(f.data)
			if err != nil {
				return err
			}
			id, joined, err := agent.LoadIdentity(dir)
			if err != nil {
				return err
			}
			if f.portal == "" && joined {
				f.portal = id.PortalURL
			}
			scratch, err := os.MkdirTemp("", "berth-doctor-") // a running agent has its own folder locked
			if err != nil {
				return err
			}
			defer os.RemoveAll(scratch)
			if err := os.Chmod(scratch, 0o755); err != nil {
				return err
			}
			boxes, err := sandbox.New(sandbox.Config{Dir: filepath.Join(scratch, "sandbox"), AllowUnisolated: f.allowUnisolated, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				return err
			}
			defer boxes.Close()
			checks := doctor.Run(cmd.Context(), doctor.Config{Dir: dir, Portal: f.portal, Simulated: f.simulate != "", Drives: nvml.Built, Metrics: f.metrics}, boxes.Probe(cmd.Context()))
			out := cmd.OutOrStdout()
			if asJSON {
				e := json.NewEncoder(out)
				e.SetIndent("", "  ")
				if err := e.Encode(checks); err != nil {
					return err
				}
			} else {
				for _, c := range checks {
					fmt.Fprintf(out, "%-8s %-16s %s\n", strings.ToUpper(string(c.State)), c.Name, c.Seen)
					if c.Next != "" {
						fmt.Fprintf(out, "%-8s %-16s → %s\n", "", "", c.Next)
					}
				}
			}
			if !doctor.Healthy(checks) {
				return errors.New("something keeps this host from being a node")
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.portal, "portal", "", "address of the portal (default: the one that --data has joined)")
	flags.StringVar(&f.data, "data", agentHome, "directory that the agent has or would have")
	flags.StringVar(&f.simulate, "simulate", "", "the node would simulate these GPUs")
	flags.StringVar(&f.metrics, "metrics-listen", "", "where Prometheus would read the cards")
	flags.BoolVar(&f.allowUnisolated, "allow-unisolated", false, "plain processes would do: no isolation")
	flags.BoolVar(&asJSON, "json", false, "for scripts")
	return cmd
}

package cli

import (
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"berth/agent/device/nvml"
	"berth/agent/device/simulator"
	"berth/gpu"
)

// newFault gives a simulated card a fault, to see what happens then, and takes a
// real one's fault off the record.
func newFault() *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use:   "fault [CARD XID]",
		Short: "Give a simulated card a fault, or mend it",
		Long: `Gives a simulated card the fault that NVIDIA's driver would report by that Xid,
while the agent runs, or with 0 mends it by a reset, which loses its slices.
Without arguments it lists the simulated cards.

With 0 it also puts a real card back on sale that a fault had taken off: say so
when you have reset or replaced it. Real cards are never touched.`,
		Example: `  berth agent fault --data .berth/agent
  berth agent fault GPU-73185475-2391-4057-87d5-4fa69468b98d 79 --data .berth/agent`,
		Args: cobra.MatchAll(cobra.MaximumNArgs(2), func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return usage{hint(fmt.Errorf("which Xid shall %s have", args[0]), "79: fallen off the bus; 48: ECC error; 31: a program's mistake; 0: mended")}
			}
			return nil
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := filepath.Abs(data)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				cards, err := simulator.Cards(dir)
				for _, c := range cards {
					fmt.Fprintln(cmd.OutOrStdout(), c)
				}
				return hint(err, "name the agent's directory: --data DIR (under berth up it is .berth/agent)")
			}
			xid, err := strconv.Atoi(args[1])
			if err != nil || xid < 0 || xid > 9999 {
				return usage{fmt.Errorf("%q is no Xid: write a number, 0 to mend the card", args[1])}
			}
			if xid == 0 {
				mended, err := nvml.Mend(dir, args[0])
				if err != nil {
					return err
				}
				if mended {
					fmt.Fprintf(cmd.OutOrStdout(), "%s is on sale again, on your word that it was reset or replaced.\n", args[0])
					return nil
				}
			}
			if err := simulator.SetFault(dir, args[0], xid); err != nil {
				return hint(err, "name the agent's directory: --data DIR (under berth up it is .berth/agent)")
			}
			if xid == 0 {
				fmt.Fprintf(cmd.OutOrStdout(), "Simulated: %s is reset and well.\n", args[0])
				return nil
			}
			x, then := gpu.LookupXid(xid), "The card stays in service."
			if x.Sick {
				then = "The card is off sale, and what runs on it is ended."
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Simulated: %s has %s. %s\n", args[0], x, then)
			return nil
		},
	}
	cmd.Flags().StringVar(&data, "data", filepath.Join(".berth", agentDir), "directory of the agent")
	return cmd
}

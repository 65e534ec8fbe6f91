package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"berth/agent/runtime/sandbox"
)

func newDown() *cobra.Command {
	var data string
	var verbose bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "End what `berth up` started, instances too",
		Long: `Ends "berth up" if it runs, and then every instance under DIR. Disks, wallets
and invoices stay; "berth up" goes on with them.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return down(cmd.Context(), data, verbose, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&data, "data", ".berth", "directory of berth up")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "say more")
	return cmd
}

func down(ctx context.Context, data string, verbose bool, stdout, stderr io.Writer) error {
	dir, err := filepath.Abs(data)
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return hint(fmt.Errorf("there is no %s", dir), "name the directory that berth up used: --data DIR")
	}
	for _, name := range []string{"up", "portal"} {
		if err := endHolder(ctx, dir, name); err != nil {
			return err
		}
	}
	boxDir := filepath.Join(dir, agentDir, "sandbox")
	if _, err := os.Stat(boxDir); errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintln(stdout, "Nothing was running.")
		return nil
	}
	boxes, err := sandbox.New(sandbox.Config{Dir: boxDir, AllowUnisolated: true, Log: logger(stderr, verbose)})
	if err != nil {
		return hint(err, "stop the agent that holds %s first", boxDir)
	}
	defer boxes.Close()
	list, err := boxes.List(ctx)
	if err != nil {
		return err
	}
	ended := 0
	for _, o := range list {
		if o.Phase.Over() {
			continue
		}
		if err := boxes.Stop(ctx, o.Instance, 5*time.Second); err != nil {
			return fmt.Errorf("end instance %s: %w", o.Instance, err)
		}
		ended++
	}
	what := "instances"
	if ended == 1 {
		what = "instance"
	}
	fmt.Fprintf(stdout, "Berth is down; %d %s ended. Disks, wallets and invoices stay in %s.\n", ended, what, dir)
	return nil
}

// endHolder ends the process that holds name in dir, and waits until it is gone.
func endHolder(ctx context.Context, dir, name string) error {
	pid := holder(dir, name)
	if pid == 0 {
		return nil
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("end process %d: %w", pid, err)
	}
	deadline := time.After(30 * time.Second)
	for holder(dir, name) != 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline:
			return hint(fmt.Errorf("process %d does not end", pid), "kill -9 %d, then berth down again", pid)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "node"
	}
	return name
}

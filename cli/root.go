// Package cli is the command line: one file per command, its flags, its wiring
// and its exit codes. It owns cobra. What a command does lives elsewhere.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// hinted is an error with the exact thing to do next.
type hinted struct {
	err  error
	hint string
}

func (h hinted) Error() string { return h.err.Error() }
func (h hinted) Unwrap() error { return h.err }

// hint adds a next step to err; nil stays nil.
func hint(err error, next string, args ...any) error {
	if err == nil {
		return nil
	}
	return hinted{err: err, hint: fmt.Sprintf(next, args...)}
}

// usage marks an error in the command's words, for exit code 2.
type usage struct{ error }

func (u usage) Unwrap() error { return u.error }

// Main runs the command line and returns the exit code. It prints an error as
// one line, and under it a hint where there is one.
func Main(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(stderr, "berth: %v\n", err)
	var h hinted
	if errors.As(err, &h) {
		fmt.Fprintf(stderr, "  → %s\n", h.hint)
	}
	var u usage
	if errors.As(err, &u) {
		return exitUsage
	}
	return exitFailed
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "berth",
		Short:         "A GPU rental portal that anyone who owns GPU hosts can run",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       Version(),
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return fromEnvironment(cmd.Flags())
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage{hint(err, "berth %s --help", cmd.Name())}
	})
	root.AddCommand(newUp(), newDown(), newServe(), newAgent(), newSlices())
	return root
}

// fromEnvironment sets each flag that was not given from BERTH_<FLAG>.
func fromEnvironment(flags *pflag.FlagSet) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		name := "BERTH_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if value, ok := os.LookupEnv(name); ok && !f.Changed {
			if err := flags.Set(f.Name, value); err != nil {
				errs = append(errs, usage{fmt.Errorf("%s: %w", name, err)})
			}
		}
	})
	return errors.Join(errs...)
}

// logger writes to w; verbose includes debug lines.
func logger(w io.Writer, verbose bool) *slog.Logger {
	level := slog.LevelInfo
	if verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

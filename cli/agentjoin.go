package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"berth/agent"
	"berth/deploy"
)

// agentHome is where a host's agent keeps its things when it runs for good.
const agentHome = "/var/lib/berth-agent"

type joinFlags struct {
	agentFlags
	noService, replace bool
	unitDir            string
}

func newAgentJoin() *cobra.Command {
	var f joinFlags
	cmd := &cobra.Command{
		Use:   "join PORTAL",
		Short: "Make this host a node: join the portal and run the agent for good",
		Long: `Exchanges the one-time token for this node's identity, writes the agent's systemd
unit and starts it. Where systemd does not run it says what to run instead. It may
be repeated: a host that has joined stays who it is, and its token is not used.
Nothing is spent on a host whose cards this berth cannot drive; simulated ones
need no hardware (--simulate).`,
		Example: "  berth agent join https://berth.example --token bjt_…\n  berth agent join https://berth.example --token bjt_… --simulate " + defaultCards,
		Args: cobra.MatchAll(func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage{hint(errors.New("which portal shall this host join"), "berth agent join https://berth.example --token … (the fleet page shows the line to copy)")}
			}
			return nil
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.portal = args[0]
			return joinForGood(cmd.Context(), f, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.token, "token", "", "one-time token from the fleet page")
	flags.StringVar(&f.name, "name", "", "what the operator calls this node (default: the host's name)")
	flags.StringVar(&f.data, "data", agentHome, "directory for the node's key, its instances and their disks")
	flags.StringVar(&f.simulate, "simulate", "", "simulate these GPUs instead of real ones, model:count,…")
	flags.StringVar(&f.metrics, "metrics-listen", "", "where Prometheus may read the cards, such as :9400 (default: nowhere)")
	flags.BoolVar(&f.noService, "no-service", false, "join only: neither write the systemd unit nor start the agent")
	flags.BoolVar(&f.replace, "replace", false, "join under a new key although this host has joined before; its instances end")
	flags.StringVar(&f.unitDir, "unit-dir", "/etc/systemd/system", "where the systemd unit goes")
	return cmd
}

func joinForGood(ctx context.Context, f joinFlags, stdout io.Writer) error {
	if f.simulate != "" {
		if _, err := simulatedCards(f.simulate); err != nil {
			return err
		}
	}
	dir, err := makeDataDir(f.data)
	if err != nil {
		return hint(err, "run it as root, or choose another directory with --data")
	}
	before, joined, err := agent.LoadIdentity(dir)
	if err != nil {
		return err
	}
	fresh := !joined || f.replace
	if fresh && f.token == "" {
		return usage{hint(errors.New("a token is needed to join"), "make one on the portal's fleet page; it works once, for an hour")}
	}
	if fresh && f.simulate == "" { // a token is not spent on a host without cards
		cards, err := openCards(dir, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		if err := cards.Close(); err != nil {
			return err
		}
	}
	name := f.name
	if name == "" {
		name = hostname()
	}
	join := agent.Join
	if f.replace {
		join = agent.Rejoin
	}
	id, err := join(ctx, f.portal, f.token, name, dir)
	switch {
	case errors.Is(err, agent.ErrRefused):
		return err // in the portal's words, with what to do
	case errors.Is(err, agent.ErrOtherPortal):
		return hint(err, "--replace leaves that portal; its instances here end")
	case err != nil:
		return hint(err, "berth agent doctor --portal %s looks for what is in the way", f.portal)
	case !fresh:
		fmt.Fprintf(stdout, "This host is node %s of %s already; no token was used.\n", before.Name, before.PortalURL)
	default:
		fmt.Fprintf(stdout, "Joined %s as node %s.\n", id.PortalURL, id.Name)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	command := []string{self, "agent", "--data", dir}
	if f.simulate != "" {
		command = append(command, "--simulate", f.simulate)
	}
	if f.metrics != "" {
		command = append(command, "--metrics-listen", f.metrics)
	}
	if f.noService {
		fmt.Fprintf(stdout, "Start it with:  %s\n", shellLine(command))
		return nil
	}
	return install(ctx, f.unitDir, command, stdout)
}

// shellLine writes a command for a shell to read.
func shellLine(command []string) string {
	words := make([]string, len(command))
	for i, w := range command {
		words[i] = w
		if w == "" || strings.ContainsAny(w, " \t\n'\"\\$`*?[]{}()<>|&;#~!") {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

const unitName = "berth-agent.service"

// install writes the unit, and starts it where systemd runs.
func install(ctx context.Context, unitDir string, command []string, stdout io.Writer) error {
	if _, err := os.Stat("/run/systemd/system"); errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(stdout, "systemd does not run here, so nothing was installed. Have this run, and started again when it ends:\n  %s\n", shellLine(command))
		return nil
	}
	path := filepath.Join(unitDir, unitName)
	if err := writeFile(path, []byte(deploy.AgentUnit(command)), 0o644); err != nil {
		return hint(err, "run it as root, or with --no-service")
	}
	for _, args := range [][]string{{"daemon-reload"}, {"enable", unitName}, {"restart", unitName}} {
		if out, err := exec.CommandContext(ctx, "systemctl", args...).CombinedOutput(); err != nil {
			return hint(fmt.Errorf("systemctl %s: %w: %s", args[0], err, out), "journalctl -u %s says more; the unit is %s", unitName, path)
		}
	}
	fmt.Fprintf(stdout, "The agent runs as %s and starts with this host. Its log: journalctl -u %s -f\n", unitName, unitName)
	return nil
}

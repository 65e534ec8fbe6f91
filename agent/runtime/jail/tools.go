package jail

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"text/tabwriter"

	"golang.org/x/sys/unix"
)

const loadUsage = `Usage: berth-load PERCENT [--memory MIB]   keep the simulated devices busy until Ctrl-C
       berth-load --memory MIB              hold device memory only
       berth-load off                       end every berth-load of this instance
The devices are simulated: this makes their readings move and computes nothing.
`

// LoadMain is the program berth-load. Exit codes: 0 done, 1 refused, 2 usage.
func LoadMain(args []string) int {
	req, help, err := parseLoad(args)
	switch {
	case help:
		fmt.Print(loadUsage)
		return 0
	case err != nil:
		fmt.Fprintf(os.Stderr, "berth-load: %v\n%s", err, loadUsage)
		return 2
	}
	if err := askLoad(req); err != nil {
		fmt.Fprintln(os.Stderr, "berth-load:", err)
		return 1
	}
	return 0
}

func parseLoad(args []string) (req loadRequest, help bool, err error) {
	fs := flag.NewFlagSet("berth-load", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Int64Var(&req.MemoryMiB, "memory", 0, "")
	given := false
	for rest := args; len(rest) > 0; { // flags may stand on either side of the number
		if err := fs.Parse(rest); errors.Is(err, flag.ErrHelp) {
			return req, true, nil
		} else if err != nil {
			return req, false, err
		}
		rest = fs.Args()
		if len(rest) == 0 {
			break
		}
		if given {
			return req, false, fmt.Errorf("one number only, then %q", rest[0])
		}
		given = true
		if rest[0] == "off" {
			req.Off = true
		} else if req.UtilizationPercent, err = strconv.ParseFloat(strings.TrimSuffix(rest[0], "%"), 64); err != nil {
			return req, false, fmt.Errorf("%q is no number of percent", rest[0])
		}
		rest = rest[1:]
	}
	if !given && req.MemoryMiB == 0 {
		return req, false, errors.New("say how much")
	}
	if !(req.UtilizationPercent >= 0 && req.UtilizationPercent <= 100) || req.MemoryMiB < 0 {
		return req, false, errors.New("percent are 0 to 100, memory 0 or more")
	}
	return req, false, nil
}

func askLoad(req loadRequest) error {
	name := os.Getenv("BERTH_LOAD_SOCKET")
	if name == "" {
		name = "/run/berth/load.sock"
	}
	c, err := net.Dial("unix", name)
	if err != nil {
		return fmt.Errorf("%w (this command works inside an instance)", err)
	}
	defer c.Close()
	line, err := json.Marshal(req)
	if err != nil {
		return err
	}
	if _, err := c.Write(append(line, '\n')); err != nil {
		return err
	}
	r := bufio.NewReader(c)
	answer, err := r.ReadString('\n')
	if err != nil {
		return fmt.Errorf("no answer: %w", err)
	}
	if answer = strings.TrimSpace(answer); answer != "ok" {
		return errors.New(answer)
	}
	if req.Off {
		fmt.Println("The simulated devices are idle again.")
		return nil
	}
	fmt.Printf("Simulated load: %g %% and %d MiB on each granted device. Ctrl-C ends it.\n", req.UtilizationPercent, req.MemoryMiB)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	ended := make(chan struct{})
	go func() {
		r.ReadByte()
		close(ended)
	}()
	select {
	case <-stop:
	case <-ended:
		fmt.Println("Ended by `berth-load off`.")
	}
	return nil
}

// SMIMain is the program berth-smi: it lists the devices this instance was granted.
func SMIMain(args []string) int {
	if len(args) > 0 {
		fmt.Println("Usage: berth-smi   list the devices granted to this instance")
		if args[0] == "-h" || args[0] == "--help" {
			return 0
		}
		return 2
	}
	l, err := readDevices()
	if err != nil {
		fmt.Fprintln(os.Stderr, "berth-smi:", err)
		return 1
	}
	printDevices(os.Stdout, l)
	return 0
}

func printDevices(out io.Writer, l deviceList) {
	if len(l.Devices) == 0 {
		fmt.Fprintln(out, "No devices are granted to this instance.")
		return
	}
	if l.Simulated {
		fmt.Fprintln(out, "Simulated devices: no real GPU is behind them. Try berth-load.")
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "#\tDEVICE\tSLICE\tMEMORY\tUUID")
	for i, d := range l.Devices {
		name, profile := d.Name, d.Profile
		if name == "" {
			name = "GPU"
		}
		if profile == "" {
			profile = "whole"
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%d MiB\t%s\n", i, name, profile, d.MemoryMiB, d.UUID)
	}
	w.Flush()
}

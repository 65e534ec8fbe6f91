package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"berth/gpu"
)

// newSlices answers questions about slices of a card from Berth's tables alone:
// no portal, no card.
func newSlices() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "slices",
		Short: "What fits on a card, and how to come from one layout to another",
		Long: `Answers from Berth's tables where slices of a card can lie. It needs no portal
and no GPU. A slice in its place is written profile@start, such as 3g.40gb@4; the
start is a memory unit, as nvidia-smi mig -lgipp counts them.`,
	}
	cmd.AddCommand(newSlicesList(), newSlicesFit(), newSlicesPlan())
	return cmd
}

// print writes v as JSON, or what text writes for people.
func print(w io.Writer, asJSON bool, v any, text func(w io.Writer)) error {
	if asJSON {
		out := json.NewEncoder(w)
		out.SetIndent("", "  ")
		return out.Encode(v)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	text(table)
	return table.Flush()
}

// modelNamed finds a model, or says which there are.
func modelNamed(id string) (gpu.Model, error) {
	m, err := gpu.Lookup(gpu.ModelID(id))
	if err != nil {
		return m, usage{hint(err, "berth slices list")}
	}
	return m, nil
}

// placements reads profile@start words.
func placements(m gpu.Model, words []string) ([]gpu.Placement, error) {
	out := []gpu.Placement{}
	for _, w := range words {
		p, err := m.ParsePlacement(w)
		if err != nil {
			return nil, usage{hint(err, "berth slices list %s", m.ID)}
		}
		out = append(out, p)
	}
	return out, nil
}

type profileAnswer struct {
	Profile   string `json:"profile"`
	MemoryMiB int    `json:"memory_mib"`
	Memory    int    `json:"memory_units"`
	Compute   int    `json:"compute_slices"`
	Starts    []int  `json:"starts"`
	Most      int    `json:"max_on_a_card"`
}

func newSlicesList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list [MODEL]",
		Short: "The models Berth knows, or the slices of one",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listModels(cmd.OutOrStdout(), asJSON)
			}
			m, err := modelNamed(args[0])
			if err != nil {
				return err
			}
			var list []profileAnswer
			for _, p := range m.Profiles {
				list = append(list, profileAnswer{p.Name, p.MemoryMiB, p.Units, p.ComputeSlices, p.Starts, p.MaxInstances})
			}
			return print(cmd.OutOrStdout(), asJSON, list, func(w io.Writer) {
				if len(list) == 0 {
					fmt.Fprintf(w, "%s cannot be divided.\n", m.Name)
					return
				}
				fmt.Fprintln(w, "PROFILE\tMIB\tMEMORY UNITS\tCOMPUTE\tSTARTS\tMOST")
				for _, p := range list {
					mib := "not known"
					if p.MemoryMiB > 0 {
						mib = strconv.Itoa(p.MemoryMiB)
					}
					fmt.Fprintf(w, "%s\t%s\t%d of %d\t%d of %d\t%s\t%d\n", p.Profile, mib, p.Memory, m.MemoryUnits, p.Compute, m.ComputeSlices, numbers(p.Starts), p.Most)
				}
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "JSON for scripts")
	return cmd
}

func listModels(out io.Writer, asJSON bool) error {
	type model struct {
		ID        gpu.ModelID `json:"id"`
		Name      string      `json:"name"`
		MemoryMiB int         `json:"memory_mib"`
		Slices    int         `json:"profiles"`
	}
	var list []model
	for _, m := range gpu.Models() {
		list = append(list, model{m.ID, m.Name, m.MemoryMiB, len(m.Profiles)})
	}
	return print(out, asJSON, list, func(w io.Writer) {
		fmt.Fprintln(w, "MODEL\tNAME\tMIB\tSLICE PROFILES")
		for _, m := range list {
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\n", m.ID, m.Name, m.MemoryMiB, m.Slices)
		}
	})
}

func numbers(list []int) string {
	var said []string
	for _, n := range list {
		said = append(said, strconv.Itoa(n))
	}
	return strings.Join(said, ",")
}

type fitAnswer struct {
	Model    gpu.ModelID     `json:"model"`
	Used     []gpu.Placement `json:"used"`
	Profiles []profileFit    `json:"profiles"`
	// Together places all that were asked for beside each other; null when no
	// arrangement has room for them.
	Together []gpu.Placement `json:"together"`
}

type profileFit struct {
	Profile string `json:"profile"`
	Starts  []int  `json:"starts"` // free ones
	Best    *int   `json:"best"`   // where Berth would put it
	Most    int    `json:"most"`   // of it alone
	Why     string `json:"why_not,omitempty"`
}

func newSlicesFit() *cobra.Command {
	var used []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "fit MODEL [PROFILE…]",
		Short: "Where slices can still be placed beside those on a card, or why not",
		Example: `  berth slices fit a100-80gb --used 3g.40gb@0 1g.10gb 2g.20gb
  berth slices fit h100-80gb --used 1g.10gb@0,1g.10gb@4 --json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := modelNamed(args[0])
			if err != nil {
				return err
			}
			a := fitAnswer{Model: m.ID}
			if a.Used, err = placements(m, used); err != nil {
				return err
			}
			if err := m.CheckLayout(a.Used); err != nil {
				return usage{err}
			}
			asked := args[1:]
			if len(asked) == 0 {
				for _, p := range m.Sold() {
					asked = append(asked, p.Name)
				}
			}
			for _, name := range asked {
				p, err := m.Profile(name)
				if err != nil {
					return usage{hint(err, "berth slices list %s", m.ID)}
				}
				fit := profileFit{Profile: name, Starts: append([]int{}, m.FreeStarts(p, a.Used)...), Most: m.CountFit(p, a.Used), Why: m.WhyNot(p, a.Used)}
				if at, ok := m.BestStart(p, a.Used); ok {
					fit.Best = &at
				}
				a.Profiles = append(a.Profiles, fit)
			}
			if len(args) > 1 {
				if a.Together, err = m.PlaceAll(asked, a.Used); err != nil && !errors.Is(err, gpu.ErrNoPlacement) {
					return err
				}
			}
			return print(cmd.OutOrStdout(), asJSON, a, func(w io.Writer) { sayFit(w, a, len(args) > 2) })
		},
	}
	cmd.Flags().StringSliceVar(&used, "used", nil, "slices on the card, profile@start,…")
	cmd.Flags().BoolVar(&asJSON, "json", false, "JSON for scripts")
	return cmd
}

func sayFit(w io.Writer, a fitAnswer, several bool) {
	for _, p := range a.Profiles {
		if p.Best == nil {
			fmt.Fprintf(w, "%s\tfits nowhere: %s\n", p.Profile, p.Why)
			continue
		}
		fmt.Fprintf(w, "%s\tat %s; best at %d; %d of them at most\n", p.Profile, numbers(p.Starts), *p.Best, p.Most)
	}
	switch {
	case !several:
	case a.Together == nil:
		fmt.Fprintln(w, "together\tno arrangement has room for all of them")
	default:
		fmt.Fprintf(w, "together\t%s\n", words(a.Together))
	}
}

func words(ps []gpu.Placement) string {
	var said []string
	for _, p := range ps {
		said = append(said, p.String())
	}
	return strings.Join(said, " ")
}

type planAnswer struct {
	Model  gpu.ModelID     `json:"model"`
	Keep   []gpu.Placement `json:"keep"`
	Remove []gpu.Placement `json:"remove"`
	Make   []gpu.Placement `json:"make"`
}

func newSlicesPlan() *cobra.Command {
	var idle, busy []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "plan MODEL PROFILE…",
		Short: "The steps from the slices on a card to a wanted layout",
		Long: `Prints what to keep, remove and make so that the card holds just the profiles
named. Slices in use (--busy) stay where they are and count towards the layout; of
the others as many are kept as can be. It fails when slices in use are in the way.`,
		Example: `  berth slices plan a100-80gb --busy 1g.10gb@3 --now 2g.20gb@0,3g.40gb@4 7x1g.10gb`,
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := modelNamed(args[0])
			if err != nil {
				return err
			}
			var now []gpu.Held
			for holder, list := range map[string][]string{"": idle, "an instance": busy} {
				ps, err := placements(m, list)
				if err != nil {
					return err
				}
				for _, p := range ps {
					now = append(now, gpu.Held{Placement: p, Holder: holder})
				}
			}
			want, err := wanted(m, args[1:])
			if err != nil {
				return err
			}
			p, err := m.Plan(now, want)
			if err != nil {
				return err
			}
			a := planAnswer{Model: m.ID, Keep: []gpu.Placement{}, Remove: append([]gpu.Placement{}, p.Remove...), Make: append([]gpu.Placement{}, p.Make...)}
			for _, k := range p.Keep {
				a.Keep = append(a.Keep, k.Placement)
			}
			return print(cmd.OutOrStdout(), asJSON, a, func(w io.Writer) {
				for _, part := range []struct {
					what string
					ps   []gpu.Placement
				}{{"keep", a.Keep}, {"remove", a.Remove}, {"make", a.Make}} {
					if len(part.ps) > 0 {
						fmt.Fprintf(w, "%s\t%s\n", part.what, words(part.ps))
					}
				}
				if len(a.Remove)+len(a.Make) == 0 {
					fmt.Fprintln(w, "nothing to do")
				}
			})
		},
	}
	cmd.Flags().StringSliceVar(&idle, "now", nil, "idle slices on the card, profile@start,…")
	cmd.Flags().StringSliceVar(&busy, "busy", nil, "slices in use, profile@start,…")
	cmd.Flags().BoolVar(&asJSON, "json", false, "JSON for scripts")
	return cmd
}

// wanted reads profiles, each with how often before an x: 7x1g.10gb.
func wanted(m gpu.Model, args []string) (out []string, err error) {
	for _, a := range args {
		n, name := 1, a
		if before, after, ok := strings.Cut(a, "x"); ok {
			if k, err := strconv.Atoi(before); err == nil {
				n, name = k, after
			}
		}
		if _, err := m.Profile(name); err != nil {
			return nil, usage{hint(err, "berth slices list %s", m.ID)}
		}
		if n < 1 || n > 32 {
			return nil, usage{fmt.Errorf("%q: from 1 to 32 times", a)}
		}
		for range n {
			out = append(out, name)
		}
	}
	return out, nil
}

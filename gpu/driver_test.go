package gpu

import (
	"slices"
	"strings"
	"testing"
)

func TestRecognise(t *testing.T) {
	for product, want := range map[string]ModelID{
		"NVIDIA A100-SXM4-80GB": "a100-80gb",
		"A100-SXM4-40GB":        "a100-40gb", // R450's spelling
		"NVIDIA A100 80GB PCIe": "a100-80gb",
		"NVIDIA H100 80GB HBM3": "h100-80gb",
		"Tesla T4":              "t4",
		"NVIDIA A100":           "",
		"":                      "",
	} {
		if m, ok := Recognise(product); m.ID != want || ok != (want != "") {
			t.Errorf("%q is %q, want %q", product, m.ID, want)
		}
	}
}

// The driver's own table wins over the file, with the difference in words.
func TestDriversTableWins(t *testing.T) {
	m, err := Lookup("a100-80gb")
	if err != nil {
		t.Fatal(err)
	}
	driver := func(change func([]Profile) []Profile) []Profile {
		out := slices.Clone(m.Profiles)
		for i := range out {
			out[i].Starts = slices.Clone(out[i].Starts)
		}
		return change(out)
	}
	at := func(ps []Profile, name string) *Profile {
		return &ps[slices.IndexFunc(ps, func(p Profile) bool { return p.Name == name })]
	}
	for name, tc := range map[string]struct {
		change func([]Profile) []Profile
		said   []string
		starts map[string][]int // of profiles on the empty card, by the driver
	}{
		"the same": {func(ps []Profile) []Profile { return ps }, nil, map[string][]int{"3g.40gb": {0, 4}}},
		"an undivided card tells no starts": {func(ps []Profile) []Profile {
			for i := range ps {
				ps[i].Starts, ps[i].Units = nil, 0
			}
			return ps
		}, nil, map[string][]int{"3g.40gb": {0, 4}}},
		"starts elsewhere": {func(ps []Profile) []Profile { at(ps, "2g.20gb").Starts = []int{0, 4}; return ps },
			[]string{"2g.20gb has size 2 and starts at [0 4] by the driver, size 2 and [0 2 4]"}, map[string][]int{"2g.20gb": {0, 4}}},
		"a larger slice": {func(ps []Profile) []Profile {
			at(ps, "1g.10gb").Units, at(ps, "1g.10gb").Starts = 2, []int{0, 2}
			return ps
		},
			[]string{"1g.10gb has size 2"}, map[string][]int{"1g.10gb": {0, 2}}},
		"less memory": {func(ps []Profile) []Profile { at(ps, "1g.10gb").MemoryMiB = 9728; return ps },
			[]string{"1g.10gb has 9728 MiB by the driver"}, map[string][]int{"1g.10gb": {0, 1, 2, 3, 4, 5, 6}}},
		"an old driver lacks one": {func(ps []Profile) []Profile {
			return slices.DeleteFunc(ps, func(p Profile) bool { return p.Name == "1g.20gb" })
		}, []string{"does not offer 1g.20gb"}, map[string][]int{"1g.20gb": nil}},
		"a new one": {func(ps []Profile) []Profile {
			return append(ps, Profile{Name: "5g.50gb", ComputeSlices: 5, Units: 5, Starts: []int{0}, MaxInstances: 1, MemoryMiB: 50000})
		}, []string{"offers 5g.50gb"}, map[string][]int{"5g.50gb": {0}}},
		"a new one of unknown place": {func(ps []Profile) []Profile {
			return append(ps, Profile{Name: "5g.50gb", ComputeSlices: 5, MaxInstances: 1})
		},
			[]string{"offers 5g.50gb"}, map[string][]int{"5g.50gb": nil}},
		"nonsense": {func(ps []Profile) []Profile { at(ps, "1g.10gb").Starts = []int{0, 1 << 20}; return ps },
			[]string{"1g.10gb has size 1 and starts at"}, map[string][]int{"1g.10gb": nil}},
	} {
		t.Run(name, func(t *testing.T) {
			table := driver(tc.change)
			said := m.Differences(table)
			if len(said) != len(tc.said) {
				t.Fatalf("said %q", said)
			}
			for i := range said {
				if !strings.Contains(said[i], tc.said[i]) {
					t.Errorf("said %q, want %q", said[i], tc.said[i])
				}
			}
			w := m.WithDriver(table)
			for name, want := range tc.starts {
				p, err := w.Profile(name)
				if err != nil && want == nil {
					continue
				}
				if got := w.FreeStarts(p, nil); err != nil || !slices.Equal(got, want) {
					t.Errorf("%s starts at %v (%v), want %v", name, got, err, want)
				}
			}
			if got := m.FreeStarts(m.Profiles[0], nil); len(got) == 0 {
				t.Error("the model's own table was changed")
			}
		})
	}
	if w := m.WithDriver(nil); len(w.Profiles) != len(m.Profiles) {
		t.Error("no table at all is not a table without profiles")
	}
}

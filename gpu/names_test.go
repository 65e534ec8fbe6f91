package gpu

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestModels(t *testing.T) {
	partitions := []ModelID{"a30-24gb", "a100-40gb", "a100-80gb", "h100-80gb", "h100-94gb", "h200-141gb", "b200-180gb", "rtxpro6000-96gb"}
	others := []ModelID{"rtx3090", "rtx4090", "rtx5090", "rtxa6000", "rtx6000ada", "t4", "v100-16gb", "v100-32gb", "a10", "l4", "l40s"}
	var ids []ModelID
	for _, m := range Models() {
		ids = append(ids, m.ID)
		t.Run(string(m.ID), func(t *testing.T) {
			if m.Name == "" || m.Product == "" || m.Vendor != "NVIDIA" || m.Architecture == "" || m.Class == "" || m.MemoryType == "" || m.Source == "" {
				t.Errorf("a fact is missing: %+v", m)
			}
			// A box's gigabyte is 10⁹ or 2³⁰ bytes, less what ECC takes.
			if gib := m.MemoryGB * 1024; m.MemoryMiB < gib*93/100 || m.MemoryMiB > gib {
				t.Errorf("%d MiB on a card of %d GB", m.MemoryMiB, m.MemoryGB)
			}
			if m.TDPWatt < 50 || m.IdleWatt <= 0 || m.IdleWatt > m.TDPWatt/4 || m.BandwidthGBs < 200 {
				t.Errorf("%d W, idle %d W, %d GB/s", m.TDPWatt, m.IdleWatt, m.BandwidthGBs)
			}
			if m.Partitions() != slices.Contains(partitions, m.ID) {
				t.Errorf("partitions: %v", m.Partitions())
			}
			if !m.Partitions() {
				if m.MemoryUnits != 0 || m.ComputeSlices != 0 || m.ResetlessMIG || m.ModePersists {
					t.Error("an undividable card has slices")
				}
				return
			}
			if ampere := m.Architecture == "Ampere"; m.ModePersists != ampere || m.ResetlessMIG == ampere || m.GPM == ampere {
				t.Errorf("%s: mode persists %v, resetless %v, GPM %v", m.Architecture, m.ModePersists, m.ResetlessMIG, m.GPM)
			}
			for _, p := range m.Profiles {
				if p.Units < 1 || p.MaxInstances < 1 || len(p.Starts) == 0 || !slices.IsSorted(p.Starts) || p.Starts[len(p.Starts)-1]+p.Units > m.MemoryUnits {
					t.Errorf("%+v", p)
				}
				if p.MemoryMiB > m.MemoryMiB*max(1, p.Units)/m.MemoryUnits+1024 {
					t.Errorf("%s delivers %d MiB of %d", p.Name, p.MemoryMiB, m.MemoryMiB)
				}
				// The table's own maximum is what geometry says.
				if n := countFit(p, 0); p.media() != mediaSet && p.media() != mediaAll && n != p.MaxInstances {
					t.Errorf("%s: %d fit, the table says %d", p.Name, n, p.MaxInstances)
				}
			}
		})
	}
	if want := slices.Concat(partitions, others); !slices.Equal(ids, want) {
		t.Errorf("models %v, want %v", ids, want)
	}
	if _, err := Lookup("a100"); !errors.Is(err, ErrUnknownModel) || !strings.Contains(err.Error(), "a100-80gb") {
		t.Errorf("a100: %v", err)
	}
}

func TestSold(t *testing.T) {
	for id, want := range map[ModelID]string{
		"a100-80gb":       "whole 4g.40gb 3g.40gb 2g.20gb 1g.20gb 1g.10gb",
		"a100-40gb":       "whole 4g.20gb 3g.20gb 2g.10gb 1g.10gb 1g.5gb",
		"h200-141gb":      "whole 4g.71gb 3g.71gb 2g.35gb 1g.35gb 1g.18gb",
		"a30-24gb":        "whole 2g.12gb 1g.6gb",
		"rtxpro6000-96gb": "whole 2g.48gb 1g.24gb",
		"rtx4090":         "whole",
	} {
		var got []string
		for _, p := range model(t, id).Sold() {
			got = append(got, p.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s sells %v, want %s", id, got, want)
		}
	}
}

func TestSKU(t *testing.T) {
	for _, tc := range []struct {
		id   string
		want SKU
		name string
		mib  int
	}{
		{"a100-80gb", SKU{"a100-80gb", "a100-80gb", Whole, 1}, "A100 80GB", 81920},
		{"a100-80gb.1g.10gb", SKU{"a100-80gb.1g.10gb", "a100-80gb", "1g.10gb", 1}, "A100 80GB 1g.10gb", 9856},
		{"a100-80gb.1g.10gb+me", SKU{"a100-80gb.1g.10gb+me", "a100-80gb", "1g.10gb+me", 1}, "A100 80GB 1g.10gb+me", 9856},
		{"h100-80gb.x4", SKU{"h100-80gb.x4", "h100-80gb", Whole, 4}, "4 × H100 80GB", 4 * 81559},
		{"h100-80gb.3g.40gb.x2", SKU{"h100-80gb.3g.40gb.x2", "h100-80gb", "3g.40gb", 2}, "2 × H100 80GB 3g.40gb", 2 * 40448},
		{"rtx4090", SKU{"rtx4090", "rtx4090", Whole, 1}, "RTX 4090", 24564},
		{"rtx4090.ts4", SKU{"rtx4090.ts4", "rtx4090", "ts4", 1}, "RTX 4090 ts4", 6141},
		{"a100-80gb.ts16.x2", SKU{"a100-80gb.ts16.x2", "a100-80gb", "ts16", 2}, "2 × A100 80GB ts16", 2 * 5120},
	} {
		got, err := ParseSKU(tc.id)
		if err != nil || got != tc.want {
			t.Errorf("%s: %+v, %v; want %+v", tc.id, got, err, tc.want)
		}
		if got.Name() != tc.name || got.MemoryMiB() != tc.mib {
			t.Errorf("%s: %q with %d MiB, want %q with %d", tc.id, got.Name(), got.MemoryMiB(), tc.name, tc.mib)
		}
	}
	for _, id := range []string{
		"", ".", "a100", "A100-80GB", "a100-80gb.", "a100-80gb.whole", "a100-80gb.1g.5gb", "a100-80gb.x1", "a100-80gb.x04",
		"a100-80gb.x+4", "a100-80gb.x17", "a100-80gb.x", "a100-80gb..x4", "a100-80gb.x2.x2", "rtx4090.1g.10gb", "rtx4090.ts", "rtx4090.ts1", "rtx4090.ts04", "rtx4090.ts+4", "rtx4090.ts17", "rtx4090.ts4.1g.5gb", "a100-80gb.1g.10gb ",
	} {
		if got, err := ParseSKU(id); !errors.Is(err, ErrUnknownSKU) {
			t.Errorf("%q: %+v, %v; want ErrUnknownSKU", id, got, err)
		}
	}
	if s, _ := ParseSKU("h100-80gb.3g.40gb.x2"); s.ComputeSlices() != 6 || s.MemorySlices() != 8 {
		t.Errorf("2 × 3g: %d compute, %d memory slices", s.ComputeSlices(), s.MemorySlices())
	}
}

func FuzzParseSKU(f *testing.F) {
	for _, id := range []string{"a100-80gb", "a100-80gb.1g.10gb", "h100-80gb.x4", "a100-80gb.1g.10gb.x2", "x.x.x"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		s, err := ParseSKU(id)
		if err != nil {
			if !errors.Is(err, ErrUnknownSKU) {
				t.Errorf("%q: untyped error %v", id, err)
			}
			return
		}
		if s.ID != id || SKUFor(s.Model, s.Profile, s.Count) != s {
			t.Errorf("%q reads as %+v", id, s)
		}
		if _, _, err := s.Slice(); err != nil || s.Count < 1 || s.Count > MaxCount {
			t.Errorf("%q: %+v, %v", id, s, err)
		}
	})
}

func TestParseSimulation(t *testing.T) {
	got, err := ParseSimulation("a100-80gb:2, h100-80gb:1,rtx4090")
	want := []ModelCount{{"a100-80gb", 2}, {"h100-80gb", 1}, {"rtx4090", 1}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for in, part := range map[string]string{
		"":                         "write model:number",
		"a100-80gb:2,":             "write model:number",
		":2":                       "write model:number",
		"a100:2":                   "use one of a30-24gb, a100-40gb, a100-80gb",
		"a100-80gb:0":              "use 1 to 64",
		"a100-80gb:-1":             "use 1 to 64",
		"a100-80gb:65":             "use 1 to 64",
		"a100-80gb:many":           `"many"`,
		"a100-80gb:":               `""`,
		"a100-80gb:1:1":            `"1:1"`,
		"a100-80gb:1,a100-80gb:1":  "named twice",
		"a100-80gb:99999999999999": "use 1 to 64",
	} {
		if got, err := ParseSimulation(in); !errors.Is(err, ErrSimulation) || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: %v, %v; want … %s …", in, got, err, part)
		}
	}
}

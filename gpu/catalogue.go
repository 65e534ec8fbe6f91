package gpu

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// data holds three tables, each with its sources beside the figures:
// mig_profiles.json (NVIDIA MIG User Guide and lgip transcripts), gpus.json
// (vendor datasheets) and cards.json, which joins them under Berth's ids.
//
//go:embed data/*.json
var data embed.FS

// catalogue is read once, on first use. The tables are part of the binary, so
// an error in them is a bug that a test finds.
var catalogue = sync.OnceValue(func() []Model {
	models, err := loadModels()
	if err != nil {
		panic("gpu: " + err.Error())
	}
	return models
})

// Models returns every model Berth knows, partitionable ones first.
func Models() []Model { return slices.Clone(catalogue()) }

// Lookup finds a model by id. It fails with ErrUnknownModel.
func Lookup(id ModelID) (Model, error) {
	for _, m := range catalogue() {
		if m.ID == id {
			return m, nil
		}
	}
	return Model{}, fmt.Errorf("%w %q: use one of %s", ErrUnknownModel, id, knownIDs())
}

// Recognise finds the model that a driver calls product; drivers before R450
// leave "NVIDIA " out of most names. ok is false for a card Berth does not know.
func Recognise(product string) (m Model, ok bool) {
	bare := func(s string) string { return strings.TrimPrefix(s, "NVIDIA ") }
	for _, m := range catalogue() {
		for _, name := range append([]string{m.Product}, m.also...) {
			if bare(name) == bare(product) {
				return m, true
			}
		}
	}
	return Model{}, false
}

// knownIDs lists all ids for error messages.
func knownIDs() string {
	var ids []string
	for _, m := range catalogue() {
		ids = append(ids, string(m.ID))
	}
	return strings.Join(ids, ", ")
}

// cardRow is an entry of cards.json.
type cardRow struct {
	ID        ModelID  `json:"id"`
	Name      string   `json:"name"`
	Product   string   `json:"product"`
	Also      []string `json:"also"`
	Facts     string   `json:"facts"`
	MIG       string   `json:"mig"`
	MemoryMiB int      `json:"memory_mib"`
	IdleWatt  int      `json:"idle_w"`
}

// factRow is an entry of gpus.json.
type factRow struct {
	ID           string `json:"id"`
	Architecture string `json:"architecture"`
	Class        string `json:"class"`
	MemoryGB     int    `json:"memory_gb"`
	MemoryType   string `json:"memory_type"`
	BandwidthGBs int    `json:"memory_bandwidth_gbs"`
	ECC          bool   `json:"ecc"`
	NVLink       *struct {
		Form string `json:"form"`
	} `json:"nvlink"`
	TDPWatt   *int   `json:"tdp_w"`
	SlowdownC *int   `json:"temp_slowdown_c"`
	Source    string `json:"source"`
}

// migRow is an entry of mig_profiles.json.
type migRow struct {
	ComputeSlices int          `json:"compute_slices"`
	MemorySlices  int          `json:"memory_slices"`
	Units         int          `json:"placement_units"`
	Profiles      []profileRow `json:"profiles"`
}

type profileRow struct {
	Name          string `json:"name"`
	ProfileID     int    `json:"profile_id"`
	NVMLEnum      int    `json:"nvml_profile_enum"`
	ComputeSlices int    `json:"compute_slices"`
	MemorySlices  int    `json:"memory_slices"`
	MemoryMiB     *int   `json:"memory_mib"`
	MaxInstances  int    `json:"max_instances"`
	Placements    struct {
		Starts []int `json:"starts"`
		Size   int   `json:"size"`
	} `json:"placements"`
	SM          *int   `json:"sm"`
	Decoders    *int   `json:"nvdec"`
	Encoders    *int   `json:"nvenc"`
	JPEG        *int   `json:"jpeg"`
	OFA         *int   `json:"ofa"`
	CopyEngines *int   `json:"copy_engines"`
	MinDriver   string `json:"min_driver"`
}

// loadModels joins the three tables.
func loadModels() ([]Model, error) {
	var cards struct {
		Cards []cardRow `json:"cards"`
	}
	var facts struct {
		GPUs []factRow `json:"gpus"`
	}
	var mig struct {
		GPUs map[string]migRow `json:"gpus"`
	}
	for name, into := range map[string]any{"cards.json": &cards, "gpus.json": &facts, "mig_profiles.json": &mig} {
		raw, err := data.ReadFile("data/" + name)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(raw, into); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	var models []Model
	for _, card := range cards.Cards {
		i := slices.IndexFunc(facts.GPUs, func(f factRow) bool { return f.ID == card.Facts })
		if i < 0 {
			return nil, fmt.Errorf("card %s: gpus.json has no %q", card.ID, card.Facts)
		}
		m := newModel(card, facts.GPUs[i])
		if card.MIG != "" {
			row, ok := mig.GPUs[card.MIG]
			if !ok {
				return nil, fmt.Errorf("card %s: mig_profiles.json has no %q", card.ID, card.MIG)
			}
			m.partition(row)
		}
		m.geometry = newGeometry(m)
		models = append(models, m)
	}
	return models, nil
}

func newModel(card cardRow, fact factRow) Model {
	architecture, _, _ := strings.Cut(fact.Architecture, " (")
	m := Model{
		ID:           card.ID,
		Name:         card.Name,
		Product:      card.Product,
		also:         card.Also,
		Vendor:       "NVIDIA",
		Architecture: architecture,
		Class:        fact.Class,
		MemoryGB:     fact.MemoryGB,
		MemoryMiB:    card.MemoryMiB,
		MemoryType:   fact.MemoryType,
		BandwidthGBs: fact.BandwidthGBs,
		ECC:          fact.ECC,
		TDPWatt:      known(fact.TDPWatt),
		IdleWatt:     card.IdleWatt,
		SlowdownC:    known(fact.SlowdownC),
		Source:       fact.Source,
	}
	if fact.NVLink != nil {
		m.NVLink = fact.NVLink.Form
	}
	if m.Class == "consumer" {
		m.DefaultShare = Share{N: 4}
	}
	m.GPM = architecture == "Hopper" || architecture == "Blackwell"
	return m
}

// partition fills in what mig_profiles.json says of m.
func (m *Model) partition(row migRow) {
	m.ComputeSlices, m.MemorySlices, m.MemoryUnits = row.ComputeSlices, row.MemorySlices, row.Units
	m.ModePersists = m.Architecture == "Ampere"
	m.ResetlessMIG = !m.ModePersists
	for _, p := range row.Profiles {
		m.Profiles = append(m.Profiles, Profile{
			Name:          p.Name,
			ComputeSlices: p.ComputeSlices,
			MemorySlices:  p.MemorySlices,
			Units:         p.Placements.Size,
			MemoryMiB:     known(p.MemoryMiB),
			Starts:        p.Placements.Starts,
			MaxInstances:  p.MaxInstances,
			SM:            known(p.SM),
			CopyEngines:   known(p.CopyEngines),
			Decoders:      known(p.Decoders),
			Encoders:      known(p.Encoders),
			JPEG:          known(p.JPEG),
			OFA:           known(p.OFA),
			ProfileID:     p.ProfileID,
			NVMLEnum:      p.NVMLEnum,
			MinDriver:     p.MinDriver,
		})
	}
}

// known is *n, or 0 where the table has null.
func known(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

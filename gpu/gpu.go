// Package gpu holds facts about accelerators: models, their partition profiles,
// and the geometry that says where a slice can be placed on a card and which
// card to take. It is pure: no driver, no clock, no log. Placement, not
// arithmetic, decides: seven slices can be free and still hold nothing larger
// than one of them.
package gpu

import (
	"errors"
	"fmt"
	"slices"
)

var (
	// ErrUnknownModel says that an id is none of Models.
	ErrUnknownModel = errors.New("unknown GPU model")
	// ErrUnknownProfile says that a model has no profile of that name.
	ErrUnknownProfile = errors.New("unknown slice profile")
)

// ModelID names a model in Berth: "a100-80gb". It is part of SKU ids.
type ModelID string

// Whole is the profile name of a card that is rented undivided.
const Whole = "whole"

// Model is what is true of every card of one model. A number that no source
// gives is 0 and means "not known".
type Model struct {
	ID           ModelID
	Name         string // for people: "A100 80GB"
	Product      string // as the driver reports it: "NVIDIA A100-SXM4-80GB"
	Vendor       string
	Architecture string // "Ampere", "Hopper" …
	Class        string // "datacenter", "workstation" or "consumer"

	MemoryGB     int // the number on the box
	MemoryMiB    int // what the driver reports with partitioning off
	MemoryType   string
	BandwidthGBs int
	ECC          bool
	NVLink       string // the form of the link ("SXM5", "2-way bridge"), "" without one

	TDPWatt   int
	IdleWatt  int // typical at rest, for the simulator
	SlowdownC int // the temperature at which clocks fall

	// Partitioning; all zero on a card that cannot be divided.
	MemoryUnits   int       // placement units, in which starts and sizes count
	MemorySlices  int       // memory slices, as the vendor names them
	ComputeSlices int       // compute slices
	Profiles      []Profile // every profile of the vendor's table; not to be changed

	Share        Share // how this card is shared; see WithShare
	DefaultShare Share // how a card of the model is shared unless its operator says otherwise

	ResetlessMIG bool // the mode changes without a reset (Hopper and later)
	ModePersists bool // the mode outlives a reboot (Ampere); instances never do
	GPM          bool // per-slice utilisation can be read (Hopper and later)

	Source string

	also     []string // names of other boards that are sold as this model
	geometry *geometry
}

// Profile is a kind of slice of one model.
type Profile struct {
	Name          string // "1g.10gb"
	ComputeSlices int
	MemorySlices  int
	Units         int   // its size in placement units
	MemoryMiB     int   // what it really delivers; 0 where no source says
	Starts        []int // the units at which it may start, lowest first
	MaxInstances  int   // of this profile alone on one card

	SM, CopyEngines, Decoders, Encoders, JPEG, OFA int

	ProfileID int    // as nvidia-smi prints it
	NVMLEnum  int    // NVML_GPU_INSTANCE_PROFILE_*
	MinDriver string // "R525"; "" if any
}

// Placement is a slice in its place on a card.
type Placement struct {
	Profile string `json:"profile"`
	Start   int    `json:"start"` // first placement unit
	Size    int    `json:"size"`  // placement units
}

// String writes p as profile@start.
func (p Placement) String() string { return fmt.Sprintf("%s@%d", p.Profile, p.Start) }

// At is the placement of p at start.
func (p Profile) At(start int) Placement {
	return Placement{Profile: p.Name, Start: start, Size: p.Units}
}

// Partitions reports whether cards of this model can be divided in hardware.
func (m Model) Partitions() bool { return len(m.Profiles) > 0 && m.Share.N == 0 }

// Profile finds a profile by name; Whole is one of every model. It fails with
// ErrUnknownProfile.
func (m Model) Profile(name string) (Profile, error) {
	if name == Whole {
		return m.whole(), nil
	}
	for i := range m.Profiles {
		if m.Profiles[i].Name == name {
			return m.Profiles[i], nil
		}
	}
	if len(m.Profiles) == 0 {
		return Profile{}, fmt.Errorf("%w %q: %s cannot be divided; use %q", ErrUnknownProfile, name, m.Name, Whole)
	}
	var known []string
	for _, p := range m.Sold() {
		known = append(known, p.Name)
	}
	return Profile{}, fmt.Errorf("%w %q: %s has %v", ErrUnknownProfile, name, m.Name, known)
}

// whole is the profile of the undivided card: all units, or the one unit that a
// card without partitions counts as.
func (m Model) whole() Profile {
	return Profile{
		Name:          Whole,
		ComputeSlices: m.ComputeSlices,
		MemorySlices:  m.MemorySlices,
		Units:         m.units(),
		MemoryMiB:     m.MemoryMiB,
		Starts:        []int{0},
		MaxInstances:  1,
	}
}

// units is the number of placement units; a card that cannot be divided is one.
func (m Model) units() int { return max(1, m.MemoryUnits) }

// Sold returns what is offered by default: Whole first, then the profiles from
// the largest to the smallest. Left out are those that differ from another only
// in media or graphics engines (+me, -me, +gfx …), and the profile of the full
// card, which is Whole with less memory.
func (m Model) Sold() []Profile { return slices.Clone(m.geo().sold) }

// sells works out what Sold answers.
func (m Model) sells() []Profile {
	sold := []Profile{m.whole()}
	for _, p := range m.Profiles {
		if p.media() == mediaPlain && p.Units < m.MemoryUnits {
			sold = append(sold, p)
		}
	}
	slices.SortStableFunc(sold[1:], func(a, b Profile) int {
		if a.ComputeSlices != b.ComputeSlices {
			return b.ComputeSlices - a.ComputeSlices
		}
		return b.Units - a.Units
	})
	return sold
}

// ComputeStart returns the first compute slice that p covers, for drawing it:
// the keel under its memory. On cards with eight units and seven compute slices
// it is the same index as the start.
func (m Model) ComputeStart(p Placement) int {
	if m.ComputeSlices == 0 {
		return 0
	}
	return p.Start / (m.MemoryUnits / m.ComputeSlices)
}

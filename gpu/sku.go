package gpu

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrUnknownSKU says that a SKU id does not name something Berth can sell.
var ErrUnknownSKU = errors.New("unknown SKU")

// MaxCount is the most slices or cards in one SKU: the largest single host.
const MaxCount = 16

// SKU is what is sold: a number of slices of one profile of one model.
type SKU struct {
	ID      string
	Model   ModelID
	Profile string // Whole, or a profile of the model
	Count   int    // 1 to MaxCount; each on a card of its own if whole
}

// SKUFor makes the SKU of count slices of a profile, with its id. An empty
// profile is Whole. It does not check that they exist.
func SKUFor(m ModelID, profile string, count int) SKU {
	s := SKU{ID: string(m), Model: m, Profile: profile, Count: count}
	if profile == "" {
		s.Profile = Whole
	}
	if s.Profile != Whole {
		s.ID += "." + s.Profile
	}
	if count != 1 {
		s.ID += ".x" + strconv.Itoa(count)
	}
	return s
}

// ParseSKU reads an id: "a100-80gb" (a whole card), "a100-80gb.1g.10gb" (a
// slice), "rtx4090.ts4" (a time share), "h100-80gb.x4" (four cards). Each SKU has one spelling. It fails with
// ErrUnknownSKU.
func ParseSKU(id string) (SKU, error) {
	model, rest, _ := strings.Cut(id, ".")
	m, err := Lookup(ModelID(model))
	if err != nil {
		return SKU{}, fmt.Errorf("%w %q: %w", ErrUnknownSKU, id, err)
	}
	profile, count := rest, 1
	if i := strings.LastIndex("."+rest, ".x"); i >= 0 {
		n, err := strconv.Atoi(rest[i+1:])
		if err != nil || n < 2 || n > MaxCount {
			return SKU{}, fmt.Errorf("%w %q: the number after x is 2 to %d", ErrUnknownSKU, id, MaxCount)
		}
		count, profile = n, strings.TrimSuffix(rest[:i], ".")
	}
	s := SKUFor(m.ID, profile, count)
	if _, _, err := m.selling(s.Profile); err != nil {
		return SKU{}, fmt.Errorf("%w %q: %w", ErrUnknownSKU, id, err)
	}
	if s.ID != id {
		return SKU{}, fmt.Errorf("%w %q: write it %q", ErrUnknownSKU, id, s.ID)
	}
	return s, nil
}

// Slice returns the model and profile of s; for a share, the model as a card that
// is shared so. It fails with ErrUnknownModel or
// ErrUnknownProfile; never for a SKU from ParseSKU.
func (s SKU) Slice() (Model, Profile, error) {
	m, err := Lookup(s.Model)
	if err != nil {
		return Model{}, Profile{}, err
	}
	return m.selling(s.Profile)
}

// Name is s for people: "A100 80GB 1g.10gb", "4 × H100 80GB".
func (s SKU) Name() string {
	m, _, err := s.Slice()
	if err != nil {
		return s.ID
	}
	name := m.Name
	if s.Profile != Whole {
		name += " " + s.Profile
	}
	if s.Count != 1 {
		name = fmt.Sprintf("%d × %s", s.Count, name)
	}
	return name
}

// MemoryMiB is the memory of all its slices together; 0 where not known.
func (s SKU) MemoryMiB() int { _, p, _ := s.Slice(); return s.Count * p.MemoryMiB }

// ComputeSlices is the number of compute slices; 0 on cards without partitions.
func (s SKU) ComputeSlices() int {
	m, p, _ := s.Slice()
	if m.Share.N > 0 {
		return 0
	}
	return s.Count * p.ComputeSlices
}

// MemorySlices is the number of memory slices; 0 on cards without partitions.
func (s SKU) MemorySlices() int { _, p, _ := s.Slice(); return s.Count * p.MemorySlices }

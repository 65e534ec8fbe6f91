package gpu

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrNoShare says that a text names no way of sharing a card.
var ErrNoShare = errors.New("no such share")

// MaxShares is the most shares of one card: turns get too short beyond.
const MaxShares = 16

// Share is a way of letting several programs use one card without partitions: by
// turns. Each of N gets an equal number of turns while all are busy. Nothing
// isolates them: memory is shared, so one can take all of it, and a fault of one
// ends all. The zero value is a card that is not shared.
//
// A card is shared in one way at a time, so that its shares are all alike and have
// equal places; and it is never shared while it is partitioned.
type Share struct {
	N int // 2 to MaxShares; 0: not shared
}

// Name is how a share is called in SKU ids, "ts4"; "" for the zero value.
func (s Share) Name() string {
	if s.N == 0 {
		return ""
	}
	return TimeShare + strconv.Itoa(s.N)
}

// TimeShare is the kind of a share: it begins its name.
const TimeShare = "ts"

// ParseShare reads what Name writes. It fails with ErrNoShare.
func ParseShare(name string) (Share, error) {
	number, ok := strings.CutPrefix(name, TimeShare)
	n, err := strconv.Atoi(number)
	if s := (Share{N: n}); ok && err == nil && n >= 2 && n <= MaxShares && s.Name() == name {
		return s, nil
	}
	return Share{}, fmt.Errorf("%w %q: write ts and the number of shares, from ts2 to ts%d", ErrNoShare, name, MaxShares)
}

// IsShare tells whether a profile's name is that of a share.
func IsShare(profile string) bool {
	_, err := ParseShare(profile)
	return err == nil
}

// WithShare is m as a card that is shared so: it can be had whole or in N equal
// places, and not in partitions. The zero Share is m as it was.
func (m Model) WithShare(s Share) Model {
	if s.N == 0 {
		return m
	}
	p := Profile{Name: s.Name(), ComputeSlices: 1, Units: 1, MemoryMiB: m.MemoryMiB / s.N, MaxInstances: s.N}
	for i := range s.N {
		p.Starts = append(p.Starts, i)
	}
	m.Share = s
	m.Profiles, m.MemoryUnits, m.MemorySlices, m.ComputeSlices = []Profile{p}, s.N, 0, s.N
	m.geometry = newGeometry(m)
	return m
}

// Usual returns what cards of m are sold as where their operator says nothing: Sold,
// and the shares by default.
func (m Model) Usual() []Profile {
	sold := m.Sold()
	if m.DefaultShare.N > 0 {
		sold = append(sold, m.WithShare(m.DefaultShare).Profiles...)
	}
	return sold
}

// selling is m as a card that is sold in a profile, and that profile.
func (m Model) selling(profile string) (Model, Profile, error) {
	if s, err := ParseShare(profile); err == nil {
		m = m.WithShare(s)
	}
	p, err := m.Profile(profile)
	return m, p, err
}

package server

import (
	"fmt"
	"strings"

	"berth/gpu"
	"berth/web"
)

// emptyBar is a card of model m with nothing on it.
func emptyBar(m gpu.Model) web.SliceBar {
	bar := web.SliceBar{Label: "Nothing is held"}
	if m.MemoryUnits > 0 {
		bar.Memory, bar.Compute = m.MemoryUnits, m.ComputeSlices
	}
	return bar
}

// holdOf draws a placement on a card of model m. A profile that m does not know
// is drawn as wide as it is, over its share of the compute slices.
func holdOf(m gpu.Model, p gpu.Placement, kind web.Kind) web.Hold {
	h := web.Hold{Start: p.Start, Size: p.Size, Kind: kind}
	if profile, err := m.Profile(p.Profile); err == nil {
		h.Compute = profile.ComputeSlices
	} else if m.MemoryUnits > 0 {
		h.Compute = max(1, p.Size*m.ComputeSlices/m.MemoryUnits)
	}
	return h
}

// cardBar draws a card with some placements of one kind and others of another.
func cardBar(m gpu.Model, mine []gpu.Placement, kind web.Kind, others []gpu.Placement) web.SliceBar {
	bar := emptyBar(m)
	for _, p := range others {
		bar.Holds = append(bar.Holds, holdOf(m, p, web.KindOther))
	}
	for _, p := range mine {
		bar.Holds = append(bar.Holds, holdOf(m, p, kind))
	}
	var said []string
	if len(mine) > 0 {
		whose := "yours"
		if kind == web.KindGhost {
			whose = "where it will land"
		}
		said = append(said, whose+": "+strings.Join(spans(m, mine), ", "))
	}
	if len(others) > 0 {
		said = append(said, "held by other instances: "+strings.Join(spans(m, others), ", "))
	}
	if len(said) > 0 {
		bar.Label = m.Name + "; " + strings.Join(said, "; ")
	}
	return bar
}

// spans says where placements lie, in words.
func spans(m gpu.Model, ps []gpu.Placement) (out []string) {
	for _, p := range ps {
		if m.MemoryUnits == 0 || p.Profile == gpu.Whole {
			out = append(out, "the whole card")
			continue
		}
		if m.Share.N > 0 {
			out = append(out, "share "+span(p.Start, p.Size))
			continue
		}
		out = append(out, "memory "+span(p.Start, p.Size))
	}
	return out
}

// sharedWords says plainly what a share of a card is not: empty for what is no share.
// mixed tells that neighbours may be of other accounts.
func sharedWords(m gpu.Model, p gpu.Placement, mixed bool) string {
	if m.Share.N == 0 || p.Profile == gpu.Whole {
		return ""
	}
	who := "Only your account's instances share this card."
	if mixed {
		who = "Other accounts' instances may share this card."
	}
	return fmt.Sprintf("A time share: up to %d instances take turns on one card. Memory is shared, no isolation: a neighbour can take memory that you need, and a fault of its program ends your run too. "+
		"Keep to your fair part of %s MiB; nothing enforces it. %s", m.Share.N, thousands(int64(m.MemoryMiB/m.Share.N)), who)
}

// span writes slices counted from 1: "7" or "5–8".
func span(start, size int) string {
	if size <= 1 {
		return fmt.Sprint(start + 1)
	}
	return fmt.Sprintf("%d–%d", start+1, start+size)
}

// captions stand under the ends of a bar with one slice: "memory 5–8 of 8",
// "compute 5–7 of 7".
func captions(m gpu.Model, p gpu.Placement) (left, right string) {
	if m.Share.N > 0 && p.Profile != gpu.Whole {
		return fmt.Sprintf("share %s of %d", span(p.Start, p.Size), m.Share.N), "memory is shared"
	}
	if !m.Partitions() {
		return "whole card, not sliced", ""
	}
	h := holdOf(m, p, web.KindYours)
	start := max(0, min(m.ComputeStart(p), m.ComputeSlices-h.Compute))
	return fmt.Sprintf("memory %s of %d", span(p.Start, p.Size), m.MemoryUnits), fmt.Sprintf("compute %s of %d", span(start, h.Compute), m.ComputeSlices)
}

// skuBar draws what a SKU gives on an otherwise empty card, with its captions.
func skuBar(m gpu.Model, p gpu.Profile) (bar web.SliceBar, left, right string) {
	start := 0
	if len(p.Starts) > 0 {
		start = p.Starts[0]
	}
	bar = cardBar(m, []gpu.Placement{p.At(start)}, web.KindYours, nil)
	if m.Share.N > 0 {
		bar.Label = fmt.Sprintf("One of %d shares of the card is yours; its memory is shared", m.Share.N)
		return bar, fmt.Sprintf("1 of %d shares", m.Share.N), "memory is shared"
	}
	if !m.Partitions() {
		bar.Label = "The whole card is yours"
		return bar, "whole card, not sliced", ""
	}
	bar.Label = fmt.Sprintf("%d of %d memory slices and %d of %d compute slices are yours", p.MemorySlices, m.MemorySlices, p.ComputeSlices, m.ComputeSlices)
	return bar, fmt.Sprintf("%d/%d memory", p.MemorySlices, m.MemorySlices), fmt.Sprintf("%d/%d compute", p.ComputeSlices, m.ComputeSlices)
}

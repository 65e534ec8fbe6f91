package server

import (
	"fmt"
	"strings"

	"berth/fleet"
	"berth/gpu"
	"berth/money"
	"berth/web"
)

// purposes are the groups of the catalogue. Memory decides which one a SKU is
// in: each is in the first whose least it reaches.
var purposes = []struct {
	id, label, title, text string
	leastMiB               int
}{
	{"tune", "Fine-tune", "Fine-tune a model", "LoRA on a 7B fits in 48 GB. Full fine-tune with an 8-bit optimiser wants 80 GB or more.", 36_000},
	{"serve", "Serve", "Serve a model", "Steady load, small batch. Memory decides what fits; compute decides tokens per second.", 18_000},
	{"try", "Try", "Experiment", "Notebooks, debugging, course work. Start in seconds, stop when you close the lid.", 0},
}

// catalogueView groups offers by purpose; only keeps one purpose, empty for all.
func catalogueView(c money.Currency, offers []fleet.Offer, only string) (filters []web.FilterLink, groups []web.Purpose) {
	filters = []web.FilterLink{{Label: "Everything", Href: "/", Current: true}}
	shown := make([]web.Purpose, len(purposes))
	for i, p := range purposes {
		current := p.id == only
		filters = append(filters, web.FilterLink{Label: p.label, Href: "/?for=" + p.id, Current: current})
		if current {
			filters[0].Current = false
		}
		shown[i] = web.Purpose{ID: p.id, Title: p.title, Text: p.text}
	}
	for _, o := range offers {
		for i, p := range purposes {
			if o.Profile.MemoryMiB >= p.leastMiB {
				shown[i].SKUs = append(shown[i].SKUs, skuCard(c, o))
				break
			}
		}
	}
	for _, p := range shown {
		if len(p.SKUs) > 0 && (filters[0].Current || p.ID == only) {
			groups = append(groups, p)
		}
	}
	return filters, groups
}

func skuCard(c money.Currency, o fleet.Offer) web.SKUCard {
	card := web.SKUCard{
		ID: o.SKU.ID, Name: skuName(o.SKU.ID), Description: describe(o),
		Memory: thousands(int64(o.SKU.MemoryMiB())), MemoryUnit: "MiB",
		PerHour: perHour(c, o.PricePerHour), PerSecond: perSecond(c, o.PricePerHour),
		CanLaunch: o.Available > 0, Simulated: o.Simulated,
	}
	if o.Model.Share.N > 0 {
		card.MemoryUnit = "MiB fair part"
	}
	card.Bar, card.Left, card.Right = skuBar(o.Model, o.Profile)
	card.Free, card.FreeTone = free(o)
	return card
}

// free says how many can be placed now.
func free(o fleet.Offer) (string, web.Tone) {
	tone := web.ToneRunning
	switch {
	case o.Available == 0:
		tone = web.ToneStopped
	case o.Available <= 2 && o.Available < o.Total:
		tone = web.ToneWarn
	}
	if o.SKU.Profile == gpu.Whole {
		return fmt.Sprintf("%d of %s free", o.Available, count(o.Total, "GPU")), tone
	}
	if o.Model.Share.N > 0 {
		return count(o.Available, "share") + " free", tone
	}
	return count(o.Available, "slice") + " free", tone
}

// describe says what a SKU is in a few words, by what is known of its card.
func describe(o fleet.Offer) string {
	if o.SKU.Profile == gpu.Whole {
		parts := []string{"Whole GPU"}
		if o.Model.MemoryType != "" {
			parts = append(parts, o.Model.MemoryType)
		}
		if o.Model.BandwidthGBs >= 1000 {
			parts = append(parts, fmt.Sprintf("%d.%d TB/s", o.Model.BandwidthGBs/1000, o.Model.BandwidthGBs%1000/100))
		} else if o.Model.BandwidthGBs > 0 {
			parts = append(parts, fmt.Sprintf("%d GB/s", o.Model.BandwidthGBs))
		}
		return strings.Join(parts, ", ")
	}
	if o.Model.Share.N > 0 {
		return fmt.Sprintf("1 of %d time shares: memory is shared, no isolation", o.Model.Share.N)
	}
	if o.MilliCPU > 0 && o.MemoryMiB > 0 {
		return fmt.Sprintf("Cut in hardware, %s, %d GiB RAM", cpus(o.MilliCPU), o.MemoryMiB>>10)
	}
	return "Cut in hardware"
}

func cpus(milli int) string {
	if milli%1000 == 0 {
		return count(milli/1000, "CPU")
	}
	return fmt.Sprintf("%d.%d CPUs", milli/1000, milli%1000/100)
}

// cheapestOf is the lowest price on offer, empty without offers.
func cheapestOf(c money.Currency, offers []fleet.Offer) string {
	best := money.Rate(-1)
	for _, o := range offers {
		if best < 0 || o.PricePerHour < best {
			best = o.PricePerHour
		}
	}
	if best < 0 {
		return ""
	}
	return perHour(c, best)
}

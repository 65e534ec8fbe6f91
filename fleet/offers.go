package fleet

import (
	"context"
	"fmt"

	"berth/gpu"
	"berth/models"
	"berth/models/store"
	"berth/money"
)

// Offer is a SKU in a billing mode at a price now.
type Offer struct {
	ID           string // <sku>:<billing mode>
	SKU          gpu.SKU
	Model        gpu.Model
	Profile      gpu.Profile
	BillingMode  models.BillingMode
	PricePerHour money.Rate
	Currency     string
	Available    int  // that can really be placed now
	Total        int  // were every healthy card empty and every node online
	MilliCPU     int  // of the host, the least that any node gives
	MemoryMiB    int  // of the host, likewise
	Simulated    bool // all such cards are a simulator's
}

// Landing says where a launch would go now.
type Landing struct {
	Node       models.Node
	Slices     []LandingSlice
	Why        string   // a sentence
	MaxDiskGiB int      // free on that node
	Images     []string // what that node can start
	MilliCPU   int
	MemoryMiB  int
	Simulated  bool
}

// LandingSlice is one slice of a landing beside what lies on its card already.
type LandingSlice struct {
	Device    models.Device
	Model     gpu.Model
	Placement gpu.Placement
	Used      []gpu.Placement
}

// OfferID names a SKU in a billing mode.
func OfferID(sku string, mode models.BillingMode) string { return sku + ":" + string(mode) }

// Offers returns what is sold: every SKU of the models that nodes report, at its
// price now, with how many can really be placed now by the geometry of healthy
// cards on online nodes. A SKU without a price is left out. sku narrows to one id
// (which may have a count, such as "h100-80gb.x4"); an unknown one gives none.
// They are those to somebody who has nothing rented yet; see OffersTo.
func (s *Service) Offers(ctx context.Context, sku string, at models.Instant) ([]Offer, error) {
	return s.OffersTo(ctx, "", sku, at)
}

// OffersTo is Offers as they are to an account: more shares of a card that it has
// one of, and none of those that others have.
func (s *Service) OffersTo(ctx context.Context, account models.AccountID, sku string, at models.Instant) (list []Offer, err error) {
	err = s.st.View(ctx, func(tx *store.Tx) error {
		sites, err := s.sites(tx)
		if err != nil {
			return err
		}
		prices, err := s.bill.Prices(tx, at)
		if err != nil {
			return err
		}
		list = s.offers(openTo(sites, account), prices, sku)
		return nil
	})
	return list, err
}

func (s *Service) offers(sites []site, prices map[string]money.Rate, only string) (list []Offer) {
	wanted := sold(sites)
	if only != "" {
		sku, err := gpu.ParseSKU(only)
		if err != nil {
			return nil
		}
		wanted = []gpu.SKU{sku}
	}
	for _, sku := range wanted {
		price, ok := prices[sku.ID]
		if !ok {
			continue
		}
		model, profile, err := sku.Slice()
		if err != nil {
			continue
		}
		o := Offer{ID: OfferID(sku.ID, models.OnDemand), SKU: sku, Model: model, Profile: profile, BillingMode: models.OnDemand,
			PricePerHour: price, Currency: s.bill.Config().Currency, Simulated: true}
		for _, st := range sites {
			free, total := countFit(st, sku, model, profile)
			if total == 0 {
				continue
			}
			o.Total += total
			if st.node.Sells() && st.freeDisk > 0 {
				o.Available += free
			}
			cpu, memory := shareOf(st, sku, model, profile)
			if o.MilliCPU == 0 || cpu < o.MilliCPU {
				o.MilliCPU = cpu
			}
			if o.MemoryMiB == 0 || memory < o.MemoryMiB {
				o.MemoryMiB = memory
			}
			o.Simulated = o.Simulated && st.host.Simulated
		}
		if o.Total > 0 {
			list = append(list, o)
		}
	}
	return list
}

// sold lists the SKUs of the models that sites have.
func sold(sites []site) (out []gpu.SKU) {
	for _, m := range soldModels(sites) {
		for _, p := range soldOf(sites, m) {
			out = append(out, gpu.SKUFor(m.ID, p.Name, 1))
		}
	}
	return out
}

// shareOf is what a SKU gets of a site's host.
func shareOf(st site, sku gpu.SKU, model gpu.Model, profile gpu.Profile) (milliCPU, memoryMiB int) {
	l := landing{site: st}
	for range sku.Count {
		l.slices = append(l.slices, landed{card: card{model: model}, at: profile.At(0)})
	}
	return l.host()
}

// Images lists what can be launched now, sorted.
func (s *Service) Images(ctx context.Context) (list []string, err error) {
	err = s.st.View(ctx, func(tx *store.Tx) error {
		nodes, err := tx.Nodes()
		if err != nil {
			return err
		}
		var online []site
		for _, n := range nodes {
			host, err := hostOf(n)
			if err != nil {
				return err
			}
			if n.Sells() {
				online = append(online, site{node: n, host: host})
			}
		}
		list = images(online)
		return nil
	})
	return list, err
}

// Preview says where a SKU would go now for an account. It fails with an Invalid Problem for an
// unknown SKU, and a NoCapacity Problem with alternatives.
func (s *Service) Preview(ctx context.Context, account models.AccountID, id string) (out Landing, err error) {
	sku, err := gpu.ParseSKU(id)
	if err != nil {
		return out, models.Fieldset{"sku": fmt.Sprintf("There is no %q: choose one from the catalogue.", clip(id))}.Problem()
	}
	err = s.st.View(ctx, func(tx *store.Tx) error {
		sites, err := s.sites(tx)
		if err != nil {
			return err
		}
		l, err := s.pools.place(sites, request{sku: sku, diskGiB: 1, account: account})
		if err != nil {
			return withAlternatives(err, openTo(sites, account), sku)
		}
		out = Landing{Node: l.site.node, Why: l.why, MaxDiskGiB: l.site.freeDisk, Images: l.site.host.Runtime.Images, Simulated: l.site.host.Simulated}
		out.MilliCPU, out.MemoryMiB = l.host()
		for _, sl := range l.slices {
			out.Slices = append(out.Slices, LandingSlice{Device: sl.card.device, Model: sl.card.model, Placement: sl.at, Used: sl.card.used})
		}
		return nil
	})
	return out, err
}

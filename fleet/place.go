package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"berth/gpu"
	"berth/models"
	"berth/wire"
)

// site is a node as placement sees it.
type site struct {
	node     models.Node
	host     wire.Host
	cards    []card // that can be sold: healthy and of a known model
	devices  int    // all the node has, sick ones too: what the host is shared by
	freeDisk int    // GiB
}

// card is a device with what lies on it, leased or only reported.
type card struct {
	device  models.Device
	model   gpu.Model
	used    []gpu.Placement
	holders []models.AccountID // of what is leased
}

// title names a card for people.
func (c card) title(s site) string { return s.node.Name + " GPU " + strconv.Itoa(c.device.Index) }

// offer is the card as package gpu chooses among them.
func (c card) offer(s site) gpu.Card {
	return gpu.Card{Key: c.title(s), Model: c.model, Used: c.used, Layout: c.device.Layout}
}

// at is where a slice of the profile lies that starts there, as large as it is on
// this card.
func (c card) at(profile gpu.Profile, start int) gpu.Placement {
	if own, err := c.model.Profile(profile.Name); err == nil {
		profile = own
	}
	return profile.At(start)
}

// request is what is to be placed.
type request struct {
	sku     gpu.SKU
	image   string        // empty: any
	diskGiB int           // 0: none needed (it is there already)
	node    models.NodeID // empty: any
	account models.AccountID
}

// landing is where a request goes.
type landing struct {
	site   site
	slices []landed
	why    string // a sentence
}

// landed is one slice in its place.
type landed struct {
	card card
	at   gpu.Placement
}

// host returns what a landing takes of its node's processor and memory: the
// same share of the host as of its cards. At least what a shell needs.
func (l landing) host() (milliCPU, memoryMiB int) {
	num, den := 0, 0
	for _, s := range l.slices {
		units := max(1, s.card.model.MemoryUnits)
		num, den = num+s.at.Size, units // one SKU is of one model
	}
	if den == 0 || l.site.devices == 0 {
		return 0, 0
	}
	return max(100, l.site.host.MilliCPU*num/(den*l.site.devices)), max(256, l.site.host.MemoryMiB*num/(den*l.site.devices))
}

// place decides where r goes, or says with a NoCapacity or Invalid Problem why it
// goes nowhere. Whole cards of one request, and slices of one request, lie on
// different cards of one node; whole ones within one NVLink group, where the cards
// have any.
//
// A slice goes to a card that is in slices already, whichever node it is in. Where
// a card has to be opened, and for whole cards, the pool of the model chooses the
// node. The same sites and the same past give the same answer.
func (p *pools) place(sites []site, r request) (landing, error) {
	model, profile, err := r.sku.Slice()
	if err != nil {
		return landing{}, err
	}
	able, err := eligible(openTo(sites, r.account), r)
	if err != nil {
		return landing{}, err
	}
	if r.sku.Count == 1 && profile.Name != gpu.Whole {
		if l, ok := placeBroken(able, model, profile); ok {
			return l, nil
		}
	}
	var options []site
	most := 0
	for _, s := range able {
		n := together(s, model, profile, r.sku.Count)
		most = max(most, n)
		if n >= r.sku.Count {
			options = append(options, s)
		}
	}
	if len(options) == 0 {
		_, _, _, why := gpu.Choose(offersOf(able, model), profile)
		if model.Share.N > 0 && closedToSome(sites, r.account, model) {
			why += ", or a card of which another account has a share: those are not mixed"
		}
		if r.sku.Count > 1 {
			why = fmt.Sprintf("it needs %d different cards that work together on one node, and the best has %d with room", r.sku.Count, most)
		}
		return landing{}, noCapacity(r.sku, why)
	}
	chosen := p.choose(sites, options, model, wish(r.sku, model, profile))
	got, why := gather(chosen, r.sku, model, profile)
	if len(options) > 1 {
		why = fmt.Sprintf("of %d nodes with room, %s keeps most for what is usually asked for; %s", len(options), chosen.node.Name, why)
	}
	return landing{site: chosen, slices: got, why: sentence(why)}, nil
}

// placeBroken places a slice on a card that is divided already, of any node.
func placeBroken(sites []site, model gpu.Model, profile gpu.Profile) (landing, bool) {
	var offers []gpu.Card
	type place struct{ site, card int } // copies of cards are large
	var from []place
	for i, s := range sites {
		for j := range s.cards {
			if c := &s.cards[j]; c.model.ID == model.ID && (len(c.used) > 0 || len(c.device.Layout) > 0) {
				offers, from = append(offers, c.offer(s)), append(from, place{i, j})
			}
		}
	}
	i, start, ok, why := gpu.Choose(offers, profile)
	if !ok {
		return landing{}, false
	}
	at := sites[from[i].site]
	c := at.cards[from[i].card]
	return landing{site: at, slices: []landed{{c, c.at(profile, start)}}, why: sentence(why)}, true
}

// together is the most cards of a site with room for the profile that may serve
// one request; see groupsOf.
func together(s site, model gpu.Model, profile gpu.Profile, count int) (most int) {
	linked := count > 1 && profile.Name == gpu.Whole
	byGroup := map[int]int{}
	for i := range s.cards {
		c, group := &s.cards[i], 0 // all of them count together
		if linked {
			group = c.device.LinkGroup
		}
		if c.model.ID == model.ID && c.room(profile) {
			byGroup[group]++
			most = max(most, byGroup[group])
		}
	}
	return most
}

// room tells whether one of the profile can be had of a card of its model.
func (c card) room(profile gpu.Profile) bool {
	return gpu.Card{Model: c.model, Used: c.used, Layout: c.device.Layout}.CountFit(profile) > 0
}

// gather finds count slices on as many different cards of a site that has them;
// why says how.
func gather(s site, sku gpu.SKU, model gpu.Model, profile gpu.Profile) (got []landed, why string) {
	for _, group := range groupsOf(s, model, profile, sku.Count) {
		got = nil
		for len(got) < sku.Count {
			offers := make([]gpu.Card, len(group))
			for i, c := range group {
				offers[i] = c.offer(s)
			}
			i, start, ok, because := gpu.Choose(offers, profile)
			if !ok {
				break
			}
			got, why = append(got, landed{card: group[i], at: group[i].at(profile, start)}), because
			group = slices.Delete(slices.Clone(group), i, i+1) // never two shares of one request on one card
		}
		if len(got) == sku.Count {
			break
		}
	}
	if sku.Count > 1 {
		why = fmt.Sprintf("node %s has room on %d different cards", s.node.Name, sku.Count)
		if profile.Name == gpu.Whole && got[0].card.device.LinkGroup > 0 {
			why += ", linked by NVLink"
		}
	}
	return got, why
}

// groupsOf lists the sets of a site's cards that one request may lie on, the one
// to try first at the front. Whole cards that work together stay inside one NVLink
// group (slices have no NVLink), on one NUMA node if they can, in the group that
// has least room beyond.
func groupsOf(s site, model gpu.Model, profile gpu.Profile, count int) [][]card {
	all := slices.DeleteFunc(slices.Clone(s.cards), func(c card) bool { return c.model.ID != model.ID })
	if count == 1 || profile.Name != gpu.Whole {
		return [][]card{all}
	}
	room := func(cards []card) (n int) {
		for _, c := range cards {
			if c.room(profile) {
				n++
			}
		}
		return n
	}
	tightest := func(a, b []card) int { return cmp.Compare(room(a), room(b)) }
	linked := splitBy(all, func(c card) int { return c.device.LinkGroup })
	var near [][]card
	for _, group := range linked {
		near = append(near, splitBy(group, func(c card) int { return c.device.NUMANode })...)
	}
	slices.SortStableFunc(near, tightest)
	slices.SortStableFunc(linked, tightest)
	return append(near, linked...)
}

// splitBy sorts cards into sets of equal keys, in the order of the keys.
func splitBy(cards []card, key func(card) int) (sets [][]card) {
	sorted := slices.SortedStableFunc(slices.Values(cards), func(a, b card) int { return cmp.Compare(key(a), key(b)) })
	for i, c := range sorted {
		if i == 0 || key(c) != key(sorted[i-1]) {
			sets = append(sets, nil)
		}
		sets[len(sets)-1] = append(sets[len(sets)-1], c)
	}
	return sets
}

// offersOf are all cards of a model, as package gpu chooses among them.
func offersOf(sites []site, model gpu.Model) (offers []gpu.Card) {
	for _, s := range sites {
		for _, c := range s.cards {
			if c.model.ID == model.ID {
				offers = append(offers, c.offer(s))
			}
		}
	}
	return offers
}

// eligible keeps the sites that are online, not cordoned, and have image and disk. When only
// image or disk is in the way it says so beside that field.
func eligible(sites []site, r request) ([]site, error) {
	var online, withImage, able []site
	for _, s := range sites {
		if !s.node.Sells() || (r.node != "" && s.node.ID != r.node) {
			continue
		}
		online = append(online, s)
		if r.image != "" && !slices.Contains(s.host.Runtime.Images, r.image) {
			continue
		}
		withImage = append(withImage, s)
		if s.freeDisk >= r.diskGiB {
			able = append(able, s)
		}
	}
	wrong := models.Fieldset{}
	switch {
	case len(able) > 0:
		return able, nil
	case len(online) == 0:
		return nil, noCapacity(r.sku, "no node that could run it is online and open")
	case len(withImage) == 0:
		wrong.Add("image", fmt.Sprintf("No node offers this image now. Choose one of: %s.", strings.Join(images(online), ", ")))
	default:
		most := slices.MaxFunc(withImage, func(a, b site) int { return cmp.Compare(a.freeDisk, b.freeDisk) })
		if most.freeDisk < 1 {
			return nil, noCapacity(r.sku, "no node has disk space left")
		}
		wrong.Add("disk_gib", fmt.Sprintf("No node has %d GiB free: at most %d GiB can be had now.", r.diskGiB, most.freeDisk))
	}
	return nil, wrong.Problem()
}

// images lists what can be launched on sites, sorted, each once.
func images(sites []site) []string {
	var all []string
	for _, s := range sites {
		all = append(all, s.host.Runtime.Images...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// countFit returns how many of sku alone could be placed on one site now.
func countFit(s site, sku gpu.SKU, model gpu.Model, profile gpu.Profile) (free, total int) {
	var perCard, empty []int
	for _, c := range s.cards {
		if c.model.ID == model.ID {
			offer := c.offer(s)
			perCard = append(perCard, offer.CountFit(profile))
			offer.Used = nil
			empty = append(empty, offer.CountFit(profile))
		}
	}
	return groups(perCard, sku.Count), groups(empty, sku.Count)
}

// groups returns how many groups of n slices, each on n different cards, can be
// taken from cards with that much room: the largest g with Σ min(room, g) ≥ g·n.
func groups(room []int, n int) int {
	sum := 0
	for _, r := range room {
		sum += r
	}
	for g := sum / n; g > 0; g-- {
		have := 0
		for _, r := range room {
			have += min(r, g)
		}
		if have >= g*n {
			return g
		}
	}
	return 0
}

// alternatives lists the SKUs that can be placed now, nearest in memory first.
func alternatives(sites []site, wanted gpu.SKU) []string {
	type option struct {
		id  string
		off int
	}
	var options []option
	for _, model := range soldModels(sites) {
		for _, profile := range soldOf(sites, model) {
			sku := gpu.SKUFor(model.ID, profile.Name, 1)
			for _, s := range sites {
				if n, _ := countFit(s, sku, model, profile); n > 0 && s.node.Sells() && sku.ID != wanted.ID {
					options = append(options, option{sku.ID, abs(sku.MemoryMiB() - wanted.MemoryMiB())})
					break
				}
			}
		}
	}
	slices.SortStableFunc(options, func(a, b option) int { return cmp.Compare(a.off, b.off) })
	out := []string{}
	for _, o := range options[:min(5, len(options))] {
		out = append(out, o.id)
	}
	return out
}

// soldModels lists the models that sites have, in the catalogue's order.
func soldModels(sites []site) (out []gpu.Model) {
	for _, m := range gpu.Models() {
		if slices.ContainsFunc(sites, func(s site) bool {
			return slices.ContainsFunc(s.cards, func(c card) bool { return c.model.ID == m.ID })
		}) {
			out = append(out, m)
		}
	}
	return out
}

func abs(n int) int { return max(n, -n) }

func noCapacity(sku gpu.SKU, why string) *models.Problem {
	return &models.Problem{Code: models.NoCapacity, What: fmt.Sprintf("%s cannot be placed now: %s.", sku.Name(), why),
		Next: "Choose another size, or try again when an instance has ended."}
}

// sentence makes a clause one.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(s)
	s = string(unicode.ToUpper(first)) + s[size:]
	if strings.HasSuffix(s, ".") || strings.HasSuffix(s, "!") || strings.HasSuffix(s, "?") {
		return s
	}
	return s + "."
}

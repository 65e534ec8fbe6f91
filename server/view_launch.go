package server

import (
	"fmt"
	"strconv"
	"strings"

	"berth/billing"
	"berth/fleet"
	"berth/gpu"
	"berth/models"
	"berth/money"
	"berth/web"
)

// launchForm is a launch as typed.
type launchForm struct {
	sku, name, image, disk, env, startup, key string
}

// order reads the form, and what is wrong with it by field; what the order alone
// does not tell is found when it is placed.
func (f launchForm) order(id identity) (fleet.Order, models.Fieldset) {
	bad := models.Fieldset{}
	disk, err := strconv.Atoi(f.disk)
	if err != nil {
		bad.Add("disk_gib", fmt.Sprintf("Write a whole number of GiB, such as %d.", fleet.DefaultDiskGiB))
		disk = fleet.DefaultDiskGiB
	}
	env, wrong := parseEnv(f.env)
	if wrong != "" {
		bad.Add("env", wrong)
	}
	return fleet.Order{Account: id.Account.ID, User: id.User.ID, SKU: f.sku, BillingMode: models.OnDemand, Name: f.name, Image: f.image,
		Env: env, StartupScript: strings.ReplaceAll(f.startup, "\r\n", "\n"), DiskGiB: disk, ClientKey: f.key}, bad
}

// parseEnv reads one NAME=value per line; wrong is a sentence, or empty.
func parseEnv(text string) (env map[string]string, wrong string) {
	env = map[string]string{}
	n := 0
	for line := range strings.SplitSeq(text, "\n") {
		n++
		line = strings.TrimSuffix(line, "\r")
		if strings.TrimSpace(line) == "" {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, fmt.Sprintf("Line %d has no name before a =. Write NAME=value.", n)
		}
		if _, twice := env[name]; twice {
			return nil, fmt.Sprintf("Line %d sets %s a second time.", n, clip(name, 40))
		}
		env[name] = value
	}
	return env, ""
}

// launchFacts is what the portal knows when it draws the form.
type launchFacts struct {
	offers  []fleet.Offer
	landing *fleet.Landing // nil: nowhere, for the reason given
	reason  string
	wallet  billing.Wallet
	frozen  bool
	images  []string
	hold    int64 // seconds set aside before a launch
	allowed bool  // the role may launch
}

// launchView draws the form with what was typed, priced.
func launchView(c money.Currency, f launchForm, bad models.Fieldset, k launchFacts) web.LaunchView {
	v := web.LaunchView{
		SKUError: bad["sku"], ImageError: bad["image"], IdempotencyKey: f.key,
		Name: web.Field{Value: f.name, Error: bad["name"]}, Disk: web.Field{Value: f.disk, Error: bad["disk_gib"]},
		Env: web.Field{Value: f.env, Error: bad["env"]}, Startup: web.Field{Value: f.startup, Error: bad["startup_script"]},
		DiskHint: "Counted in the price, kept while it is stopped.",
	}
	images := k.images
	if k.landing != nil {
		images = k.landing.Images
		v.DiskHint = fmt.Sprintf("Counted in the price. At most %s GiB on %s.", thousands(int64(min(k.landing.MaxDiskGiB, fleet.MaxDiskGiB))), k.landing.Node.Name)
	}
	for i, image := range images {
		v.Images = append(v.Images, web.ImageOption{Value: image, Label: imageName(image), Selected: image == f.image || f.image == "" && i == 0})
	}
	if len(images) == 1 && images[0] == hostImage {
		v.ImageHint = "The node's own system, read-only, with a home of your own. Starts at once."
	}
	for _, o := range k.offers {
		bar, _, _ := skuBar(o.Model, o.Profile)
		choice := web.SKUChoice{ID: o.SKU.ID, Name: skuName(o.SKU.ID), Free: fmt.Sprintf("%d free", o.Available),
			Memory: thousands(int64(o.SKU.MemoryMiB())) + " MiB", Bar: bar, Selected: o.SKU.ID == f.sku, Disabled: o.Available == 0}
		if o.Available == 0 {
			choice.Free = "none free"
		}
		v.SKUs = append(v.SKUs, choice)
		if choice.Selected {
			v.PerHour = perHour(c, o.PricePerHour)
			v.Summary, v.Funds = launchSummary(c, f, o, k)
		}
	}
	return v
}

// hostImage is the sandbox runtime's only image: the node's own system.
const hostImage = "host system"

func imageName(image string) string {
	if image == hostImage {
		return "Host system"
	}
	return image
}

func launchSummary(c money.Currency, f launchForm, o fleet.Offer, k launchFacts) (s web.LaunchSummary, short *web.Funds) {
	r := o.PricePerHour
	disk := f.disk
	if _, err := strconv.Atoi(disk); err != nil {
		disk = strconv.Itoa(fleet.DefaultDiskGiB)
	}
	s = web.LaunchSummary{
		What:    fmt.Sprintf("%s, on demand, %s GiB disk", skuName(o.SKU.ID), disk),
		PerHour: perHour(c, r), PerSecond: perSecond(c, r), PerMonth: strings.TrimSuffix(c.FormatMonth(r), " /month"),
		Wallet: c.Format(k.wallet.Available), Burn: c.FormatRateHour(k.wallet.Burn + r),
		NoLanding: k.reason,
	}
	lasts := money.AffordableSeconds(k.wallet.Available, []money.Run{{Rate: k.wallet.Burn + r}})
	s.Lasts = roughly(lasts)
	if lasts >= money.Forever {
		s.Lasts = "not running out"
	}
	if k.landing != nil {
		part := landingPart(*k.landing)
		s.Landing = &part
	}
	need := r.Ceil(k.hold)
	if k.wallet.Available < need {
		missing := max(c.MinTopup, c.CeilMinor(need-k.wallet.Available))
		short = &web.Funds{Have: c.FormatExact(k.wallet.Available), Need: c.FormatExact(need),
			TopUpHref: "/wallet?amount=" + plainAmount(c, missing) + "#topup"}
	}
	s.CanLaunch = k.landing != nil && short == nil && !k.frozen && k.allowed
	return s, short
}

// landingPart draws where a launch would land: its first card, and where the
// others are.
func landingPart(l fleet.Landing) web.SlicePart {
	p := web.SlicePart{Where: l.Node.Name}
	for i, sl := range l.Slices {
		if i == 0 {
			p.Where += fmt.Sprintf(", GPU %d", sl.Device.Index)
			p.Bar = cardBar(sl.Model, []gpu.Placement{sl.Placement}, web.KindGhost, sl.Used)
			p.Left, p.Right = captions(sl.Model, sl.Placement)
			p.Sharing = sharedWords(sl.Model, sl.Placement, sl.Device.Mixed)
			continue
		}
		p.Where += fmt.Sprintf(", %d", sl.Device.Index)
	}
	if l.Simulated {
		p.Where += " (simulated)"
	}
	return p
}

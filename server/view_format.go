package server

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"berth/billing"
	"berth/gpu"
	"berth/models"
	"berth/money"
	"berth/web"
)

// duration writes whole seconds as script does: "7 s", "3 min 07 s",
// "2 h 14 min 07 s", "1 d 19 h 02 min".
func duration(seconds int64) string {
	s, min, h, d := seconds%60, seconds/60%60, seconds/3600%24, seconds/86400
	switch {
	case d > 0:
		return fmt.Sprintf("%d d %d h %02d min", d, h, min)
	case h > 0:
		return fmt.Sprintf("%d h %02d min %02d s", h, min, s)
	case min > 0:
		return fmt.Sprintf("%d min %02d s", min, s)
	}
	return fmt.Sprintf("%d s", s)
}

// roughly writes whole seconds in two units at most: "1 d 19 h", "2 h 14 min".
func roughly(seconds int64) string {
	min, h, d := seconds/60%60, seconds/3600%24, seconds/86400
	switch {
	case d > 999:
		return "over 999 d"
	case d > 0:
		return fmt.Sprintf("%d d %d h", d, h)
	case h > 0:
		return fmt.Sprintf("%d h %02d min", h, min)
	}
	return duration(seconds)
}

// took writes a measured time: "7 ms", "0.4 s", "19.6 s", then as duration does.
func took(d time.Duration) string {
	if d < 100*time.Millisecond {
		return fmt.Sprintf("%d ms", max(0, d).Milliseconds())
	}
	if d < time.Minute {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return duration(int64(d / time.Second))
}

// ago writes how long before now a moment was: "2 s ago", "yesterday" and older
// as a date.
func ago(then, now models.Instant, zone *time.Location) string {
	if then.IsZero() {
		return "never"
	}
	d := now.Sub(then)
	switch {
	case d < 5*time.Second:
		return "now"
	case d < time.Minute:
		return fmt.Sprintf("%d s ago", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", d/time.Minute)
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h ago", d/time.Hour)
	}
	return dayTime(then, zone)
}

// Moments as pages write them, in the account's zone.
func clockTime(at models.Instant, zone *time.Location) string {
	return at.Time().In(zone).Format("15:04:05")
}
func dayTime(at models.Instant, zone *time.Location) string {
	return at.Time().In(zone).Format("2 Jan, 15:04")
}
func dayClock(at time.Time, zone *time.Location) string { return at.In(zone).Format("2 Jan, 15:04:05") }
func weekday(at models.Instant, zone *time.Location) string {
	return at.Time().In(zone).Format("Mon 2 Jan")
}
func fullDate(at time.Time, zone *time.Location) string { return at.In(zone).Format("2 Jan 2006") }
func machineTime(at models.Instant) string              { return at.Time().Format(time.RFC3339) }

// zoneOf is an account's time zone; UTC if this machine does not know it.
func zoneOf(a models.Account) *time.Location {
	zone, err := time.LoadLocation(a.TimeZone)
	if err != nil {
		return time.UTC
	}
	return zone
}

// count writes a whole number with its noun: "1 instance", "2 instances".
func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(int64(n)) + " " + one + "s"
}

// thousands writes n with commas: "9,856".
func thousands(n int64) string {
	digits := strconv.FormatInt(n, 10)
	head := len(digits) % 3
	if n < 0 || len(digits) <= 3 {
		return digits
	}
	parts := []string{}
	if head > 0 {
		parts = append(parts, digits[:head])
	}
	for i := head; i < len(digits); i += 3 {
		parts = append(parts, digits[i:i+3])
	}
	return strings.Join(parts, ",")
}

// perHour is a price per hour with all the digits it has: "$0.42", "$0.0075".
func perHour(c money.Currency, r money.Rate) string { return c.FormatExact(money.Amount(r)) }

// perSecond is a price per second, for the eye: "$0.000117".
func perSecond(c money.Currency, r money.Rate) string {
	return strings.TrimSuffix(c.FormatRateSecond(r), " /s")
}

// signed writes a movement as a ledger does, without symbol: "−2.01", "+100.00".
// All digits are kept, so that what is shown adds up.
func signed(c money.Currency, a money.Amount) string {
	text := strings.Replace(c.FormatExact(a), c.Symbol, "", 1)
	if a < 0 {
		return "−" + strings.TrimPrefix(text, "-")
	}
	return "+" + text
}

// plainAmount writes an amount without symbol, all digits kept.
func plainAmount(c money.Currency, a money.Amount) string {
	return strings.Replace(strings.Replace(c.FormatExact(a), c.Symbol, "", 1), "-", "−", 1)
}

// skuName is a SKU for people: "A100 80GB · 1g.10gb", "4 × H100 80GB".
func skuName(id string) string {
	sku, err := gpu.ParseSKU(id)
	if err != nil {
		return id
	}
	m, _, err := sku.Slice()
	if err != nil {
		return id
	}
	name := m.Name
	if sku.Profile != gpu.Whole {
		name += " · " + sku.Profile
	}
	if sku.Count > 1 {
		name = fmt.Sprintf("%d × %s", sku.Count, name)
	}
	return name
}

// billingName is a billing mode for people.
func billingName(m models.BillingMode) string {
	switch m {
	case models.Spot:
		return "Spot"
	case models.Reserved:
		return "Reserved"
	}
	return "On demand"
}

// lowAt is the runway below which a wallet is shown as low.
const lowAt = 24 * time.Hour

// purseView is the account's money in the top bar.
func purseView(c money.Currency, w billing.Wallet, at models.Instant) *web.Purse {
	p := &web.Purse{Balance: c.Format(w.Available), Lasts: "nothing running"}
	switch {
	case w.Burn == 0:
	case w.RunsOutAt.IsZero():
		p.Lasts = "not running out"
	default:
		left := max(0, w.RunsOutAt.Sub(at))
		p.Lasts, p.Low = roughly(int64(left/time.Second))+" left", left < lowAt
	}
	return p
}

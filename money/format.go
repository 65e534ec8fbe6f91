package money

import (
	"strconv"
	"strings"
)

// monthSeconds is the month that a monthly price is quoted for: 730 hours, a
// twelfth of a year.
const monthSeconds = 730 * 3600

// Format writes a for people: symbol, thousands in commas, the currency's own
// decimals. Parts of a minor unit are dropped toward zero, so nobody is shown
// money they do not have: "$1,234.50", "-$0.30", "¥80".
func (c Currency) Format(a Amount) string {
	return c.write(a, c.Exponent)
}

// FormatExact writes a with every decimal it has, up to six: "$0.000453".
func (c Currency) FormatExact(a Amount) string {
	decimals := rateDecimals
	for place := Amount(10); decimals > c.Exponent && a%place == 0; place *= 10 {
		decimals--
	}
	return c.write(a, decimals)
}

// FormatSmall is Format, but writes "< $0.01" for what is more than nothing and
// less than one minor unit.
func (c Currency) FormatSmall(a Amount) string {
	if 0 < a && a < c.Minor() {
		return "< " + c.Format(c.Minor())
	}
	return c.Format(a)
}

// FormatRateSecond writes r per second with six decimals, rounded half up:
// "$0.000553 /s". It is for the eye only; charges come from Rate.For.
func (c Currency) FormatRateSecond(r Rate) string {
	perSecond := Amount(r / 3600)
	if r%3600 >= 1800 {
		perSecond++
	}
	if perSecond == 0 && r > 0 {
		return "< " + c.write(1, rateDecimals) + " /s"
	}
	return c.write(perSecond, rateDecimals) + " /s"
}

// FormatRateHour writes r per hour, exactly: "$1.99 /h", "$0.0075 /h".
func (c Currency) FormatRateHour(r Rate) string {
	return c.FormatExact(Amount(r)) + " /h"
}

// FormatMonth writes what 730 hours at r cost: "$1,452.70 /month".
func (c Currency) FormatMonth(r Rate) string {
	return c.Format(r.For(monthSeconds)) + " /month"
}

// write writes a with the given number of decimals, 0 to 6, dropping the rest
// toward zero. Nothing is never written with a minus sign.
func (c Currency) write(a Amount, decimals int) string {
	u := uint64(a)
	if a < 0 {
		u = -u // right for the lowest Amount too
	}
	whole, fraction := u/uint64(Unit), u%uint64(Unit)
	dropped := uint64(1)
	for range rateDecimals - decimals {
		dropped *= 10
	}
	fraction -= fraction % dropped

	var b strings.Builder
	if a < 0 && whole+fraction > 0 {
		b.WriteByte('-')
	}
	b.WriteString(c.Symbol)
	digits := strconv.FormatUint(whole, 10)
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	if decimals > 0 {
		six := strconv.FormatUint(uint64(Unit)+fraction, 10)[1:]
		b.WriteByte('.')
		b.WriteString(six[:decimals])
	}
	return b.String()
}

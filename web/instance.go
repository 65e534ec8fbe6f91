package web

import (
	"github.com/a-h/templ"

	"regexp"
	"strconv"
)

// instanceTopics are the changes upon which an instance's page is drawn anew.
func instanceTopics(id string) string {
	return "instance:" + id + " wallet"
}

// age is how old the ticker's numbers are at the time the page is drawn, in
// milliseconds, by the portal's clock.
func (t Ticker) age() int64 {
	return max(0, t.NowUnixMilli-t.SinceUnixMilli)
}

// attributes are the numbers that script counts the cost up from; none when it
// stands still.
func (t Ticker) attributes() templ.Attributes {
	if !t.Running {
		return nil
	}
	return templ.Attributes{
		"data-rate":     strconv.FormatInt(t.RateMicrosPerHour, 10),
		"data-charged":  strconv.FormatInt(t.ChargedMicros, 10),
		"data-age":      strconv.FormatInt(t.age(), 10),
		"data-symbol":   t.Symbol,
		"data-decimals": strconv.Itoa(t.Decimals),
	}
}

// counting are the attributes of a duration that script counts up.
func counting(running bool, seconds, age int64) templ.Attributes {
	if !running {
		return nil
	}
	return templ.Attributes{
		"data-count": strconv.FormatInt(seconds, 10),
		"data-age":   strconv.FormatInt(age, 10),
	}
}

// exactly is a pattern for a field's attribute that only this text matches.
func exactly(text string) string {
	return regexp.QuoteMeta(text)
}

// legendOfParts is one legend for several cards.
func legendOfParts(parts []SlicePart) []Kind {
	bars := make([]SliceBar, len(parts))
	for i, p := range parts {
		bars[i] = p.Bar
	}
	return legendOf(bars...)
}

func sliceTitle(parts []SlicePart) string {
	if len(parts) > 0 && parts[0].Bar.Memory == 0 {
		if len(parts) > 1 {
			return "Your GPUs"
		}
		return "Your GPU"
	}
	if len(parts) > 1 {
		return "Your slices"
	}
	return "Your slice"
}

package stripedouble

import (
	"slices"
	"strings"
)

// listEvents is GET /v1/events. delivery_success=false gives what an endpoint
// missed: events still waiting and events given up.
func listEvents(x *tx, c call) (object, error) {
	f := c.form
	types := f.list("types")
	if f.has("type") {
		if len(types) > 0 {
			return nil, invalid("", "types", "You may only specify one of these parameters: type, types.")
		}
		types = []string{f.str("type")}
	}
	if len(types) > 20 {
		return nil, invalid("", "types", "You may specify at most 20 types.")
	}
	return page(f, "/v1/events", x.state.events, func(e event) bool {
		return (len(types) == 0 || slices.ContainsFunc(types, func(t string) bool { return covers(t, e.Type) })) &&
			(!f.has("delivery_success") || f.yes("delivery_success") == e.Delivered) &&
			(!f.has("created") || e.Created == f.num("created")) &&
			(!f.has("created[gt]") || e.Created > f.num("created[gt]")) &&
			(!f.has("created[gte]") || e.Created >= f.num("created[gte]")) &&
			(!f.has("created[lt]") || e.Created < f.num("created[lt]")) &&
			(!f.has("created[lte]") || e.Created <= f.num("created[lte]"))
	}, x.renderEvent)
}

// covers says whether a filter such as charge.* takes an event type.
func covers(filter, kind string) bool {
	if group, ok := strings.CutSuffix(filter, "*"); ok {
		return strings.HasPrefix(kind, group)
	}
	return filter == kind
}

// getBalance sums what was paid, less what went back.
func getBalance(x *tx, _ call) (object, error) {
	sums := map[string]int64{}
	for _, c := range x.state.charges.newestFirst() {
		if c.Status == "succeeded" {
			sums[c.Currency] += c.Amount - c.Refunded
		}
	}
	for _, d := range x.state.disputes.newestFirst() {
		if d.Withdrawn && !d.Reinstated {
			sums[d.Currency] -= d.Amount
		}
	}
	if len(sums) == 0 {
		sums["usd"] = 0
	}
	available, pending := []object{}, []object{}
	codes := make([]string, 0, len(sums))
	for code := range sums {
		codes = append(codes, code)
	}
	slices.Sort(codes)
	for _, code := range codes {
		available = append(available, object{"amount": sums[code], "currency": code, "source_types": object{"card": sums[code]}})
		pending = append(pending, object{"amount": 0, "currency": code, "source_types": object{"card": 0}})
	}
	return object{"object": "balance", "available": available, "livemode": false, "pending": pending}, nil
}

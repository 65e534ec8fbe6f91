package stripedouble

import (
	"net/http"
	"strings"
)

// page is one page of a list, newest first, with Stripe's cursors.
func page[T any](f form, url string, t *table[T], keep func(T) bool, render func(T) object) (object, error) {
	limit := int64(10)
	if f.has("limit") {
		if limit = f.num("limit"); limit < 1 || limit > 100 {
			return nil, invalid("parameter_invalid_integer", "limit", "This value must be between 1 and 100.")
		}
	}
	after, before := f.str("starting_after"), f.str("ending_before")
	for name, cursor := range map[string]string{"starting_after": after, "ending_before": before} {
		if _, ok := t.get(cursor); cursor != "" && !ok {
			return nil, missing(http.StatusBadRequest, strings.ReplaceAll(t.name, "_", " "), cursor, name)
		}
	}
	if after != "" && before != "" {
		return nil, invalid("", "ending_before", "You may only specify one of these parameters: starting_after, ending_before.")
	}
	var matching []T
	skipping := after != ""
	for id, v := range t.newestFirst() {
		if id == before {
			break
		}
		if !skipping && keep(v) {
			matching = append(matching, v)
		}
		if id == after {
			skipping = false
		}
	}
	more := int64(len(matching)) > limit
	if more && before != "" { // the ones next to the cursor are the last of them
		matching = matching[int64(len(matching))-limit:]
	} else if more {
		matching = matching[:limit]
	}
	data := make([]object, 0, len(matching))
	for _, v := range matching {
		data = append(data, render(v))
	}
	return object{"object": "list", "data": data, "has_more": more, "url": url}, nil
}

// expand replaces ids by their objects along each path, such as
// payment_intent.payment_method. "data" walks into a list.
func (x *tx) expand(o object, paths []string) error {
	for _, path := range paths {
		if !x.expandPath(o, strings.Split(path, ".")) {
			return invalid("", "expand", "This property cannot be expanded (%s).", path)
		}
	}
	return nil
}

func (x *tx) expandPath(o object, path []string) bool {
	switch v := o[path[0]].(type) {
	case nil: // nothing to expand is fine as long as the field exists
		_, exists := o[path[0]]
		return exists
	case string:
		found := x.byID(v)
		if found == nil {
			return false
		}
		o[path[0]] = found
		return len(path) == 1 || x.expandPath(found, path[1:])
	case object:
		return len(path) > 1 && x.expandPath(v, path[1:])
	case []object:
		if path[0] != "data" || len(path) == 1 {
			return false
		}
		for _, each := range v {
			if !x.expandPath(each, path[1:]) {
				return false
			}
		}
		return true
	}
	return false
}

// byID renders any object that an id names; nil when none does.
func (x *tx) byID(id string) object {
	prefix, _, _ := strings.Cut(id, "_")
	switch prefix {
	case "cus":
		return found(x.state.customers, id, x.renderCustomer)
	case "cs":
		return found(x.state.sessions, id, x.renderSession)
	case "seti":
		return found(x.state.setups, id, x.renderSetup)
	case "pi":
		return found(x.state.intents, id, x.renderIntent)
	case "ch":
		return found(x.state.charges, id, x.renderCharge)
	case "re":
		return found(x.state.refunds, id, x.renderRefund)
	case "dp":
		return found(x.state.disputes, id, x.renderDispute)
	case "pm":
		return found(x.state.methods, id, x.renderMethod)
	case "evt":
		return found(x.state.events, id, x.renderEvent)
	}
	return nil
}

func found[T any](t *table[T], id string, render func(T) object) object {
	if v, ok := t.get(id); ok {
		return render(v)
	}
	return nil
}

// retrieve is GET /v1/{things}/{id} for objects whose ids start with prefix.
func retrieve(what, prefix string) endpoint {
	return func(x *tx, c call) (object, error) {
		if strings.HasPrefix(c.id, prefix) {
			if o := x.byID(c.id); o != nil {
				return o, nil
			}
		}
		return nil, missing(http.StatusNotFound, what, c.id, "id")
	}
}

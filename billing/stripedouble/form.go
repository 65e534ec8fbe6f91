package stripedouble

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// form is a request's parameters with Stripe's bracket names, each checked
// against the endpoint's rules.
type form struct {
	values map[string]string
}

// newForm checks every value against the rules. A name that no rule knows is an
// error: that is what finds a typing mistake on this machine and not in
// production.
func newForm(values url.Values, rules []rule) (form, *apiError) {
	f := form{values: make(map[string]string, len(values))}
	values = indexed(values)
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names) // the first error does not depend on map order
	for _, name := range names {
		value := values.Get(name)
		r, ok := findRule(rules, name)
		if !ok {
			return f, invalid("parameter_unknown", name, "Received unknown parameter: %s", name)
		}
		if value == "" && (r.required || r.kind.nonEmpty) {
			return f, invalid("parameter_invalid_empty", name,
				"You passed an empty string for '%s'. We assume empty values are an attempt to unset a parameter; however '%s' cannot be unset. You should remove '%s' from your request or supply a non-empty value.", name, name, name)
		}
		if value != "" {
			if err := r.kind.check(name, value); err != nil {
				return f, err
			}
			f.values[name] = value
		}
	}
	for _, r := range rules {
		if _, given := f.values[r.name]; r.required && !given {
			return f, missingParam(r.name)
		}
	}
	return f, nil
}

// indexed turns a[]=x&a[]=y into a[0]=x&a[1]=y.
func indexed(values url.Values) url.Values {
	out := url.Values{}
	for name, all := range values {
		list, ok := strings.CutSuffix(name, "[]")
		if !ok {
			out[name] = all
			continue
		}
		for i, value := range all {
			out.Set(list+"["+strconv.Itoa(i)+"]", value)
		}
	}
	return out
}

func missingParam(name string) *apiError {
	return invalid("parameter_missing", name, "Missing required param: %s.", name)
}

func (f form) has(name string) bool   { _, ok := f.values[name]; return ok }
func (f form) str(name string) string { return f.values[name] }
func (f form) yes(name string) bool   { return f.values[name] == "true" }

// num gives an integer that its rule has already checked; zero when absent.
func (f form) num(name string) int64 {
	n, _ := strconv.ParseInt(f.values[name], 10, 64)
	return n
}

// list gives name[0], name[1], … or name[] in order of their index.
func (f form) list(name string) []string {
	var out []string
	for _, i := range f.indexes(name) {
		out = append(out, f.values[name+"["+i+"]"])
	}
	return out
}

// indexes gives the different first brackets behind name, numbers in order.
func (f form) indexes(name string) []string {
	var out []string
	for key := range f.values {
		rest, ok := strings.CutPrefix(key, name+"[")
		if !ok {
			continue
		}
		if i, _, ok := strings.Cut(rest, "]"); ok && !slices.Contains(out, i) {
			out = append(out, i)
		}
	}
	slices.SortFunc(out, func(a, b string) int {
		x, _ := strconv.Atoi(a)
		y, _ := strconv.Atoi(b)
		return x - y
	})
	return out
}

// pairs gives name[key]=value as a map, never nil: Stripe answers {} for none.
func (f form) pairs(name string) map[string]string {
	out := map[string]string{}
	for key, value := range f.values {
		if rest, ok := strings.CutPrefix(key, name+"["); ok {
			out[strings.TrimSuffix(rest, "]")] = value
		}
	}
	return out
}

// rule is one parameter an endpoint takes. In its name "[#]" stands for any
// index and "[*]" for any key.
type rule struct {
	name     string
	kind     kind
	required bool
}

// findRule gives the rule for a parameter's name.
func findRule(rules []rule, name string) (rule, bool) {
	parts := segments(name)
	for _, r := range rules {
		if slices.EqualFunc(segments(r.name), parts, matches) {
			return r, true
		}
	}
	return rule{}, false
}

func matches(pattern, part string) bool {
	switch pattern {
	case "#":
		_, err := strconv.ParseUint(part, 10, 16)
		return part == "" || err == nil
	case "*":
		return part != ""
	}
	return pattern == part
}

// segments splits a[b][0] into a, b, 0. A name with broken brackets is one
// segment, which no rule knows.
func segments(name string) []string {
	head, rest, ok := strings.Cut(name, "[")
	if !ok {
		return []string{name}
	}
	inner, closed := strings.CutSuffix(rest, "]")
	if !closed {
		return []string{name}
	}
	return append([]string{head}, strings.Split(inner, "][")...)
}

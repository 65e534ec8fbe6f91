package web

// InstancesView is the page /instances. Its bulk form posts ids (repeated) to
// /instances/stop. No Rows and Any false is the empty page; no Rows and Any true
// says that the filter hides everything.
type InstancesView struct {
	Layout
	// Summary is "3 running, 1 starting."; Burn is "$4.19 per hour", empty if nothing burns.
	Summary, Burn string
	// Filters are links: current, active, terminated. Elsewhere is the one to follow
	// when the present one shows nothing.
	Filters   []FilterLink
	Elsewhere FilterLink
	Rows      []InstanceRow
	// Any says that the account has instances at all.
	Any bool
	// From is the cheapest price per hour on offer, for the empty page.
	From string
	// NextHref leads to the next page of the list; empty on the last.
	NextHref string
}

// InstanceRow is one instance in the list.
type InstanceRow struct {
	ID, Name string
	// Where is "kestrel · GPU 3", empty when it is placed nowhere.
	Where string
	Bar   SliceBar
	// State is a word, Note an optional line under it (progress, cause).
	State string
	Tone  Tone
	Note  string
	// SKU is its name, Billing "On demand".
	SKU, Billing string
	// Utilization is "87 %", or "–" when not measured; Live follows it as it changes.
	Utilization string
	Live        bool
	// Rate is the price per hour now, "$1.63"; "$0.00" when not running.
	Rate string
	// Run is how long this run has lasted, Cost what the instance has cost so far.
	Run, Cost string
	// CanStop offers the row for the bulk stop.
	CanStop bool
}

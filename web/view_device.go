package web

// DeviceView is the operator's page /fleet/{id}/devices/{uuid}.
type DeviceView struct {
	Layout
	NodeHref, Node string
	// Name is "GPU 3", Model "A100 80GB".
	Name, Model, UUID string
	State             string
	Tone              Tone
	Simulated         bool
	// LayoutHref is where it is divided; empty: it cannot be.
	LayoutHref string
	// Need is what wants a person; nil: nothing.
	Need *Alert
	Part SlicePart
	Measured
	Health, Facts []Pair
	// Leases are the newest, held ones first.
	Leases []CardLease
	Events []Event
}

// CardLease is one lease of a card.
type CardLease struct {
	Instance, Account, Slice string
	// State is that of the instance when it holds the slice still.
	State string
	// From is when it began, Until "held" or when it ended.
	From, Until string
}

// Reading is the newest reading of one kind.
type Reading struct {
	// Key is the field of the live message, Value as drawn with its Unit.
	Key, Term, Value, Unit string
}

package web

// CatalogueView is the page /. With no Purposes it says that there is nothing to
// rent yet, and shows an operator how to join a node.
type CatalogueView struct {
	Layout
	// Filters choose a purpose; they are links with ?for=.
	Filters  []FilterLink
	Purposes []Purpose
}

// Purpose is one group of SKUs: what they are good for.
type Purpose struct {
	// ID is the anchor, for example "serve".
	ID, Title, Text string
	SKUs            []SKUCard
}

// SKUCard is one thing to rent.
type SKUCard struct {
	// ID is the SKU's id, Name its name for people ("A100 80GB · 1g.10gb").
	ID, Name, Description string
	// Memory is the true size with its unit: "9,856" and "MiB".
	Memory, MemoryUnit string
	Bar                SliceBar
	// Left and Right stand under the bar's ends: "1/8 memory", "1/7 compute".
	Left, Right string
	// PerHour and PerSecond are the on-demand price: "$0.42", "$0.000117".
	PerHour, PerSecond string
	// Free says how many can be placed now, "22 slices free"; FreeTone is
	// ToneRunning, ToneWarn (few) or ToneStopped (none).
	Free     string
	FreeTone Tone
	// CanLaunch is false when none can be placed now; then no link is drawn.
	CanLaunch bool
	// Simulated marks SKUs whose devices are simulated.
	Simulated bool
}

package web

// CardLayoutView is the operator's page on which a card is divided. Its first form
// asks for the same page with how many of each profile are wanted, which shows the
// plan; its second posts the plan's profiles back to the page's address.
type CardLayoutView struct {
	Layout
	// Node and Card name the card: "harbour", "GPU 0"; Model is "A100 80GB".
	NodeHref, Node, Card, Model string
	// Action is the page's address.
	Action string
	// Now is the card as it is, NowText in words.
	Now     SliceBar
	NowText string
	// Profiles are what the card can be divided into.
	Profiles []ProfileCount
	// Problem is why it cannot be divided as was asked; nil: it can, or nothing was asked.
	Problem *Problem
	// Plan is what would be done; nil when nothing was asked.
	Plan *CardPlan
}

// ProfileCount is one profile and how many of it are wanted.
type ProfileCount struct {
	// Name is "1g.10gb", Field its form field, Hint what it gives: "9,856 MiB, at most 7".
	Name, Field, Value, Hint string
	Most                     int
}

// CardPlan is the way to a layout.
type CardPlan struct {
	// Then is the card afterwards.
	Then SliceBar
	// Steps say in a line each what is kept, removed and made.
	Steps []Consequence
	// Profiles is the wish, as the second form posts it.
	Profiles string
	// Button says what it does: "Divide it so", "Sell it as is asked for".
	Button string
	// Nothing is true when the card is like that already.
	Nothing bool
}

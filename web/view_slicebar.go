package web

// Kind says who holds a part of a card; each has its own pattern, so that none
// relies on hue.
type Kind string

// The kinds of hold a slice bar can show.
const (
	KindYours     Kind = "you"
	KindOther     Kind = "other"
	KindFault     Kind = "fault"
	KindGhost     Kind = "ghost"    // where a launch will land
	KindReady     Kind = "ready"    // lies ready on a divided card
	KindFree      Kind = "free"     // only for legends
	KindSpot      Kind = "spot"     // can be reclaimed
	KindYoursSpot Kind = "youspot"  // yours, on spot
	KindReserved  Kind = "reserved" // promised for a term
)

// SliceBar is one card as a picture: memory slices above, compute slices below,
// one hull per holder.
type SliceBar struct {
	// Label is the same in words, for those who do not see the picture.
	Label string
	// Memory and Compute are how many slices of each the card has: 8 and 7 for
	// most, 4 and 4 for an A30. Both 0: the card cannot be cut and is one block.
	Memory, Compute int
	// Holds are drawn in this order and must not overlap. On a card that cannot
	// be cut the first hold, if any, takes all of it.
	Holds []Hold
	// Tall is the form for small places (fleet, tables): taller decks, coarser patterns.
	Tall bool
}

// Hold is one holder's slice of a card.
type Hold struct {
	// Start and Size are in memory slices.
	Start, Size int
	// Compute is the number of compute slices; they begin at the same index as
	// the memory, moved left where the deck ends.
	Compute int
	Kind    Kind
}

// SlicePart is a slice bar with its two captions, and its place as a heading.
type SlicePart struct {
	// Where names the card: "gannet, GPU 1".
	Where string
	Bar   SliceBar
	// Left and Right stand under the bar's ends: "memory 5–8 of 8", "compute 5–7 of 7".
	Left, Right string
	// Sharing says what a share does not keep apart; empty for what is no share.
	Sharing string
}

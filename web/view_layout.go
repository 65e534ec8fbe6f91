package web

// Nav names the entry of the main navigation that a page belongs to.
type Nav string

// The entries of the main navigation. The zero value marks none as current.
const (
	NavCatalogue Nav = "catalogue"
	NavInstances Nav = "instances"
	NavWallet    Nav = "wallet"
	NavFleet     Nav = "fleet"
	NavAccount   Nav = "account"
)

// Tone says how a word or box is coloured and shaped. The values are those of the
// stylesheet's status marks.
type Tone string

// Tones of states, notes and banners. The zero value is neutral.
const (
	ToneWaiting  Tone = "waiting"  // asked for, not begun
	ToneStarting Tone = "starting" // on its way
	ToneRunning  Tone = "running"  // good, on
	ToneStopped  Tone = "stopped"  // off, no fault
	ToneWarn     Tone = "warn"     // needs a look
	ToneFailed   Tone = "failed"   // broken
	ToneDrain    Tone = "drain"    // leaving
)

// Layout is what every page has around its own part. Each page's view embeds one.
type Layout struct {
	// Title is the page's name for the browser tab, without the product's name.
	Title string
	// Nav is the current entry of the navigation.
	Nav Nav
	// User is the signed-in user's name, empty for a guest. Guests see "Sign in"
	// and "Sign up" instead of the navigation, and no live updates are opened.
	User string
	// Operator shows the Fleet entry.
	Operator bool
	// Purse is the account's money in the top bar; nil for guests.
	Purse *Purse
	// TestPayments shows "Test payments: no real money" above the bar.
	TestPayments bool
	// Flash is one message about what was just done; nil for none.
	Flash *Flash
	// Theme is "light", "dark" or "system" (also the zero value).
	Theme string
	// Return is the path and query that GETs this page, also when a POST has drawn
	// it: where POST /theme comes back to, and what live updates fetch.
	Return string
	// Site is the host name shown in the foot; Version the build's version.
	Site, Version string
	// Currency is the ISO code prices are shown in, for example "USD".
	Currency string
}

// Purse is a balance and how long it lasts, always shown together.
type Purse struct {
	// Balance is what can be spent, formatted: "$182.40".
	Balance string
	// Lasts is how long it lasts at the present burn, "1 d 19 h left"; "nothing
	// running" when nothing burns.
	Lasts string
	// Low draws Lasts as a warning.
	Low bool
}

// Flash is one message on the next page after a form was posted.
type Flash struct {
	// Tone is ToneRunning for done, ToneWarn, or ToneFailed for refused.
	Tone Tone
	// Text says what happened, and what to do next if anything.
	Text string
	// Href and Link are an optional way on, for example "Start again".
	Href, Link string
}

// Field is one form field as it comes back: what was typed, and what is wrong
// with it. Error empty means nothing is.
type Field struct {
	Value string
	Error string
}

// Problem is why a form as a whole was refused.
type Problem struct {
	// What happened, one sentence. Next is what to do, one sentence.
	What, Next string
	// Href and Link are where Next can be done; empty for no link.
	Href, Link string
}

// FilterLink is one of a row of choices that works as a link.
type FilterLink struct {
	Label, Href string
	Current     bool
}

// Pair is one line of a list of facts: "Wallet lasts", "1 d 19 h".
type Pair struct {
	Term, Value string
	// Strong draws the value bold, Total draws a rule above it.
	Strong, Total bool
}

// Consequence is one line of what an action keeps or loses. Kept ones come first.
type Consequence struct {
	Keep bool
	Text string
}

// Event is one dated line.
type Event struct {
	// At is the time as shown, "09:41:22"; DateTime the same in RFC 3339.
	At, DateTime string
	// Lead is an optional bold beginning ("Running."), Text the rest.
	Lead, Text string
}

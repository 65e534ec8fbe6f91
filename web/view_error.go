package web

// ErrorView is the page for anything that could not be done, 404 included.
type ErrorView struct {
	Layout
	// Status is the HTTP status: 404, 500.
	Status int
	// What happened and Next, what to do about it; each one sentence.
	What, Next string
	// Href and Link are the way on; empty for the catalogue.
	Href, Link string
	// Request is the number to quote, found again in the portal's log.
	Request string
}

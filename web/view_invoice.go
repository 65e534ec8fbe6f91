package web

// InvoicesView is the page /invoices.
type InvoicesView struct {
	Layout
	// Current is the month to date; nil for an account that has used nothing yet.
	Current *InvoiceRow
	Closed  []InvoiceRow
	// NextDate is when the next invoice comes: "1 January".
	NextDate string
	NextHref string
}

// InvoiceRow is one invoice in the list.
type InvoiceRow struct {
	ID string
	// Number is empty for the month to date, which is shown by Period.
	Number, Period, Issued, Total string
	State                         string
	Tone                          Tone
}

// InvoiceView is the page /invoices/{id}: a closed invoice, or the month to date.
type InvoiceView struct {
	Layout
	ID string
	// Heading is "Invoice 2026-11-0017" or "December 2026, so far".
	Heading string
	// Seller is this Berth's name on the document.
	Seller string
	State  string
	Tone   Tone
	Facts  []Pair
	// From and To are addresses, line by line; the first is drawn bold.
	From, To []string
	Lines    []InvoiceLine
	// Totals close the document; the last ones marked Total.
	Totals []Pair
	// Note is the small print.
	Note string
	// Zone is the time zone that times are written in: "UTC".
	Zone string
	// PDFHref is empty for a document that is not closed.
	PDFHref string
}

// InvoiceLine is one line, which opens to the spans it is the sum of.
type InvoiceLine struct {
	What, Detail string
	// Used is "412,200 s", Price "$0.000514" with Unit "per second" or "per hour".
	Used, Price, Unit, Amount string
	Spans                     []InvoiceSpan
}

// InvoiceSpan is one usage span of a line.
type InvoiceSpan struct {
	Instance, Start, End, Seconds, PerHour, Charged string
}

package web

// InstanceView is the page /instances/{id} in every state: starting, running,
// stopped, failed. Parts that do not apply are nil or empty and left out.
// Its forms post to /instances/{id}/stop, start, restart and terminate (confirm).
type InstanceView struct {
	Layout
	// Notice is what is planned for its node, a sentence; empty: nothing.
	Notice   string
	ID, Name string
	State    string
	Tone     Tone
	// Billing is "On demand"; What is "A100 80GB · 1g.10gb on kestrel, GPU 3".
	Billing, What string
	// Simulated marks an instance whose device is simulated.
	Simulated bool
	Steps     []Step
	// Failure is set when the instance failed or was lost.
	Failure *Failure
	// Pull is set while the image is pulled.
	Pull *Pull
	// Terminal offers the web terminal; true only while it can be opened.
	Terminal bool
	Cost     Cost
	Measured
	// Slices are the cards it holds or held a part of.
	Slices []SlicePart
	// SliceNote is said under them, or alone: "Stopped instances hold nothing."
	SliceNote string
	Events    []Event
	// Logs says that there is output to read at /instances/{id}/logs.
	Logs bool

	// Each action is nil when the state does not allow it.
	Stop, Start, Restart, Terminate *Action
	// TerminateError is why a terminate form was refused: the name did not match.
	TerminateError string
}

// Action is a button with its consequences, said before the click.
type Action struct {
	// Label is on the button that opens it: "Stop", "Cancel, costs nothing".
	Label string
	// Title asks: "Stop qwen-serve-02?"; Do is the verb on the button that does it.
	Title, Do    string
	Consequences []Consequence
	// Note is an optional last line: "To keep the disk, stop instead: $0.08 per hour."
	Note string
}

// StepStatus is how far a step of the timeline is.
type StepStatus string

// Statuses of a step.
const (
	StepDone   StepStatus = "done"
	StepNow    StepStatus = "now"
	StepTodo   StepStatus = "todo"
	StepFailed StepStatus = "failed"
)

// Step is one mark on the timeline.
type Step struct {
	Label string
	// Detail is a measured duration ("19.6 s"), or a guess that says "about".
	Detail string
	Status StepStatus
	// Progress draws a bar under the step; nil for none.
	Progress *Progress
	// Ticking counts Detail up from Seconds while the page is open.
	Ticking bool
	Seconds int64
}

// Progress is how much of something is done, in bytes. Max 0 means unknown.
type Progress struct {
	Label      string
	Value, Max int64
}

// Pull is the image being pulled.
type Pull struct {
	Image string
	// Detail is "4.9 of 7.9 GB at 410 MB/s, 8 s left".
	Detail   string
	Progress Progress
}

// Failure says what went wrong and what to do.
type Failure struct {
	// Title is "It did not start."; Cause the reason; Next what to do about it.
	Title, Cause, Next string
	// Output is the last lines the instance wrote, if any.
	Output string
}

// Cost is what a run has cost, by the numbers the meter has confirmed.
type Cost struct {
	// Heading is "This run has cost", or "It has cost".
	Heading string
	// Whole and Faint are the amount as drawn by the server: "$3.64" and "35",
	// two digits beyond the currency's own. Script writes them in the same way.
	Whole, Faint string
	// Duration and PerSecond are "2 h 14 min 07 s" and "$0.000453"; PerSecond
	// empty drops "at … per second".
	Duration, PerSecond string
	// Note replaces the line of duration and price: "Billing starts when it runs."
	Note   string
	Lines  []Pair
	Ticker Ticker
}

// Ticker is what script needs to count a cost up between two views: from
// ChargedMicros and Seconds at SinceUnixMilli, by the rate, while Running. Both
// times are the portal's, so a browser's wrong clock does not matter.
type Ticker struct {
	ChargedMicros, RateMicrosPerHour int64
	Seconds                          int64
	SinceUnixMilli, NowUnixMilli     int64
	// Symbol and Decimals are those of the currency: "$", 2.
	Symbol   string
	Decimals int
	Running  bool
}

// LogsView is the page /instances/{id}/logs.
type LogsView struct {
	Layout
	ID, Name string
	// Text is what the instance wrote, oldest first; empty for nothing yet.
	Text string
	// Note says what was left out: "The last 256 KiB."
	Note string
	// Problem is set when the output cannot be read now.
	Problem *Problem
}

// TerminalView is the page /instances/{id}/terminal. Script opens a WebSocket at
// /instances/{id}/terminal/socket: binary both ways, and text
// {"resize":{"cols":80,"rows":24}} from the browser. On every connection the
// portal first replays what the shell showed last.
type TerminalView struct {
	Layout
	ID, Name string
	// Nonce is put on the style elements that xterm.js makes, and must be the one
	// in this response's Content-Security-Policy (style-src 'nonce-…').
	Nonce string
	// Problem is set, and no terminal opened, when the instance does not run.
	Problem *Problem
}

package web

// LaunchView is the page /launch: GET draws the form for ?sku=…, and again with
// any of the form's own fields in the query to work out the price; POST launches.
// The form's fields are sku, name, image, disk_gib, env, startup_script and
// idempotency_key. With no SKUs the page says there is nothing to launch.
type LaunchView struct {
	Layout
	SKUs     []SKUChoice
	SKUError string
	// PerHour is the on-demand price of the chosen SKU, shown as a fact: "$1.55".
	PerHour string
	Name    Field
	Images  []ImageOption
	// ImageHint stands under the images, ImageError takes its place.
	ImageHint, ImageError string
	// Disk is in GiB as typed; DiskHint says what a GiB costs and what is free.
	Disk     Field
	DiskHint string
	// Env has one NAME=value per line; Startup is a shell script.
	Env, Startup Field
	// Problem is why the launch as a whole was refused (no capacity).
	Problem *Problem
	// Funds is set when the wallet does not hold enough for the start.
	Funds   *Funds
	Summary LaunchSummary
	// IdempotencyKey makes a form posted twice launch once.
	IdempotencyKey string
}

// SKUChoice is one radio button that shows what you get.
type SKUChoice struct {
	ID, Name string
	// Free is "5 free" or "none free"; Memory is "9,856 MiB".
	Free, Memory string
	Bar          SliceBar
	Selected     bool
	// Disabled: none can be placed now.
	Disabled bool
}

// ImageOption is one image that can be started.
type ImageOption struct {
	// Value is posted, Label shown: "host", "Host system".
	Value, Label string
	Selected     bool
}

// Funds says what is missing: both formatted, "$0.01" and "$0.03".
type Funds struct {
	Have, Need string
	// TopUpHref leads to the wallet with the missing amount filled in.
	TopUpHref string
}

// LaunchSummary is what the choices come to.
type LaunchSummary struct {
	// What repeats the choices: "A100 80GB · 1g.10gb, on demand, 20 GiB disk".
	// Empty: no choice yet, and the rest is left out.
	What string
	// PerHour "$1.63", PerSecond "$0.000453", PerMonth "$1,189.90", disk included.
	PerHour, PerSecond, PerMonth string
	// Landing is where it would be placed now; nil with NoLanding saying why not.
	Landing   *SlicePart
	NoLanding string
	// Wallet "$182.40", Burn with this one "$5.82 /h", Lasts "1 d 7 h".
	Wallet, Burn, Lasts string
	// CanLaunch is false when it cannot be placed or paid; the button is then off.
	CanLaunch bool
}

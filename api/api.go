// Package api holds the public JSON types of Berth's API under /api/v1 and the
// Go client that the command line uses. Field names here are the outside
// contract: scripts rely on them. The package depends on nothing of the portal.
package api

import "time"

// Prefix is where the API lives.
const Prefix = "/api/v1"

// Money is an exact amount in micro-units (10⁻⁶) of the currency's major unit.
type Money struct {
	Micros   int64  `json:"micros" doc:"Amount in micro-units: 1 USD is 1,000,000" example:"1990000"`
	Currency string `json:"currency" doc:"ISO 4217 code" example:"USD"`
}

// Problem is an error as RFC 9457 writes it. Code is for programs, Detail and
// Next are for people.
type Problem struct {
	Type         string            `json:"type"`
	Title        string            `json:"title"`
	Status       int               `json:"status"`
	Code         string            `json:"code" doc:"What kind of problem; scripts rely on it" example:"insufficient_funds"`
	Detail       string            `json:"detail" doc:"What happened"`
	Next         string            `json:"next,omitempty" doc:"What to do next"`
	Fields       map[string]string `json:"fields,omitempty" doc:"What is wrong, by field"`
	Have         *Money            `json:"have,omitempty"`
	Need         *Money            `json:"need,omitempty"`
	Alternatives []string          `json:"alternatives,omitempty" doc:"SKUs that can be placed now"`
	Request      string            `json:"request,omitempty" doc:"Number of the request, for the operator"`
}

func (p *Problem) Error() string { return p.Detail }

// GetStatus is the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType is the media type of problems, whatever was negotiated.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// List is one page of things.
type List[T any] struct {
	Items      []T     `json:"items"`
	NextCursor *string `json:"next_cursor" doc:"Pass as ?cursor= for the next page; null on the last"`
}

// Time is written in RFC 3339 UTC; nil is null: not yet.
type Time = *time.Time

// Token is an API token. Token itself is shown once, when it is made.
type Token struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	Token      string    `json:"token,omitempty"`
	CreatedAt  time.Time `json:"created_at"`
	LastUsedAt Time      `json:"last_used_at"`
}

// NewToken asks for a token.
type NewToken struct {
	Name string `json:"name" minLength:"1" maxLength:"64"`
}

// Me is who the caller is.
type Me struct {
	User struct {
		ID    string `json:"id"`
		Email string `json:"email"`
		Name  string `json:"name"`
	} `json:"user"`
	Account struct {
		ID       string `json:"id"`
		Name     string `json:"name"`
		Currency string `json:"currency"`
	} `json:"account"`
	Role     string `json:"role"`
	Operator bool   `json:"operator"`
}

// SKU is what is sold: a slice kind × count with its share of the host.
type SKU struct {
	ID            string  `json:"id" example:"a100-80gb.1g.10gb"`
	Device        string  `json:"device" example:"a100-80gb"`
	Profile       string  `json:"profile" example:"1g.10gb"`
	Count         int     `json:"count"`
	MemoryMiB     int     `json:"memory_mib"`
	ComputeSlices int     `json:"compute_slices" doc:"0: the card cannot be cut"`
	MemorySlices  int     `json:"memory_slices" doc:"0: the card cannot be cut"`
	VCPUs         float64 `json:"vcpus" doc:"Share of the host's CPUs"`
	RAMMiB        int     `json:"ram_mib"`
	Simulated     bool    `json:"simulated"`
}

// Offer is a SKU in a billing mode at a price now.
type Offer struct {
	ID           string `json:"id"`
	SKU          string `json:"sku"`
	BillingMode  string `json:"billing_mode" enum:"on_demand,spot,reserved"`
	PricePerHour Money  `json:"price_per_hour"`
	Available    int    `json:"available" doc:"How many can really be placed now"`
}

// NewInstance asks for a launch.
type NewInstance struct {
	SKU           string            `json:"sku"`
	BillingMode   string            `json:"billing_mode,omitempty" doc:"on_demand"`
	Name          string            `json:"name,omitempty" doc:"Empty: one is made"`
	Image         string            `json:"image,omitempty" doc:"Empty: the node's first"`
	Command       []string          `json:"command,omitempty" doc:"Empty: idle, used by terminal"`
	Env           map[string]string `json:"env,omitempty"`
	StartupScript string            `json:"startup_script,omitempty"`
	DiskGiB       int               `json:"disk_gib,omitempty" doc:"0: 20"`
	KeyIDs        []string          `json:"key_ids,omitempty" doc:"SSH keys; none can be added yet, so only an empty list is accepted"`
}

// Instance is what a renter runs.
type Instance struct {
	ID           string  `json:"id"`
	Name         string  `json:"name"`
	State        string  `json:"state" enum:"queued,placing,pulling,starting,running,stopping,stopped,failed,interrupted,lost,terminated"`
	Reason       string  `json:"reason" doc:"Why it is in this state; empty when it is as wanted"`
	Detail       string  `json:"detail" doc:"The reason as a sentence"`
	Notice       string  `json:"notice" doc:"What is planned for its node, a sentence; empty: nothing"`
	SKU          string  `json:"sku"`
	BillingMode  string  `json:"billing_mode"`
	PricePerHour Money   `json:"price_per_hour"`
	Image        string  `json:"image"`
	DiskGiB      int     `json:"disk_gib"`
	Node         string  `json:"node"`
	Placement    string  `json:"placement" doc:"Why it lies where it lies"`
	Slices       []Slice `json:"slices"`
	Run          int     `json:"run" doc:"Counts its starts"`
	CreatedAt    Time    `json:"created_at"`
	RunningAt    Time    `json:"running_at"`
	EndedAt      Time    `json:"ended_at"`
	Seconds      int64   `json:"seconds" doc:"Charged seconds of this run"`
	Charged      Money   `json:"charged" doc:"What this run has cost"`
}

// Slice is a held part of a device.
type Slice struct {
	DeviceUUID string `json:"device_uuid"`
	Profile    string `json:"profile"`
	Start      int    `json:"start"`
	Size       int    `json:"size"`
}

// Event is one line of an instance's history.
type Event struct {
	Seq    int64     `json:"seq"`
	At     time.Time `json:"at"`
	Kind   string    `json:"kind"`
	From   string    `json:"from"`
	To     string    `json:"to"`
	Reason string    `json:"reason"`
}

// Sample is a second of telemetry; what is not measurable is null.
type Sample struct {
	Seq                int64     `json:"seq"`
	At                 time.Time `json:"at"`
	UtilizationPercent *float64  `json:"utilization_percent"`
	MemoryMiB          *int64    `json:"memory_mib"`
	TemperatureC       *float64  `json:"temperature_c"`
	PowerW             *float64  `json:"power_w"`
}

// InstanceSample is a Sample and the instance that it is of.
type InstanceSample struct {
	ID string `json:"id"`
	Sample
}

// Span is a half-open interval in which one run ran at one price.
type Span struct {
	ID           string    `json:"id"`
	Instance     string    `json:"instance"`
	Start        time.Time `json:"start"`
	End          Time      `json:"end" doc:"null while it runs"`
	Seconds      int64     `json:"seconds"`
	PricePerHour Money     `json:"price_per_hour"`
	Charged      Money     `json:"charged"`
}

// Wallet is the state of an account's money.
type Wallet struct {
	Balance     Money `json:"balance"`
	Held        Money `json:"held"`
	Accrued     Money `json:"accrued"`
	Available   Money `json:"available" doc:"balance − held − accrued"`
	BurnPerHour Money `json:"burn_per_hour"`
	RunsOutAt   Time  `json:"runs_out_at" doc:"null when nothing burns"`
}

// NewTopup asks to pay into the wallet.
type NewTopup struct {
	Amount Money `json:"amount"`
}

// Topup is a payment into the wallet; pay it at CheckoutURL.
type Topup struct {
	ID          string    `json:"id"`
	State       string    `json:"state" enum:"creating,open,processing,paid,failed,expired,canceled"`
	Amount      Money     `json:"amount"`
	CheckoutURL string    `json:"checkout_url"`
	Reason      string    `json:"reason,omitempty"`
	CreatedAt   time.Time `json:"created_at"`
}

// LedgerRow is one posting on the wallet.
type LedgerRow struct {
	ID           string    `json:"id"`
	At           time.Time `json:"at"`
	Kind         string    `json:"kind"`
	Key          string    `json:"key"`
	Amount       Money     `json:"amount"`
	BalanceAfter Money     `json:"balance_after"`
}

// Invoice is a closed bill; Lines are left out of lists.
type Invoice struct {
	ID     string `json:"id"`
	Number string `json:"number"`
	State  string `json:"state" enum:"draft,final"`
	Period struct {
		Start time.Time `json:"start"`
		End   time.Time `json:"end"`
	} `json:"period"`
	Total        Money         `json:"total"`
	Lines        []InvoiceLine `json:"lines"`
	TestPayments bool          `json:"test_payments"`
}

// InvoiceLine is one line of a bill.
type InvoiceLine struct {
	Text         string   `json:"text"`
	Detail       string   `json:"detail" doc:"The instance's name; of usage that was reported late also its month"`
	Share        string   `json:"share"`
	Instance     string   `json:"instance"`
	Seconds      int64    `json:"seconds"`
	PricePerHour Money    `json:"price_per_hour"`
	Amount       Money    `json:"amount"`
	Spans        []string `json:"spans" doc:"Usage spans this line bills"`
}

// CloseInvoice asks to bill an account up to a moment.
type CloseInvoice struct {
	Account string `json:"account" pattern:"^[!-~]{1,100}$" patternDescription:"the id of an account"`
	Until   Time   `json:"until,omitempty" doc:"null: now"`
}

// Node is a host that runs an agent.
type Node struct {
	ID           string    `json:"id"`
	Name         string    `json:"name"`
	State        string    `json:"state" enum:"online,offline"`
	Cordoned     bool      `json:"cordoned" doc:"Nothing new starts there; what runs goes on"`
	Maintenance  *Window   `json:"maintenance" doc:"When it is worked on; null: nothing is planned"`
	SeenAt       Time      `json:"seen_at"`
	AgentVersion string    `json:"agent_version"`
	Runtime      string    `json:"runtime" doc:"How instances are run there"`
	Simulated    bool      `json:"simulated" doc:"Its devices are a simulator's"`
	ClockSkewMS  int64     `json:"clock_skew_ms"`
	CreatedAt    time.Time `json:"created_at"`
}

// Window is from one moment until another, which may not be known yet.
type Window struct {
	From  time.Time `json:"from"`
	Until Time      `json:"until,omitempty" doc:"null: not known"`
}

// RetiredNode says what giving a node up ended.
type RetiredNode struct {
	ID        string `json:"id"`
	Instances int    `json:"instances" doc:"How many were terminated with it"`
}

// Device is one accelerator.
type Device struct {
	UUID    string        `json:"uuid"`
	Model   string        `json:"model"`
	Node    string        `json:"node"`
	State   string        `json:"state"`
	Detail  string        `json:"detail" doc:"Why it is not sold, if it is not"`
	Slices  []DeviceSlice `json:"slices"`
	Layout  []Placement   `json:"layout" doc:"The slices it is divided into and sold in; empty: made as they are asked for"`
	Sharing string        `json:"sharing" doc:"The shares it is sold in beside whole, such as ts4; none: it is not shared"`
	Mixed   bool          `json:"mixed" doc:"Its shares may be of several accounts"`
}

// NewSharing asks for a card to be shared so from now on.
type NewSharing struct {
	Sharing string `json:"sharing" maxLength:"20" doc:"ts2 to ts16: that many time shares; none: not shared; empty: as is usual for the model"`
	Mixed   bool   `json:"mixed,omitempty" doc:"Its shares may be of several accounts, which can then disturb each other"`
}

// Placement is a slice in its place on a card, in memory slices.
type Placement struct {
	Profile string `json:"profile"`
	Start   int    `json:"start"`
	Size    int    `json:"size"`
}

// NewLayout asks for a card to be divided.
type NewLayout struct {
	Profiles []string `json:"profiles" maxItems:"16" doc:"Each as often as it is wanted; none: slices are made as they are asked for"`
	DryRun   bool     `json:"dry_run,omitempty" doc:"Only say what would be done"`
}

// LayoutPlan is how a card comes to a layout. What is kept is not touched.
type LayoutPlan struct {
	Device string      `json:"device"`
	Keep   []KeptSlice `json:"keep"`
	Remove []Placement `json:"remove"`
	Make   []Placement `json:"make"`
	Layout []Placement `json:"layout"`
}

// KeptSlice is a slice that stays, and who uses it; empty: nobody.
type KeptSlice struct {
	Placement
	Holder string `json:"holder"`
}

// DeviceSlice is a held slice of a device.
type DeviceSlice struct {
	Profile  string `json:"profile"`
	Start    int    `json:"start"`
	Size     int    `json:"size"`
	Instance string `json:"instance"`
}

// JoinToken lets one node join, once.
type JoinToken struct {
	Token     string    `json:"token"`
	ExpiresAt time.Time `json:"expires_at"`
	Command   string    `json:"command" doc:"What to run on the host"`
}

// NewPrice is a row for the price list.
type NewPrice struct {
	SKU          string `json:"sku"`
	BillingMode  string `json:"billing_mode,omitempty" doc:"on_demand"`
	PricePerHour Money  `json:"price_per_hour"`
	EffectiveAt  Time   `json:"effective_at,omitempty" doc:"null: now"`
}

// Price is a row of the price list.
type Price struct {
	ID           string    `json:"id"`
	SKU          string    `json:"sku"`
	BillingMode  string    `json:"billing_mode"`
	PricePerHour Money     `json:"price_per_hour"`
	EffectiveAt  time.Time `json:"effective_at"`
}

// History is what was measured of an instance, a card or all cards of a node.
type History struct {
	Range       string         `json:"range"`
	From        time.Time      `json:"from"`
	To          time.Time      `json:"to" doc:"end of the newest point"`
	StepSeconds int64          `json:"step_seconds"`
	Points      []HistoryPoint `json:"points" doc:"Oldest first. A step without a point has no sample at all"`
}

// HistoryPoint is one step that begins at At. What was not measured is null.
type HistoryPoint struct {
	At                 time.Time `json:"at"`
	Samples            int64     `json:"samples" doc:"seconds heard of"`
	UtilizationPercent *Figures  `json:"utilization_percent"`
	MemoryMiB          *Figures  `json:"memory_mib"`
	TemperatureC       *Figures  `json:"temperature_c"`
	PowerW             *Figures  `json:"power_w"`
}

// Figures are the lowest, the mean and the highest of the seconds of a step.
type Figures struct {
	Min  float64 `json:"min"`
	Mean float64 `json:"mean"`
	Max  float64 `json:"max"`
}

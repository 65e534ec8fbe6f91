package web

// FleetView is the operator's page /fleet. Its form posts to /fleet/join-tokens.
type FleetView struct {
	Layout
	// Summary is "2 nodes, 4 GPUs."
	Summary string
	Metrics []Metric
	Nodes   []NodeRack
	// Needs are things that want a person, worst first.
	Needs []Alert
	// Join is the command just made, shown this once; nil otherwise.
	Join *JoinCommand
}

// Metric is one figure with its label and a note under it.
type Metric struct {
	Label, Value, Unit, Note string
}

// Alert is one thing that needs the operator.
type Alert struct {
	Tone Tone
	// Word is the state in a word, At when.
	Word, At         string
	Lead, Text, Next string
	// Href and Link are where to look.
	Href, Link string
}

// NodeRack is one node with its cards.
type NodeRack struct {
	ID, Name string
	// Detail is "2 × A100 80GB, agent 0.1.0, seen 2 s ago".
	Detail string
	State  string
	Tone   Tone
	// Lost greys the cards: what they show is the last that was known.
	Lost bool
	// Simulated marks a node whose devices are simulated.
	Simulated bool
	Devices   []DeviceCell
}

// DeviceCell is one card of a node.
type DeviceCell struct {
	Name, Href string
	// Tail is the end of its UUID, which tells it from all others of the page.
	Tail string
	Bar  SliceBar
	// Note is its temperature or fault: "66 °C", "XID 79", "–".
	Note string
	Bad  bool
}

// JoinCommand joins one node, once.
type JoinCommand struct {
	// Command is what to paste on the node; Expires says until when it works.
	Command, Expires string
}

// NodeView is the operator's page /fleet/{id}.
type NodeView struct {
	Layout
	ID, Name string
	State    string
	Tone     Tone
	// Detail is one line under the name.
	Detail string
	// Simulated is what is simulated, in a sentence; empty for real devices.
	Simulated string
	Facts     []Pair
	// Ladder are the ways to start an instance, best first, and which was chosen.
	Ladder  []LadderStep
	Devices []NodeDevice
	Measured
	// Instances are those on this node now.
	Instances []NodeInstance
	Events    []Event
	Upkeep    Upkeep
}

// Upkeep is what an operator can do with a node now.
type Upkeep struct {
	// Cordoned offers to open it again instead of closing it.
	Cordoned bool
	// Maintenance is what is planned, in a sentence or two; empty: nothing. From is
	// the beginning that the form offers.
	Maintenance, From string
	// Retire is what giving it up does; empty when that cannot be done now.
	Retire []Consequence
}

// LadderStep is one way of isolating an instance that the agent has tried.
type LadderStep struct {
	Name string
	// Chosen marks the one in use; Reason says why another was not, or what this one gives.
	Chosen bool
	Reason string
	// Tried is false for steps below the chosen one.
	Tried bool
}

// NodeDevice is one card in full.
type NodeDevice struct {
	Name, UUID, Model, Href string
	State                   string
	Tone                    Tone
	// Note says more of a state that is not well; empty: nothing.
	Note string
	Part SlicePart
	// LayoutHref is where it is divided; empty: it cannot be.
	LayoutHref string
	// Sharing is the form of how it is shared; nil: it is not sold.
	Sharing *CardSharing
	// Readings are temperature, power, memory and utilisation, "not measurable" where so.
	Readings []Reading
	// Divided says into what it is divided; empty: it is not.
	Divided string
}

// CardSharing is the form of how a card is shared.
type CardSharing struct {
	ID, Action string // ID tells the forms of one page apart
	Ways       []SharingWay
	Mixed      bool
}

// SharingWay is one choice of CardSharing.
type SharingWay struct {
	Value, Label string
	Selected     bool
}

// NodeInstance is one instance on a node, as the operator sees it.
type NodeInstance struct {
	ID, Name, Account, SKU, Where, State string
	Tone                                 Tone
}

// PricesView is the operator's page /prices. Its form posts sku, price_per_hour
// and effective_at (empty: now) to /prices.
type PricesView struct {
	Layout
	Rows []PriceRow
	// SKUs are those that can be chosen in the form.
	SKUs []ImageOption
	// SKUError, Price and EffectiveAt are the form as it comes back.
	SKUError           string
	Price, EffectiveAt Field
	Symbol             string
	// Zone is the time zone of EffectiveAt: "UTC".
	Zone string
}

// PriceRow is one price that holds or will hold.
type PriceRow struct {
	SKU, Name, PerHour, PerSecond string
	// From is since or from when; State is "now", "from 1 Jan" or "ended".
	From, State string
	Tone        Tone
}

// AccountsView is the operator's page /fleet/accounts. Each row's form posts to
// /accounts/{id}/close-invoice.
type AccountsView struct {
	Layout
	Rows     []AccountRow
	NextHref string
}

// AccountRow is one account as the operator sees it.
type AccountRow struct {
	ID, Name, Owner, Balance, MonthToDate string
	// Instances is "2 running".
	Instances string
	// CanClose is false when there is nothing to invoice.
	CanClose bool
}

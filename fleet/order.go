package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"berth/gpu"
	"berth/models"
)

// What an order may be at most.
const (
	DefaultDiskGiB   = 20   // for callers to whom no size was given
	MaxDiskGiB       = 2000 // of one instance
	MaxEnv           = 128  // variables
	MaxEnvBytes      = 32 << 10
	MaxStartupBytes  = 64 << 10
	MaxCommandArgs   = 256
	MaxCommandBytes  = 32 << 10
	MaxNameBytes     = 63 // it becomes a host name
	maxImageBytes    = 255
	maxClientKeySize = 255
)

// Order is what a renter asks for.
type Order struct {
	Account       models.AccountID
	User          models.UserID
	SKU           string
	BillingMode   models.BillingMode // empty: on demand
	Name          string             // empty: one is made, such as "tern-04"
	Image         string             // empty: the node's first
	Command       []string           // empty: the image's idle process
	Env           map[string]string
	StartupScript string
	DiskGiB       int
	ClientKey     string // the caller's Idempotency-Key; empty: none
}

var (
	nameShape = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	envShape  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// Check says what is wrong with an order, field by field, as far as the order
// alone tells: whether a node has room for it is another matter.
func (o Order) Check() error {
	_, err := o.check()
	return err
}

func (o Order) check() (gpu.SKU, error) {
	wrong := models.Fieldset{}
	sku, err := gpu.ParseSKU(o.SKU)
	if err != nil {
		wrong.Add("sku", fmt.Sprintf("There is no %q: choose one from the catalogue.", clip(o.SKU)))
	}
	switch o.BillingMode {
	case "", models.OnDemand:
	default:
		wrong.Add("billing_mode", fmt.Sprintf("%q is not sold here: use %q.", clip(string(o.BillingMode)), models.OnDemand))
	}
	if o.Name != "" && (len(o.Name) > MaxNameBytes || !nameShape.MatchString(o.Name)) {
		wrong.Add("name", fmt.Sprintf("Use up to %d lower-case letters, digits and hyphens, with a letter or digit at both ends.", MaxNameBytes))
	}
	if len(o.Image) > maxImageBytes || !plain(o.Image) {
		wrong.Add("image", "This is not the name of an image: choose one of those offered.")
	}
	if o.DiskGiB < 1 || o.DiskGiB > MaxDiskGiB {
		wrong.Add("disk_gib", fmt.Sprintf("Use a whole number of GiB from 1 to %d.", MaxDiskGiB))
	}
	checkEnv(wrong, o.Env)
	checkCommand(wrong, o.Command)
	switch {
	case len(o.StartupScript) > MaxStartupBytes:
		wrong.Add("startup_script", fmt.Sprintf("It has %d bytes, the most is %d: fetch the rest from within it.", len(o.StartupScript), MaxStartupBytes))
	case !plain(o.StartupScript):
		wrong.Add("startup_script", "It has bytes that are not text (UTF-8 without NUL).")
	}
	if len(o.ClientKey) > maxClientKeySize || !plain(o.ClientKey) {
		wrong.Add("idempotency_key", fmt.Sprintf("Use at most %d characters of text.", maxClientKeySize))
	}
	return sku, wrong.Problem()
}

// checkEnv looks at variables in the order of their names, so that the same
// input is always told the same. Those that say which GPUs a process sees are
// taken, since images and scripts bring them along: the node overwrites them with
// what is rented.
func checkEnv(wrong models.Fieldset, env map[string]string) {
	if len(env) > MaxEnv {
		wrong.Add("env", fmt.Sprintf("There are %d variables, the most is %d.", len(env), MaxEnv))
	}
	size := 0
	for _, name := range slices.Sorted(maps.Keys(env)) {
		size += len(name) + len(env[name]) + 2 // as the kernel counts: NAME=value, NUL
		switch {
		case !envShape.MatchString(name):
			wrong.Add("env", fmt.Sprintf("%q is not a variable's name: use letters, digits and _, not beginning with a digit.", clip(name)))
		case !plain(env[name]):
			wrong.Add("env", fmt.Sprintf("The value of %s has bytes that are not text (UTF-8 without NUL).", clip(name)))
		}
	}
	if size > MaxEnvBytes {
		wrong.Add("env", fmt.Sprintf("All variables together have %d bytes, the most is %d.", size, MaxEnvBytes))
	}
}

func checkCommand(wrong models.Fieldset, command []string) {
	size := 0
	for _, arg := range command {
		size += len(arg) + 1
		if !plain(arg) {
			wrong.Add("command", "It has bytes that are not text (UTF-8 without NUL).")
		}
	}
	switch {
	case len(command) == 0:
	case len(command) > MaxCommandArgs:
		wrong.Add("command", fmt.Sprintf("It has %d words, the most is %d: put the rest in a script.", len(command), MaxCommandArgs))
	case size > MaxCommandBytes:
		wrong.Add("command", fmt.Sprintf("It has %d bytes, the most is %d: put the rest in a script.", size, MaxCommandBytes))
	case strings.TrimSpace(command[0]) == "":
		wrong.Add("command", "The first word names the program: it cannot be empty.")
	}
}

// plain tells whether s is text that both databases and a process can take.
func plain(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// clip shortens what a stranger typed, or a node said, before it is shown or kept.
func clip(s string) string { return clipTo(s, 60) }

// clipTo shortens a text from outside to n characters, of those that both
// databases take.
func clipTo(s string, n int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}

// hash tells two orders apart that came with one client key. The name counts as
// asked for, not as made; nothing, however it is written, is nothing.
func (o Order) hash() string {
	o.ClientKey = ""
	if len(o.Command) == 0 {
		o.Command = nil
	}
	if len(o.Env) == 0 {
		o.Env = nil
	}
	body, err := json.Marshal(o) // maps are written in the order of their keys
	if err != nil {
		panic("fleet: an order of strings and numbers does not marshal: " + err.Error())
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// seabirds name instances that were given no name.
var seabirds = []string{"albatross", "auk", "booby", "cormorant", "eider", "fulmar", "gannet", "guillemot", "gull", "kittiwake",
	"loon", "murre", "noddy", "pelican", "petrel", "puffin", "razorbill", "scoter", "shag", "shearwater", "skimmer", "skua", "tern", "tropicbird"}

// makeName makes a name that is not taken: a bird chosen by the instance's id
// and the first free number.
func makeName(id models.InstanceID, taken []string) string {
	sum := sha256.Sum256([]byte(id))
	bird := seabirds[int(sum[0])%len(seabirds)]
	for n := 1; ; n++ {
		if name := fmt.Sprintf("%s-%02d", bird, n); !slices.Contains(taken, name) {
			return name
		}
	}
}

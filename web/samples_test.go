package web

import "github.com/a-h/templ"

// The samples are views as a portal would fill them, each page with its full,
// empty, error and, where it has one, in-progress form.

func signedIn(title string, n Nav, path string) Layout {
	return Layout{
		Title: title, Nav: n, User: "Ada Keel", Return: path, TestPayments: true,
		Purse: &Purse{Balance: "$182.40", Lasts: "1 d 19 h left"},
		Site:  "quay.example.org", Version: "0.1.0", Currency: "USD", Theme: "system",
	}
}

func operator(title string, path string) Layout {
	l := signedIn(title, NavFleet, path)
	l.Operator = true
	return l
}

func guest(title, path string) Layout {
	l := signedIn(title, "", path)
	l.User, l.Purse = "", nil
	return l
}

func mig(label string, holds ...Hold) SliceBar {
	return SliceBar{Label: label, Memory: 8, Compute: 7, Holds: holds}
}

func whole(label string, kinds ...Kind) SliceBar {
	b := SliceBar{Label: label}
	for _, k := range kinds {
		b.Holds = append(b.Holds, Hold{Kind: k})
	}
	return b
}

func tall(b SliceBar) SliceBar {
	b.Tall = true
	return b
}

func yours(start, size, compute int) Hold { return Hold{start, size, compute, KindYours} }
func other(start, size, compute int) Hold { return Hold{start, size, compute, KindOther} }
func ghost(start, size, compute int) Hold { return Hold{start, size, compute, KindGhost} }

func samples() map[string]templ.Component {
	out := map[string]templ.Component{}
	for _, part := range []map[string]templ.Component{authSamples(), shopSamples(), instanceSamples(), moneySamples(), operatorSamples()} {
		for name, c := range part {
			out[name] = c
		}
	}
	return out
}

func authSamples() map[string]templ.Component {
	return map[string]templ.Component{
		"signup": SignupPage(SignupView{Layout: guest("Sign up", "/signup"), From: "$0.42"}),
		"signup-error": SignupPage(SignupView{
			Layout: guest("Sign up", "/signup"),
			Name:   Field{Value: "Ada <Keel>"}, Email: Field{Value: "ada", Error: "This is no e-mail address. It needs an @ and a host."},
			Password: Field{Value: "secret never drawn", Error: "11 characters. It needs 12 or more."}, Next: "/launch?sku=a100-80gb.1g.10gb",
		}),
		"login": LoginPage(LoginView{Layout: guest("Sign in", "/login")}),
		"login-error": LoginPage(LoginView{
			Layout: guest("Sign in", "/login"), Email: Field{Value: "ada@example.org"}, Next: "/wallet",
			Problem: &Problem{What: "E-mail and password do not match.", Next: "Try again, or create an account."},
		}),
		"account": AccountPage(AccountView{
			Layout: signedIn("Account", NavAccount, "/account"), Name: "Ada Keel", Email: "ada@example.org", Account: "Ada Keel", Role: "Owner",
			Sessions: []SessionRow{
				{ID: "s1", Agent: "Firefox on Linux", Address: "192.0.2.7", Created: "1 Dec, 09:12", LastSeen: "now", Current: true},
				{ID: "s2", Agent: "Safari on iPhone", Address: "198.51.100.4", Created: "28 Nov, 18:40", LastSeen: "yesterday, 22:03"},
			},
			Tokens:   []TokenRow{{ID: "t1", Name: "laptop", Created: "28 Nov", LastUsed: "2 h ago"}, {ID: "t2", Name: "ci-runner", Created: "1 Dec", LastUsed: "never"}},
			NewToken: "brt_example0000000000000000000000000000000000",
		}),
		"account-empty": AccountPage(AccountView{
			Layout: signedIn("Account", NavAccount, "/account"), Name: "Ada Keel", Email: "ada@example.org", Account: "Ada Keel", Role: "Owner",
			Sessions:  []SessionRow{{ID: "s1", Agent: "Firefox on Linux", Address: "192.0.2.7", Created: "1 Dec, 09:12", LastSeen: "now", Current: true}},
			TokenName: Field{Error: "A token needs a name, so that you know it when you revoke it."},
		}),
		"error-404": ErrorPage(ErrorView{Layout: guest("Not found", "/x"), Status: 404, What: "There is no such page.", Next: "It may have been moved, or it belongs to another account.", Request: "r-01JB2"}),
		"error-500": ErrorPage(ErrorView{
			Layout: signedIn("Error", "", "/wallet"), Status: 500, What: "Internal error.", Next: "Nothing was changed. Try again; if it stays, quote the request number.",
			Href: "/wallet", Link: "Try again", Request: "r-01JB3",
		}),
	}
}

func catalogueFilters(current string) []FilterLink {
	out := []FilterLink{{Label: "Everything", Href: "/"}, {Label: "Fine-tune", Href: "/?for=tune"}, {Label: "Serve", Href: "/?for=serve"}, {Label: "Try", Href: "/?for=try"}}
	for i := range out {
		out[i].Current = out[i].Label == current
	}
	return out
}

func catalogueView(l Layout) CatalogueView {
	return CatalogueView{
		Layout: l, Filters: catalogueFilters("Everything"),
		Purposes: []Purpose{
			{ID: "tune", Title: "Fine-tune a 7B", Text: "LoRA fits in 48 GB. Full fine-tune with 8-bit optimiser wants 80 GB or more.", SKUs: []SKUCard{
				{ID: "h100-80gb", Name: "H100 80GB", Description: "Whole GPU, HBM3, NVLink", Memory: "81,559", MemoryUnit: "MiB", Bar: mig("8 of 8 memory slices and 7 of 7 compute slices are yours", yours(0, 8, 7)), Left: "8/8 memory", Right: "7/7 compute", PerHour: "$2.49", PerSecond: "$0.000692", Free: "1 of 1 GPUs free", FreeTone: ToneWarn, CanLaunch: true, Simulated: true},
				{ID: "a100-80gb.4g.40gb", Name: "A100 80GB · 4g.40gb", Description: "Four sevenths of an A100", Memory: "40,192", MemoryUnit: "MiB", Bar: mig("4 of 8 memory slices and 4 of 7 compute slices are yours", yours(0, 4, 4)), Left: "4/8 memory", Right: "4/7 compute", PerHour: "$1.09", PerSecond: "$0.000303", Free: "2 slices free", FreeTone: ToneWarn, CanLaunch: true, Simulated: true},
			}},
			{ID: "try", Title: "Experiment", Text: "Notebooks, debugging, course work. Start in seconds, stop when you close the lid.", SKUs: []SKUCard{
				{ID: "a100-80gb.1g.10gb", Name: "A100 80GB · 1g.10gb", Description: "The smallest slice", Memory: "9,856", MemoryUnit: "MiB", Bar: mig("1 of 8 memory slices and 1 of 7 compute slices are yours", yours(0, 1, 1)), Left: "1/8 memory", Right: "1/7 compute", PerHour: "$0.42", PerSecond: "$0.000117", Free: "14 slices free", FreeTone: ToneRunning, CanLaunch: true, Simulated: true},
				{ID: "rtx4090.ts4", Name: "RTX 4090 · ts4", Description: "1 of 4 time shares: memory is shared, no isolation", Memory: "6,141", MemoryUnit: "MiB fair part", Bar: SliceBar{Label: "One of 4 shares of the card is yours; its memory is shared", Memory: 4, Compute: 4, Holds: []Hold{yours(0, 1, 1)}}, Left: "1 of 4 shares", Right: "memory is shared", PerHour: "$0.09", PerSecond: "$0.000025", Free: "8 shares free", FreeTone: ToneRunning, CanLaunch: true, Simulated: true},
				{ID: "a100-80gb.1g.20gb", Name: "A100 80GB · 1g.20gb", Description: "One compute slice, double memory", Memory: "19,968", MemoryUnit: "MiB", Bar: mig("2 of 8 memory slices and 1 of 7 compute slices are yours", yours(2, 2, 1)), Left: "2/8 memory", Right: "1/7 compute", PerHour: "$0.56", PerSecond: "$0.000156", Free: "8 slices free", FreeTone: ToneRunning, CanLaunch: true},
				{ID: "rtx4090", Name: "RTX 4090", Description: "Whole GPU, fastest FP16 per dollar", Memory: "24,564", MemoryUnit: "MiB", Bar: whole("The whole card is yours", KindYours), Left: "whole card, not sliced", PerHour: "$0.39", PerSecond: "$0.000108", Free: "0 of 1 GPUs free", FreeTone: ToneStopped},
			}},
		},
	}
}

func launchView() LaunchView {
	return LaunchView{
		Layout: signedIn("Launch", NavCatalogue, "/launch?sku=a100-80gb.3g.40gb"),
		SKUs: []SKUChoice{
			{ID: "a100-80gb.3g.40gb", Name: "A100 80GB · 3g.40gb", Free: "3 free", Memory: "40,192 MiB", Bar: mig("4 of 8 memory slices and 3 of 7 compute slices are yours", yours(4, 4, 3)), Selected: true},
			{ID: "a100-80gb.1g.10gb", Name: "A100 80GB · 1g.10gb", Free: "14 free", Memory: "9,856 MiB", Bar: mig("1 of 8 memory slices and 1 of 7 compute slices are yours", yours(0, 1, 1))},
			{ID: "h100-80gb", Name: "H100 80GB", Free: "1 free", Memory: "81,559 MiB", Bar: mig("All of the card is yours", yours(0, 8, 7))},
			{ID: "rtx4090", Name: "RTX 4090", Free: "none free", Memory: "24,564 MiB", Bar: whole("The whole card is yours", KindYours), Disabled: true},
		},
		PerHour: "$1.55", Images: []ImageOption{{Value: "host", Label: "Host system", Selected: true}},
		ImageHint: "The node's own system, read-only, with a home of your own. Starts at once.",
		Disk:      Field{Value: "20"}, DiskHint: "Counted in the price. 1,120 GiB free on this node.",
		Summary: LaunchSummary{
			What: "A100 80GB · 3g.40gb, on demand, 20 GiB disk", PerHour: "$1.55", PerSecond: "$0.000431", PerMonth: "$1,131.50",
			Landing: &SlicePart{Where: "gannet, GPU 1", Bar: mig("GPU 1 on gannet: memory slices 1 to 3 are held by others, yours will land on 5 to 8", other(0, 2, 2), other(2, 1, 1), ghost(4, 4, 3)), Left: "memory 5–8 of 8", Right: "compute 5–7 of 7"},
			Wallet:  "$182.40", Burn: "$5.82 /h", Lasts: "1 d 7 h", CanLaunch: true,
		},
		IdempotencyKey: "key-1",
	}
}

func shopSamples() map[string]templ.Component {
	low := launchView()
	low.Funds = &Funds{Have: "$0.01", Need: "$0.03", TopUpHref: "/wallet?amount=5.00#topup"}
	low.Summary.CanLaunch = false
	low.Summary.Wallet, low.Summary.Lasts = "$0.01", "23 s"
	low.Name = Field{Value: "Qwen Serve", Error: "Lower case letters, digits and dashes only."}
	low.Disk = Field{Value: "9000", Error: "gannet has 1,120 GiB free. Choose less."}
	low.Env = Field{Value: "HF_HOME=/workspace/hf\nnonsense", Error: "Line 2 has no =. Write NAME=value."}
	low.Startup = Field{Value: "cd /workspace\npython serve.py --port 8000 </dev/null"}
	full := launchView()
	full.Problem = &Problem{What: "No node has a free A100 80GB · 3g.40gb now.", Next: "Choose a smaller slice, or try again later."}
	full.Summary.Landing, full.Summary.NoLanding, full.Summary.CanLaunch = nil, "Every A100 is in use.", false
	op := operator("Catalogue", "/")
	op.Nav = NavCatalogue
	return map[string]templ.Component{
		"catalogue":                CataloguePage(catalogueView(guest("Catalogue", "/"))),
		"catalogue-signed-in":      CataloguePage(catalogueView(signedIn("Catalogue", NavCatalogue, "/"))),
		"catalogue-empty":          CataloguePage(CatalogueView{Layout: guest("Catalogue", "/")}),
		"catalogue-empty-operator": CataloguePage(CatalogueView{Layout: op}),
		"launch":                   LaunchPage(launchView()),
		"launch-error":             LaunchPage(low),
		"launch-no-capacity":       LaunchPage(full),
		"launch-empty":             LaunchPage(LaunchView{Layout: signedIn("Launch", NavCatalogue, "/launch")}),
	}
}

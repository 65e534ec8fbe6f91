package web

import "github.com/a-h/templ"

func walletView() WalletView {
	return WalletView{
		Layout: signedIn("Wallet", NavWallet, "/wallet"), BalanceWhole: "$182", BalanceCents: ".40",
		Facts: []Pair{{Term: "Set aside for starts", Value: "$0.01"}, {Term: "Used, not yet posted", Value: "$0.42"}, {Term: "Can be spent", Value: "$181.97", Total: true}},
		Burn:  "$4.19", BurnNote: "3 instances", RunsOut: "1 d 19 h", RunsOutAt: "Thu 3 Dec, 07:27",
		Presets: []Preset{{"10.00", "$10"}, {"25.00", "$25"}, {"100.00", "$100"}, {"250.00", "$250"}}, AmountHint: "From $5.00 to $10,000.00.", Symbol: "$", IdempotencyKey: "key-1",
		TopUps: []TopUpRow{
			{ID: "t2", At: "1 Dec, 11:40", DateTime: "2026-12-01T11:40:00Z", Amount: "$25.00", State: "Waiting", Tone: ToneWaiting, CheckoutHref: "/wallet/topups/t2"},
			{ID: "t1", At: "1 Dec, 10:34", DateTime: "2026-12-01T10:34:00Z", Amount: "$100.00", State: "Paid", Tone: ToneRunning},
			{ID: "t0", At: "1 Dec, 10:30", DateTime: "2026-12-01T10:30:00Z", Amount: "$100.00", State: "Declined", Tone: ToneFailed, Note: "nothing was charged"},
		},
		Ledger: []LedgerRow{
			{At: "now", DateTime: "2026-12-01T12:00:00Z", What: "Running since 11:00", Detail: "3 instances, posted on the hour", Amount: "−0.42", Balance: "182.40", Pending: true},
			{Day: "Tue 1 Dec", At: "11:00", DateTime: "2026-12-01T11:00:00Z", What: "Usage, qwen-serve-02", Detail: "3,600 s × $0.000117", Amount: "−0.42", Balance: "182.82"},
			{At: "10:34", DateTime: "2026-12-01T10:34:00Z", What: "Top-up", Detail: "Visa ending 4242", Amount: "+100.00", Balance: "183.24", In: true},
		},
		NextHref: "/wallet?before=p-9",
	}
}

func invoiceView() InvoiceView {
	return InvoiceView{
		Layout: signedIn("Invoice 2026-11-0017", NavWallet, "/invoices/v-1"), ID: "v-1", Heading: "Invoice 2026-11-0017", Seller: "Quay Compute", State: "Paid from wallet", Tone: ToneRunning,
		Facts: []Pair{{Term: "Period", Value: "1–30 Nov 2026"}, {Term: "Issued", Value: "1 Dec 2026"}, {Term: "Due", Value: "Nothing to pay"}},
		From:  []string{"Quay Compute", "quay.example.org"}, To: []string{"Ada Keel", "ada@example.org"},
		Lines: []InvoiceLine{
			{What: "A100 80GB · 1g.10gb, on demand", Detail: "qwen-serve-02", Used: "688,440 s", Price: "$0.42", Unit: "per hour", Amount: "80.32", Spans: []InvoiceSpan{
				{"qwen-serve-02", "3 Nov, 09:41:12", "9 Nov, 18:00:00", "548,328", "$0.42", "63.971600"}, {"qwen-serve-02", "12 Nov, 08:00:00", "13 Nov, 22:55:12", "140,112", "$0.42", "16.346400"}}},
			{What: "RTX 4090, on demand", Detail: "sdxl-batch", Used: "58,260 s", Price: "$0.39", Unit: "per hour", Amount: "6.31", Spans: []InvoiceSpan{{"sdxl-batch", "4 Nov, 10:00:00", "5 Nov, 02:11:00", "58,260", "$0.39", "6.311500"}}},
		},
		Totals:  []Pair{{Term: "Total", Value: "$86.63", Total: true}, {Term: "Paid from wallet", Value: "−86.63"}, {Term: "To pay", Value: "$0.00", Total: true}},
		Note:    "Seconds are counted from running to stopped. Lines are rounded once, so that they sum to the total.",
		PDFHref: "/invoices/v-1.pdf", Zone: "UTC",
	}
}

func moneySamples() map[string]templ.Component {
	failed, paid, expired, empty := walletView(), walletView(), walletView(), walletView()
	failed.Returned = &TopUpReturn{State: TopUpFailed, Amount: "$25.00", Reason: "The bank declined the card.", CheckoutHref: "/wallet/topups/t2"}
	failed.Amount = Field{Value: "2", Error: "The smallest top-up is $5.00."}
	failed.Low = &Problem{What: "The wallet lasts 3 h 10 min.", Next: "At zero, 3 instances stop. Their disks are kept.", Href: "#topup", Link: "Top up"}
	failed.Purse = &Purse{Balance: "$12.40", Lasts: "3 h left", Low: true}
	paid.Returned = &TopUpReturn{State: TopUpPaid, Amount: "$25.00"}
	expired.Returned = &TopUpReturn{State: TopUpExpired, Amount: "$25.00"}
	pending := walletView()
	pending.Returned = &TopUpReturn{State: TopUpPending, Amount: "$25.00", CheckoutHref: "/wallet/topups/t2"}
	empty.BalanceWhole, empty.BalanceCents, empty.Burn, empty.BurnNote, empty.RunsOut, empty.RunsOutAt = "$0", ".00", "", "", "–", "add money to begin"
	empty.Facts, empty.TopUps, empty.Ledger, empty.NextHref = nil, nil, nil, ""
	empty.Purse = &Purse{Balance: "$0.00", Lasts: "nothing running"}

	current := invoiceView()
	current.Heading, current.State, current.Tone, current.PDFHref = "December 2026, so far", "Open", ToneWaiting, ""
	none := current
	none.Lines, none.Totals = nil, []Pair{{Term: "Total", Value: "$0.00", Total: true}}
	list := signedIn("Invoices", NavWallet, "/invoices")
	return map[string]templ.Component{
		"wallet":          WalletPage(walletView()),
		"wallet-error":    WalletPage(failed),
		"wallet-paid":     WalletPage(paid),
		"wallet-pending":  WalletPage(pending),
		"wallet-expired":  WalletPage(expired),
		"wallet-empty":    WalletPage(empty),
		"invoice":         InvoicePage(invoiceView()),
		"invoice-current": InvoicePage(current),
		"invoice-empty":   InvoicePage(none),
		"invoices": InvoicesPage(InvoicesView{
			Layout: list, Current: &InvoiceRow{ID: "current", Period: "December 2026", Total: "$3.91", State: "Open", Tone: ToneWaiting},
			Closed: []InvoiceRow{{ID: "v-1", Number: "2026-11-0017", Period: "November 2026", Issued: "1 Dec 2026", Total: "$86.63", State: "Paid", Tone: ToneRunning}},
		}),
		"invoices-empty": InvoicesPage(InvoicesView{Layout: list, NextDate: "1 January"}),
	}
}

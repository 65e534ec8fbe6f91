package server

import (
	"fmt"
	"strings"
	"time"

	"berth/billing"
	"berth/models"
	"berth/money"
	"berth/web"
)

// walletFacts is what the portal knows when it draws the wallet.
type walletFacts struct {
	wallet   billing.Wallet
	running  int
	topups   []models.Topup
	ledger   []billing.LedgerRow
	next     string // the ledger's next page
	first    bool   // this is its first page
	returned *models.Topup
	at       models.Instant
	zone     *time.Location
}

// walletView draws the wallet.
func walletView(c money.Currency, k walletFacts) web.WalletView {
	w := k.wallet
	v := web.WalletView{Symbol: c.Symbol, RunsOut: "–", RunsOutAt: "nothing is running",
		AmountHint: "From " + c.Format(c.MinTopup) + " to " + c.Format(c.MaxTopup) + "."}
	v.BalanceWhole, v.BalanceCents = splitCents(c, w.Balance)
	v.Facts = []web.Pair{
		{Term: "Set aside for starts", Value: minus(c, w.Held)},
		{Term: "Used, not yet posted", Value: minus(c, w.Accrued)},
		{Term: "Can be spent", Value: c.Format(w.Available), Total: true},
	}
	if w.Burn > 0 {
		v.Burn, v.BurnNote = perHour(c, w.Burn), count(k.running, "instance")
		v.RunsOut, v.RunsOutAt = "not running out", ""
		if !w.RunsOutAt.IsZero() {
			left := max(0, w.RunsOutAt.Sub(k.at))
			v.RunsOut = roughly(int64(left / time.Second))
			v.RunsOutAt = w.RunsOutAt.Time().In(k.zone).Format("Mon 2 Jan, 15:04")
			if left < lowAt {
				v.Low = &web.Problem{What: "The wallet lasts " + v.RunsOut + ".", Next: "At zero, " + count(k.running, "instance") + " will stop. Disks are kept.", Href: "#topup", Link: "Top up"}
			}
		}
	} else if w.Available <= 0 {
		v.RunsOutAt = "add money to begin"
	}
	for _, times := range []money.Amount{2, 5, 20, 50} {
		if a := c.MinTopup * times; a <= c.MaxTopup {
			v.Presets = append(v.Presets, web.Preset{Value: plainAmount(c, a), Label: strings.TrimSuffix(c.Format(a), "."+strings.Repeat("0", c.Exponent))})
		}
	}
	if k.returned != nil {
		v.Returned = returnView(c, *k.returned)
	}
	for _, t := range k.topups {
		v.TopUps = append(v.TopUps, topUpRow(c, t, k.zone))
	}
	if k.first && w.Accrued > 0 {
		v.Ledger = append(v.Ledger, web.LedgerRow{At: "now", DateTime: machineTime(k.at), What: "Running", Detail: "used and not yet posted",
			Amount: signed(c, -w.Accrued), Balance: plainAmount(c, w.Balance-w.Accrued), Pending: true})
	}
	v.Ledger = append(v.Ledger, ledgerRows(c, k.ledger, k.zone)...)
	if k.next != "" {
		v.NextHref = "/wallet?before=" + k.next + "#ledger"
	}
	if !k.first {
		v.FirstHref = "/wallet#ledger"
	}
	return v
}

// minus writes an amount that is taken off: "−$0.42", "$0.00".
func minus(c money.Currency, a money.Amount) string {
	if a > 0 && a < c.Minor() {
		return c.FormatSmall(a)
	}
	return c.Format(a)
}

// splitCents splits "$182.40" into "$182" and ".40".
func splitCents(c money.Currency, a money.Amount) (whole, cents string) {
	text := c.Format(a)
	if i := strings.LastIndexByte(text, '.'); i >= 0 && c.Exponent > 0 {
		return text[:i], text[i:]
	}
	return text, ""
}

// topUpState is a top-up's state for people.
func topUpState(t models.Topup) (word string, tone web.Tone, note string) {
	switch t.State {
	case models.TopupPaid:
		return "Paid", web.ToneRunning, ""
	case models.TopupFailed:
		return "Failed", web.ToneFailed, "Nothing was charged. " + t.Reason
	case models.TopupExpired:
		return "Expired", web.ToneStopped, "Nothing was charged."
	case models.TopupCanceled:
		return "Canceled", web.ToneStopped, "Nothing was charged."
	case models.TopupProcessing:
		return "On its way", web.ToneStarting, "The bank has not said yes yet."
	case models.TopupCreating:
		return "Being prepared", web.ToneWaiting, ""
	}
	return "Waiting", web.ToneWaiting, t.Reason
}

func topUpRow(c money.Currency, t models.Topup, zone *time.Location) web.TopUpRow {
	row := web.TopUpRow{ID: string(t.ID), At: dayTime(t.CreatedAt, zone), DateTime: machineTime(t.CreatedAt), Amount: c.Format(t.Amount)}
	row.State, row.Tone, row.Note = topUpState(t)
	if t.State == models.TopupOpen {
		row.CheckoutHref = t.CheckoutURL
	}
	return row
}

// returnView is what the payment page sent back from.
func returnView(c money.Currency, t models.Topup) *web.TopUpReturn {
	r := &web.TopUpReturn{Amount: c.Format(t.Amount), State: web.TopUpPending, Reason: t.Reason}
	switch t.State {
	case models.TopupPaid:
		r.State = web.TopUpPaid
	case models.TopupFailed:
		r.State = web.TopUpFailed
	case models.TopupExpired, models.TopupCanceled:
		r.State = web.TopUpExpired
	case models.TopupOpen:
		r.CheckoutHref = t.CheckoutURL
		if t.Reason != "" { // an attempt was refused, and another can be made
			r.State = web.TopUpFailed
		}
	}
	return r
}

// ledgerWhat names a kind of posting.
var ledgerWhat = map[string]string{"topup": "Top-up", "usage": "Usage", "refund": "Refund", "dispute": "Dispute", "adjustment": "Adjustment"}

func ledgerRows(c money.Currency, rows []billing.LedgerRow, zone *time.Location) (out []web.LedgerRow) {
	day := ""
	for _, r := range rows {
		row := web.LedgerRow{At: r.At.Time().In(zone).Format("15:04"), DateTime: machineTime(r.At), What: ledgerWhat[r.Kind], Detail: r.Reason,
			Amount: signed(c, r.Amount), Balance: plainAmount(c, r.BalanceAfter), In: r.Amount > 0}
		if row.What == "" {
			row.What, row.Detail = r.Reason, ""
		}
		if row.Detail == row.What {
			row.Detail = ""
		}
		if d := weekday(r.At, zone); d != day {
			row.Day, day = d, d
		}
		out = append(out, row)
	}
	return out
}

// invoiceStateView is an invoice's state for people.
func invoiceStateView(closed bool) (string, web.Tone) {
	if closed {
		return "Paid from wallet", web.ToneRunning
	}
	return "Open", web.ToneWaiting
}

// period writes a half-open interval as days: "1–30 Nov 2026".
func period(start, end time.Time, zone *time.Location) string {
	start, last := start.In(zone), end.In(zone).Add(-time.Microsecond)
	switch {
	case !start.Before(last) || start.YearDay() == last.YearDay() && start.Year() == last.Year():
		return start.Format("2 Jan 2006")
	case start.Year() == last.Year() && start.Month() == last.Month():
		return fmt.Sprintf("%d–%s", start.Day(), last.Format("2 Jan 2006"))
	case start.Year() == last.Year():
		return start.Format("2 Jan") + " – " + last.Format("2 Jan 2006")
	}
	return start.Format("2 Jan 2006") + " – " + last.Format("2 Jan 2006")
}

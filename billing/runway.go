package billing

import (
	"strings"

	"berth/models"
	"berth/models/store"
	"berth/money"
)

// launchPrefix begins the ref of a run's hold; span ids follow it.
const launchPrefix = "launch:"

// lot is one claim on a wallet: a span that may still be charged, or a launch
// whose hold is active.
type lot struct {
	instance models.InstanceID
	state    string // a span's state; empty: a launch
	rate     money.Rate
	cursor   int64        // accepted seconds
	elapsed  int64        // seconds that have passed, reported or not; of a capped span its cap
	held     money.Amount // by a launch
}

type lots []lot

// readLots reads what may still draw on an account's wallet.
func readLots(tx *store.Tx, account models.AccountID, at models.Instant) (lots, error) {
	runs, err := tx.OpenRuns(account)
	if err != nil {
		return nil, err
	}
	out := make(lots, 0, len(runs))
	for _, u := range runs {
		l := lot{instance: u.InstanceID, state: u.State, rate: u.PricePerHour, cursor: u.Cursor}
		l.elapsed = max(u.Cursor, secondsBetween(u.StartAt, at))
		if u.State == models.SpanCapped {
			l.elapsed = max(u.Cursor, u.CapSeconds)
		}
		out = append(out, l)
	}
	holds, err := tx.ActiveHolds(account)
	for _, h := range holds {
		span, ok := strings.CutPrefix(h.Ref, launchPrefix)
		instance, _, cut := strings.Cut(span, ".")
		if ok && cut {
			out = append(out, lot{instance: models.InstanceID(instance), rate: h.PricePerHour, held: h.Amount})
		}
	}
	return out, err
}

// runs returns those that go on using money, and what is left of available once
// the seconds that passed without a report are paid. Launches count as runs from
// now on when asked for, and bring their holds.
func (ls lots) runs(available money.Amount, launches bool) (money.Amount, []money.Run) {
	var runs []money.Run
	for _, l := range ls {
		if l.state == "" {
			if launches {
				available += l.held
				runs = append(runs, money.Run{Rate: l.rate})
			}
			continue
		}
		available -= l.rate.For(l.elapsed) - l.rate.For(l.cursor)
		if l.state == models.SpanRunning {
			runs = append(runs, money.Run{Rate: l.rate, Elapsed: l.elapsed})
		}
	}
	return available, runs
}

// running is for how many seconds what runs now can go on, while the holds of
// launches stay untouched. The shorter of two answers counts: beside the
// launches, as if they ran from now on; and without the money held for them.
func (ls lots) running(available money.Amount) int64 {
	return min(
		money.AffordableSeconds(ls.runs(available, true)),
		money.AffordableSeconds(ls.runs(available, false)))
}

// PaidSeconds tells, for every run of an account that may still use money, up to
// which total of seconds it may go: open spans, and runs being launched, each for
// at least what its hold covers. The node stops a run by itself there. A run that
// was stopped counts to its cap.
//
// It locks the wallet, so that the answer holds until the transaction ends. Sent
// to all nodes of the account, the answers never add up to more than the wallet:
// what Report accepts later, it can pay.
func (s *Service) PaidSeconds(tx *store.Tx, account models.AccountID, at models.Instant) (map[models.InstanceID]int64, error) {
	wallet, err := tx.LockWallet(account)
	if err != nil {
		return nil, err
	}
	ls, err := readLots(tx, account, at)
	if err != nil {
		return nil, err
	}
	together := money.AffordableSeconds(ls.runs(wallet.Available(), true))
	running := ls.running(wallet.Available())
	// Near the end of the money a share of the whole is less than what was held:
	// then every launch has its own hold, and nobody else touches it.
	var held int64
	for _, l := range ls {
		if l.state == "" {
			held = max(held, money.AffordableFor(l.held, l.rate, 0))
		}
	}
	paid := make(map[models.InstanceID]int64, len(ls))
	for _, l := range ls { // launches come last: a restart's new run, not the old one that is ending
		switch l.state {
		case models.SpanRunning:
			paid[l.instance] = l.elapsed + running
		case models.SpanCapped:
			paid[l.instance] = l.elapsed
		default:
			paid[l.instance] = together
			if together < held {
				paid[l.instance] = money.AffordableFor(l.held, l.rate, 0)
			}
		}
	}
	return paid, nil
}

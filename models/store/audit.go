package store

import (
	"fmt"

	"berth/models"
	"berth/money"
)

// Audit holds the database against the rules of money that it can check by
// itself, and returns a sentence for each one broken.
func (tx *Tx) Audit() (broken []string, err error) {
	for _, rule := range auditRules {
		var found []string
		if err := tx.db.Raw(rule.query).Scan(&found).Error; err != nil {
			return nil, fmt.Errorf("check that %s: %w", rule.holds, err)
		}
		for _, what := range found {
			broken = append(broken, fmt.Sprintf("%s: not so for %s", rule.holds, what))
		}
	}
	return broken, nil
}

// auditRules are queries for what must not exist. They run on both databases.
var auditRules = []struct{ holds, query string }{
	{"the entries of a transfer sum to zero",
		`SELECT transfer_id FROM entries GROUP BY transfer_id HAVING SUM(amount) <> 0`},
	{"a transfer has entries",
		`SELECT t.id FROM transfers t WHERE NOT EXISTS (SELECT 1 FROM entries e WHERE e.transfer_id = t.id)`},
	{"a balance is the sum of its entries, numbered without gaps",
		`SELECT a.code FROM ledger_accounts a LEFT JOIN
			(SELECT account_code, SUM(amount) AS total, COUNT(*) AS n, MAX(version) AS newest FROM entries GROUP BY account_code) e ON e.account_code = a.code
		WHERE a.balance <> COALESCE(e.total, 0) OR a.version <> COALESCE(e.n, 0) OR a.version <> COALESCE(e.newest, 0)`},
	{"a balance is what its last entry left",
		`SELECT a.code FROM ledger_accounts a JOIN entries e ON e.account_code = a.code AND e.version = a.version WHERE e.balance_after <> a.balance`},
	{"an entry leaves what the one before left, and its amount",
		`SELECT e.id FROM entries e LEFT JOIN entries p ON p.account_code = e.account_code AND p.version = e.version - 1
		WHERE e.balance_after <> COALESCE(p.balance_after, 0) + e.amount`},
	{"what a wallet holds back is the sum of its active holds",
		`SELECT a.code FROM ledger_accounts a LEFT JOIN
			(SELECT account_id, SUM(amount) AS total FROM holds WHERE state = 'active' GROUP BY account_id) h ON 'wallet:' || h.account_id = a.code
		WHERE a.held <> COALESCE(h.total, 0)`},
	{"what a wallet accrued is what its spans charged and did not post",
		`SELECT a.code FROM ledger_accounts a LEFT JOIN
			(SELECT account_id, SUM("charged" - "posted") AS total FROM usage_spans GROUP BY account_id) u ON 'wallet:' || u.account_id = a.code
		WHERE a.accrued <> COALESCE(u.total, 0)`},
	{"what spans posted is what the ledger took as usage",
		`SELECT u.account_id FROM (SELECT account_id, SUM("posted") AS total FROM usage_spans GROUP BY account_id) u LEFT JOIN
			(SELECT e.account_code, SUM(e.amount) AS total FROM entries e JOIN transfers t ON t.id = e.transfer_id WHERE t.kind = 'usage' GROUP BY e.account_code) l
			ON l.account_code = 'wallet:' || u.account_id
		WHERE u.total <> -COALESCE(l.total, 0)`},
	{"an open wallet below zero had money refunded or disputed",
		`SELECT a.code FROM ledger_accounts a WHERE a.code LIKE 'wallet:%' AND a.balance - a.held - a.accrued < 0 AND NOT EXISTS
			(SELECT 1 FROM entries e JOIN transfers t ON t.id = e.transfer_id WHERE e.account_code = a.code AND t.kind IN ('refund', 'dispute', 'adjustment'))`},
	{"a paid top-up is in the ledger",
		`SELECT p.id FROM topups p WHERE p.state = 'paid' AND NOT EXISTS (SELECT 1 FROM transfers t WHERE t."key" = 'pay:' || p.payment_intent)`},
	{"the seconds of a span are on invoices without a gap",
		`SELECT u.id FROM usage_spans u LEFT JOIN
			(SELECT span_id, SUM(to_seconds - from_seconds) AS total, MIN(from_seconds) AS first, MAX(to_seconds) AS last FROM invoiced_parts GROUP BY span_id) p ON p.span_id = u.id
		WHERE u.invoiced_to <> COALESCE(p.total, 0) OR u.invoiced_to <> COALESCE(p.last, 0) OR COALESCE(p.first, 0) <> 0`},
	{"a series of invoice numbers has no gap",
		`SELECT c.series FROM counters c WHERE c."next" <> (SELECT COUNT(*) FROM invoices i WHERE i.number LIKE c.series || '-%')`},
}

// InvoiceSums is what an account was billed, and what its invoices' parts come to.
type InvoiceSums struct {
	AccountID models.AccountID
	Currency  string
	Total     money.Amount // of all invoices
	Carry     money.Amount // of the newest
	Parts     money.Amount // exact
}

// InvoiceSums lists the sums of every account that has invoices.
func (tx *Tx) InvoiceSums() (list []InvoiceSums, err error) {
	return list, tx.db.Raw(`SELECT i.account_id, i.currency, CAST(SUM(i.total) AS bigint) AS total,
			(SELECT n.carry FROM invoices n WHERE n.account_id = i.account_id ORDER BY n.period_end DESC LIMIT 1) AS carry,
			(SELECT CAST(COALESCE(SUM(p.amount), 0) AS bigint) FROM invoiced_parts p JOIN invoices b ON b.id = p.invoice_id WHERE b.account_id = i.account_id) AS parts
		FROM invoices i GROUP BY i.account_id, i.currency ORDER BY i.account_id`).Scan(&list).Error
}

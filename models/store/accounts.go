package store

import (
	"berth/models"
	"berth/money"
)

// CreateAccount inserts an account together with its owner.
func (tx *Tx) CreateAccount(a models.Account, owner models.UserID) error {
	if err := tx.db.Create(&a).Error; err != nil {
		return err
	}
	return tx.AddMember(models.Member{AccountID: a.ID, UserID: owner, Role: models.Owner})
}

// AddMember lets a user act for an account.
func (tx *Tx) AddMember(m models.Member) error { return tx.db.Create(&m).Error }

// Account reads one account. It fails with a NotFound Problem.
func (tx *Tx) Account(id models.AccountID) (a models.Account, err error) {
	return a, lookup("account", id, tx.db.First(&a, "id = ?", id).Error)
}

// Member reads what a user is in an account. It fails with a NotFound Problem
// when the user is no member.
func (tx *Tx) Member(account models.AccountID, user models.UserID) (m models.Member, err error) {
	return m, lookup("member", user, tx.db.First(&m, "account_id = ? AND user_id = ?", account, user).Error)
}

// HomeAccount is the account that a user acts for after signing in: the oldest
// they are a member of. It fails with a NotFound Problem when there is none.
func (tx *Tx) HomeAccount(user models.UserID) (a models.Account, err error) {
	err = tx.db.Where("id IN (?)", tx.db.Model(&models.Member{}).Select("account_id").Where("user_id = ?", user)).
		Order("id").First(&a).Error
	return a, lookup("account", "of "+user, err)
}

// SetStripeCustomer remembers the payment provider's name for an account.
func (tx *Tx) SetStripeCustomer(id models.AccountID, customer string) error {
	return tx.db.Model(&models.Account{}).Where("id = ?", id).Update("stripe_customer", customer).Error
}

// SetFrozen stops or allows new starts for an account.
func (tx *Tx) SetFrozen(id models.AccountID, frozen bool) error {
	tx.Changed("account:" + string(id))
	return tx.db.Model(&models.Account{}).Where("id = ?", id).Update("frozen", frozen).Error
}

// AccountSummary is an account as an operator's list shows it.
type AccountSummary struct {
	models.Account
	Owner   string // the e-mail of its oldest owner
	Running int    // instances that run now
	Wallet  models.LedgerAccount
}

// Accounts lists accounts, newest first, after the account named by the cursor
// (empty: from the start), and the cursor of the next page (empty: the last).
// It takes four statements however many accounts there are.
func (tx *Tx) Accounts(cursor string, limit int) (list []AccountSummary, next string, err error) {
	q := tx.db.Order("id DESC").Limit(limit + 1)
	if cursor != "" {
		q = q.Where("id < ?", cursor)
	}
	var accounts []models.Account
	if err := q.Find(&accounts).Error; err != nil {
		return nil, "", err
	}
	if len(accounts) > limit {
		accounts = accounts[:limit]
		next = string(accounts[limit-1].ID)
	}
	ids := make([]models.AccountID, len(accounts))
	codes := make([]string, len(accounts))
	for i, a := range accounts {
		ids[i], codes[i] = a.ID, models.WalletCode(a.ID)
	}
	owners, err := tx.owners(ids)
	if err != nil {
		return nil, "", err
	}
	running, err := tx.runningPerAccount(ids)
	if err != nil {
		return nil, "", err
	}
	var wallets []models.LedgerAccount
	if err := tx.db.Find(&wallets, "code IN ?", codes).Error; err != nil {
		return nil, "", err
	}
	byCode := make(map[string]models.LedgerAccount, len(wallets))
	for _, w := range wallets {
		byCode[w.Code] = w
	}
	for i, a := range accounts {
		list = append(list, AccountSummary{Account: a, Owner: owners[a.ID], Running: running[a.ID], Wallet: byCode[codes[i]]})
	}
	return list, next, nil
}

func (tx *Tx) owners(ids []models.AccountID) (map[models.AccountID]string, error) {
	var rows []struct {
		AccountID models.AccountID
		Email     string
	}
	err := tx.db.Model(&models.Member{}).Select("members.account_id", "users.email").
		Joins("JOIN users ON users.id = members.user_id").
		Where("members.account_id IN ? AND members.role = ?", ids, models.Owner).
		Order("members.user_id DESC").Find(&rows).Error
	out := make(map[models.AccountID]string, len(rows))
	for _, r := range rows {
		out[r.AccountID] = r.Email // the oldest comes last and stays
	}
	return out, err
}

func (tx *Tx) runningPerAccount(ids []models.AccountID) (map[models.AccountID]int, error) {
	var rows []struct {
		AccountID models.AccountID
		N         int
	}
	err := tx.db.Model(&models.Instance{}).Select("account_id", "COUNT(*) AS n").
		Where("account_id IN ? AND state = ?", ids, models.Running).Group("account_id").Find(&rows).Error
	out := make(map[models.AccountID]int, len(rows))
	for _, r := range rows {
		out[r.AccountID] = r.N
	}
	return out, err
}

// AccountNames returns the names of several accounts.
func (tx *Tx) AccountNames(ids []models.AccountID) (map[models.AccountID]string, error) {
	var rows []models.Account
	err := tx.db.Select("id", "name").Find(&rows, "id IN ?", ids).Error
	out := make(map[models.AccountID]string, len(rows))
	for _, a := range rows {
		out[a.ID] = a.Name
	}
	return out, err
}

// Unbilled returns what accounts have used and is on no invoice yet.
func (tx *Tx) Unbilled(ids []models.AccountID) (map[models.AccountID]money.Amount, error) {
	type row struct {
		AccountID models.AccountID
		Amount    money.Amount
	}
	var used, billed []row
	err := tx.db.Model(&models.UsageSpan{}).Select("account_id", "CAST(SUM(charged) AS bigint) AS amount").
		Where("account_id IN ?", ids).Group("account_id").Find(&used).Error
	if err != nil {
		return nil, err
	}
	err = tx.db.Model(&models.InvoicedPart{}).Select("usage_spans.account_id", "CAST(SUM(invoiced_parts.amount) AS bigint) AS amount").
		Joins("JOIN usage_spans ON usage_spans.id = invoiced_parts.span_id").
		Where("usage_spans.account_id IN ?", ids).Group("usage_spans.account_id").Find(&billed).Error
	out := make(map[models.AccountID]money.Amount, len(used))
	for _, r := range used {
		out[r.AccountID] = r.Amount
	}
	for _, r := range billed {
		out[r.AccountID] -= r.Amount
	}
	return out, err
}

package web

// AccountView is the page /account. Forms: POST /account/sessions/{id}/revoke,
// /account/sessions/revoke-all, /account/tokens (name),
// /account/tokens/{id}/revoke, and /logout.
type AccountView struct {
	Layout
	Name, Email, Account, Role string
	Sessions                   []SessionRow
	Tokens                     []TokenRow
	// TokenName is the form for a new token.
	TokenName Field
	// NewToken is the token just made, shown this once; empty otherwise.
	NewToken string
	// CurrentPassword and NewPassword say what was wrong with each.
	CurrentPassword, NewPassword Field
}

// SessionRow is one place where the user is signed in.
type SessionRow struct {
	ID string
	// Agent is the browser in words, Address where from.
	Agent, Address, Created, LastSeen string
	// Current marks the session that this page is shown in.
	Current bool
}

// TokenRow is one API token, without its secret.
type TokenRow struct {
	ID, Name, Created, LastUsed string
}

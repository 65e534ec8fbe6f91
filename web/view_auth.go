package web

// SignupView is the page /signup. Its form posts name, email, password and next
// to /signup.
type SignupView struct {
	Layout
	Name, Email Field
	// Password.Value is never drawn.
	Password Field
	Problem  *Problem
	// From is the cheapest price per hour on offer, "$0.42"; empty if nothing is.
	From string
	// Next is the path to go to afterwards; empty for the catalogue.
	Next string
}

// LoginView is the page /login. Its form posts email, password and next to /login.
type LoginView struct {
	Layout
	Email Field
	// Password.Value is never drawn.
	Password Field
	// Problem is the one answer to any wrong pair, and to too many tries.
	Problem *Problem
	Next    string
}

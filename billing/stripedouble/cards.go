package stripedouble

import (
	"strconv"
	"strings"
	"time"
)

// authentication is when a card asks its holder to confirm a payment.
type authentication int

const (
	authNever  authentication = iota
	authOnce                  // on the page; not again once saved there
	authAlways                // on the page, and every off-session payment is refused
)

// testCard is one of Stripe's test numbers and what it does.
//
// Source: Stripe's documentation, "Testing", cards by outcome.
type testCard struct {
	Number   string
	Brand    string
	Auth     authentication
	Decline  string // key of declines; empty: pays
	Saves    bool   // a declining card that can be saved all the same
	Disputes bool   // pays, then the holder disputes it
	Does     string // for the page
}

var testCards = []testCard{
	{Number: "4242424242424242", Brand: "visa", Does: "Pays."},
	{Number: "5555555555554444", Brand: "mastercard", Does: "Pays."},
	{Number: "378282246310005", Brand: "amex", Does: "Pays."},
	{Number: "4000002500003155", Brand: "visa", Auth: authOnce, Does: "Asks you to authenticate here, then pays by itself when saved."},
	{Number: "4000002760003184", Brand: "visa", Auth: authAlways, Does: "Asks you to authenticate every time; automatic top-ups are refused."},
	{Number: "4000000000000341", Brand: "visa", Decline: "generic_decline", Saves: true, Does: "Can be saved, but every charge is declined."},
	{Number: "4000000000000002", Brand: "visa", Decline: "generic_decline", Does: "Declined."},
	{Number: "4000000000009995", Brand: "visa", Decline: "insufficient_funds", Does: "Declined: insufficient funds."},
	{Number: "4000000000009987", Brand: "visa", Decline: "lost_card", Does: "Declined: lost card."},
	{Number: "4000000000009979", Brand: "visa", Decline: "stolen_card", Does: "Declined: stolen card."},
	{Number: "4000000000000069", Brand: "visa", Decline: "expired_card", Does: "Declined: expired card."},
	{Number: "4000000000000127", Brand: "visa", Decline: "incorrect_cvc", Does: "Declined: wrong security code."},
	{Number: "4000000000000119", Brand: "visa", Decline: "processing_error", Does: "Declined: processing error."},
	{Number: "4000000000000259", Brand: "visa", Disputes: true, Does: "Pays, then the payment is disputed as fraudulent."},
}

// Spaced is the number as printed on a card.
func (c testCard) Spaced() string {
	var groups []string
	for rest := c.Number; rest != ""; {
		n := min(4, len(rest))
		groups, rest = append(groups, rest[:n]), rest[n:]
	}
	return strings.Join(groups, " ")
}

// declines gives code, decline code and message as Stripe words them.
var declines = map[string]failure{
	"generic_decline":    {Code: "card_declined", DeclineCode: "generic_decline", Message: "Your card was declined."},
	"insufficient_funds": {Code: "card_declined", DeclineCode: "insufficient_funds", Message: "Your card has insufficient funds."},
	"lost_card":          {Code: "card_declined", DeclineCode: "lost_card", Message: "Your card was declined."},
	"stolen_card":        {Code: "card_declined", DeclineCode: "stolen_card", Message: "Your card was declined."},
	"expired_card":       {Code: "expired_card", Message: "Your card has expired."},
	"incorrect_cvc":      {Code: "incorrect_cvc", Message: "Your card's security code is incorrect."},
	"processing_error":   {Code: "processing_error", Message: "An error occurred while processing your card. Try again in a little bit."},
	"authentication_required": {Code: "authentication_required", DeclineCode: "authentication_required",
		Message: "Your card was declined. This transaction requires authentication."},
	"authentication_failed": {Code: "payment_intent_authentication_failure",
		Message: "We are unable to authenticate your payment method. Please choose a different payment method and try again."},
	"setup_authentication_failed": {Code: "setup_intent_authentication_failure",
		Message: "We are unable to authenticate your payment method. Please choose a different payment method and try again."},
	"debit_returned": {Code: "payment_method_provider_decline", Message: "The bank returned the debit."},
}

// findCard reads a typed card number; spaces and dashes do not matter. What is
// wrong with it is a sentence for the page, empty when nothing is.
func findCard(typed string) (card testCard, wrong string) {
	number := strings.NewReplacer(" ", "", "-", "", "\u00a0", "").Replace(typed)
	if number == "" {
		return testCard{}, "Enter a card number."
	}
	if len(number) < 12 || len(number) > 19 || !luhn(number) {
		return testCard{}, "Your card number is invalid."
	}
	for _, c := range testCards {
		if c.Number == number {
			return c, ""
		}
	}
	return testCard{}, "This page takes test cards only. Use 4242 4242 4242 4242, or another from the list below."
}

// luhn says whether the digits carry a valid check digit.
func luhn(number string) bool {
	sum := 0
	for i := range len(number) {
		d := int(number[len(number)-1-i] - '0')
		if d < 0 || d > 9 {
			return false
		}
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

// parseExpiry reads MM/YY or MM/YYYY. Empty is three years from now, since the
// page does not ask for more than a number.
func parseExpiry(typed string, now time.Time) (month, year int64, wrong string) {
	typed = strings.ReplaceAll(typed, " ", "")
	if typed == "" {
		return 12, int64(now.Year()) + 3, ""
	}
	m, y, _ := strings.Cut(strings.ReplaceAll(typed, "-", "/"), "/")
	month, errM := strconv.ParseInt(m, 10, 64)
	year, errY := strconv.ParseInt(y, 10, 64)
	if errM != nil || errY != nil || month < 1 || month > 12 || len(y) != 2 && len(y) != 4 {
		return 0, 0, "Write the expiry date as MM/YY."
	}
	if len(y) == 2 {
		year += 2000
	}
	if year < int64(now.Year()) || year == int64(now.Year()) && month < int64(now.Month()) {
		return 0, 0, "Your card's expiration date is in the past."
	}
	return month, year, ""
}

// checkCVC refuses what cannot be a security code; empty is fine.
func checkCVC(typed string) string {
	if typed == "" {
		return ""
	}
	if _, err := strconv.ParseUint(typed, 10, 32); err != nil || len(typed) < 3 || len(typed) > 4 {
		return "Your card's security code is incomplete."
	}
	return ""
}

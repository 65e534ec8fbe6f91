package stripedouble

import (
	"net/url"
	"strconv"
	"strings"
)

// kind is what a parameter's value must be.
type kind struct {
	nonEmpty bool // an empty value cannot mean "unset"
	check    func(name, value string) *apiError
}

var (
	anyText  = kind{check: atMost(5000)}
	idText   = kind{nonEmpty: true, check: atMost(5000)}
	metaText = kind{check: checkMetadata}
	integer  = kind{nonEmpty: true, check: checkInteger}
	boolean  = kind{nonEmpty: true, check: checkBoolean}
	currency = kind{nonEmpty: true, check: checkCurrency}
	webURL   = kind{nonEmpty: true, check: checkURL}
	address  = kind{check: checkEmail}
)

// The parameters of each request. Stripe knows more; what Berth does not send is
// left out on purpose, so that a new parameter is a decision made here too.
var (
	noParams     = []rule{{name: "expand[#]", kind: idText}}
	pagingParams = []rule{
		{name: "limit", kind: integer}, {name: "starting_after", kind: idText},
		{name: "ending_before", kind: idText}, {name: "expand[#]", kind: idText},
	}
	customerParams = []rule{
		{name: "email", kind: address}, {name: "name", kind: anyText}, {name: "phone", kind: anyText},
		{name: "description", kind: anyText}, {name: "metadata[*]", kind: metaText}, {name: "expand[#]", kind: idText},
	}
	sessionParams = []rule{
		{name: "mode", kind: oneOf("payment", "setup", "subscription"), required: true},
		{name: "success_url", kind: webURL, required: true},
		{name: "cancel_url", kind: webURL},
		{name: "customer", kind: idText},
		{name: "customer_email", kind: address},
		{name: "client_reference_id", kind: atMostKind(200)},
		{name: "currency", kind: currency},
		{name: "expires_at", kind: integer},
		{name: "locale", kind: idText},
		{name: "submit_type", kind: oneOf("auto", "book", "donate", "pay")},
		{name: "payment_method_types[#]", kind: methodTypes},
		{name: "line_items[#][quantity]", kind: integer},
		{name: "line_items[#][price_data][currency]", kind: currency},
		{name: "line_items[#][price_data][unit_amount]", kind: integer},
		{name: "line_items[#][price_data][product_data][name]", kind: idText},
		{name: "line_items[#][price_data][product_data][description]", kind: anyText},
		{name: "payment_intent_data[setup_future_usage]", kind: oneOf("off_session", "on_session")},
		{name: "payment_intent_data[description]", kind: anyText},
		{name: "payment_intent_data[metadata][*]", kind: metaText},
		{name: "setup_intent_data[description]", kind: anyText},
		{name: "setup_intent_data[metadata][*]", kind: metaText},
		{name: "metadata[*]", kind: metaText},
		{name: "expand[#]", kind: idText},
	}
	intentParams = []rule{
		{name: "amount", kind: integer, required: true},
		{name: "currency", kind: currency, required: true},
		{name: "customer", kind: idText},
		{name: "payment_method", kind: idText},
		{name: "payment_method_types[#]", kind: methodTypes},
		{name: "off_session", kind: boolean},
		{name: "confirm", kind: boolean},
		{name: "description", kind: atMostKind(1000)},
		{name: "metadata[*]", kind: metaText},
		{name: "expand[#]", kind: idText},
	}
	cancelParams = []rule{
		{name: "cancellation_reason", kind: oneOf("abandoned", "duplicate", "fraudulent", "requested_by_customer")},
		{name: "expand[#]", kind: idText},
	}
	refundParams = []rule{
		{name: "payment_intent", kind: idText}, {name: "charge", kind: idText}, {name: "amount", kind: integer},
		{name: "reason", kind: oneOf("duplicate", "fraudulent", "requested_by_customer")},
		{name: "metadata[*]", kind: metaText}, {name: "expand[#]", kind: idText},
	}
	refundListParams = append([]rule{{name: "charge", kind: idText}, {name: "payment_intent", kind: idText}}, pagingParams...)
	portalParams     = []rule{
		{name: "customer", kind: idText, required: true}, {name: "return_url", kind: webURL}, {name: "expand[#]", kind: idText},
	}
	customerMethodParams = append([]rule{{name: "type", kind: methodTypes}}, pagingParams...)
	methodListParams     = append([]rule{{name: "type", kind: methodTypes}, {name: "customer", kind: idText}}, pagingParams...)
	eventListParams      = append([]rule{
		{name: "type", kind: idText}, {name: "types[#]", kind: idText}, {name: "delivery_success", kind: boolean},
		{name: "created", kind: integer},
		{name: "created[gt]", kind: integer}, {name: "created[gte]", kind: integer},
		{name: "created[lt]", kind: integer}, {name: "created[lte]", kind: integer},
	}, pagingParams...)
)

var methodTypes = oneOf("card", "us_bank_account", "sepa_debit")

func atMostKind(n int) kind { return kind{check: atMost(n)} }

func atMost(n int) func(name, value string) *apiError {
	return func(name, value string) *apiError {
		if len([]rune(value)) > n {
			return invalid("", name, "Invalid string: must be at most %d characters", n)
		}
		return nil
	}
}

func oneOf(values ...string) kind {
	return kind{nonEmpty: true, check: func(name, value string) *apiError {
		for _, v := range values {
			if v == value {
				return nil
			}
		}
		return invalid("", name, "Invalid %s: must be one of %s", name, strings.Join(values, ", "))
	}}
}

func checkInteger(name, value string) *apiError {
	if _, err := strconv.ParseInt(value, 10, 64); err != nil {
		return invalid("parameter_invalid_integer", name, "Invalid integer: %s", value)
	}
	return nil
}

func checkBoolean(name, value string) *apiError {
	if value != "true" && value != "false" {
		return invalid("", name, "Invalid boolean: %s", value)
	}
	return nil
}

func checkURL(name, value string) *apiError {
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return invalid("url_invalid", name, "Not a valid URL")
	}
	return nil
}

func checkEmail(name, value string) *apiError {
	local, domain, ok := strings.Cut(value, "@")
	if !ok || local == "" || domain == "" || len(value) > 512 || strings.ContainsAny(value, " \t\r\n") {
		return invalid("email_invalid", name, "Invalid email address: %s", value)
	}
	return nil
}

// checkMetadata holds a value to 500 characters and its key to 40.
func checkMetadata(name, value string) *apiError {
	parts := segments(name)
	if key := parts[len(parts)-1]; len(key) > 40 {
		return invalid("", name, "Metadata keys can be at most 40 characters: '%s'", key)
	}
	if len([]rune(value)) > 500 {
		return invalid("", name, "Metadata values can have up to 500 characters")
	}
	return nil
}

// minimums is the least payment per currency, in minor units, and by having a row
// the list of currencies the double takes.
//
// Source: Stripe's documentation, "Minimum and maximum charge amounts", for the
// currencies it names; the rest stand at the worth of about half a dollar.
var minimums = map[string]struct {
	decimals int
	least    int64
}{
	"usd": {2, 50}, "eur": {2, 50}, "cad": {2, 50}, "aud": {2, 50}, "chf": {2, 50}, "sgd": {2, 50}, "nzd": {2, 50},
	"brl": {2, 50}, "inr": {2, 50}, "gbp": {2, 30}, "pln": {2, 200}, "sek": {2, 300}, "nok": {2, 300}, "dkk": {2, 250},
	"czk": {2, 1500}, "ron": {2, 200}, "bgn": {2, 100}, "huf": {2, 17500}, "hkd": {2, 400}, "mxn": {2, 1000},
	"aed": {2, 200}, "myr": {2, 200}, "thb": {2, 1000}, "zar": {2, 1000}, "ils": {2, 200},
	"jpy": {0, 50}, "krw": {0, 700}, "vnd": {0, 13000}, "clp": {0, 500},
	"bhd": {3, 190}, "jod": {3, 360}, "kwd": {3, 160}, "omr": {3, 200}, "tnd": {3, 1600},
}

func checkCurrency(name, value string) *apiError {
	if value != strings.ToLower(value) {
		return invalid("", name, "Invalid currency: %s. The currency must be in lower case.", value)
	}
	if _, ok := minimums[value]; !ok {
		return invalid("", name, "Invalid currency: %s. The test payments do not take it.", value)
	}
	return nil
}

// checkAmount holds a payment to Stripe's smallest and largest sums.
func checkAmount(param string, amount int64, code string) *apiError {
	m := minimums[code]
	switch {
	case amount < 0:
		return invalid("parameter_invalid_integer", param, "This value must be greater than or equal to 0.")
	case amount < m.least:
		return invalid("amount_too_small", param, "Amount must be at least %s", display(m.least, code))
	case amount > 99_999_999:
		return invalid("amount_too_large", param, "Amount must be no more than %s", display(99_999_999, code))
	case m.decimals == 3 && amount%10 != 0:
		return invalid("", param, "Invalid amount: the last digit of an amount in %s must be 0.", code)
	}
	return nil
}

// display writes minor units for people: 5000 usd is "50.00 USD".
func display(amount int64, code string) string {
	digits := strconv.FormatInt(amount, 10)
	if d := minimums[code].decimals; d > 0 {
		if pad := d + 1 - len(digits); pad > 0 {
			digits = strings.Repeat("0", pad) + digits
		}
		digits = digits[:len(digits)-d] + "." + digits[len(digits)-d:]
	}
	return digits + " " + strings.ToUpper(code)
}

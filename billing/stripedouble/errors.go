package stripedouble

import (
	"fmt"
	"net/http"
)

// apiError is Stripe's error, as the body and the status say it.
type apiError struct {
	status        int
	Type          string `json:"type"`
	Code          string `json:"code,omitempty"`
	DeclineCode   string `json:"decline_code,omitempty"`
	Message       string `json:"message"`
	Param         string `json:"param,omitempty"`
	DocURL        string `json:"doc_url,omitempty"`
	Charge        string `json:"charge,omitempty"`
	PaymentIntent object `json:"payment_intent,omitempty"`
	PaymentMethod object `json:"payment_method,omitempty"`
}

func (e *apiError) Error() string { return e.Message }

// invalid is the error for a request that cannot be right: HTTP 400.
func invalid(code, param, format string, args ...any) *apiError {
	e := &apiError{status: http.StatusBadRequest, Type: "invalid_request_error",
		Code: code, Param: param, Message: fmt.Sprintf(format, args...)}
	if code != "" {
		e.DocURL = "https://stripe.com/docs/error-codes/" + dashed(code)
	}
	return e
}

// missing is the error for an id that names nothing: 404 when the address holds
// it, 400 when a parameter does.
func missing(status int, what, id, param string) *apiError {
	e := invalid("resource_missing", param, "No such %s: '%s'", what, id)
	e.status = status
	return e
}

// cardError is a declined payment: HTTP 402.
func cardError(f failure) *apiError {
	return &apiError{status: http.StatusPaymentRequired, Type: "card_error", Code: f.Code,
		DeclineCode: f.DeclineCode, Message: f.Message, Charge: f.Charge,
		DocURL: "https://stripe.com/docs/error-codes/" + dashed(f.Code)}
}

// wentWrong is the answer for a fault of the double itself, or one asked for.
func wentWrong(status int, message string) *apiError {
	return &apiError{status: status, Type: "api_error", Message: message}
}

func dashed(code string) string {
	b := []byte(code)
	for i := range b {
		if b[i] == '_' {
			b[i] = '-'
		}
	}
	return string(b)
}

package stripedouble

import "net/http"

// routes is every address the double answers, on one page.
func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	api := func(pattern string, rules []rule, do endpoint) { mux.HandleFunc(pattern, s.handle(rules, do)) }

	api("POST /v1/customers", customerParams, createCustomer)
	api("GET /v1/customers/{id}", noParams, retrieve("customer", "cus_"))
	api("POST /v1/customers/{id}", customerParams, updateCustomer)
	api("GET /v1/customers/{id}/payment_methods", customerMethodParams, listCustomerMethods)

	api("POST /v1/checkout/sessions", sessionParams, createSession)
	api("GET /v1/checkout/sessions/{id}", noParams, retrieve("checkout.session", "cs_"))
	api("POST /v1/checkout/sessions/{id}/expire", noParams, expireSession)

	api("POST /v1/payment_intents", intentParams, createIntent)
	api("GET /v1/payment_intents/{id}", noParams, retrieve("payment_intent", "pi_"))
	api("POST /v1/payment_intents/{id}/cancel", cancelParams, cancelIntent)
	api("GET /v1/setup_intents/{id}", noParams, retrieve("setupintent", "seti_"))
	api("GET /v1/charges/{id}", noParams, retrieve("charge", "ch_"))

	api("POST /v1/refunds", refundParams, createRefund)
	api("GET /v1/refunds", refundListParams, listRefunds)
	api("GET /v1/refunds/{id}", noParams, retrieve("refund", "re_"))
	api("GET /v1/disputes/{id}", noParams, retrieve("dispute", "dp_"))

	api("GET /v1/payment_methods", methodListParams, listMethods)
	api("GET /v1/payment_methods/{id}", noParams, retrieve("PaymentMethod", "pm_"))
	api("POST /v1/payment_methods/{id}/detach", noParams, detachMethod)
	api("POST /v1/billing_portal/sessions", portalParams, createPortal)

	api("GET /v1/events", eventListParams, listEvents)
	api("GET /v1/events/{id}", noParams, retrieve("event", "evt_"))
	api("GET /v1/balance", noParams, getBalance)
	mux.HandleFunc("/v1/", s.unknownRoute)

	mux.HandleFunc("GET /c/pay/{id}", s.showCheckout)
	mux.HandleFunc("POST /c/pay/{id}", s.postCheckout)
	mux.HandleFunc("GET /p/session/{id}", s.showPortal)
	mux.HandleFunc("POST /p/session/{id}", s.postPortal)
	mux.HandleFunc("GET /c/double.css", serveStyle)
	mux.HandleFunc("GET /p/double.css", serveStyle)

	mux.HandleFunc("GET /_double/faults", control(s, func(*http.Request, struct{}) (any, error) { return s.Faults(), nil }))
	mux.HandleFunc("PUT /_double/faults", control(s, s.controlSetFaults))
	mux.HandleFunc("GET /_double/state", control(s, s.controlState))
	mux.HandleFunc("POST /_double/refunds", control(s, s.controlRefund))
	mux.HandleFunc("POST /_double/refunds/{id}/fail", control(s, s.controlFailRefund))
	mux.HandleFunc("POST /_double/disputes", control(s, s.controlDispute))
	mux.HandleFunc("POST /_double/disputes/{id}/win", control(s, s.controlCloseDispute(true)))
	mux.HandleFunc("POST /_double/disputes/{id}/lose", control(s, s.controlCloseDispute(false)))
	mux.HandleFunc("POST /_double/settle/{id}", control(s, s.controlSettle))
	mux.HandleFunc("POST /_double/events/{id}/resend", control(s, s.controlResend))
	mux.HandleFunc("POST /_double/flush", control(s, func(r *http.Request, _ struct{}) (any, error) { return s.Flush(r.Context()) }))
	mux.HandleFunc("/_double/", s.unknownRoute)
	return mux
}

package stripedouble

import (
	"encoding/json"
	"testing"

	"github.com/stripe/stripe-go/v76"
)

// required are the fields that Stripe's OpenAPI description of 2023-10-16 (the
// one in stripe-mock v0.183.0) requires of each object, and the nullable ones a
// client of Berth's reads.
var required = map[string][]string{
	"customer":         {"created", "id", "livemode", "object", "email", "name", "metadata", "invoice_settings", "default_source"},
	"checkout.session": {"automatic_tax", "created", "custom_fields", "custom_text", "expires_at", "id", "livemode", "mode", "object", "payment_method_types", "payment_status", "shipping_options", "amount_total", "currency", "customer", "client_reference_id", "metadata", "payment_intent", "setup_intent", "status", "success_url", "url"},
	"payment_intent":   {"amount", "capture_method", "confirmation_method", "created", "currency", "id", "livemode", "object", "payment_method_types", "status", "amount_received", "client_secret", "customer", "last_payment_error", "latest_charge", "metadata", "next_action", "payment_method"},
	"setup_intent":     {"created", "id", "livemode", "object", "payment_method_types", "status", "usage", "payment_method"},
	"charge":           {"amount", "amount_captured", "amount_refunded", "billing_details", "captured", "created", "currency", "disputed", "id", "livemode", "metadata", "object", "paid", "refunded", "status", "payment_intent", "payment_method", "payment_method_details", "outcome", "failure_code", "balance_transaction"},
	"payment_method":   {"billing_details", "created", "id", "livemode", "object", "type", "customer"},
	"refund":           {"amount", "created", "currency", "id", "object", "charge", "payment_intent", "reason", "status", "metadata"},
	"dispute":          {"amount", "balance_transactions", "charge", "created", "currency", "evidence", "evidence_details", "id", "is_charge_refundable", "livemode", "metadata", "object", "reason", "status", "payment_intent"},
	"event":            {"created", "data", "id", "livemode", "object", "pending_webhooks", "type", "api_version", "request"},

	"billing_portal.session": {"configuration", "created", "customer", "id", "livemode", "object", "url", "return_url"},
	"balance":                {"available", "livemode", "object", "pending"},
}

// Every object in every answer and every event has its required fields.
func TestRequiredFields(t *testing.T) {
	b := newBench(t)
	customer := b.customer()
	b.save(customer.ID, "4000002500003155")
	failing := b.save(customer.ID, "4000000000000341")
	b.raw("POST", "/v1/payment_intents", "amount=500&currency=usd&off_session=true&confirm=true&customer="+customer.ID+"&payment_method="+failing)
	debit, declined, paid := b.session(900), b.session(800), b.session(5000)
	b.pay(debit, "delayed_success")
	b.control("POST", "settle/"+debit.ID, nil, nil)
	b.post(declined.URL, "card", "4000000000000002")
	b.post(declined.URL, "card", "4000002760003184")
	b.pay(paid, "4242424242424242")
	pi := b.reload(paid.ID).PaymentIntent
	var refund, dispute struct{ ID string }
	b.control("POST", "refunds", paymentChoice{PaymentIntent: pi.ID, Amount: 100}, &refund)
	b.control("POST", "disputes", paymentChoice{PaymentIntent: pi.ID}, &dispute)
	b.control("POST", "disputes/"+dispute.ID+"/win", nil, nil)
	portal, err := b.api.BillingPortalSessions.New(&stripe.BillingPortalSessionParams{Customer: stripe.String(customer.ID)})
	if err != nil {
		t.Fatal(err)
	}

	seen := map[string]int{}
	for _, path := range []string{
		"/v1/customers/" + customer.ID, "/v1/customers/" + customer.ID + "/payment_methods",
		"/v1/checkout/sessions/" + debit.ID, "/v1/checkout/sessions/" + declined.ID + "?expand[0]=payment_intent",
		"/v1/checkout/sessions/" + paid.ID + "?expand[0]=payment_intent.latest_charge&expand[1]=customer",
		"/v1/charges/" + pi.LatestCharge.ID + "?expand[]=payment_intent.payment_method", "/v1/refunds/" + refund.ID, "/v1/disputes/" + dispute.ID,
		"/v1/refunds?expand[]=data.charge", "/v1/events?limit=100", "/v1/balance",
	} {
		status, body, _ := b.raw("GET", path, "")
		if status != 200 {
			t.Fatalf("%s: %d %v", path, status, body)
		}
		checkRequired(t, path, body, seen)
	}
	var asMap map[string]any
	if err := json.Unmarshal(portal.LastResponse.RawJSON, &asMap); err != nil {
		t.Fatal(err)
	}
	checkRequired(t, "portal", asMap, seen)
	for kind := range required {
		if seen[kind] == 0 {
			t.Errorf("no %s was met", kind)
		}
	}
}

func checkRequired(t *testing.T, where string, v any, seen map[string]int) {
	switch v := v.(type) {
	case map[string]any:
		if kind, ok := v["object"].(string); ok {
			seen[kind]++
			for _, field := range required[kind] {
				if _, ok := v[field]; !ok {
					t.Errorf("%s: %s lacks %s", where, kind, field)
				}
			}
		}
		for name, inner := range v {
			checkRequired(t, where+"."+name, inner, seen)
		}
	case []any:
		for _, inner := range v {
			checkRequired(t, where, inner, seen)
		}
	}
}

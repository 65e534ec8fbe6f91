package stripedouble

import "maps"

// Every object carries all fields that Stripe's 2023-10-16 schema requires and
// the nullable ones it always sends, so that a client meets here what it will
// meet there.

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func orZeroNull(n int64) any {
	if n == 0 {
		return nil
	}
	return n
}

// metadata is never null in Stripe's answers. The copy keeps the stored map out
// of the caller's hands.
func metadata(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return maps.Clone(m)
}

func (x *tx) renderIntent(p intent) object {
	var nextAction any
	if p.NextURL != "" {
		nextAction = object{"type": "redirect_to_url",
			"redirect_to_url": object{"url": p.NextURL, "return_url": orNull(p.NextReturnURL)}}
	}
	var processing any
	if p.Status == "processing" {
		processing = object{"type": "us_bank_account"}
		if len(p.MethodTypes) == 0 || p.MethodTypes[0] != "us_bank_account" {
			processing = nil // Stripe describes only some methods here
		}
	}
	options := object{}
	for _, t := range p.MethodTypes {
		if t == "card" {
			options["card"] = object{"installments": nil, "mandate_options": nil, "network": nil, "request_three_d_secure": "automatic"}
		}
	}
	return object{
		"id": p.ID, "object": "payment_intent", "amount": p.Amount, "amount_capturable": 0,
		"amount_details": object{"tip": object{}}, "amount_received": p.Received,
		"application": nil, "application_fee_amount": nil, "automatic_payment_methods": nil,
		"canceled_at": orZeroNull(p.CanceledAt), "cancellation_reason": orNull(p.CancelReason),
		"capture_method": "automatic", "client_secret": p.Secret, "confirmation_method": "automatic",
		"created": p.Created, "currency": p.Currency, "customer": orNull(p.Customer),
		"description": orNull(p.Description), "invoice": nil,
		"last_payment_error": x.renderFailure(p.LastError), "latest_charge": orNull(p.Charge),
		"livemode": false, "metadata": metadata(p.Metadata), "next_action": nextAction,
		"on_behalf_of": nil, "payment_method": orNull(p.Method),
		"payment_method_configuration_details": nil, "payment_method_options": options,
		"payment_method_types": p.MethodTypes, "processing": processing, "receipt_email": nil,
		"review": nil, "setup_future_usage": orNull(p.FutureUsage), "shipping": nil,
		"statement_descriptor": nil, "statement_descriptor_suffix": nil, "status": p.Status,
		"transfer_data": nil, "transfer_group": nil,
	}
}

// renderFailure is last_payment_error and last_setup_error.
func (x *tx) renderFailure(f *failure) any {
	if f == nil {
		return nil
	}
	e := cardError(*f)
	out := object{"type": e.Type, "code": e.Code, "doc_url": e.DocURL, "message": e.Message}
	if f.DeclineCode != "" {
		out["decline_code"] = f.DeclineCode
	}
	if f.Charge != "" {
		out["charge"] = f.Charge
	}
	if m, ok := x.state.methods.get(f.Method); ok {
		out["payment_method"] = x.renderMethod(m)
	}
	return out
}

func (x *tx) renderSetup(p setupIntent) object {
	var nextAction any
	if p.NextURL != "" {
		nextAction = object{"type": "redirect_to_url", "redirect_to_url": object{"url": p.NextURL, "return_url": nil}}
	}
	return object{
		"id": p.ID, "object": "setup_intent", "application": nil, "automatic_payment_methods": nil,
		"cancellation_reason": nil, "client_secret": p.Secret, "created": p.Created,
		"customer": orNull(p.Customer), "description": orNull(p.Description), "flow_directions": nil,
		"last_setup_error": x.renderFailure(p.LastError), "latest_attempt": nil, "livemode": false,
		"mandate": nil, "metadata": metadata(p.Metadata), "next_action": nextAction, "on_behalf_of": nil,
		"payment_method": orNull(p.Method), "payment_method_configuration_details": nil,
		"payment_method_options": object{"card": object{"mandate_options": nil, "network": nil, "request_three_d_secure": "automatic"}},
		"payment_method_types":   p.MethodTypes, "single_use_mandate": nil, "status": p.Status, "usage": "off_session",
	}
}

func (x *tx) billing(customerID string) object {
	c, _ := x.state.customers.get(customerID)
	return object{
		"address": object{"city": nil, "country": nil, "line1": nil, "line2": nil, "postal_code": nil, "state": nil},
		"email":   orNull(c.Email), "name": orNull(c.Name), "phone": orNull(c.Phone),
	}
}

func (x *tx) renderMethod(m method) object {
	out := object{
		"id": m.ID, "object": "payment_method", "billing_details": x.billing(m.Customer),
		"created": m.Created, "customer": orNull(m.Customer), "livemode": false,
		"metadata": map[string]string{}, "type": m.Type,
	}
	switch m.Type {
	case "card":
		out["card"] = object{
			"brand": m.Brand, "checks": object{"address_line1_check": nil, "address_postal_code_check": nil, "cvc_check": "pass"},
			"country": "US", "display_brand": m.Brand, "exp_month": m.ExpMonth, "exp_year": m.ExpYear, "fingerprint": m.Fingerprint,
			"funding": "credit", "generated_from": nil, "last4": m.Last4,
			"networks":             object{"available": []string{m.Brand}, "preferred": nil},
			"three_d_secure_usage": object{"supported": true}, "wallet": nil,
		}
	case "us_bank_account":
		out["us_bank_account"] = object{
			"account_holder_type": "individual", "account_type": "checking", "bank_name": "STRIPE TEST BANK",
			"financial_connections_account": nil, "fingerprint": m.Fingerprint, "last4": m.Last4,
			"networks": nil, "routing_number": "110000000", "status_details": nil,
		}
	case "sepa_debit":
		out["sepa_debit"] = object{
			"bank_code": "37040044", "branch_code": "", "country": "DE", "fingerprint": m.Fingerprint,
			"generated_from": object{"charge": nil, "setup_attempt": nil}, "last4": m.Last4,
		}
	}
	return out
}

func (x *tx) renderCharge(c charge) object {
	m, _ := x.state.methods.get(c.Method)
	billing := x.billing(m.Customer)
	outcome := object{"network_status": "approved_by_network", "reason": nil, "risk_level": "normal", "risk_score": 20,
		"seller_message": "Payment complete.", "type": "authorized"}
	var failureCode, failureMessage any
	if c.Failure != nil {
		failureCode, failureMessage = c.Failure.Code, c.Failure.Message
		outcome = object{"network_status": "declined_by_network", "reason": orNull(c.Failure.DeclineCode), "risk_level": "normal", "risk_score": 20,
			"seller_message": "The bank did not return any further details with this decline.", "type": "issuer_declined"}
	}
	captured := c.Status != "failed"
	var balance any
	if c.Status == "succeeded" {
		balance = "txn_" + c.ID[len("ch_"):]
	}
	var capturedAmount int64
	if captured {
		capturedAmount = c.Amount
	}
	return object{
		"id": c.ID, "object": "charge", "amount": c.Amount, "amount_captured": capturedAmount,
		"amount_refunded": c.Refunded, "application": nil, "application_fee": nil, "application_fee_amount": nil,
		"balance_transaction": balance, "billing_details": billing, "calculated_statement_descriptor": "BERTH TEST",
		"captured": captured, "created": c.Created, "currency": c.Currency, "customer": orNull(c.Customer),
		"description": orNull(c.Description), "disputed": c.Dispute != "",
		"failure_balance_transaction": nil, "failure_code": failureCode, "failure_message": failureMessage,
		"fraud_details": object{}, "invoice": nil, "livemode": false, "metadata": metadata(c.Metadata),
		"on_behalf_of": nil, "outcome": outcome, "paid": c.Status == "succeeded",
		"payment_intent": orNull(c.Intent), "payment_method": orNull(c.Method),
		"payment_method_details": renderMethodDetails(m, c.Amount), "radar_options": object{},
		"receipt_email": nil, "receipt_number": nil, "receipt_url": nil, "refunded": c.Refunded == c.Amount,
		"review": nil, "shipping": nil, "source_transfer": nil, "statement_descriptor": nil,
		"statement_descriptor_suffix": nil, "status": c.Status, "transfer_data": nil, "transfer_group": nil,
	}
}

func renderMethodDetails(m method, amount int64) object {
	switch m.Type {
	case "us_bank_account":
		return object{"type": m.Type, m.Type: object{"account_holder_type": "individual", "account_type": "checking",
			"bank_name": "STRIPE TEST BANK", "fingerprint": m.Fingerprint, "last4": m.Last4, "routing_number": "110000000"}}
	case "sepa_debit":
		return object{"type": m.Type, m.Type: object{"bank_code": "37040044", "branch_code": "", "country": "DE",
			"fingerprint": m.Fingerprint, "last4": m.Last4, "mandate": nil}}
	}
	return object{"type": "card", "card": object{
		"amount_authorized": amount, "brand": m.Brand,
		"checks":  object{"address_line1_check": nil, "address_postal_code_check": nil, "cvc_check": "pass"},
		"country": "US", "exp_month": m.ExpMonth, "exp_year": m.ExpYear,
		"extended_authorization": object{"status": "disabled"}, "fingerprint": m.Fingerprint, "funding": "credit",
		"incremental_authorization": object{"status": "unavailable"}, "installments": nil, "last4": m.Last4, "mandate": nil,
		"multicapture": object{"status": "unavailable"}, "network": m.Brand, "network_token": object{"used": false},
		"overcapture": object{"maximum_amount_capturable": amount, "status": "unavailable"}, "three_d_secure": nil, "wallet": nil,
	}}
}

func (x *tx) renderRefund(r refund) object {
	out := object{
		"id": r.ID, "object": "refund", "amount": r.Amount, "balance_transaction": "txn_" + r.ID[len("re_"):],
		"charge": r.Charge, "created": r.Created, "currency": r.Currency,
		"destination_details": object{"card": object{"reference_status": "pending", "reference_type": "acquirer_reference_number", "type": "refund"}, "type": "card"},
		"metadata":            metadata(r.Metadata), "payment_intent": orNull(r.Intent), "reason": orNull(r.Reason),
		"receipt_number": nil, "source_transfer_reversal": nil, "status": r.Status, "transfer_reversal": nil,
	}
	if r.FailureReason != "" {
		out["failure_reason"] = r.FailureReason
		out["failure_balance_transaction"] = "txn_f" + r.ID[len("re_"):]
	}
	return out
}

func (x *tx) renderDispute(d dispute) object {
	moves := []object{}
	if d.Withdrawn {
		moves = append(moves, disputeMove(d, "txn_w", -d.Amount, "dispute"))
	}
	if d.Reinstated {
		moves = append(moves, disputeMove(d, "txn_r", d.Amount, "dispute_reversal"))
	}
	evidence := object{}
	for _, field := range []string{"access_activity_log", "billing_address", "cancellation_policy", "cancellation_policy_disclosure",
		"cancellation_rebuttal", "customer_communication", "customer_email_address", "customer_name", "customer_purchase_ip",
		"customer_signature", "duplicate_charge_documentation", "duplicate_charge_explanation", "duplicate_charge_id",
		"product_description", "receipt", "refund_policy", "refund_policy_disclosure", "refund_refusal_explanation",
		"service_date", "service_documentation", "shipping_address", "shipping_carrier", "shipping_date",
		"shipping_documentation", "shipping_tracking_number", "uncategorized_file", "uncategorized_text"} {
		evidence[field] = nil
	}
	return object{
		"id": d.ID, "object": "dispute", "amount": d.Amount, "balance_transactions": moves, "charge": d.Charge,
		"created": d.Created, "currency": d.Currency, "evidence": evidence,
		"evidence_details": object{"due_by": d.Created + 7*24*3600, "has_evidence": false, "past_due": false, "submission_count": 0},
		// An inquiry has taken no money yet, so the charge can still be refunded.
		"is_charge_refundable": !d.Withdrawn, "livemode": false, "metadata": map[string]string{},
		"payment_intent":         orNull(d.Intent),
		"payment_method_details": object{"type": "card", "card": object{"brand": "visa", "network_reason_code": "4837"}},
		"reason":                 d.Reason, "status": d.Status,
	}
}

func disputeMove(d dispute, prefix string, amount int64, category string) object {
	return object{
		"id": prefix + d.ID[len("dp_"):], "object": "balance_transaction", "amount": amount, "available_on": d.Created,
		"created": d.Created, "currency": d.Currency, "description": nil, "exchange_rate": nil, "fee": 0,
		"fee_details": []object{}, "net": amount, "reporting_category": category, "source": d.ID,
		"status": "available", "type": "adjustment",
	}
}

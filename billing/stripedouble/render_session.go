package stripedouble

func (x *tx) renderCustomer(c customer) object {
	return object{
		"id": c.ID, "object": "customer", "address": nil, "balance": 0, "created": c.Created, "currency": nil,
		"default_source": nil, "delinquent": false, "description": orNull(c.Description), "discount": nil,
		"email": orNull(c.Email), "invoice_prefix": c.ID[len(c.ID)-8:],
		"invoice_settings": object{"custom_fields": nil, "default_payment_method": nil, "footer": nil, "rendering_options": nil},
		"livemode":         false, "metadata": metadata(c.Metadata), "name": orNull(c.Name), "next_invoice_sequence": 1,
		"phone": orNull(c.Phone), "preferred_locales": []string{}, "shipping": nil, "tax_exempt": "none", "test_clock": nil,
	}
}

func (x *tx) renderSession(s session) object {
	var url any // Stripe gives the address only while it can be paid at
	if s.Status == "open" {
		url = x.pageURL("/c/pay/", s.ID)
	}
	var amount, currency, totals, creation any
	currency = orNull(s.Currency)
	if s.Mode == "payment" {
		amount = s.AmountTotal
		totals = object{"amount_discount": 0, "amount_shipping": 0, "amount_tax": 0}
		if s.Customer == "" {
			creation = "if_required"
		}
	}
	return object{
		"id": s.ID, "object": "checkout.session", "after_expiration": nil, "allow_promotion_codes": nil,
		"amount_subtotal": amount, "amount_total": amount,
		"automatic_tax":              object{"enabled": false, "liability": nil, "status": nil},
		"billing_address_collection": nil, "cancel_url": orNull(s.CancelURL), "client_reference_id": orNull(s.ClientReference),
		"client_secret": nil, "consent": nil, "consent_collection": nil, "created": s.Created, "currency": currency,
		"currency_conversion": nil, "custom_fields": []object{},
		"custom_text": object{"after_submit": nil, "shipping_address": nil, "submit": nil, "terms_of_service_acceptance": nil},
		"customer":    orNull(s.Customer), "customer_creation": creation, "customer_details": x.customerDetails(s),
		"customer_email": orNull(s.CustomerEmail), "expires_at": s.ExpiresAt, "invoice": nil,
		"invoice_creation": object{"enabled": false, "invoice_data": object{"account_tax_ids": nil, "custom_fields": nil,
			"description": nil, "footer": nil, "issuer": nil, "metadata": object{}, "rendering_options": nil}},
		"livemode": false, "locale": nil, "metadata": metadata(s.Metadata), "mode": s.Mode,
		"payment_intent": orNull(s.PaymentIntent), "payment_link": nil, "payment_method_collection": "if_required",
		"payment_method_configuration_details": nil, "payment_method_options": object{},
		"payment_method_types": s.MethodTypes, "payment_status": s.PaymentStatus,
		"phone_number_collection": object{"enabled": false}, "recovered_from": nil, "setup_intent": orNull(s.SetupIntent),
		"shipping_address_collection": nil, "shipping_cost": nil, "shipping_details": nil, "shipping_options": []object{},
		"status": s.Status, "submit_type": nil, "subscription": nil, "success_url": s.SuccessURL,
		"total_details": totals, "ui_mode": "hosted", "url": url,
	}
}

// customerDetails is what the payer typed; the page asks for nothing, so it is
// what was known before.
func (x *tx) customerDetails(s session) any {
	c, _ := x.state.customers.get(s.Customer)
	email := c.Email
	if email == "" {
		email = s.CustomerEmail
	}
	if email == "" && s.Status == "open" {
		return nil
	}
	return object{"address": nil, "email": orNull(email), "name": orNull(c.Name), "phone": nil, "tax_exempt": "none", "tax_ids": []object{}}
}

func (x *tx) renderPortal(p portal) object {
	return object{
		"id": p.ID, "object": "billing_portal.session", "configuration": "bpc_double", "created": p.Created,
		"customer": p.Customer, "flow": nil, "livemode": false, "locale": nil, "on_behalf_of": nil,
		"return_url": orNull(p.ReturnURL), "url": x.pageURL("/p/session/", p.ID),
	}
}

func (x *tx) renderEvent(e event) object {
	pending := 0
	if e.Pending {
		pending = 1
	}
	data := object{"object": e.Object}
	if len(e.Previous) > 0 {
		data["previous_attributes"] = e.Previous
	}
	return object{
		"id": e.ID, "object": "event", "api_version": apiVersion, "created": e.Created, "data": data,
		"livemode": false, "pending_webhooks": pending,
		"request": object{"id": orNull(e.Request), "idempotency_key": orNull(e.Key)}, "type": e.Type,
	}
}

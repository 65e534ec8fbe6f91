package stripedouble

import (
	"maps"
	"net/http"
)

func createCustomer(x *tx, c call) (object, error) {
	cus := customer{
		ID: newID("cus_", 14), Email: c.form.str("email"), Name: c.form.str("name"), Phone: c.form.str("phone"),
		Description: c.form.str("description"), Metadata: c.form.pairs("metadata"), Created: x.now.Unix(),
	}
	x.state.customers.put(cus.ID, cus)
	return x.renderCustomer(cus), nil
}

// updateCustomer changes what the request names and keeps the rest.
func updateCustomer(x *tx, c call) (object, error) {
	cus, ok := x.state.customers.get(c.id)
	if !ok {
		return nil, missing(http.StatusNotFound, "customer", c.id, "id")
	}
	for name, field := range map[string]*string{"email": &cus.Email, "name": &cus.Name, "phone": &cus.Phone, "description": &cus.Description} {
		if c.form.has(name) {
			*field = c.form.str(name)
		}
	}
	merged := metadata(cus.Metadata)
	maps.Copy(merged, c.form.pairs("metadata"))
	cus.Metadata = merged
	x.state.customers.put(cus.ID, cus)
	return x.renderCustomer(cus), nil
}

func createPortal(x *tx, c call) (object, error) {
	cus, ok := x.state.customers.get(c.form.str("customer"))
	if !ok {
		return nil, missing(http.StatusBadRequest, "customer", c.form.str("customer"), "customer")
	}
	p := portal{ID: newID("bps_", 24), Customer: cus.ID, ReturnURL: c.form.str("return_url"), Created: x.now.Unix()}
	x.state.portals.put(p.ID, p)
	return x.renderPortal(p), nil
}

// listCustomerMethods is GET /v1/customers/{id}/payment_methods.
func listCustomerMethods(x *tx, c call) (object, error) {
	if _, ok := x.state.customers.get(c.id); !ok {
		return nil, missing(http.StatusNotFound, "customer", c.id, "customer")
	}
	return x.methodPage(c, c.id, "/v1/customers/"+c.id+"/payment_methods")
}

// listMethods is GET /v1/payment_methods. Without a customer Stripe lists what
// belongs to the account itself: nothing here.
func listMethods(x *tx, c call) (object, error) {
	id := c.form.str("customer")
	if id != "" {
		if _, ok := x.state.customers.get(id); !ok {
			return nil, missing(http.StatusBadRequest, "customer", id, "customer")
		}
	}
	return x.methodPage(c, id, "/v1/payment_methods")
}

func (x *tx) methodPage(c call, customerID, url string) (object, error) {
	kind := c.form.str("type")
	return page(c.form, url, x.state.methods, func(m method) bool {
		return customerID != "" && m.Customer == customerID && (kind == "" || m.Type == kind)
	}, x.renderMethod)
}

func detachMethod(x *tx, c call) (object, error) {
	m, ok := x.state.methods.get(c.id)
	if !ok {
		return nil, missing(http.StatusNotFound, "PaymentMethod", c.id, "payment_method")
	}
	if m.Customer == "" {
		return nil, invalid("", "", "The payment method you provided is not attached to a customer so detachment is impossible.")
	}
	return x.renderMethod(x.detach(m)), nil
}

func (x *tx) attach(m method, customerID string) {
	m.Customer = customerID
	x.state.methods.put(m.ID, m)
	x.emit("payment_method.attached", x.renderMethod(m), nil)
}

func (x *tx) detach(m method) method {
	was := m.Customer
	m.Customer = ""
	x.state.methods.put(m.ID, m)
	x.emit("payment_method.detached", x.renderMethod(m), object{"customer": was})
	return m
}

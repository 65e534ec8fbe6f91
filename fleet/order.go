package fleet

import (
	"berth/models"
)

// Order is what a renter asks for.
type Order struct {
	Account       models.AccountID
	User          models.UserID
	SKU           string
	BillingMode   models.BillingMode // empty: on demand
	Name          string             // empty: one is made, such as "tern-04"
	Image         string             // empty: the node's first
	Command       []string           // empty: the image's idle process
	Env           map[string]string
	StartupScript string
	DiskGiB       int
	ClientKey     string // the caller's Idempotency-Key; empty: none
}

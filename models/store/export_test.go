package store

import (
	"context"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"berth/models"
)

// Drift returns the schema changes that AutoMigrate would make: none, when the
// migrations say what the models say.
func (s *Store) Drift(ctx context.Context) []string {
	rec := &recorder{Interface: logger.Discard}
	_ = s.write.Session(&gorm.Session{Logger: rec, Context: ctx}).Transaction(func(db *gorm.DB) error {
		err := db.AutoMigrate(models.User{}, models.Session{}, models.Token{}, models.Account{}, models.Member{},
			models.LedgerAccount{}, models.Transfer{}, models.Entry{}, models.Hold{}, models.Topup{}, models.StripeEvent{},
			models.UsageSpan{}, models.Price{}, models.Invoice{}, models.InvoicedPart{}, models.Counter{},
			models.Node{}, models.Device{}, models.Lease{}, models.LeaseUnit{}, models.JoinToken{},
			models.Instance{}, models.InstanceEvent{})
		if err != nil {
			rec.changes = append(rec.changes, err.Error())
		}
		return gorm.ErrInvalidTransaction // roll back
	})
	return rec.changes
}

// PretendNewer records a migration this Berth does not know.
func (s *Store) PretendNewer(ctx context.Context) error {
	return s.write.WithContext(ctx).Exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)").Error
}

type recorder struct {
	logger.Interface
	changes []string
}

func (r *recorder) LogMode(logger.LogLevel) logger.Interface { return r }

func (r *recorder) Trace(_ context.Context, _ time.Time, sql func() (string, int64), _ error) {
	statement, _ := sql()
	for _, verb := range []string{"CREATE ", "ALTER ", "DROP "} {
		if strings.HasPrefix(strings.ToUpper(statement), verb) {
			r.changes = append(r.changes, statement)
		}
	}
}

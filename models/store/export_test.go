package store

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"

	"berth/models"
)

// Drift returns where the tables and the models differ, in either direction.
func (s *Store) Drift(ctx context.Context) []string {
	db := s.write.WithContext(ctx)
	var drift []string
	for _, m := range []any{models.User{}, models.Session{}, models.Token{}, models.Account{}, models.Member{},
		models.LedgerAccount{}, models.Transfer{}, models.Entry{}, models.Hold{}, models.Topup{}, models.StripeEvent{},
		models.UsageSpan{}, models.Price{}, models.Invoice{}, models.InvoicedPart{}, models.Counter{},
		models.Node{}, models.Device{}, models.Lease{}, models.LeaseUnit{}, models.JoinToken{},
		models.Instance{}, models.InstanceEvent{}, models.Rollup{}, models.DeviceEvent{}} {
		stmt := &gorm.Statement{DB: db}
		if err := stmt.Parse(m); err != nil {
			return []string{err.Error()}
		}
		columns, err := db.Migrator().ColumnTypes(stmt.Schema.Table)
		if err != nil || len(columns) == 0 {
			drift = append(drift, fmt.Sprintf("no table %s (%v)", stmt.Schema.Table, err))
			continue
		}
		var have, want []string
		for _, c := range columns {
			nullable, _ := c.Nullable()
			have = append(have, fmt.Sprintf("%s %s nullable=%t", c.Name(), kindOf(c.DatabaseTypeName()), nullable))
		}
		for _, f := range stmt.Schema.Fields {
			if f.DBName != "" {
				nullable := f.FieldType.Kind() == reflect.Pointer
				want = append(want, fmt.Sprintf("%s %s nullable=%t", f.DBName, kindOf(string(db.DataTypeOf(f))), nullable))
			}
		}
		for _, line := range have {
			if !slices.Contains(want, line) {
				drift = append(drift, stmt.Schema.Table+": only in the migrations: "+line)
			}
		}
		for _, line := range want {
			if !slices.Contains(have, line) {
				drift = append(drift, stmt.Schema.Table+": only in the models: "+line)
			}
		}
	}
	return drift
}

// kindOf folds a database's type names into what matters to a model.
func kindOf(name string) string {
	switch name, _, _ := strings.Cut(strings.ToLower(name), " "); name {
	case "integer", "int8", "bigint", "bigserial", "smallint", "int4", "int2":
		return "integer"
	case "bool", "boolean", "numeric":
		return "bool"
	case "blob", "bytea":
		return "bytes"
	default:
		return name
	}
}

// PretendNewer records a migration this Berth does not know.
func (s *Store) PretendNewer(ctx context.Context) error {
	return s.write.WithContext(ctx).Exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)").Error
}

// Exec runs a statement behind the store's back.
func (s *Store) Exec(ctx context.Context, statement string) error {
	return s.write.WithContext(ctx).Exec(statement).Error
}

//go:build !nvml || !cgo

package nvml

import (
	"errors"
	"log/slog"
	"testing"
)

func TestNotBuilt(t *testing.T) {
	if d, err := New(t.TempDir(), slog.New(slog.DiscardHandler)); d != nil || !errors.Is(err, ErrNotBuilt) {
		t.Errorf("%v, %v", d, err)
	}
}

//go:build !nvml || !cgo

package nvml

import (
	"log/slog"

	"berth/agent/device"
)

// Built says whether this program can drive real cards.
const Built = false

// Driver is not there in this build.
type Driver struct{ device.Driver }

// New fails with ErrNotBuilt.
func New(string, *slog.Logger) (*Driver, error) { return nil, ErrNotBuilt }

// Close has nothing to do.
func (*Driver) Close() error { return nil }

//go:build nvml && cgo

package nvml

import (
	"errors"
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"berth/agent/device"
)

// errSilent: the library has not returned from a call for the card in time.
var errSilent = errors.New("NVIDIA's driver does not answer for the card")

// meanings is what the agent concludes from the library's answers.
var meanings = map[nvml.Return]error{
	nvml.ERROR_NOT_SUPPORTED:          device.ErrNotSupported,
	nvml.ERROR_NO_PERMISSION:          device.ErrPermission,
	nvml.ERROR_NOT_FOUND:              device.ErrNotFound,
	nvml.ERROR_GPU_IS_LOST:            device.ErrLost,
	nvml.ERROR_GPU_NOT_FOUND:          device.ErrLost, // it was there when the session began
	nvml.ERROR_RESET_REQUIRED:         device.ErrResetRequired,
	nvml.ERROR_IN_USE:                 device.ErrInUse,
	nvml.ERROR_INSUFFICIENT_RESOURCES: device.ErrNoRoom, // full, or that place is taken
}

// problem is nil for SUCCESS; else it says what was being done and wraps the error
// of package device that the answer means, if there is one.
func problem(ret nvml.Return, what string, args ...any) error {
	if ret == nvml.SUCCESS {
		return nil
	}
	what = fmt.Sprintf(what, args...)
	if means, ok := meanings[ret]; ok {
		return fmt.Errorf("%s: %w (NVML %d)", what, means, int(ret))
	}
	return fmt.Errorf("%s: %s (NVML %d)", what, ret.Error(), int(ret))
}

// ignoreUnsupported passes over that a card cannot be divided, where that is
// nothing to be done.
func ignoreUnsupported(err error) error {
	if errors.Is(err, device.ErrNotSupported) {
		return nil
	}
	return err
}

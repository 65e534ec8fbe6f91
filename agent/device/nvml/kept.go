//go:build nvml && cgo

package nvml

import (
	"maps"
	"os"
	"strings"
)

// operatorsWord is a fault from which a card returns by Mend only: a memory row
// could not be remapped. Any other is over when the host restarts, which resets
// its cards.
const operatorsWord = 64

func bootID() (string, error) {
	raw, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(raw)), err
}

// add writes down a card's fault. An earlier one stays: it came first.
func (f faultFile) add(card string, fault Fault) (err error) {
	if fault.BootID, err = bootID(); err != nil {
		return err
	}
	return f.change(func(faults map[string]Fault) {
		if before, ok := faults[card]; !ok || before.Xid != operatorsWord && fault.Xid == operatorsWord {
			faults[card] = fault
		}
	})
}

// forgetReboots drops the faults that a restart of the host has mended.
func (f faultFile) forgetReboots() error {
	now, err := bootID()
	if err != nil {
		return err
	}
	return f.change(func(faults map[string]Fault) {
		maps.DeleteFunc(faults, func(_ string, fault Fault) bool { return fault.BootID != now && fault.Xid != operatorsWord })
	})
}

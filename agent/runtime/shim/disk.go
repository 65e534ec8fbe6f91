package shim

import (
	"fmt"
	"time"

	"berth/agent/runtime"
)

// How often a disk is looked at: every diskPeriod, but less often where one look
// takes more than a fiftieth of that.
const (
	diskPeriod = 5 * time.Second
	diskPart   = 50
)

// watchDisk ends the run when its disk holds more than it may. A run that begins
// above (its size was exceeded in the last moments before) may make room but not
// grow: its renter could not get at the files otherwise.
func (s *shim) watchDisk() {
	limit := s.order.Spec.DiskGiB << 30
	if limit <= 0 {
		return
	}
	dir, first := s.order.Jail.Disk, true
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-timer.C:
		}
		enough := limit
		if first {
			enough = 0
		}
		began := time.Now()
		used, err := runtime.DiskBytes(dir, enough)
		timer.Reset(max(diskPeriod, diskPart*time.Since(began)))
		switch {
		case err != nil:
			fmt.Fprintln(s.err, "disk:", err)
		case first:
			limit, first = max(limit, used), false
		case used > limit:
			over := func() {
				s.terminate(runtime.CauseDisk, fmt.Sprintf("its disk is full: it may hold %d GiB", s.order.Spec.DiskGiB), endGrace)
			}
			select {
			case s.wakes <- over:
			case <-s.done:
			}
			return
		}
	}
}

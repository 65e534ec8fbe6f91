package shim

import (
	"fmt"
	"time"

	"berth/agent/runtime"
	"berth/agent/runtime/jail"

	"golang.org/x/sys/unix"
)

// The course of a run: what each event does to its phase and its meter. All of it
// is called by the loop, so no two of these run at once.

// handle takes one event of the init's.
func (s *shim) handle(m jail.Message) {
	switch m.Kind {
	case jail.EvFault:
		s.end(runtime.CauseNode, m.Text)
	case jail.EvProbed:
		s.probed(m.Visible)
	case jail.EvStartup:
		if m.Code != 0 {
			s.mu.Lock()
			s.st.ExitCode = &m.Code
			s.mu.Unlock()
		}
		switch {
		case m.Text != "":
			s.end(runtime.CauseStartup, "startup script: "+m.Text)
		case m.Code != 0:
			s.end(runtime.CauseStartup, fmt.Sprintf("startup script: exit %d", m.Code))
		}
	case jail.EvStarted:
		s.usable()
	case jail.EvCommand:
		s.end(runtime.CauseCommand, m.Text)
	case jail.EvExit:
		s.mu.Lock()
		s.st.ExitCode = &m.Code
		s.mu.Unlock()
		s.end(runtime.CauseExit, exitReason(m.Code))
	case jail.EvShell:
		s.mu.Lock()
		ch := s.asked[m.ID]
		delete(s.asked, m.ID)
		s.mu.Unlock()
		if ch != nil {
			ch <- m // has room for one
		} else if m.File != nil {
			m.File.Close()
		}
	case jail.EvLoad:
		s.mu.Lock()
		s.load = *m.Load
		s.mu.Unlock()
	}
}

func exitReason(code int) string {
	if code > 128 {
		return fmt.Sprintf("ended by %s", unix.SignalName(unix.Signal(code-128)))
	}
	return fmt.Sprintf("exit %d", code)
}

// probed compares what is visible with what was granted, and lets the run go on.
func (s *shim) probed(visible []string) {
	s.mu.Lock()
	s.st.VisibleDevices = append([]string{}, visible...)
	ending := s.st.Cause != runtime.CauseNone
	s.mu.Unlock()
	if ending {
		return
	}
	if granted := len(s.order.Spec.Devices); len(visible) < granted {
		s.end(runtime.CauseDevices, fmt.Sprintf("%d of %d devices visible", len(visible), granted))
		s.kill()
		return
	}
	if s.order.Spec.StartupScript != "" {
		s.usable() // the script is the renter's own use of what they rent
	}
	s.tree.Control.Send(jail.Message{Kind: jail.OpStart}) // if the init died, the loop sees it
}

// usable is the moment from which the run costs money: its devices were seen
// inside, and the renter's start-up script or command begins.
func (s *shim) usable() {
	s.mu.Lock()
	if s.st.Cause != runtime.CauseNone || s.st.Phase == runtime.Running {
		s.mu.Unlock()
		return
	}
	s.meter.begin(clock())
	s.second.Reset(time.Second) // so that it ticks when a second is full
	s.st.Phase, s.st.ReadyAt = runtime.Running, time.Now().UTC()
	s.mu.Unlock()
	s.armPaid()
	s.note()
}

// end records why the run is over, the first time it is called, and stops the
// meter there and then: cleaning up is not the renter's time.
func (s *shim) end(cause runtime.Cause, reason string) {
	s.mu.Lock()
	if s.st.Cause != runtime.CauseNone {
		s.mu.Unlock()
		return
	}
	s.meter.freeze(clock())
	s.st.Phase, s.st.Cause, s.st.Reason = runtime.Stopping, cause, reason
	s.mu.Unlock()
	s.paid.Stop()
	s.note()
}

// terminate ends the tree in good order.
func (s *shim) terminate(cause runtime.Cause, reason string, grace time.Duration) {
	s.end(cause, reason)
	if grace <= 0 {
		s.kill()
		return
	}
	s.tree.Control.Send(jail.Message{Kind: jail.OpTerm})
	s.grace.Reset(grace)
}

func (s *shim) kill() {
	if err := s.tree.Kill(); err != nil {
		fmt.Fprintln(s.err, "kill:", err)
	}
}

// armPaid sets the timer to the moment the paid seconds are used up.
func (s *shim) armPaid() {
	s.mu.Lock()
	left, ok := s.meter.left(clock())
	s.mu.Unlock()
	s.paid.Stop()
	if ok {
		s.paid.Reset(left)
	}
}

func (s *shim) paidUp() {
	s.mu.Lock()
	left, ok := s.meter.left(clock())
	s.mu.Unlock()
	switch {
	case !ok:
	case left > 0: // the limit moved while the timer fired
		s.paid.Reset(left)
	default:
		s.terminate(runtime.CausePaid, runtime.ReasonPaid, endGrace)
	}
}

// setPaid is called by the loop.
func (s *shim) setPaid(seconds int64) {
	s.mu.Lock()
	s.meter.setLimit(clock(), seconds)
	s.st.PaidSeconds = s.meter.limit
	s.mu.Unlock()
	s.armPaid()
	if err := s.persist(); err != nil {
		fmt.Fprintln(s.err, "state:", err)
	}
}

package jail

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// shells opens terminals. They are opened in here rather than by the shim, so that
// `tty` inside names a device that exists inside.
type shells struct {
	in   *inside
	mu   sync.Mutex
	pids map[int]bool
}

// open starts a shell on a new terminal and sends its master to the shim.
func (s *shells) open(m Message) {
	answer := Message{Kind: EvShell, ID: m.ID}
	master, err := s.start(m)
	if err != nil {
		answer.Text = err.Error()
	} else {
		answer.File = master
		defer master.Close()
	}
	s.in.ctl.Send(answer)
}

func (s *shells) start(m Message) (*os.File, error) {
	master, slave, err := openTerminal()
	if err != nil {
		return nil, fmt.Errorf("open a terminal: %w", err)
	}
	defer slave.Close()
	size := &unix.Winsize{Col: uint16(m.Cols), Row: uint16(m.Rows)}
	if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, size); err != nil {
		master.Close()
		return nil, fmt.Errorf("size of the terminal: %w", err)
	}
	shell, fd := Shell(), slave.Fd()
	pid, ended, err := s.in.reap.start([]string{shell}, &syscall.ProcAttr{
		Dir: s.in.places.home, Env: s.in.env(m.Term), Files: []uintptr{fd, fd, fd},
		Sys: &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0},
	})
	if err != nil {
		master.Close()
		return nil, fmt.Errorf("start %s: %w", shell, err)
	}
	s.mu.Lock()
	if s.pids == nil {
		s.pids = map[int]bool{}
	}
	s.pids[pid] = true
	s.mu.Unlock()
	go func() {
		<-ended
		s.mu.Lock()
		delete(s.pids, pid)
		s.mu.Unlock()
	}()
	return master, nil
}

func (s *shells) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for pid := range s.pids {
		unix.Kill(-pid, unix.SIGHUP)
		unix.Kill(pid, unix.SIGCONT) // a stopped shell would not see it
	}
}

func openTerminal() (master, slave *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	master = os.NewFile(uintptr(fd), "/dev/ptmx")
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		master.Close()
		return nil, nil, err
	}
	slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		master.Close()
		return nil, nil, err
	}
	return master, slave, nil
}

package jail

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Stat is what /proc/PID/stat and statm say of a process.
type Stat struct {
	PID, Parent int
	State       byte
	StartTicks  uint64        // field 22: since boot; with PID it names a process for good
	CPU         time.Duration // its own and its reaped children's
	AnonBytes   int64         // resident and its own: without mapped files and shared memory
}

// clockTick is USER_HZ, which is 100 on every Linux that Go runs on.
const clockTick = 10 * time.Millisecond

// ReadStat reads one process. os.ErrNotExist (or ESRCH) when it is gone.
func ReadStat(pid int) (Stat, error) {
	dir := "/proc/" + strconv.Itoa(pid)
	b, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return Stat{}, err
	}
	s, err := parseStat(pid, b)
	if err != nil {
		return s, err
	}
	if b, err := os.ReadFile(dir + "/statm"); err == nil {
		if f := bytes.Fields(b); len(f) > 2 {
			s.AnonBytes = (int64(number(f[1])) - int64(number(f[2]))) * int64(os.Getpagesize())
		}
	}
	return s, nil
}

// parseStat splits after the last ')': the command's name may hold anything.
func parseStat(pid int, b []byte) (Stat, error) {
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return Stat{}, fmt.Errorf("/proc/%d/stat: no command in %q", pid, b)
	}
	f := bytes.Fields(b[i+1:]) // f[0] is field 3
	if len(f) < 20 {
		return Stat{}, fmt.Errorf("/proc/%d/stat: %d fields", pid, len(f))
	}
	ticks := number(f[11]) + number(f[12]) + number(f[13]) + number(f[14])
	return Stat{PID: pid, Parent: int(number(f[1])), State: f[0][0], StartTicks: number(f[19]), CPU: time.Duration(ticks) * clockTick}, nil
}

func number(b []byte) uint64 {
	n, _ := strconv.ParseUint(string(b), 10, 64)
	return n
}

// Descendants returns the living processes below root, root excluded.
func Descendants(root int) ([]Stat, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	children := map[int][]Stat{}
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil {
			continue
		}
		s, err := ReadStat(pid)
		if err != nil {
			continue // ended meanwhile
		}
		children[s.Parent] = append(children[s.Parent], s)
	}
	var out []Stat
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		for _, s := range children[queue[0]] {
			out = append(out, s)
			queue = append(queue, s.PID)
		}
	}
	return out, nil
}

// KillTree kills what lives below root until nothing does, then root if it is not
// the caller. It freezes before it kills, so that a tree that forks as fast
// as it is hunted does not get away.
func KillTree(root int) error {
	deadline := time.Now().Add(10 * time.Second)
	for {
		for root == os.Getpid() { // dead children of the caller are left to be reaped
			if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
		all, err := Descendants(root)
		if err != nil {
			return err
		}
		living := 0
		for _, sig := range []unix.Signal{unix.SIGSTOP, unix.SIGKILL} {
			for _, s := range all {
				if s.State != 'Z' {
					unix.Kill(s.PID, sig)
					living++
				}
			}
		}
		if living == 0 {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d processes below %d do not die", living/2, root)
		}
		time.Sleep(5 * time.Millisecond)
	}
	if root == os.Getpid() {
		return nil
	}
	if err := unix.Kill(root, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil // ESRCH: an init ends by itself when it has no one left
}

// OfUser returns the pids of a user's living processes.
func OfUser(uid int) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var out []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		b, err := os.ReadFile("/proc/" + e.Name() + "/status")
		if err != nil {
			continue // ended meanwhile
		}
		// "Uid:" real, effective, saved, file system. The owner of the /proc folder
		// would be root for a process that must not be dumped.
		_, rest, _ := bytes.Cut(b, []byte("\nUid:"))
		f := bytes.Fields(rest)
		if len(f) > 0 && int(number(f[0])) == uid {
			if s, err := ReadStat(pid); err == nil && s.State != 'Z' {
				out = append(out, pid)
			}
		}
	}
	return out, nil
}

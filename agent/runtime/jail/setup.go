package jail

import (
	"errors"
	"fmt"
	"os"
	goruntime "runtime"

	"berth/agent/runtime"

	"golang.org/x/sys/unix"
)

// InitMain is the init's entry: args are what follows Subcommand. The main
// goroutine must be locked to the main thread.
func InitMain(args []string) int {
	if len(args) != 1 || (args[0] != StageSetup && args[0] != StageServe) {
		fmt.Fprintln(os.Stderr, "berth: this command is started by Berth itself")
		return 2
	}
	for _, fd := range []int{fdControl, fdLog, fdConfig} {
		unix.CloseOnExec(fd)
	}
	c, err := readConfig()
	if err != nil {
		fmt.Fprintln(os.Stderr, "berth:", err)
		return 2
	}
	ctl, err := newControl(os.NewFile(dup(fdControl), "control"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "berth:", err)
		return 2
	}
	if args[0] == StageServe {
		return serve(c, ctl)
	}
	err = setup(c) // returns only if it failed
	ctl.Send(Message{Kind: EvFault, Text: err.Error()})
	return 1
}

// dup keeps the numbered descriptor itself alive for the second stage.
func dup(fd int) uintptr {
	n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 10)
	if err != nil {
		return ^uintptr(0)
	}
	return uintptr(n)
}

// setup builds the place, gives up every privilege and becomes the second stage.
func setup(c Config) error {
	goruntime.LockOSThread() // privileges belong to threads; exec keeps this one's
	exe := c.Exe
	if c.isolated() {
		if err := buildRoot(c); err != nil {
			return fmt.Errorf("build the root: %w", err)
		}
		exe = "/.berth/bin/berth"
		if err := unix.Sethostname([]byte(c.Hostname)); err != nil {
			return fmt.Errorf("host name: %w", err)
		}
		if !c.SharedNet {
			if err := loopbackUp(); err != nil {
				return fmt.Errorf("loopback: %w", err)
			}
		}
	} else if err := buildFolders(c); err != nil {
		return err
	}
	if err := limitProcess(c); err != nil {
		return err
	}
	if err := dropPrivileges(c); err != nil {
		return fmt.Errorf("give up privileges: %w", err)
	}
	if err := os.Chdir(c.places().home); err != nil {
		return fmt.Errorf("%w (every folder above the node's data must be passable for other users: chmod o+x)", err)
	}
	for _, fd := range []int{fdControl, fdLog, fdConfig} {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return fmt.Errorf("keep descriptor %d: %w", fd, err)
		}
	}
	err := unix.Exec(exe, []string{"berth", Subcommand, StageServe}, ProcessEnv())
	return fmt.Errorf("run %s: %w", exe, err)
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}

// limitProcess sets the limits that hold per process. It only ever lowers them:
// raising needs a right that containers often lack.
func limitProcess(c Config) error {
	for _, l := range []struct {
		what  int
		value uint64
		set   bool
	}{
		{unix.RLIMIT_CORE, 0, true},
		{unix.RLIMIT_FSIZE, c.FileBytes, c.FileBytes > 0},
		{unix.RLIMIT_DATA, c.DataBytes, c.DataBytes > 0},
		{unix.RLIMIT_NPROC, c.ProcessesHeld, c.ProcessesHeld > 0},
	} {
		var now unix.Rlimit
		if err := unix.Getrlimit(l.what, &now); err != nil {
			return fmt.Errorf("limit %d: %w", l.what, err)
		}
		if !l.set || now.Max <= l.value {
			continue
		}
		if err := unix.Prlimit(0, l.what, &unix.Rlimit{Cur: l.value, Max: l.value}, nil); err != nil {
			return fmt.Errorf("limit %d: %w", l.what, err)
		}
	}
	return nil
}

// dropPrivileges leaves the calling thread with the instance's own id, no group,
// no capability and no way to any. Each step is for this thread alone: the exec
// that follows makes it the whole process.
func dropPrivileges(c Config) error {
	// A key ring inherited from root would be readable inside.
	unix.KeyctlJoinSessionKeyring("")

	root := os.Getuid() == 0
	if root || c.Rung == runtime.RungUserNS {
		for capability := uintptr(0); ; capability++ {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); errors.Is(err, unix.EINVAL) {
				break // past the last one this kernel knows
			} else if err != nil && c.isolated() { // a container's root may lack the right; no_new_privs bars the way too
				return fmt.Errorf("bounding set: %w", err)
			}
		}
	}
	if root {
		id := uintptr(c.UID)
		if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); e != 0 {
			return fmt.Errorf("groups: %w", e)
		}
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESGID, id, id, id); e != 0 {
			return fmt.Errorf("group id: %w", e)
		}
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, id, id, id); e != 0 {
			return fmt.Errorf("user id: %w", e)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("ambient capabilities: %w", err)
	}
	none := [2]unix.CapUserData{}
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	if c.isolated() {
		// Changing the user id cleared what clone had set.
		if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
			return fmt.Errorf("die with the shim: %w", err)
		}
	}
	return nil
}

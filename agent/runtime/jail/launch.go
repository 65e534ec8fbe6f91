package jail

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"berth/agent/runtime"

	"golang.org/x/sys/unix"
)

// StageSetup and StageServe name the init's two stages on its command line, after
// Subcommand.
const (
	Subcommand = "sandbox-init"
	StageSetup = "setup"
	StageServe = "serve"
)

// ProcessEnv is the environment of Berth's own processes around an instance: not
// the agent's, which may hold tokens. GORACE goes along because a build with the
// race detector otherwise sleeps a second at the end of each of them.
func ProcessEnv() []string {
	env := []string{"PATH=/usr/bin:/bin"}
	if race, ok := os.LookupEnv("GORACE"); ok {
		env = append(env, "GORACE="+race)
	}
	return env
}

// Tree is a launched process tree, seen from its shim.
type Tree struct {
	Init    *os.Process
	Control *Control
	Log     *os.File // read end: output of start-up script and command
	rung    runtime.Rung
}

// Launch clones the init of a new place and returns while it is still building.
// What it finds comes as events on Control. An error means that the host refuses
// this rung (or memory for it).
//
// The calling goroutine must be locked to a thread that lives as long as the tree
// should: the kernel kills an isolated tree when that thread ends, which is how
// the death of a shim takes its instance along.
func Launch(c Config) (*Tree, error) {
	shimEnd, initEnd, err := controlPair()
	if err != nil {
		return nil, err
	}
	defer initEnd.Close()
	logRead, logWrite, err := os.Pipe()
	if err != nil {
		shimEnd.Close()
		return nil, err
	}
	defer logWrite.Close()
	conf, err := configFile(c)
	if err != nil {
		return nil, errors.Join(err, shimEnd.Close(), logRead.Close())
	}
	defer conf.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, errors.Join(err, shimEnd.Close(), logRead.Close())
	}
	defer null.Close()

	proc, err := os.StartProcess(c.Exe, []string{"berth", Subcommand, StageSetup}, &os.ProcAttr{
		Dir: filepath.Dir(c.Exe), // a place the host certainly has
		Env: ProcessEnv(),
		// Errors of the Go runtime itself (a crash) belong in the instance's log.
		Files: []*os.File{null, logWrite, logWrite, initEnd, logWrite, conf},
		Sys:   cloneAttr(c),
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", c.Rung, err), shimEnd.Close(), logRead.Close())
	}
	ctl, err := newControl(shimEnd)
	if err != nil {
		proc.Kill()
		proc.Wait()
		logRead.Close()
		return nil, err
	}
	return &Tree{Init: proc, Control: ctl, Log: logRead, rung: c.Rung}, nil
}

// cloneAttr chooses the namespaces of a rung.
func cloneAttr(c Config) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if !c.isolated() {
		return attr
	}
	attr.Pdeathsig = syscall.SIGKILL
	attr.Cloneflags = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC
	if !c.SharedNet {
		attr.Cloneflags |= unix.CLONE_NEWNET
	}
	if c.Rung != runtime.RungUserNS {
		return attr
	}
	attr.Cloneflags |= unix.CLONE_NEWUSER
	// Host id 0 must not stay underneath: a renter would read root's files
	// whatever id he is shown. Root maps to the instance's own id instead.
	host, hostGroup := os.Getuid(), os.Getgid()
	if host == 0 {
		host, hostGroup = c.UID, c.UID
	}
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: c.UID, HostID: host, Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: c.UID, HostID: hostGroup, Size: 1}}
	attr.Credential = &syscall.Credential{Uid: uint32(c.UID), Gid: uint32(c.UID), NoSetGroups: true}
	// Not being root inside, the init would lose its power over its own namespaces
	// at exec; ambient capabilities keep it until setup drops them.
	attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_SYS_CHROOT}
	return attr
}

// Kill ends every process of the tree at once. Isolated trees die with their
// init; an unisolated one is hunted down process by process.
func (t *Tree) Kill() error {
	if t.rung == runtime.RungProcess {
		return KillTree(t.Init.Pid)
	}
	if err := t.Init.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Wait returns when the init has ended. For an isolated tree this means that
// nothing of it is left. Otherwise what its init left behind has become the
// caller's child (see BecomeReaper) and is killed here.
func (t *Tree) Wait() error {
	_, err := t.Init.Wait()
	if t.rung == runtime.RungProcess {
		err = errors.Join(err, KillTree(os.Getpid()))
	}
	return err
}

// Close lets go of the descriptors.
func (t *Tree) Close() error { return errors.Join(t.Control.Close(), t.Log.Close()) }

// BecomeReaper makes the calling process the parent of what its descendants leave
// behind.
func BecomeReaper() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

package jail

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"berth/agent/runtime"

	"golang.org/x/sys/unix"
)

// inside is the second stage: pid 1 of the place, with the renter's own id.
type inside struct {
	conf   Config
	places places
	ctl    *Control
	reap   *reaper
	load   *loadServer
	ending atomic.Bool
	runs   sync.WaitGroup // run, so that its last word is sent before we end
	shells *shells
}

// serve runs until the shim says to end, the command ends, or the shim is gone.
func serve(c Config, ctl *Control) int {
	goruntime.LockOSThread()
	// Processes of the same user must not look into pid 1 or its descriptors.
	unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	unix.Close(fdConfig)
	unix.Close(fdControl)
	// Heard and dropped rather than ignored: what is ignored here would be ignored
	// by every process of the renter's too, and a shell cannot trap it any more.
	signal.Notify(make(chan os.Signal, 1))
	in := &inside{conf: c, places: c.places(), ctl: ctl, reap: newReaper()}
	in.shells = &shells{in: in}
	fault := func(err error) int {
		ctl.Send(Message{Kind: EvFault, Text: err.Error()})
		return 1
	}
	if !c.isolated() {
		if err := BecomeReaper(); err != nil {
			return fault(fmt.Errorf("adopt orphans: %w", err))
		}
	}
	var err error
	if in.load, err = listenLoad(in.places.loadSocket, func(l runtime.LoadTarget) {
		ctl.Send(Message{Kind: EvLoad, Load: &l})
	}); err != nil {
		return fault(fmt.Errorf("load helper: %w", err))
	}
	visible := in.probe()
	if err := ctl.Send(Message{Kind: EvProbed, Visible: visible}); err != nil {
		return 1
	}
	return in.obey()
}

// obey handles the shim's messages. When it returns the process exits, which for
// an isolated place ends everything in it.
func (in *inside) obey() int {
	done := make(chan int, 1)
	messages := make(chan Message)
	go func() {
		defer close(messages)
		for {
			m, err := in.ctl.Receive()
			if err != nil {
				return
			}
			messages <- m
		}
	}()
	for {
		select {
		case code := <-done:
			in.sweep()
			return code
		case m, ok := <-messages:
			if !ok { // the shim is gone: so is the instance
				in.sweep()
				return 1
			}
			switch m.Kind {
			case OpStart:
				in.runs.Go(func() { in.run(done) })
			case OpShell:
				in.shells.open(m)
			case OpTerm:
				if in.ending.Swap(true) {
					continue
				}
				in.hangUp()
				go func() {
					<-in.reap.gone()
					in.runs.Wait()
					done <- 0
				}()
			}
		}
	}
}

// run carries a run from its start-up script to its command's end.
func (in *inside) run(done chan<- int) {
	if in.ending.Load() {
		return
	}
	if in.conf.StartupScript != "" {
		code, err := in.startup()
		if err != nil {
			in.ctl.Send(Message{Kind: EvStartup, Code: 126, Text: err.Error()})
			done <- 1
			return
		}
		in.ctl.Send(Message{Kind: EvStartup, Code: code})
		if code != 0 {
			done <- 1
			return
		}
	}
	if in.ending.Load() {
		return
	}
	if len(in.conf.Command) == 0 {
		in.ctl.Send(Message{Kind: EvStarted})
		return
	}
	ended, err := in.command(in.conf.Command)
	if err != nil {
		in.ctl.Send(Message{Kind: EvCommand, Text: err.Error()})
		done <- 1
		return
	}
	in.ctl.Send(Message{Kind: EvStarted})
	code := exitCode(<-ended)
	in.ctl.Send(Message{Kind: EvExit, Code: code})
	if !in.ending.Load() { // else the rest still has its grace
		done <- 0
	}
}

func (in *inside) startup() (int, error) {
	path := filepath.Join(in.places.tmp, "berth-startup")
	if err := os.WriteFile(path, []byte(in.conf.StartupScript), 0o700); err != nil {
		return 0, err
	}
	argv := []string{path}
	if !strings.HasPrefix(in.conf.StartupScript, "#!") {
		argv = []string{Shell(), path}
	}
	ended, err := in.command(argv)
	if err != nil {
		return 0, err
	}
	return exitCode(<-ended), nil
}

// command starts a program of the renter's with its output going to the log.
func (in *inside) command(argv []string) (<-chan unix.WaitStatus, error) {
	env := in.env("")
	name, err := lookPath(argv[0], in.places.home, env)
	if err != nil {
		return nil, err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	_, ended, err := in.reap.start(append([]string{name}, argv[1:]...), &syscall.ProcAttr{
		Dir: in.places.home, Env: env, Files: []uintptr{null.Fd(), fdLog, fdLog}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", argv[0], err)
	}
	return ended, nil
}

// lookPath finds a program as a shell in the instance would: by the instance's
// PATH, not this process's.
func lookPath(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return name, nil
	}
	for _, kv := range env {
		path, ok := strings.CutPrefix(kv, "PATH=")
		if !ok {
			continue
		}
		for _, folder := range filepath.SplitList(path) {
			if !filepath.IsAbs(folder) {
				folder = filepath.Join(dir, folder)
			}
			if p, err := exec.LookPath(filepath.Join(folder, name)); err == nil {
				return p, nil
			}
		}
	}
	return "", fmt.Errorf("%s: command not found", name)
}

// env is what every process of the renter's starts with: our defaults, over them
// the renter's, over them what only the node may say.
func (in *inside) env(term string) []string {
	e := map[string]string{
		"PATH": in.places.bin + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME": in.places.home, "USER": "renter", "LOGNAME": "renter", "SHELL": Shell(),
		"LANG": "C.UTF-8", "TMPDIR": in.places.tmp, "HOSTNAME": in.conf.Hostname,
	}
	if term != "" {
		e["TERM"] = term
	}
	maps.Copy(e, runtime.CleanEnv(in.conf.Env))
	uuids := make([]string, len(in.conf.Devices))
	for i, d := range in.conf.Devices {
		uuids[i] = d.UUID
	}
	e["NVIDIA_VISIBLE_DEVICES"] = "void" // the vendor's word for "none"
	if len(uuids) > 0 {
		e["NVIDIA_VISIBLE_DEVICES"] = strings.Join(uuids, ",")
		if !simulated(in.conf.Devices) { // where nothing isolates, CUDA would take the first card it sees
			e["CUDA_VISIBLE_DEVICES"] = e["NVIDIA_VISIBLE_DEVICES"]
		}
	}
	e["BERTH_INSTANCE"] = in.conf.Instance
	if len(in.conf.Devices) > 0 {
		e["BERTH_GPU_MEMORY_MIB"] = strconv.FormatInt(in.conf.Devices[0].MemoryMiB, 10) // of each: all are alike
	}
	e["BERTH_DEVICES"] = in.places.devices
	e["BERTH_LOAD_SOCKET"] = in.places.loadSocket
	out := make([]string, 0, len(e))
	for _, k := range slices.Sorted(maps.Keys(e)) {
		out = append(out, k+"="+e[k])
	}
	return out
}

// probe lists the granted devices that can be seen from here.
func (in *inside) probe() []string {
	visible := []string{}
	for _, d := range in.conf.Devices {
		if _, err := os.Stat(filepath.Join(in.places.gpus, d.UUID)); err == nil {
			visible = append(visible, d.UUID)
		}
	}
	return visible
}

// hangUp asks everything here to end. Interactive shells ignore SIGTERM but end,
// with their jobs, when their terminal hangs up.
func (in *inside) hangUp() {
	in.signal(unix.SIGTERM)
	in.shells.hangUp()
}

func (in *inside) signal(sig unix.Signal) {
	if in.conf.isolated() {
		unix.Kill(-1, sig) // everyone in this pid namespace but us
		return
	}
	all, err := Descendants(os.Getpid())
	if err != nil {
		return
	}
	for _, s := range all {
		unix.Kill(s.PID, sig)
	}
}

// sweep leaves nothing behind where the kernel does not see to it.
func (in *inside) sweep() {
	in.load.close()
	if !in.conf.isolated() {
		KillTree(os.Getpid())
	}
}

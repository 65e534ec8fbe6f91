// Package jail makes the place an instance runs in: namespaces of its own, a view
// of the file system without other renters in it, no privileges, and inside it a
// small init that starts and reaps the renter's processes.
//
// It runs in three processes of the same binary. Launch, in the shim, clones the
// init. The init's first stage (setup.go) still has privileges: it builds the
// root, drops everything and executes itself again as the second stage
// (serve.go), which is the instance's pid 1 and talks to the shim over a socket.
// Nothing here counts time or decides about money: a renter may well kill or fool
// processes under his own user id, so the shim, outside, does that.
package jail

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"berth/agent/runtime"

	"golang.org/x/sys/unix"
)

// Config tells the init what to build and run. It is handed over in a memory file
// and holds host paths, so it is closed before the renter's code starts.
type Config struct {
	Rung runtime.Rung `json:"rung"`

	Instance string `json:"instance"`
	Hostname string `json:"hostname"`
	UID      int    `json:"uid"` // user and group id inside; as root also on the host

	Exe  string   `json:"exe"`  // this binary on the host
	Root string   `json:"root"` // an empty folder: where the new root is mounted
	Disk string   `json:"disk"` // the instance's disk: /workspace
	Mask []string `json:"mask"` // host paths that must not show, should they lie under /usr or /opt

	Env           map[string]string     `json:"env"` // the renter's, cleaned
	Command       []string              `json:"command"`
	StartupScript string                `json:"startup_script"`
	Devices       []runtime.DeviceGrant `json:"devices"`
	SharedNet     bool                  `json:"shared_net"`

	TmpMiB int64 `json:"tmp_mib"` // size of /tmp and of /dev/shm

	// Per-process limits, where control groups do not hold; 0 means none.
	DataBytes     uint64 `json:"data_bytes"`
	FileBytes     uint64 `json:"file_bytes"`
	ProcessesHeld uint64 `json:"processes_held"`
}

// places are the paths an instance finds things at.
type places struct {
	home, tmp  string
	bin        string // of berth-load and berth-smi
	devices    string // devices.json
	gpus       string // folder with one stand-in file per device
	loadSocket string // where berth-load finds the init; "@…" is an abstract name
}

func (c Config) isolated() bool { return c.Rung != runtime.RungProcess }

func (c Config) places() places {
	if c.isolated() {
		return places{
			home: "/workspace", tmp: "/tmp", bin: "/.berth/bin", devices: "/.berth/devices.json",
			gpus: "/dev/berth/gpu", loadSocket: "/run/berth/load.sock",
		}
	}
	// Without a root of its own the run finds Berth's files in the folder that
	// would have been its root.
	return places{
		home: c.Disk, tmp: filepath.Join(c.Root, "tmp"), bin: filepath.Join(c.Root, "bin"),
		devices: filepath.Join(c.Root, "devices.json"), gpus: filepath.Join(c.Root, "gpu"),
		loadSocket: fmt.Sprintf("@berth-load-%x", sha256.Sum256([]byte(c.Root))),
	}
}

// File descriptors that Launch hands to the init.
const (
	fdControl = 3
	fdLog     = 4
	fdConfig  = 5
)

func configFile(c Config) (*os.File, error) {
	fd, err := unix.MemfdCreate("berth-config", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memory file: %w", err)
	}
	f := os.NewFile(uintptr(fd), "config")
	if err := json.NewEncoder(f).Encode(c); err != nil {
		f.Close()
		return nil, fmt.Errorf("hand over the configuration: %w", err)
	}
	return f, nil
}

// readConfig reads it from the start without moving a shared offset: both stages
// read the same file.
func readConfig() (c Config, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(fdConfig, &st); err != nil {
		return c, fmt.Errorf("configuration: %w (this command is started by a shim, not by hand)", err)
	}
	b := make([]byte, st.Size)
	if n, err := unix.Pread(fdConfig, b, 0); err != nil || n != len(b) {
		return c, fmt.Errorf("configuration: %d of %d bytes, %v", n, len(b), err)
	}
	return c, json.Unmarshal(b, &c)
}

// MaxProcesses is how many processes and threads an instance may have.
const MaxProcesses = 4096

// WithProcessLimits returns c with the limits that hold per process, where no
// control group holds them for the tree. A limit of address space (RLIMIT_AS)
// would stop programs that reserve much and use little, so memory is held by what
// a process may write to (RLIMIT_DATA).
func (c Config) WithProcessLimits(s runtime.Spec, memoryHeld, pidsHeld bool) Config {
	c.FileBytes = uint64(s.DiskGiB) << 30
	if !memoryHeld && s.MemoryMiB > 0 {
		c.DataBytes = uint64(max(s.MemoryMiB, 256)) << 20
	}
	// Processes are counted per user id, which is the instance's own only where
	// root gives it one.
	if !pidsHeld && os.Getuid() == 0 {
		c.ProcessesHeld = MaxProcesses
	}
	c.TmpMiB = 1024
	if s.MemoryMiB > 0 {
		c.TmpMiB = max(s.MemoryMiB/4, 64)
	}
	return c
}

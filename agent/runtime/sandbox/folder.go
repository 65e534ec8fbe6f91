package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"berth/agent/runtime"
	"berth/agent/runtime/jail"
)

// A node's folder:
//
//	lock                       held by the agent
//	bin/HASH/berth             the program that shims and instances run
//	trash/                     instances on their way out
//	instances/ID/instance.json its user id
//	instances/ID/disk/         /workspace
//	instances/ID/root/         where its root is mounted (in its own namespace)
//	instances/ID/runs/N/       one run: see package shim
//
// The folders above a disk are passable (0711) but not readable: a plain process
// of the last rung must reach its own disk and find no other.

// keptRuns is how many runs of an instance stay readable.
const keptRuns = 5

func (d *Driver) instanceDir(id string) string { return filepath.Join(d.conf.Dir, "instances", id) }

func (d *Driver) runDir(id string, run int) string {
	return filepath.Join(d.instanceDir(id), "runs", strconv.Itoa(run))
}

// instances lists the ids on disk, in order.
func (d *Driver) instances() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(d.conf.Dir, "instances"))
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, e := range entries {
		if runtime.ValidInstance(e.Name()) {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}

// runs lists an instance's runs on disk, oldest first.
func (d *Driver) runs(id string) ([]int, error) {
	if !runtime.ValidInstance(id) {
		return nil, nil
	}
	entries, err := os.ReadDir(filepath.Join(d.instanceDir(id), "runs"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var runs []int
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && n > 0 {
			runs = append(runs, n)
		}
	}
	slices.Sort(runs)
	return runs, nil
}

// newestRun is 0 if the instance is unknown.
func (d *Driver) newestRun(id string) (int, error) {
	runs, err := d.runs(id)
	if err != nil || len(runs) == 0 {
		return 0, err
	}
	return runs[len(runs)-1], nil
}

// knownRun returns the folder of a run (0: the newest), or runtime.ErrNotFound.
func (d *Driver) knownRun(id string, run int) (string, error) {
	runs, err := d.runs(id)
	switch {
	case err != nil:
		return "", err
	case len(runs) == 0:
		return "", fmt.Errorf("%s: %w", id, runtime.ErrNotFound)
	case run == 0:
		run = runs[len(runs)-1]
	case !slices.Contains(runs, run):
		return "", fmt.Errorf("%s, run %d: %w", id, run, runtime.ErrNotFound)
	}
	return d.runDir(id, run), nil
}

func (d *Driver) dropRuns(id string, newest int) error {
	runs, err := d.runs(id)
	if err != nil {
		return err
	}
	for _, n := range runs[:max(0, len(runs)-keptRuns)] {
		if n != newest {
			if err := os.RemoveAll(d.runDir(id, n)); err != nil {
				return err
			}
		}
	}
	return nil
}

// identity is instance.json.
type identity struct {
	UID int `json:"uid"`
}

// prepare makes an instance's folder with a user id of its own, or finds it.
func (d *Driver) prepare(id string) (uid int, err error) {
	d.mu.Lock() // ids are given out one at a time
	defer d.mu.Unlock()
	dir := d.instanceDir(id)
	if have, err := readIdentity(dir); err == nil {
		return have.UID, layOut(dir, have.UID)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	if uid, err = d.freeUID(); err != nil {
		return 0, err
	}
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return 0, err
	}
	b, err := json.Marshal(identity{UID: uid})
	if err != nil {
		return 0, err
	}
	file := filepath.Join(dir, "instance.json")
	if err := os.WriteFile(file+".new", b, 0o600); err != nil {
		return 0, err
	}
	if err := os.Rename(file+".new", file); err != nil {
		return 0, err
	}
	return uid, layOut(dir, uid)
}

func readIdentity(dir string) (i identity, err error) {
	b, err := os.ReadFile(filepath.Join(dir, "instance.json"))
	if err != nil {
		return i, err
	}
	return i, json.Unmarshal(b, &i)
}

func (d *Driver) freeUID() (int, error) {
	ids, err := d.instances()
	if err != nil {
		return 0, err
	}
	used := map[int]bool{}
	for _, id := range ids {
		if have, err := readIdentity(d.instanceDir(id)); err == nil {
			used[have.UID] = true
		}
	}
	for n := range uidsPerNode - 1 {
		if uid := d.uidBase + n; !used[uid] {
			return uid, nil
		}
	}
	return 0, fmt.Errorf("this node holds %d instances already: remove stopped ones", len(used))
}

// layOut makes the folders of an instance. The disk is its user's alone.
func layOut(dir string, uid int) error {
	for name, mode := range map[string]os.FileMode{".": 0o711, "disk": 0o700, "root": 0o755, "runs": 0o700} {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(p, mode); err != nil {
			return err
		}
		if name != "disk" || os.Getuid() == 0 {
			if err := os.Chmod(p, mode); err != nil { // whatever the umask made of it
				return err
			}
		}
	}
	if os.Getuid() != 0 {
		return nil
	}
	return os.Lchown(filepath.Join(dir, "disk"), uid, uid)
}

// jail says what the place of a run is made of.
func (d *Driver) jail(dir string, uid int, rung runtime.Rung, s runtime.Spec) jail.Config {
	return jail.Config{
		Rung: rung, Instance: s.Instance, Hostname: hostname(s), UID: uid, Exe: d.exe,
		Root: filepath.Join(dir, "root"), Disk: filepath.Join(dir, "disk"), Mask: append([]string{d.conf.Dir}, d.conf.Mask...),
		Env: s.Env, Command: s.Command, StartupScript: s.StartupScript, Devices: s.Devices, SharedNet: s.SharedNet,
	}
}

// groupName is unique on the host: nodes share its control groups.
func (d *Driver) groupName(id string, run int) string {
	h := fnv.New32a()
	h.Write([]byte(d.conf.Dir))
	return fmt.Sprintf("%08x-%s-%d", h.Sum32(), id, run)
}

// hostname makes a renter's name for his instance into one a host may have.
func hostname(s runtime.Spec) string {
	var b strings.Builder
	for _, r := range strings.ToLower(s.Name) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0:
			b.WriteByte('-')
		}
	}
	name := b.String()
	if name == "" {
		name = "instance"
	}
	return strings.Trim(name[:min(len(name), 63)], "-")
}

// installSelf copies the program to a place that stays: bin/HASH/berth.
func installSelf(dir, self string) (string, error) {
	if self == "" {
		self = "/proc/self/exe" // right even if the file was replaced meanwhile
	}
	in, err := os.Open(self)
	if err != nil {
		return "", err
	}
	defer in.Close()
	h := sha256.New()
	if _, err := io.Copy(h, in); err != nil {
		return "", err
	}
	folder := filepath.Join(dir, "bin", hex.EncodeToString(h.Sum(nil))[:16])
	path := filepath.Join(folder, "berth")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	out, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(out, in)
	err = errors.Join(err, out.Chmod(0o755), out.Sync(), out.Close())
	for _, d := range []string{filepath.Join(dir, "bin"), folder} {
		err = errors.Join(err, os.Chmod(d, 0o755))
	}
	if err != nil {
		return "", err
	}
	return path, os.Rename(path+".new", path)
}

// dropPrograms removes copies that no living shim came from.
func dropPrograms(dir string, inUse map[string]bool) error {
	entries, err := os.ReadDir(filepath.Join(dir, "bin"))
	if err != nil {
		return err
	}
	for _, e := range entries {
		folder := filepath.Join(dir, "bin", e.Name())
		if !inUse[filepath.Join(folder, "berth")] {
			if err := os.RemoveAll(folder); err != nil {
				return err
			}
		}
	}
	return nil
}

// erase removes a folder with whatever rights a renter left on what is in it.
func erase(path string) error {
	err := os.RemoveAll(path)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	// Only an agent without root gets here. It owns the folders, so it can open them.
	filepath.WalkDir(path, func(p string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() {
			os.Chmod(p, 0o700)
		}
		return nil
	})
	return os.RemoveAll(path)
}

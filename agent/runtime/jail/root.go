package jail

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"berth/agent/runtime"

	"golang.org/x/sys/unix"
)

// sharedTrees are the host's folders shown read-only: programs, never state. The
// rest of the host (/home, /root, /run, /var, the agent's data) is not in the
// instance's view at all.
var sharedTrees = []string{"/usr", "/opt", "/nix"}

// binTrees are links into /usr on most systems and folders of their own on some.
var binTrees = []string{"/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32"}

// etcShown is what of /etc programs need to start and to speak TLS. A list of what
// may be seen, since hosts keep world-readable secrets in /etc too.
var etcShown = []string{
	"alternatives", "bash_completion.d", "ca-certificates", "ca-certificates.conf", "crypto-policies", "debian_version",
	"environment.d", "fonts", "gai.conf", "host.conf", "inputrc", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias",
	"localtime", "magic", "mime.types", "nanorc", "nsswitch.conf", "os-release", "pki", "protocols", "python3", "R",
	"redhat-release", "services", "shells", "ssl", "terminfo", "timezone", "vim",
}

// maskedProc are files of a fresh /proc that say things about the host, or do them.
var maskedProc = []string{"kcore", "keys", "key-users", "kmsg", "sched_debug", "sysrq-trigger", "timer_list"}

// buildRoot makes the instance's view on a small tmpfs and moves into it. What it
// mounts lives in the init's mount namespace and goes away with it.
func buildRoot(c Config) error {
	// Nothing mounted from here on may show on the host.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts private: %w", err)
	}
	unix.Umask(0o022)
	b := &builder{root: c.Root, conf: c}
	b.tmpfs("", "size=16m,mode=0755", 0)
	for _, dir := range []string{
		"proc", "dev", "dev/pts", "dev/shm", "dev/berth", "dev/berth/gpu", "etc", "home", "mnt", "root", "run", "sys", "tmp",
		"var", "var/lib", "var/log", "workspace", ".berth", ".berth/bin",
	} {
		b.dir(dir)
	}
	b.link("/tmp", "var/tmp")
	b.link("/run", "var/run")
	b.link("/workspace", "home/renter")
	b.trees()
	b.etc()
	b.devices()
	b.tmpfs("tmp", fmt.Sprintf("size=%dm,mode=1777", max(c.TmpMiB, 16)), 0)
	b.tmpfs("dev/shm", fmt.Sprintf("size=%dm,mode=1777", max(c.TmpMiB, 16)), unix.MS_NOEXEC)
	b.tmpfs("run", "size=16m,mode=0755", unix.MS_NOEXEC)
	b.dir("run/berth")
	b.own("run/berth")
	b.bind(c.Disk, "workspace", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	b.berth()
	b.proc()
	if b.err != nil {
		return b.err
	}
	if err := os.Chdir(c.Root); err != nil {
		return err
	}
	// The new root goes on top of the old one in the same place, then the old one
	// is let go: no path leads back.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the host's root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	// The tmpfs that carries it all is small, and shared by what needs room.
	return readOnly("/", 0)
}

// builder remembers the first error, so that a view reads as a list.
type builder struct {
	root string
	conf Config
	err  error
}

func (b *builder) at(rel string) string { return filepath.Join(b.root, rel) }

func (b *builder) do(what string, f func() error) {
	if b.err != nil {
		return
	}
	if err := f(); err != nil {
		b.err = fmt.Errorf("%s: %w", what, err)
	}
}

func (b *builder) dir(rel string) {
	b.do(rel, func() error { return os.MkdirAll(b.at(rel), 0o755) })
}

func (b *builder) link(to, rel string) {
	b.do(rel, func() error { return os.Symlink(to, b.at(rel)) })
}

func (b *builder) file(rel, text string) {
	b.do(rel, func() error { return os.WriteFile(b.at(rel), []byte(text), 0o644) })
}

// own gives a file to the renter. In a user namespace it is his already.
func (b *builder) own(rel string) {
	if os.Getuid() == 0 {
		b.do(rel, func() error { return os.Lchown(b.at(rel), b.conf.UID, b.conf.UID) })
	}
}

func (b *builder) tmpfs(rel, opts string, flags uintptr) {
	b.do("tmpfs "+rel, func() error {
		return unix.Mount("tmpfs", b.at(rel), "tmpfs", flags|unix.MS_NOSUID|unix.MS_NODEV, opts)
	})
}

// bind shows src of the host at rel, with whatever is mounted below it. attr are
// MOUNT_ATTR_… to add, on everything below too.
func (b *builder) bind(src, rel string, attr uint64) {
	b.do("show "+src, func() error {
		if err := unix.Mount(src, b.at(rel), "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return err
		}
		if attr == 0 {
			return nil
		}
		return restrict(b.at(rel), attr)
	})
}

// bindFile is bind on a file that does not exist yet.
func (b *builder) bindFile(src, rel string, attr uint64) {
	b.file(rel, "")
	b.bind(src, rel, attr)
}

const readOnlyTree = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV

func (b *builder) trees() {
	for _, top := range sharedTrees {
		src, err := filepath.EvalSymlinks(top)
		if err != nil {
			continue // not every host has /opt or /nix
		}
		b.dir(top)
		b.bind(src, top, readOnlyTree)
		for _, hidden := range b.conf.Mask {
			rel, err := filepath.Rel(src, hidden)
			if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
				continue
			}
			b.tmpfs(filepath.Join(top, rel), "size=4k,mode=0555", unix.MS_RDONLY)
		}
	}
	for _, top := range binTrees {
		if to, err := os.Readlink(top); err == nil {
			b.link(to, top)
		} else if _, err := os.Stat(top); err == nil {
			b.dir(top)
			b.bind(top, top, readOnlyTree)
		}
	}
}

func (b *builder) etc() {
	for _, name := range etcShown {
		src, err := filepath.EvalSymlinks(filepath.Join("/etc", name))
		if err != nil {
			continue
		}
		rel := filepath.Join("etc", name)
		if st, err := os.Stat(src); err == nil && st.IsDir() {
			b.dir(rel)
			b.bind(src, rel, readOnlyTree)
		} else if text, err := os.ReadFile(src); err == nil {
			b.file(rel, string(text))
		}
	}
	shell := Shell()
	b.file("etc/passwd", fmt.Sprintf("root:x:0:0:root:/root:/usr/sbin/nologin\nrenter:x:%d:%d::/workspace:%s\nnobody:x:65534:65534::/:/usr/sbin/nologin\n", b.conf.UID, b.conf.UID, shell))
	b.file("etc/group", fmt.Sprintf("root:x:0:\ntty:x:5:\nrenter:x:%d:\nnogroup:x:65534:\n", b.conf.UID))
	b.file("etc/hostname", b.conf.Hostname+"\n")
	b.file("etc/hosts", "127.0.0.1\tlocalhost "+b.conf.Hostname+"\n::1\tlocalhost\n")
	if text, err := os.ReadFile("/etc/resolv.conf"); err == nil && b.conf.SharedNet {
		b.file("etc/resolv.conf", string(text))
	}
	b.link("/proc/self/mounts", "etc/mtab")
	// The host's profile would set PATH anew and lose berth-load.
	b.file("etc/profile", profile)
	b.file("etc/bash.bashrc", bashrc)
	b.file("etc/bashrc", bashrc)
}

const profile = "# Berth\n[ -z \"$BASH\" ] || [ -z \"$PS1\" ] || . /etc/bash.bashrc\n"

const bashrc = `# Berth: for interactive shells
[ -z "$PS1" ] && return
PS1='\[\e[1m\]\u@\h\[\e[0m\]:\w\$ '
shopt -s checkwinsize
alias ls='ls --color=auto' ll='ls -l'
`

func (b *builder) devices() {
	b.tmpfs("dev", "size=64k,mode=0755", unix.MS_NOEXEC)
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		b.bindFile("/dev/"+name, "dev/"+name, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
	}
	for name, to := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx"} {
		b.link(to, "dev/"+name)
	}
	for _, dir := range []string{"dev/pts", "dev/shm", "dev/berth", "dev/berth/gpu"} {
		b.dir(dir)
	}
	opts := "newinstance,ptmxmode=0666,mode=0620"
	if b.conf.Rung == runtime.RungRoot {
		opts += ",gid=5" // in a user namespace that group does not exist
	}
	b.do("dev/pts", func() error {
		return unix.Mount("devpts", b.at("dev/pts"), "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, opts)
	})
	shown := map[string]bool{}
	for _, d := range b.conf.Devices {
		b.grant(d, filepath.Join("dev/berth/gpu", d.UUID), true)
		for _, node := range d.Nodes {
			if _, err := os.Stat(node); err == nil && !shown[node] {
				shown[node] = true
				b.dir(filepath.Dir(node))
				b.bindFile(node, node, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
			}
		}
	}
}

// grant shows one device, or nothing if its node is gone: the probe then says so.
func (b *builder) grant(d runtime.DeviceGrant, rel string, bind bool) {
	if d.Node == "" {
		b.do(rel, func() error {
			text, err := json.Marshal(d)
			if err != nil {
				return err
			}
			return os.WriteFile(b.at(rel), append(text, '\n'), 0o444)
		})
		return
	}
	if _, err := os.Stat(d.Node); err != nil {
		return
	}
	if bind {
		b.bindFile(d.Node, rel, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
	} else {
		b.link(d.Node, rel)
	}
}

// berth puts this program inside, under the names that renters call.
func (b *builder) berth() {
	b.bindFile(b.conf.Exe, ".berth/bin/berth", readOnlyTree)
	b.link("berth", ".berth/bin/berth-load")
	b.link("berth", ".berth/bin/berth-smi")
	b.list(".berth/devices.json")
}

func (b *builder) list(rel string) {
	b.do(rel, func() error {
		text, err := json.MarshalIndent(deviceList{Simulated: simulated(b.conf.Devices), Devices: b.conf.Devices}, "", "  ")
		if err != nil {
			return err
		}
		return os.WriteFile(b.at(rel), append(text, '\n'), 0o644)
	})
}

// simulated reports whether no kernel driver is behind the devices.
func simulated(devices []runtime.DeviceGrant) bool {
	return !slices.ContainsFunc(devices, func(d runtime.DeviceGrant) bool { return len(d.Nodes) > 0 })
}

func (b *builder) proc() {
	b.do("proc", func() error {
		return unix.Mount("proc", b.at("proc"), "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	})
	for _, name := range maskedProc {
		if _, err := os.Lstat(b.at("proc/" + name)); err == nil {
			b.bind("/dev/null", "proc/"+name, 0)
		}
	}
	for _, name := range []string{"sys", "irq", "bus", "fs"} {
		rel := "proc/" + name
		if _, err := os.Lstat(b.at(rel)); err == nil {
			b.bind(b.at(rel), rel, unix.MOUNT_ATTR_RDONLY)
		}
	}
}

// buildFolders lays out what an unisolated run needs beside its disk.
func buildFolders(c Config) error {
	if err := os.RemoveAll(c.Root); err != nil {
		return err
	}
	unix.Umask(0o022)
	b := &builder{root: c.Root, conf: c}
	for _, dir := range []string{".", "bin", "gpu", "tmp"} {
		b.dir(dir)
	}
	b.own("tmp")
	for _, d := range c.Devices {
		b.grant(d, filepath.Join("gpu", d.UUID), false)
	}
	for _, name := range []string{"berth", "berth-load", "berth-smi"} {
		b.link(c.Exe, filepath.Join("bin", name))
	}
	b.list("devices.json")
	return b.err
}

// Shell returns the best shell this system has.
func Shell() string {
	for _, sh := range []string{"/bin/bash", "/usr/bin/bash"} {
		if _, err := os.Stat(sh); err == nil {
			return sh
		}
	}
	return "/bin/sh"
}

// restrict adds attributes to a mount and all below it. Unlike a remount,
// mount_setattr (Linux 5.12) keeps the flags that a user namespace may not drop.
func restrict(path string, attr uint64) error {
	err := unix.MountSetattr(unix.AT_FDCWD, path, unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attr})
	if !errors.Is(err, unix.ENOSYS) {
		return err
	}
	return remountBelow(path, attr)
}

func readOnly(path string, more uint64) error {
	err := unix.MountSetattr(unix.AT_FDCWD, path, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | more})
	if !errors.Is(err, unix.ENOSYS) {
		return err
	}
	return remount(path, unix.MOUNT_ATTR_RDONLY|more)
}

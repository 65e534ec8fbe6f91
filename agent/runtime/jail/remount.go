package jail

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// On kernels before 5.12 every mount is remounted on its own, with the flags it
// has repeated: leaving one out is refused inside a user namespace.

func remountBelow(path string, attr uint64) error {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	defer f.Close()
	points, err := mountPoints(f)
	if err != nil {
		return err
	}
	for _, p := range points {
		if p != path && !strings.HasPrefix(p, path+"/") {
			continue
		}
		if err := remount(p, attr); err != nil {
			return fmt.Errorf("restrict %s: %w", p, err)
		}
	}
	return nil
}

// mountPoints reads field 5 of each line of mountinfo, its octal escapes undone.
func mountPoints(r io.Reader) ([]string, error) {
	var out []string
	s := bufio.NewScanner(r)
	for s.Scan() {
		f := strings.Fields(s.Text())
		if len(f) > 4 {
			out = append(out, unescape(f[4]))
		}
	}
	return out, s.Err()
}

func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// attrFlags pairs the new attributes with mount(2)'s flags, whose values statfs
// also uses for what a mount has.
var attrFlags = []struct {
	attr uint64
	flag uintptr
}{
	{unix.MOUNT_ATTR_RDONLY, unix.MS_RDONLY},
	{unix.MOUNT_ATTR_NOSUID, unix.MS_NOSUID},
	{unix.MOUNT_ATTR_NODEV, unix.MS_NODEV},
	{unix.MOUNT_ATTR_NOEXEC, unix.MS_NOEXEC},
	{unix.MOUNT_ATTR_NOATIME, unix.MS_NOATIME},
	{unix.MOUNT_ATTR_NODIRATIME, unix.MS_NODIRATIME},
}

func remount(path string, attr uint64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return err
	}
	flags := uintptr(unix.MS_BIND | unix.MS_REMOUNT)
	for _, f := range attrFlags {
		if attr&f.attr != 0 || uintptr(st.Flags)&f.flag != 0 {
			flags |= f.flag
		}
	}
	if st.Flags&unix.ST_RELATIME != 0 {
		flags |= unix.MS_RELATIME
	}
	return unix.Mount("", path, "", flags, "")
}

package runtime

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// errEnough ends a walk that has seen enough.
var errEnough = errors.New("enough")

// DiskBytes is how many bytes of the host's disk the files under dir take. It
// stops counting above enough (0: never). What changes meanwhile is counted as it
// is met; links are not followed, and nothing outside dir is looked at, whatever
// is renamed under the walk.
func DiskBytes(dir string, enough int64) (int64, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	type file struct{ device, inode uint64 }
	linked := map[file]bool{} // met under another name
	total := int64(0)
	err = fs.WalkDir(root.FS(), ".", func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // it is gone, or closed to us: then it is not counted
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return nil
		}
		if f := (file{st.Dev, st.Ino}); st.Nlink > 1 && !d.IsDir() {
			if linked[f] {
				return nil
			}
			linked[f] = true
		}
		total += st.Blocks * 512
		if enough > 0 && total > enough {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return total, err
}

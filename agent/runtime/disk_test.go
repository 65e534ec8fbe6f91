package runtime

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDiskBytes(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	empty, err := DiskBytes(dir, 0)
	must(err)
	must(os.WriteFile(filepath.Join(outside, "big"), make([]byte, 8<<20), 0o600))
	must(os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700))
	must(os.WriteFile(filepath.Join(dir, "a", "one"), make([]byte, 1<<20), 0o600))
	must(os.WriteFile(filepath.Join(dir, "a", "b", "two"), make([]byte, 1<<20), 0o600))
	must(os.Link(filepath.Join(dir, "a", "one"), filepath.Join(dir, "again")))
	must(os.Symlink(outside, filepath.Join(dir, "away")))
	hole, err := os.Create(filepath.Join(dir, "hole"))
	must(err)
	must(hole.Truncate(1 << 30))
	must(hole.Close())
	got, err := DiskBytes(dir, 0)
	must(err)
	if got -= empty; got < 2<<20 || got > 2<<20+64<<10 {
		t.Errorf("%d bytes, want 2 MiB and what folders take", got)
	}
	if got, err := DiskBytes(dir, 1<<20); err != nil || got <= 1<<20 {
		t.Errorf("above enough: %d, %v", got, err)
	}
	if _, err := DiskBytes(filepath.Join(dir, "none"), 0); err == nil {
		t.Error("a missing folder is no error")
	}
}

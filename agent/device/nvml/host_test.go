//go:build nvml && cgo

package nvml

import (
	"io"
	"path/filepath"
	"slices"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/gpus"
)

// Cards on one switch are one group, those joined to each other another.
func TestLinks(t *testing.T) {
	r := newRig(t, slices.Repeat([]gpus.Config{gpus.A100_SXM4_40GB}, 6)...)
	toSwitch := map[int]nvml.PciInfo{0: {Bus: 0xc0}, 1: {Bus: 0xc1}}
	to := func(i int) map[int]nvml.PciInfo { return map[int]nvml.PciInfo{3: {Bus: uint32(0x10 + i)}} }
	for i, links := range []map[int]nvml.PciInfo{toSwitch, to(2), to(1), toSwitch, nil, {0: {Bus: 0xee}}} {
		r.links[r.dev(i).UUID] = links
	}
	d := r.open(t, t.TempDir(), io.Discard)
	var groups []int
	for _, c := range inventory(t, d) {
		groups = append(groups, c.LinkGroup)
	}
	if want := []int{1, 2, 2, 1, 0, 0}; !slices.Equal(groups, want) {
		t.Errorf("groups %v, want %v", groups, want)
	}
}

func TestCapabilities(t *testing.T) {
	h := host{proc: t.TempDir()}
	if _, err := h.capabilities(); err == nil {
		t.Error("no file, and yet")
	}
	write(t, filepath.Join(h.proc, "driver/nvidia-caps/mig-minors"), "config 1\nmonitor 2\ngpu0/gi1/access 12\ngpu0/gi1/ci0/access 13\ngpu1/gi1/access 147\ngpu1/gi1/ci0/access x\n")
	caps, err := h.capabilities()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := caps.nodes(0, 1, 0); err != nil || !slices.Equal(got, []string{"/dev/nvidia-caps/nvidia-cap12", "/dev/nvidia-caps/nvidia-cap13"}) {
		t.Errorf("%q, %v", got, err)
	}
	for _, gi := range []int{1, 2} {
		if got, err := caps.nodes(1, gi, 0); err == nil {
			t.Errorf("of a slice without such nodes: %q", got)
		}
	}
}

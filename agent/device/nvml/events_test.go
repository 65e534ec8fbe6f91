//go:build nvml && cgo

package nvml

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/gpus"

	"berth/agent/device"
)

func TestFaults(t *testing.T) {
	r := newRig(t, gpus.A100_SXM4_40GB, gpus.A100_SXM4_40GB)
	dir := t.TempDir()
	var log bytes.Buffer
	var logging sync.Mutex
	d := r.open(t, dir, writerFunc(func(p []byte) (int, error) {
		logging.Lock()
		defer logging.Unlock()
		return log.Write(p)
	}))
	logged := func(text string) bool {
		logging.Lock()
		defer logging.Unlock()
		return strings.Contains(log.String(), text)
	}
	s := create(t, d, r.dev(0).UUID, "1g.5gb", 0)
	xid := func(i int, number uint64, gi, ci uint32) {
		r.tell(nvml.EventData{Device: r.dev(i), EventType: nvml.EventTypeXidCriticalError, EventData: number, GpuInstanceId: gi, ComputeInstanceId: ci})
		if got := inventory(t, d)[i].Xid; got != int(number) {
			t.Errorf("Xid %d is shown as %d", number, got)
		}
	}
	xid(0, 94, uint32(s.GPUInstance), 0) // a program's own
	if h := inventory(t, d)[0].Health; h != device.HealthOK {
		t.Errorf("health %q after Xid 94", h)
	}
	if !logged("slice="+s.UUID) || !logged("gpu_instance=0") {
		t.Errorf("logged %s", log.String())
	}
	xid(0, 79, none, none)
	sick := func(d *Driver) string {
		cards := inventory(t, d)
		if cards[1].Health != device.HealthOK {
			t.Errorf("the card beside it: %q", cards[1].Health)
		}
		return cards[0].Health
	}
	if h := sick(d); !strings.HasPrefix(h, "Xid 79, the GPU has fallen off the bus") || !strings.Contains(h, "since ") {
		t.Errorf("health %q", h)
	}
	if h := sick(r.open(t, dir, io.Discard)); !strings.HasPrefix(h, "Xid 79") {
		t.Errorf("an agent started anew takes it for %q", h)
	}
	for _, want := range []bool{true, false} {
		if mended, err := Mend(dir, r.dev(0).UUID); err != nil || mended != want {
			t.Errorf("mended %v, %v", mended, err)
		}
	}
	if h := sick(d); h != device.HealthOK {
		t.Errorf("mended: %q", h)
	}

	// A restart of the host mends all but a row that could not be remapped.
	for i, number := range []int{95, 64} {
		if err := d.faults.add(r.dev(i).UUID, Fault{Xid: number, At: time.Unix(1e9, 0)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.faults.change(func(all map[string]Fault) {
		for uuid, f := range all {
			f.BootID = "an earlier one"
			all[uuid] = f
		}
	}); err != nil {
		t.Fatal(err)
	}
	cards := inventory(t, r.open(t, dir, io.Discard))
	if cards[0].Health != device.HealthOK || !strings.HasPrefix(cards[1].Health, "Xid 64") {
		t.Errorf("after a restart of the host: %q, %q", cards[0].Health, cards[1].Health)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

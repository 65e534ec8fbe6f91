//go:build nvml && cgo

package nvml

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/gpus"

	"berth/agent/device"
)

// A call that does not return costs its card, and after a while its place on sale.
func TestHangingDriver(t *testing.T) {
	r := newRig(t, gpus.A100_SXM4_40GB, gpus.A100_SXM4_40GB)
	d := r.open(t, t.TempDir(), io.Discard)
	card, well := r.dev(0).UUID, r.dev(1).UUID
	inventory(t, d)
	release := r.hang("CreateGpuInstance")
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := d.Create(ctx, card, "1g.5gb", 0)
		failed <- err
	}()
	for r.count("CreateGpuInstance 0@0+1") == 0 {
		if cards := inventory(t, d); cards[1].Health != device.HealthOK {
			t.Fatalf("%+v", cards)
		}
	}
	for inventory(t, d)[0].Health == device.HealthOK { // until it has hung for long enough
	}
	cards := inventory(t, d)
	if !strings.Contains(cards[0].Health, "does not answer") || cards[1].Health != device.HealthOK {
		t.Errorf("%+v", cards)
	}
	if _, err := d.Sample(t.Context(), card); !errors.Is(err, errSilent) {
		t.Errorf("sample: %v", err)
	}
	if got, err := d.Sample(t.Context(), well); err != nil || got.PowerW == nil {
		t.Errorf("sample of the other: %+v, %v", got, err)
	}
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("create: %v", err)
	}
	release() // and now it makes the slice after all, which nobody waits for
	if err := d.Undivide(t.Context(), card); err != nil {
		t.Error(err)
	}
	wantCalls(t, r, "SetMigMode 1", "CreateGpuInstance 0@0+1", "CreateComputeInstance of 1 slices", "ComputeInstance.Destroy", "GpuInstance.Destroy", "SetMigMode 0")
	if c := inventory(t, d)[0]; c.MIG || len(c.Slices) > 0 || c.Health != device.HealthOK {
		t.Errorf("%+v", c)
	}
}

// Calls for one card come one after the other, whoever asks.
func TestOneAfterTheOther(t *testing.T) {
	r := newRig(t, hopper())
	d := r.open(t, t.TempDir(), io.Discard)
	card := r.dev(0).UUID
	d.patience = time.Minute
	var all sync.WaitGroup
	for start := range 7 {
		all.Go(func() {
			s, err := d.Create(t.Context(), card, "1g.5gb", start)
			if err == nil {
				_, err = d.Sample(t.Context(), s.UUID)
			}
			if err == nil {
				err = d.Destroy(t.Context(), s.UUID)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if c := inventory(t, d)[0]; c.MIG || len(c.Slices) > 0 {
		t.Errorf("%+v", c)
	}
}

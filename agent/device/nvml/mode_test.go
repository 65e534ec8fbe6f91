//go:build nvml && cgo

package nvml

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/gpus"

	"berth/agent/device"
)

// The mode's second answer counts, and it is read back.
func TestMode(t *testing.T) {
	for name, tc := range map[string]struct {
		activation nvml.Return
		want       error
		health     string
		calls      []string
	}{
		"held":             {nvml.ERROR_IN_USE, device.ErrInUse, device.HealthOK, []string{"SetMigMode 1", "SetMigMode 0"}},
		"owes a reset":     {nvml.ERROR_RESET_REQUIRED, device.ErrResetRequired, "it needs a reset: MIG mode is off and will be on", []string{"SetMigMode 1"}},
		"nobody knows why": {nvml.ERROR_UNKNOWN, nil, device.HealthOK, []string{"SetMigMode 1", "SetMigMode 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, gpus.A100_SXM4_40GB)
			d := r.open(t, t.TempDir(), io.Discard)
			r.answer("activation", tc.activation)
			_, err := d.Create(t.Context(), r.dev(0).UUID, "1g.5gb", 0)
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
			wantCalls(t, r, tc.calls...)
			if c := inventory(t, d)[0]; c.MIG || c.Health != tc.health {
				t.Errorf("%+v, want health %q", c, tc.health)
			}
			if tc.want == device.ErrResetRequired { // and it is not asked again and again
				if _, err := d.Create(t.Context(), r.dev(0).UUID, "1g.5gb", 0); !errors.Is(err, device.ErrResetRequired) {
					t.Error(err)
				}
				wantCalls(t, r)
				r.dev(0).MigMode = nvml.DEVICE_MIG_ENABLE // the operator's reset
				if c := inventory(t, d)[0]; c.Health != device.HealthOK || !c.MIG {
					t.Errorf("after the reset %+v", c)
				}
				create(t, d, r.dev(0).UUID, "1g.5gb", 0)
			}
		})
	}
	t.Run("a process has the card", func(t *testing.T) {
		r := newRig(t, gpus.A100_SXM4_40GB)
		d := r.open(t, t.TempDir(), io.Discard)
		r.hold(r.dev(0).UUID, 4711)
		_, err := d.Create(t.Context(), r.dev(0).UUID, "1g.5gb", 0)
		if !errors.Is(err, device.ErrInUse) || !strings.Contains(err.Error(), "by process 4711") {
			t.Error(err)
		}
		wantCalls(t, r)
	})
	t.Run("it ends with the last slice, or later", func(t *testing.T) {
		r := newRig(t, hopper())
		d := r.open(t, t.TempDir(), io.Discard)
		card := r.dev(0).UUID
		s := create(t, d, card, "1g.5gb", 0)
		if err := d.Undivide(t.Context(), card); !errors.Is(err, device.ErrInUse) {
			t.Errorf("with a slice: %v", err)
		}
		r.answer("activation", nvml.ERROR_IN_USE)
		if err := d.Destroy(t.Context(), s.UUID); err != nil { // the slice is gone: that is success
			t.Error(err)
		}
		if c := inventory(t, d)[0]; !c.MIG || len(c.Slices) > 0 || c.Health != device.HealthOK {
			t.Errorf("%+v", c)
		}
		r.answer("activation", nvml.ERROR_IN_USE)
		if err := d.Undivide(t.Context(), card); !errors.Is(err, device.ErrInUse) {
			t.Errorf("held: %v", err)
		}
		for range 2 {
			if err := d.Undivide(t.Context(), card); err != nil {
				t.Error(err)
			}
		}
		if c := inventory(t, d)[0]; c.MIG {
			t.Errorf("%+v", c)
		}
		if err := d.Undivide(t.Context(), "GPU-none"); !errors.Is(err, device.ErrNotFound) {
			t.Error(err)
		}
	})
}

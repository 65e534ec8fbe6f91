//go:build nvml && cgo

package nvml

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"berth/agent/device"
	"berth/agent/device/devicetest"
	"berth/gpu"
)

// The tests named Hardware need real cards; docs/hardware.md says what each shows.

// cardVariable names the card that TestHardwareChanges may divide, by UUID.
const cardVariable = "BERTH_HARDWARE_CARD"

// holderVariable is a command that computes on a card or slice until it is killed;
// CUDA_VISIBLE_DEVICES tells it where. It prints a line when it holds it.
const holderVariable = "BERTH_HARDWARE_HOLDER"

func hardware(t *testing.T) *Driver {
	t.Helper()
	d, err := New(t.TempDir(), slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Skip("needs real cards: ", err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// TestHardwareReads changes nothing.
func TestHardwareReads(t *testing.T) {
	d := hardware(t)
	for _, c := range inventory(t, d) {
		t.Logf("%+v", c)
		if c.Health != device.HealthOK {
			t.Errorf("%s: %s", c.UUID, c.Health)
		}
		for _, node := range c.Nodes {
			if _, err := os.Stat(node); err != nil {
				t.Errorf("%s: a node that a program needs: %v", c.UUID, err)
			}
		}
		got, err := d.Sample(t.Context(), c.UUID)
		if err != nil || got.MemoryMiB == nil || got.TemperatureC == nil {
			t.Errorf("%s reads %+v, %v", c.UUID, got, err)
		}
		table, err := d.Profiles(t.Context(), c.UUID)
		if err != nil {
			t.Errorf("%s: table: %v", c.UUID, err)
		}
		t.Logf("%s: table %+v", c.UUID, table)
		model, err := gpu.Lookup(c.Model)
		if err != nil {
			t.Errorf("%q is a card that Berth does not know", c.Name)
			continue
		}
		for _, line := range model.Differences(table) {
			t.Logf("%s (%s): %s", c.UUID, c.Model, line)
		}
		for _, s := range c.Slices {
			got, err := d.Sample(t.Context(), s.UUID)
			t.Logf("%+v reads %+v, %v", s, got, err)
		}
	}
}

// TestHardwareChanges runs the conformance suite on one card, which must be idle
// and undivided: it is divided and undivided many times.
func TestHardwareChanges(t *testing.T) {
	uuid := os.Getenv(cardVariable)
	if uuid == "" {
		t.Skipf("divides a card: name one that is idle, %s=GPU-…", cardVariable)
	}
	if d := hardware(t); !slices.ContainsFunc(inventory(t, d), func(c device.Card) bool {
		return c.UUID == uuid && c.Health == device.HealthOK && len(c.Slices) == 0 && len(c.Processes) == 0
	}) {
		t.Fatalf("there is no idle and undivided card %s", uuid)
	}
	devicetest.Run(t, func(t *testing.T) devicetest.Subject {
		one := only{hardware(t), uuid}
		return devicetest.Subject{
			Driver: one,
			Occupy: func(t *testing.T, uuid string) func() { return occupy(t, uuid) },
			Reopen: func(t *testing.T) device.Driver { return only{hardware(t), uuid} },
		}
	})
}

// only shows one card, so that the suite cannot touch another.
type only struct {
	*Driver
	card string
}

func (o only) Inventory(ctx context.Context) ([]device.Card, error) {
	cards, err := o.Driver.Inventory(ctx)
	return slices.DeleteFunc(cards, func(c device.Card) bool { return c.UUID != o.card }), err
}

// occupy puts a process on a device, or skips the test where it cannot.
func occupy(t *testing.T, uuid string) (end func()) {
	t.Helper()
	words := strings.Fields(os.Getenv(holderVariable))
	if len(words) == 0 {
		t.Skipf("needs a program that computes: %s='./holder'", holderVariable)
	}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = append(os.Environ(), "CUDA_VISIBLE_DEVICES="+uuid)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end = func() {
		_ = cmd.Process.Kill() // it may have ended by itself
		_ = cmd.Wait()
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		end()
		t.Fatalf("%s ended before it held %s: %v", words[0], uuid, err)
	}
	return end
}

package jail

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/agent/runtime"
)

func TestParseStat(t *testing.T) {
	line := "42 (a) b (c)) S 7 42 42 0 -1 4194560 1 2 3 4 150 50 20 30 20 0 1 0 987654 1000 100 18446744073709551615 1 1 0"
	got, err := parseStat(42, []byte(line))
	if want := (Stat{PID: 42, Parent: 7, State: 'S', StartTicks: 987654, CPU: 2500 * time.Millisecond}); err != nil || got != want {
		t.Errorf("%+v %v, want %+v", got, err, want)
	}
	for _, bad := range []string{"", "1 (x", "1 (x) S 1"} {
		if _, err := parseStat(1, []byte(bad)); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	if s, err := ReadStat(os.Getpid()); err != nil || s.Parent != os.Getppid() || s.StartTicks == 0 || s.AnonBytes <= 0 {
		t.Errorf("this process: %+v %v", s, err)
	}
}

func TestMountPoints(t *testing.T) {
	const info = "22 1 0:21 / /proc rw - proc proc rw\n23 1 8:1 / /a\\040b\\134c ro,nosuid shared:1 - ext4 /dev/x rw\nshort\n"
	got, err := mountPoints(strings.NewReader(info))
	if want := []string{"/proc", `/a b\c`}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q %v, want %q", got, err, want)
	}
}

func TestParseLoad(t *testing.T) {
	want := func(u float64, m int64) loadRequest {
		return loadRequest{LoadTarget: runtime.LoadTarget{UtilizationPercent: u, MemoryMiB: m}}
	}
	for args, w := range map[string]loadRequest{
		"80": want(80, 0), "80%": want(80, 0), "12.5": want(12.5, 0), "--memory 4096": want(0, 4096),
		"80 --memory 4096": want(80, 4096), "--memory=4096 80": want(80, 4096), "off": {Off: true},
	} {
		if got, help, err := parseLoad(strings.Fields(args)); got != w || help || err != nil {
			t.Errorf("%q: %+v %v %v", args, got, help, err)
		}
	}
	for _, bad := range []string{"", "101", "-- -1", "NaN", "fast", "10 20", "--memory -5", "--memory", "--speed 3"} {
		if _, _, err := parseLoad(strings.Fields(bad)); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	if _, help, err := parseLoad([]string{"-h"}); !help || err != nil {
		t.Errorf("-h: %v %v", help, err)
	}
}

func TestPrintDevices(t *testing.T) {
	var b bytes.Buffer
	printDevices(&b, deviceList{Simulated: true, Devices: []runtime.DeviceGrant{{UUID: "MIG-1", Name: "NVIDIA A100", Profile: "1g.10gb", MemoryMiB: 9728}, {UUID: "GPU-2"}}})
	const want = `Simulated devices: no real GPU is behind them. Try berth-load.
#  DEVICE       SLICE    MEMORY    UUID
0  NVIDIA A100  1g.10gb  9728 MiB  MIG-1
1  GPU          whole    0 MiB     GPU-2
`
	if b.String() != want {
		t.Errorf("got:\n%s", b.String())
	}
}

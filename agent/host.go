package agent

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	goruntime "runtime"

	"golang.org/x/sys/unix"

	"berth/agent/device"
	"berth/agent/runtime"
	"berth/gpu"
	"berth/wire"
)

// What a simulated host has for each of its cards, and its disk: the usual share
// of a rented GPU server.
const (
	simulatedMilliCPU  = 16_000
	simulatedMemoryMiB = 112 << 10
	simulatedDiskGiB   = 2 << 10
)

// bootID names this boot of the host.
func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
}

// describeHost says what the node has to sell beside its devices, and how it
// runs instances. With simulated devices the host is simulated too.
func describeHost(ctx context.Context, name, dir string, images []string, rt runtime.Driver, devices device.Driver) (wire.Host, error) {
	host := wire.Host{Name: name, Runtime: describeRuntime(rt.Probe(ctx), images), Sharing: []string{gpu.TimeShare}}
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return host, fmt.Errorf("uname: %w", err)
	}
	host.Kernel = unix.ByteSliceToString(uts.Release[:])
	if _, host.Simulated = devices.(device.Follower); host.Simulated {
		cards, err := devices.Inventory(ctx)
		if err != nil {
			return host, fmt.Errorf("list devices: %w", err)
		}
		host.MilliCPU = simulatedMilliCPU * len(cards)
		host.MemoryMiB = simulatedMemoryMiB * len(cards)
		host.DiskGiB = simulatedDiskGiB
		return host, nil
	}
	// Instances may have what is free and what they have already.
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err != nil {
		return host, fmt.Errorf("statfs %s: %w", dir, err)
	}
	theirs, err := runtime.DiskBytes(dir, 0)
	if err != nil {
		return host, fmt.Errorf("add up %s: %w", dir, err)
	}
	host.DiskGiB = int((int64(disk.Bavail)*disk.Bsize + theirs) >> 30)
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return host, fmt.Errorf("sysinfo: %w", err)
	}
	host.MilliCPU = goruntime.NumCPU() * 1000
	host.MemoryMiB = int(info.Totalram * uint64(info.Unit) >> 20)
	return host, nil
}

func describeRuntime(info runtime.Info, images []string) wire.Runtime {
	out := wire.Runtime{
		Driver: info.Driver,
		Mode:   string(info.Rung),
		Images: images,
		Limits: map[string]string{
			"cpu":    string(info.Limits.CPU),
			"memory": string(info.Limits.Memory),
			"pids":   string(info.Limits.Pids),
			"disk":   string(info.Limits.Disk),
		},
	}
	for _, a := range info.Tried {
		out.Ladder = append(out.Ladder, wire.Rung{Mode: string(a.Rung), Works: a.Problem == "", Detail: a.Problem})
	}
	return out
}

// describeDevices reports the cards. One with a slice that Berth did not make, or
// with a process while no instance holds any of it, is not for sale: somebody's
// job runs there, so it is shown and never touched. granted is the record from
// before and after the cards were read, so that a slice which came or went
// meanwhile is not taken for somebody else's.
func describeDevices(cards []device.Card, granted []heldSlice, tables *tables) []wire.Device {
	var out []wire.Device
	for _, c := range cards {
		d := wire.Device{UUID: c.UUID, Index: c.Index, Model: c.Model, Name: c.Name, MemoryMiB: c.MemoryMiB, LinkGroup: c.LinkGroup, NUMANode: c.NUMANode, MIG: c.MIG, Health: c.Health, Profiles: tables.of(c.UUID)}
		for _, s := range c.Slices {
			d.Slices = append(d.Slices, s.Placement)
			ours := slices.ContainsFunc(granted, func(h heldSlice) bool {
				return h.UUID == s.UUID || (h.UUID == "" || s.HalfMade) && h.DeviceUUID == c.UUID && h.Placement == s.Placement
			})
			if d.Health == device.HealthOK && !ours {
				d.Health = fmt.Sprintf("occupied outside Berth: slice %s (%s)", s.Placement, s.UUID)
			}
		}
		ours := slices.ContainsFunc(granted, func(h heldSlice) bool { return h.DeviceUUID == c.UUID })
		if d.Health == device.HealthOK && !ours && len(c.Processes) > 0 {
			d.Health = "occupied outside Berth: " + describeProcesses(c.Processes)
		}
		out = append(out, d)
	}
	return out
}

// describeProcesses names processes by number, with their memory in whole GiB: a
// card is described to the portal anew whenever this changes.
func describeProcesses(ps []device.Process) string {
	var said []string
	for _, p := range ps {
		one := "process " + strconv.Itoa(p.PID)
		if p.MemoryMiB != nil {
			one += fmt.Sprintf(" (%d GiB)", (*p.MemoryMiB+512)>>10)
		}
		said = append(said, one)
	}
	return strings.Join(said, ", ")
}

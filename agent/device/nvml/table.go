//go:build nvml && cgo

package nvml

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"berth/agent/device"
	"berth/gpu"
)

// entry is one line of a card's own table of profiles.
type entry struct {
	gpu.Profile
	info nvml.GpuInstanceProfileInfo
	// parts are the compute instances that such a slice can have, the one that
	// fills it first; nil: not read yet, since only a slice tells.
	parts []nvml.ComputeInstanceProfileInfo
}

// readParts reads parts by a slice of the profile.
func (e *entry) readParts(gi nvml.GpuInstance) error {
	if e.parts != nil {
		return nil
	}
	var parts []nvml.ComputeInstanceProfileInfo
	for n := range nvml.COMPUTE_INSTANCE_PROFILE_COUNT {
		p, ret := gi.GetComputeInstanceProfileInfo(n, nvml.COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED)
		if ret == nvml.ERROR_NOT_SUPPORTED || ret == nvml.ERROR_INVALID_ARGUMENT {
			continue
		}
		if ret != nvml.SUCCESS {
			return problem(ret, "read the compute instances of %s", e.Name)
		}
		p.InstanceCount = max(p.InstanceCount, 16) // room for the answer when they are listed
		parts = append(parts, p)
	}
	i := slices.IndexFunc(parts, func(p nvml.ComputeInstanceProfileInfo) bool { return p.SliceCount == e.info.SliceCount })
	if i < 0 {
		return fmt.Errorf("%w: no compute instance fills a slice of %s", device.ErrNotSupported, e.Name)
	}
	parts[0], parts[i] = parts[i], parts[0]
	e.parts = parts
	return nil
}

// Profiles implements device.Driver.
func (d *Driver) Profiles(ctx context.Context, uuid string) ([]gpu.Profile, error) {
	c, err := d.card(uuid)
	if err != nil {
		return nil, err
	}
	return read(ctx, d, c, func() (out []gpu.Profile, err error) {
		dev, err := d.handle(c)
		if err != nil {
			return nil, err
		}
		if _, err := migMode(dev); errors.Is(err, device.ErrNotSupported) {
			return nil, nil
		}
		table, err := d.readTable(c)
		for _, e := range table {
			e.Starts = slices.Clone(e.Starts)
			out = append(out, e.Profile)
		}
		return out, err
	})
}

// readTable reads the table in the card's turn, once while a handle holds and all
// places are known.
func (d *Driver) readTable(c *card) ([]entry, error) {
	if c.table != nil {
		return c.table, nil
	}
	dev, err := d.handle(c)
	if err != nil {
		return nil, err
	}
	var table []entry
	whole := true
	for n := range maxProfiles {
		info, ret := dev.GetGpuInstanceProfileInfo(n)
		if ret == nvml.ERROR_INVALID_ARGUMENT {
			break // the last that this driver knows was before
		}
		if ret == nvml.ERROR_NOT_SUPPORTED {
			continue // the card does not have it
		}
		if ret != nvml.SUCCESS {
			return nil, problem(ret, "read profile %d", n)
		}
		e := entry{info: info, Profile: gpu.Profile{
			ComputeSlices: int(info.SliceCount), MemoryMiB: int(info.MemorySizeMB), MaxInstances: int(info.InstanceCount),
			SM: int(info.MultiprocessorCount), CopyEngines: int(info.CopyEngineCount), Decoders: int(info.DecoderCount), Encoders: int(info.EncoderCount),
			JPEG: int(info.JpegCount), OFA: int(info.OfaCount), ProfileID: int(info.Id), NVMLEnum: n,
		}}
		named := false
		if d.hasNames {
			e.Name, named = d.name(dev, n)
		}
		if !named {
			e.Name = profileName(n, e.ComputeSlices, e.MemoryMiB, c.fixed.memoryMiB)
		}
		// The driver's count of instances is wrong on A30, as mig-parted notes.
		if i := slices.IndexFunc(c.fixed.model.Profiles, func(p gpu.Profile) bool { return p.NVMLEnum == n }); i >= 0 && c.fixed.model.ID == "a30-24gb" {
			e.MaxInstances = c.fixed.model.Profiles[i].MaxInstances
		}
		places, ret := dev.GetGpuInstancePossiblePlacements(&e.info)
		switch {
		case ret == nvml.ERROR_NOT_SUPPORTED: // old drivers tell it in MIG mode only
			whole = false
		case ret != nvml.SUCCESS:
			return nil, problem(ret, "read where %s may lie", e.Name)
		}
		for _, p := range places {
			e.Units = int(p.Size)
			e.Starts = append(e.Starts, int(p.Start))
		}
		slices.Sort(e.Starts)
		table = append(table, e)
	}
	if whole {
		c.table = table
	}
	return table, nil
}

// maxProfiles bounds the enumeration of profiles; go-nvml v0.13.4 knows 18, and a
// newer driver may know more.
const maxProfiles = 64

// nameOf asks the library, which knows names from R510 on: "MIG 1g.10gb".
func nameOf(dev nvml.Device, profile int) (string, bool) {
	info, ret := dev.GetGpuInstanceProfileInfoV(profile).V2()
	if ret != nvml.SUCCESS {
		return "", false
	}
	var b strings.Builder
	for _, c := range info.Name {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	name := strings.TrimPrefix(b.String(), "MIG ")
	return name, name != ""
}

// profileName makes the name of a profile as the driver does: compute slices, and
// the memory in eighths of the card's, in its nominal GB.
//
// Source: NVIDIA's go-nvlib, pkg/nvlib/device/mig_profile.go.
func profileName(profile, slices, memoryMiB, cardMiB int) string {
	eighths := math.Ceil(8 * float64(memoryMiB) / float64(cardMiB))
	gb := math.Round(eighths / 8 * math.Ceil(float64(cardMiB)/1024))
	return fmt.Sprintf("%dg.%dgb%s", slices, int(gb), attributes[profile])
}

// attributes are the endings of profiles' names.
var attributes = map[int]string{
	nvml.GPU_INSTANCE_PROFILE_1_SLICE_REV1:   "+me",
	nvml.GPU_INSTANCE_PROFILE_2_SLICE_REV1:   "+me",
	nvml.GPU_INSTANCE_PROFILE_1_SLICE_GFX:    "+gfx",
	nvml.GPU_INSTANCE_PROFILE_2_SLICE_GFX:    "+gfx",
	nvml.GPU_INSTANCE_PROFILE_3_SLICE_GFX:    "+gfx",
	nvml.GPU_INSTANCE_PROFILE_4_SLICE_GFX:    "+gfx",
	nvml.GPU_INSTANCE_PROFILE_1_SLICE_NO_ME:  "-me",
	nvml.GPU_INSTANCE_PROFILE_2_SLICE_NO_ME:  "-me",
	nvml.GPU_INSTANCE_PROFILE_1_SLICE_ALL_ME: "+me.all",
	nvml.GPU_INSTANCE_PROFILE_2_SLICE_ALL_ME: "+me.all",
}

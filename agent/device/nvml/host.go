//go:build nvml && cgo

package nvml

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"berth/agent/device"
)

// host is where the kernel tells what NVML does not.
type host struct{ proc, sys string }

func realHost() host { return host{proc: "/proc", sys: "/sys"} }

// nodes are the device nodes by which a program reaches a whole card: its own, and
// those that all cards share.
func (f fixed) nodes() []string {
	return []string{f.node(), "/dev/nvidiactl", "/dev/nvidia-uvm"}
}

// capabilities are the minor numbers of the device nodes that open slices, by names
// such as "gpu0/gi1/ci0/access".
type capabilities map[string]string

// capabilities reads what the kernel's driver says of them.
func (h host) capabilities() (capabilities, error) {
	text, err := os.ReadFile(filepath.Join(h.proc, "driver/nvidia-caps/mig-minors"))
	if err != nil {
		return nil, fmt.Errorf("find the device nodes of slices: %w", err)
	}
	caps := capabilities{}
	for line := range strings.Lines(string(text)) {
		if name, minor, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			caps[name] = minor
		}
	}
	return caps, nil
}

// nodes are what opens one slice beside its card's nodes: that of the GPU instance,
// then that of the compute instance.
func (c capabilities) nodes(gpuMinor, gi, ci int) (nodes []string, err error) {
	for _, name := range []string{fmt.Sprintf("gpu%d/gi%d/access", gpuMinor, gi), fmt.Sprintf("gpu%d/gi%d/ci%d/access", gpuMinor, gi, ci)} {
		minor, err := strconv.Atoi(c[name])
		if err != nil {
			return nil, fmt.Errorf("find the device nodes of a slice: mig-minors does not have %s", name)
		}
		nodes = append(nodes, fmt.Sprintf("/dev/nvidia-caps/nvidia-cap%d", minor))
	}
	return nodes, nil
}

// numaNode is the NUMA node whose processors are nearest to a PCI device; 0 where
// the host has one only, or does not say. (NVML's own call is about memory on the
// GPU that is a NUMA node, which is something else.)
func (h host) numaNode(pci string) int {
	text, err := os.ReadFile(filepath.Join(h.sys, "bus/pci/devices", pci, "numa_node"))
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return max(0, n)
}

// pciAddress is a device's address as the kernel writes it, "0000:07:00.0".
func pciAddress(p nvml.PciInfo) string {
	return fmt.Sprintf("%04x:%02x:%02x.0", p.Domain, p.Bus, p.Device)
}

// learnLinks notes what an undivided card's NVLinks lead to: other cards, or the
// switch by which it reaches all that are on it. In MIG mode there is no NVLink.
func (d *Driver) learnLinks(c *card) {
	c.mu.Lock()
	known := c.ends != nil
	c.mu.Unlock()
	if known {
		return
	}
	ends := []string{c.fixed.pci}
	for link := range nvml.NVLINK_MAX_LINKS {
		state, ret := c.dev.GetNvLinkState(link)
		if ret != nvml.SUCCESS {
			break // there are no more, or none
		}
		if state != nvml.FEATURE_ENABLED {
			continue
		}
		if pci, ret := c.dev.GetNvLinkRemotePciInfo(link); ret == nvml.SUCCESS {
			ends = append(ends, pciAddress(pci))
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends = ends
}

// group numbers the sets of cards that reach each other by NVLink, from 1.
func (d *Driver) group(cards []device.Card) {
	ends := make([][]string, len(cards))
	for i, c := range d.cards {
		c.mu.Lock()
		if len(c.ends) > 1 { // with links
			ends[i] = c.ends
		}
		c.mu.Unlock()
	}
	last := 0
	for i := range cards {
		if ends[i] == nil || cards[i].LinkGroup > 0 {
			continue
		}
		last++
		reach := []int{i}
		for len(reach) > 0 {
			at := reach[0]
			reach = reach[1:]
			cards[at].LinkGroup = last
			for j := range cards {
				if cards[j].LinkGroup == 0 && slices.ContainsFunc(ends[j], func(e string) bool { return slices.Contains(ends[at], e) }) {
					reach = append(reach, j)
				}
			}
		}
	}
	for i := range cards { // alone in its group is in none
		n := 0
		for _, c := range cards {
			if c.LinkGroup == cards[i].LinkGroup {
				n++
			}
		}
		if n == 1 {
			cards[i].LinkGroup = 0
		}
	}
}

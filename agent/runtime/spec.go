package runtime

import (
	"fmt"
	"path"
	"strings"
)

// ValidInstance reports whether id may name an instance: ids become names of
// files, folders and control groups.
func ValidInstance(id string) bool { return validName(id, "-_.") }

// validName reports whether s is 1 to 128 letters, digits and marks, and starts
// with a letter or digit.
func validName(s, marks string) bool {
	for i, r := range s {
		alnum := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !alnum && (i == 0 || !strings.ContainsRune(marks, r)) {
			return false
		}
	}
	return s != "" && len(s) <= 128
}

// Validate says what is wrong with a Spec, if anything.
func (s Spec) Validate() error {
	if !ValidInstance(s.Instance) {
		return fmt.Errorf("instance id %q: use letters, digits, '-', '_' and '.', at most 128", s.Instance)
	}
	if s.Run < 1 {
		return fmt.Errorf("run %d of %s: runs count from 1", s.Run, s.Instance)
	}
	if s.DiskGiB < 0 || s.MilliCPU < 0 || s.MemoryMiB < 0 {
		return fmt.Errorf("instance %s: a size below zero", s.Instance)
	}
	if len(s.Command) > 0 && s.Command[0] == "" {
		return fmt.Errorf("instance %s: the command's first word is empty", s.Instance)
	}
	for _, a := range s.Command {
		if strings.ContainsRune(a, 0) {
			return fmt.Errorf("instance %s: the command holds a NUL byte", s.Instance)
		}
	}
	for k, v := range s.Env {
		if k == "" || strings.ContainsAny(k, "=\x00") || strings.ContainsRune(v, 0) {
			return fmt.Errorf("instance %s: environment variable %q cannot be set", s.Instance, k)
		}
	}
	seen := map[string]bool{}
	for _, d := range s.Devices {
		if !validName(d.UUID, "-_") || seen[d.UUID] {
			return fmt.Errorf("instance %s: device id %q is malformed or granted twice", s.Instance, d.UUID)
		}
		if d.Node != "" && !path.IsAbs(d.Node) {
			return fmt.Errorf("instance %s: device node %q is not an absolute path", s.Instance, d.Node)
		}
		for _, node := range d.Nodes {
			if !strings.HasPrefix(node, "/dev/") || path.Clean(node) != node {
				return fmt.Errorf("instance %s: device node %q is not a path below /dev", s.Instance, node)
			}
		}
		seen[d.UUID] = true
	}
	return nil
}

// CleanEnv returns the renter's environment without the names that say which
// devices a process sees and without Berth's own: those are the node's to set. A
// renter who could set NVIDIA_VISIBLE_DEVICES would be handed other renters' cards
// by a container engine.
func CleanEnv(env map[string]string) map[string]string {
	out := make(map[string]string, len(env))
	for k, v := range env {
		up := strings.ToUpper(k)
		if strings.HasPrefix(up, "NVIDIA_") || strings.HasPrefix(up, "BERTH_") || up == "CUDA_VISIBLE_DEVICES" {
			continue
		}
		out[k] = v
	}
	return out
}

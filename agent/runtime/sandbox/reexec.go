package sandbox

import (
	"path/filepath"
	goruntime "runtime"

	"berth/agent/runtime/jail"
	"berth/agent/runtime/shim"
)

// Reexec runs the program's hidden parts: the shim of an instance, the init inside
// it, and the helpers that renters call. It must stand at the very top of main,
// with os.Args, before anything starts threads or reads flags; when ran is true,
// main exits with code.
func Reexec(args []string) (ran bool, code int) {
	if len(args) == 0 {
		return false, 0
	}
	switch filepath.Base(args[0]) {
	case "berth-load":
		return true, jail.LoadMain(args[1:])
	case "berth-smi":
		return true, jail.SMIMain(args[1:])
	}
	if len(args) < 2 {
		return false, 0
	}
	var part func([]string) int
	switch args[1] {
	case shim.Subcommand:
		part = shim.Main
	case jail.Subcommand:
		part = jail.InitMain
	case probeSubcommand:
		part = probeMain
	case "load":
		part = jail.LoadMain
	case "smi":
		part = jail.SMIMain
	default:
		return false, 0
	}
	// Namespaces, privileges and the death signal belong to threads.
	goruntime.LockOSThread()
	return true, part(args[2:])
}

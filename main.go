// Berth turns GPU hosts into a shop: portal, node program and command line in
// one binary. See README.md.
package main

import (
	"os"

	"berth/agent/runtime/sandbox"
	"berth/cli"
)

func main() {
	// The same binary is the shim above each instance and the first process in
	// it; those must not run a line of the rest.
	if ran, code := sandbox.Reexec(os.Args); ran {
		os.Exit(code)
	}
	os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr))
}

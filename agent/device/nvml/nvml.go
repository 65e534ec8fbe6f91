// Package nvml drives real NVIDIA cards through NVML, the library that comes with
// NVIDIA's driver. It is the only package that knows the library, and it keeps one
// session with it from New to Close: other tools may then find the cards in use, so
// nothing else should divide them.
//
// The library is reached by cgo, behind the build tag nvml, and is opened when New
// runs: a berth built with the tag starts on a machine without a driver and says
// that there is none. Built without the tag, New fails with ErrNotBuilt.
//
// What always holds: calls for one card come one after the other; cards and slices
// are addressed by UUID; a slice is made at the place that was asked for and read
// back; each step can be repeated; a card is never reset. A call of the library
// that does not return costs its own card, not the agent.
//
// Sources: nvml.h of go-nvml v0.13.4-1 for calls and their errors; NVIDIA's MIG
// User Guide for what a change of mode costs on which generation.
package nvml

import "errors"

// ErrNotBuilt is returned by New in a berth that has no NVML.
var ErrNotBuilt = errors.New("this berth was built without NVML; build with -tags nvml")

// Package e2e tests the real binary from outside: real processes, real HTTP, a
// real browser. Tests of one aspect each live in files named for it; this
// package has no code of its own beyond them.
package e2e

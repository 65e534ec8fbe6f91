// Package web draws Berth's pages: plain view structs go in, HTML comes out.
//
// It owns words, order and markup. It does not decide anything about the
// business: every struct named …View arrives with its texts formatted (money,
// durations, sizes, times) and its questions answered (CanStop, Selected), and
// the templates only loop and ask yes or no. Numbers appear in a view only where
// script or geometry needs them: cost that ticks, chart samples, slice bars.
//
// What always holds: no inline style, script or event handler is ever written,
// so a Content-Security-Policy without 'unsafe-inline' suffices; every page works
// without JavaScript; every view has a sensible zero value for what is absent
// (nil or empty: the part is left out or its empty form is drawn).
//
// web imports static and the standard library, nothing else of Berth.
package web

// Package static holds what the pages load: style sheets, script modules, fonts,
// and the vendored libraries, embedded in the binary.
//
// Each file is served under a name with its content's hash, so that a browser may
// keep it for ever and a new build is seen at once. It knows nothing of pages.
// What always holds: the bytes never change while the process runs, and names in
// style sheets and modules point at the hashed names of what they refer to.
package static

import (
	"embed"
	"sync"
)

//go:embed css js fonts img vendor
var files embed.FS

//go:embed sprite.svg
var sprite string

// loaded is worked out once, at first use; it depends on nothing but the embedded
// files, so that every caller sees the same.
var loaded = sync.OnceValue(func() *assets {
	a, err := load(files)
	if err != nil {
		panic("static: embedded files: " + err.Error()) // a broken build, found by the first test
	}
	return a
})

// styles are the parts of berth.css in the order of their layers.
var styles = []string{"css/tokens.css", "css/base.css", "css/layout.css", "css/components.css", "css/pages.css"}

// Path returns the address of the asset called name, for example "berth.css" or
// "uPlot.iife.min.js": "/assets/berth.0123456789.css". A name that does not exist
// gives an address that answers 404.
func Path(name string) string {
	return loaded().path(name)
}

// Sprite returns the SVG with the icons and patterns that pages refer to by
// fragment. It must stand in each page once: pattern fills resolve only there.
func Sprite() string {
	return sprite
}

// Sizes returns the size in bytes of every asset as sent compressed, by the name
// that Path takes. Fonts are compressed formats and are sent as they are.
func Sizes() map[string]int {
	out := map[string]int{}
	for name, f := range loaded().byName {
		out[name] = len(f.smallest())
	}
	return out
}

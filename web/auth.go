package web

import "net/url"

const passwordHelp = "12 characters or more. Paste is fine."

// exampleBar shows what a slice is, on the page for people who have none yet.
var exampleBar = SliceBar{
	Label:  "A card with slices held by others and room for yours",
	Memory: 8, Compute: 7,
	Holds: []Hold{
		{Start: 0, Size: 2, Compute: 2, Kind: KindOther},
		{Start: 2, Size: 1, Compute: 1, Kind: KindOther},
		{Start: 4, Size: 4, Compute: 3, Kind: KindGhost},
	},
}

// withNext carries the way on from one form of signing in to the other.
func withNext(path, next string) string {
	if next == "" {
		return path
	}
	return path + "?next=" + url.QueryEscape(next)
}

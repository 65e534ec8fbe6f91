package web

import "net/url"

// readerBar is the example that explains the picture.
var readerBar = SliceBar{
	Label:  "Example: two slices held by others, one part free, four memory slices yours",
	Memory: 8, Compute: 7,
	Holds: []Hold{
		{Start: 0, Size: 1, Compute: 1, Kind: KindOther},
		{Start: 1, Size: 1, Compute: 1, Kind: KindOther},
		{Start: 4, Size: 4, Compute: 3, Kind: KindYours},
	},
}

func launchHref(sku string) string {
	return "/launch?sku=" + url.QueryEscape(sku)
}

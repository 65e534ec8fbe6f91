package static

import (
	"net/http"
	"strconv"
	"strings"
)

// Handler serves the assets under /assets/, each for ever cacheable since its
// address changes with its content, gzipped for those who take it. Whatever is
// not an asset's present address is 404 and not cached, so that a page of an
// older build gets an error and not another build's script.
func Handler() http.Handler {
	return loaded()
}

func (a *assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "Assets can only be read.", http.StatusMethodNotAllowed)
		return
	}
	f, ok := a.byPath[r.URL.Path]
	if !ok {
		w.Header().Set("Cache-Control", "no-store")
		http.Error(w, "There is no such asset in this version. Load the page again.", http.StatusNotFound)
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.contentType)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("X-Content-Type-Options", "nosniff")
	body := f.body
	if f.gzipped != nil {
		h.Add("Vary", "Accept-Encoding")
		if acceptsGzip(r.Header.Get("Accept-Encoding")) {
			h.Set("Content-Encoding", "gzip")
			body = f.gzipped
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method == http.MethodHead {
		return
	}
	// A client that has gone away is no error of ours, and the status is already out.
	_, _ = w.Write(body)
}

// acceptsGzip reports whether an Accept-Encoding header names gzip with a weight
// above zero (RFC 9110, 12.5.3).
func acceptsGzip(header string) bool {
	for _, part := range strings.Split(header, ",") {
		name, params, _ := strings.Cut(strings.TrimSpace(part), ";")
		if name = strings.TrimSpace(name); !strings.EqualFold(name, "gzip") && name != "*" {
			continue
		}
		weight, found := strings.CutPrefix(strings.ReplaceAll(params, " ", ""), "q=")
		if !found {
			return true
		}
		q, err := strconv.ParseFloat(weight, 64)
		return err == nil && q > 0
	}
	return false
}

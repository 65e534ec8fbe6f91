package server

import (
	"io"
	"net/http"
	"testing"
)

func TestHeadIsGetWithoutTheBody(t *testing.T) {
	w := newWorld(t)
	for path, want := range map[string]int{"/": http.StatusOK, "/login": http.StatusOK, "/api/v1/offers": http.StatusOK, "/nowhere": http.StatusNotFound} {
		res, err := http.Head(w.url + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != want || len(body) != 0 || err != nil {
			t.Errorf("HEAD %s: %d with %d bytes, %v", path, res.StatusCode, len(body), err)
		}
	}
}

// Package pages measures the portal's pages for an account with 1,000 running
// instances on ten nodes.
package pages

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/bench/portal"
	"berth/models/store/storetest"
)

const instances, nodes = 1000, 10

// BenchmarkPages asks for each page one after the other, as a browser with a
// session and gzip does, and reports the time inside the server, the SQL
// statements of one page, and the compressed bytes of its HTML.
//
//	go test ./pages -bench Pages -benchtime 500x
func BenchmarkPages(b *testing.B) {
	for name, dsn := range databases(b) {
		b.Run(name, func(b *testing.B) {
			p, cookie := fill(b, dsn)
			for name, path := range addresses(p) {
				b.Run(name, func(b *testing.B) { benchmarkPage(b, p, cookie, path) })
			}
		})
	}
}

func databases(b *testing.B) map[string]string {
	return map[string]string{"sqlite": filepath.Join(b.TempDir(), "berth.db"), "postgres": storetest.PostgresURL(b)}
}

// fill opens a portal with the instances, and a session.
func fill(b *testing.B, dsn string) (p *portal.Portal, cookie string) {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	b.Cleanup(cancel)
	p, err := portal.Open(ctx, dsn)
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"auk", "brant", "coot", "dunlin", "eider", "fulmar", "gannet", "heron", "ibis", "jaeger"} {
		if err := p.Join(ctx, name, instances/nodes); err != nil {
			b.Fatal(err)
		}
	}
	for range 60 { // a minute of charts
		for _, n := range p.Nodes {
			if err := p.Tick(ctx, n); err != nil {
				b.Fatal(err)
			}
		}
	}
	cookies, err := p.Cookies(ctx, 1)
	if err != nil {
		b.Fatal(err)
	}
	return p, cookies[0]
}

func addresses(p *portal.Portal) map[string]string {
	one := string(p.Nodes[0].Instances[0])
	return map[string]string{
		"catalogue": "/", "launch": "/launch?sku=rtx4090", "instances": "/instances", "instance": "/instances/" + one, "wallet": "/wallet", "invoices": "/invoices",
		"api instances": "/api/v1/instances", "api instance": "/api/v1/instances/" + one, "api wallet": "/api/v1/wallet",
	}
}

func get(b *testing.B, p *portal.Portal, cookie, path string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodGet, path, nil)
	req.Header.Set("Cookie", cookie)
	req.Header.Set("Accept-Encoding", "gzip")
	rec := httptest.NewRecorder()
	p.Server.ServeHTTP(rec, req)
	if rec.Code != http.StatusOK {
		b.Fatalf("%s: %d", path, rec.Code)
	}
	return rec
}

func benchmarkPage(b *testing.B, p *portal.Portal, cookie, path string) {
	get(b, p, cookie, path) // the first one prepares what all share
	var took []time.Duration
	before, bytes := p.Store.Statements(), 0
	for b.Loop() {
		began := time.Now()
		rec := get(b, p, cookie, path)
		took = append(took, time.Since(began))
		bytes = rec.Body.Len()
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2])/1e6, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100])/1e6, "p99-ms")
	b.ReportMetric(float64(p.Store.Statements()-before)/float64(len(took)), "statements/op")
	b.ReportMetric(float64(bytes), "B/page")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkFirstView adds up what a browser loads to show a page for the first
// time: HTML, styles and scripts with all they import, compressed as served.
// Fonts come later and are swapped in.
//
//	go test ./pages -bench FirstView -benchtime 1x
func BenchmarkFirstView(b *testing.B) {
	p, cookie := fill(b, filepath.Join(b.TempDir(), "berth.db"))
	pages := addresses(p)
	pages["terminal"] = pages["instance"] + "/terminal"
	pages["sign up"] = "/signup"
	for name, address := range pages {
		if strings.HasPrefix(name, "api ") {
			continue
		}
		cookie := cookie
		if name == "sign up" {
			cookie = ""
		}
		b.Run(name, func(b *testing.B) {
			total := 0
			for b.Loop() {
				total = firstView(b, p, cookie, address)
			}
			b.ReportMetric(float64(total), "B/view")
			b.ReportMetric(0, "ns/op")
		})
	}
}

var (
	linked   = regexp.MustCompile(`<(?:link|script)\b[^>]*>`)
	address  = regexp.MustCompile(`\b(?:href|src)="([^"]+\.(?:css|js|svg))"`)
	imported = regexp.MustCompile(`(?:\bfrom|\bimport)\s*\(?\s*["']([^"']+\.js)["']`)
	used     = regexp.MustCompile(`<use [^>]*href="([^"#]+)#`)
)

func firstView(b *testing.B, p *portal.Portal, cookie, page string) (total int) {
	html := get(b, p, cookie, page)
	total = html.Body.Len()
	text := unzip(b, html)
	var todo []string
	for _, tag := range linked.FindAllString(text, -1) {
		if m := address.FindStringSubmatch(tag); m != nil && !strings.Contains(tag, `rel="icon"`) {
			todo = append(todo, m[1])
		}
	}
	for _, m := range used.FindAllStringSubmatch(text, -1) {
		todo = append(todo, m[1])
	}
	seen := map[string]bool{}
	for len(todo) > 0 {
		next := todo[0]
		todo = todo[1:]
		if seen[next] {
			continue
		}
		seen[next] = true
		rec := get(b, p, cookie, next)
		total += rec.Body.Len()
		if strings.HasSuffix(next, ".js") {
			for _, m := range imported.FindAllStringSubmatch(unzip(b, rec), -1) {
				todo = append(todo, resolve(b, next, m[1]))
			}
		}
	}
	if len(seen) == 0 {
		b.Fatal("a page without styles: " + page)
	}
	return total
}

func resolve(b *testing.B, from, to string) string {
	b.Helper()
	base, err := url.Parse(from)
	if err != nil {
		b.Fatal(err)
	}
	u, err := base.Parse(to)
	if err != nil {
		b.Fatal(err)
	}
	return u.Path
}

func unzip(b *testing.B, rec *httptest.ResponseRecorder) string {
	b.Helper()
	if rec.Header().Get("Content-Encoding") != "gzip" {
		return rec.Body.String()
	}
	r, err := gzip.NewReader(bytes.NewReader(rec.Body.Bytes()))
	if err != nil {
		b.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		b.Fatal(err)
	}
	return string(text)
}

package static

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

func TestPathCarriesTheContentsHash(t *testing.T) {
	if got := Path("berth.css"); !regexp.MustCompile(`^/assets/berth\.[0-9a-f]{10}\.css$`).MatchString(got) {
		t.Errorf("Path(berth.css) = %q", got)
	}
	one := fstest.MapFS{"js/a.js": {Data: []byte("1")}}
	two := fstest.MapFS{"js/a.js": {Data: []byte("2")}}
	for _, f := range []fstest.MapFS{one, two} {
		for _, s := range styles {
			f[s] = &fstest.MapFile{}
		}
	}
	a, err := load(one)
	if err != nil {
		t.Fatal(err)
	}
	b, err := load(two)
	if err != nil {
		t.Fatal(err)
	}
	if a.path("a.js") == b.path("a.js") {
		t.Error("two contents, one address")
	}
	if a.path("berth.css") != b.path("berth.css") {
		t.Error("one content, two addresses")
	}
}

func TestReferencesPointAtHashedNames(t *testing.T) {
	for name, f := range loaded().byName {
		text := string(f.body)
		if strings.HasPrefix(loadedSource(t, name), "js/") || name == "berth.css" {
			if m := regexp.MustCompile(`(?:from |import |url\()"(\.[^"]*)"`).FindString(text); m != "" {
				t.Errorf("%s still refers to %s", name, m)
			}
			for _, m := range regexp.MustCompile(`"(/assets/[^"]+)"`).FindAllStringSubmatch(text, -1) {
				if _, ok := loaded().byPath[m[1]]; !ok {
					t.Errorf("%s refers to %s, which is not served", name, m[1])
				}
			}
		}
	}
}

func loadedSource(t *testing.T, name string) string {
	t.Helper()
	if _, err := files.Open("js/" + name); err == nil {
		return "js/" + name
	}
	return name
}

func TestLoadRefuses(t *testing.T) {
	base := func() fstest.MapFS {
		f := fstest.MapFS{}
		for _, s := range styles {
			f[s] = &fstest.MapFile{}
		}
		return f
	}
	for name, tc := range map[string]struct {
		files map[string]string
		want  string
	}{
		"a missing module": {map[string]string{"js/a.js": `import "./b.js";`}, "no file is called b.js"},
		"a circle":         {map[string]string{"js/a.js": `import "./b.js";`, "js/b.js": `import "./a.js";`}, "refers to itself"},
		"two of a name":    {map[string]string{"js/a.js": "", "vendor/x/a.js": ""}, "same name"},
	} {
		t.Run(name, func(t *testing.T) {
			f := base()
			for p, text := range tc.files {
				f[p] = &fstest.MapFile{Data: []byte(text)}
			}
			if _, err := load(f); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("load: %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestHandler(t *testing.T) {
	srv := httptest.NewServer(Handler())
	defer srv.Close()
	ask := func(method, path, accept string) *http.Response {
		t.Helper()
		req, err := http.NewRequest(method, srv.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept-Encoding", accept) // set by hand, so that the client does not unpack
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = res.Body.Close() })
		return res
	}
	for name, tc := range map[string]struct {
		method, path, accept        string
		status                      int
		cache, contentType, content string
	}{
		"style, packed":   {"GET", Path("berth.css"), "gzip, br", 200, "public, max-age=31536000, immutable", "text/css; charset=utf-8", "gzip"},
		"style, plain":    {"GET", Path("berth.css"), "gzip;q=0", 200, "public, max-age=31536000, immutable", "text/css; charset=utf-8", ""},
		"module":          {"GET", Path("app.js"), "identity", 200, "public, max-age=31536000, immutable", "text/javascript; charset=utf-8", ""},
		"font":            {"GET", Path("inter-Regular.woff2"), "gzip", 200, "public, max-age=31536000, immutable", "font/woff2", ""},
		"head":            {"HEAD", Path("xterm.js"), "*;q=0.5", 200, "public, max-age=31536000, immutable", "text/javascript; charset=utf-8", "gzip"},
		"without hash":    {"GET", "/assets/berth.css", "gzip", 404, "no-store", "text/plain; charset=utf-8", ""},
		"climbing out":    {"GET", "/assets/../static.go", "gzip", 404, "no-store", "text/plain; charset=utf-8", ""},
		"something else":  {"GET", "/assets/", "gzip", 404, "no-store", "text/plain; charset=utf-8", ""},
		"not for writing": {"POST", Path("berth.css"), "gzip", 405, "", "text/plain; charset=utf-8", ""},
	} {
		t.Run(name, func(t *testing.T) {
			res := ask(tc.method, tc.path, tc.accept)
			if res.StatusCode != tc.status {
				t.Fatalf("status %d, want %d", res.StatusCode, tc.status)
			}
			for h, want := range map[string]string{"Cache-Control": tc.cache, "Content-Type": tc.contentType, "Content-Encoding": tc.content} {
				if got := res.Header.Get(h); got != want {
					t.Errorf("%s: %q, want %q", h, got, want)
				}
			}
		})
	}
	res := ask("GET", Path("berth.css"), "gzip")
	plain, err := gzip.NewReader(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(plain)
	if err != nil || string(text) != string(loaded().byName["berth.css"].body) {
		t.Errorf("unpacked is not what was packed (%v)", err)
	}
}

// TestStyleRules holds what the style sheets promise: colours only in the tokens,
// every rule in a layer or after them, and nothing forced.
func TestStyleRules(t *testing.T) {
	colour := regexp.MustCompile(`#[0-9a-fA-F]{3,8}\b|rgba?\(`)
	for _, name := range styles {
		text, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "!important") {
			t.Errorf("%s forces a rule with !important", name)
		}
		if m := colour.FindString(string(text)); m != "" && name != "css/tokens.css" {
			t.Errorf("%s names the colour %s; name it in tokens.css", name, m)
		}
	}
}

// TestNothingLeavesTheOrigin: no script or style of ours asks another host.
func TestNothingLeavesTheOrigin(t *testing.T) {
	for name, f := range loaded().byName {
		if strings.HasSuffix(name, ".woff2") || !strings.HasPrefix(loadedSource(t, name), "js/") && name != "berth.css" {
			continue
		}
		if m := regexp.MustCompile(`https?://[^\s"']+`).Find(f.body); m != nil {
			t.Errorf("%s names %s", name, m)
		}
	}
}

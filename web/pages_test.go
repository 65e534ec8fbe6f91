package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"berth/static"

	"github.com/a-h/templ"
)

var update = flag.Bool("update", false, "write the golden files anew")

func render(t *testing.T, c templ.Component) string {
	t.Helper()
	var b bytes.Buffer
	if err := c.Render(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var assetHash = regexp.MustCompile(`(/assets/[\w.-]+)\.[0-9a-f]{10}(\.\w+)`)

// golden makes a page fit to be compared: one element a line, the sprite and the
// assets' hashes left out, since they change without the page.
func golden(html string) string {
	html = strings.ReplaceAll(html, static.Sprite(), "<!--sprite-->")
	html = assetHash.ReplaceAllString(html, "$1$2")
	return strings.ReplaceAll(html, "><", ">\n<") + "\n"
}

func compare(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run the test with -update", err)
	}
	if got != string(want) {
		t.Errorf("%s differs at %q; look, then run with -update", path, firstDifference(got, string(want)))
	}
}

func firstDifference(a, b string) string {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(as), len(bs)) {
		if as[i] != bs[i] {
			return as[i]
		}
	}
	return "the end"
}

func TestPages(t *testing.T) {
	for name, c := range samples() {
		t.Run(name, func(t *testing.T) { compare(t, name+".html", golden(render(t, c))) })
	}
}

// TestNothingInline holds the strict Content-Security-Policy: no style, handler or
// script but by file.
func TestNothingInline(t *testing.T) {
	for name, c := range samples() {
		html := render(t, c)
		for _, bad := range []string{`\sstyle=`, `<style`, `\son[a-z]+=`, `javascript:`} {
			if m := regexp.MustCompile(`(?i)<[^>]*` + bad + `|` + `(?i)^` + bad).FindString(html); m != "" {
				t.Errorf("%s: %s", name, m)
			}
		}
		for _, m := range regexp.MustCompile(`(?s)<script([^>]*)>(.*?)</script>`).FindAllStringSubmatch(html, -1) {
			if !strings.Contains(m[1], ` src="/assets/`) || strings.TrimSpace(m[2]) != "" {
				t.Errorf("%s: script without a file: %s", name, m[0])
			}
		}
		if m := regexp.MustCompile(`(?:src|href|action)="(?:https?:)?//[^"]*"`).FindString(html); m != "" {
			t.Errorf("%s leaves the origin: %s", name, m)
		}
	}
}

// TestAssetsExist asks the static handler for everything the pages load.
func TestAssetsExist(t *testing.T) {
	srv := httptest.NewServer(static.Handler())
	defer srv.Close()
	seen := map[string]bool{}
	for name, c := range samples() {
		for _, m := range regexp.MustCompile(`"(/assets/[^"]+)"`).FindAllStringSubmatch(render(t, c), -1) {
			if seen[m[1]] {
				continue
			}
			seen[m[1]] = true
			res, err := http.Get(srv.URL + m[1])
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			if res.StatusCode != http.StatusOK {
				t.Errorf("%s loads %s: %s", name, m[1], res.Status)
			}
		}
	}
}

// TestWellFormed reads each page as strict mark-up: what is opened is closed, ids
// are unique, what points at an id finds it, labels have their fields, and
// headings go down one level at a time.
func TestWellFormed(t *testing.T) {
	for name, c := range samples() {
		t.Run(name, func(t *testing.T) { wellFormed(t, render(t, c)) })
	}
}

func wellFormed(t *testing.T, html string) {
	d := xml.NewDecoder(strings.NewReader(html))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	ids, refs := map[string]int{}, map[string]string{}
	labelled := map[string]bool{}
	var fields []string
	level, landmarks := 0, map[string]int{}
	var open []string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.EndElement); ok {
			if len(open) == 0 || open[len(open)-1] != e.Name.Local {
				t.Fatalf("</%s> closes %v", e.Name.Local, open)
			}
			open = open[:len(open)-1]
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		at := map[string]string{}
		for _, a := range e.Attr {
			at[a.Name.Local] = a.Value
		}
		tag := e.Name.Local
		open = append(open, tag)
		if id := at["id"]; id != "" {
			ids[id]++
		}
		for _, k := range []string{"aria-describedby", "aria-labelledby", "popovertarget", "for"} {
			if at[k] != "" {
				refs[at[k]] = tag + " " + k
			}
		}
		if h := at["href"]; strings.HasPrefix(h, "#") {
			refs[h[1:]] = tag + " href"
		}
		switch tag {
		case "h1", "h2", "h3", "h4":
			if slices.Contains(open, "div") && strings.Contains(at["id"], "-title") {
				break // a dialog's title stands by itself
			}
			n := int(tag[1] - '0')
			if n > level+1 {
				t.Errorf("<%s> follows a level %d heading", tag, level)
			}
			level = n
		case "main", "header", "footer", "nav":
			landmarks[tag]++
		case "label":
			labelled[at["for"]] = true
		case "input", "select", "textarea":
			if at["type"] != "hidden" && !slices.Contains(open, "label") {
				fields = append(fields, at["id"])
			}
		}
	}
	for id, n := range ids {
		if n > 1 {
			t.Errorf("id %q stands %d times", id, n)
		}
	}
	for id, by := range refs {
		if ids[id] == 0 {
			t.Errorf("%s points at %q, which is not there", by, id)
		}
	}
	for _, id := range fields {
		if !labelled[id] {
			t.Errorf("field %q has no label", id)
		}
	}
	if landmarks["main"] != 1 || landmarks["footer"] != 1 {
		t.Errorf("landmarks: %v", landmarks)
	}
}

// TestFirstView holds the budget of design 8: HTML, style and script of a first
// view below 60 kB compressed; fonts apart; the terminal, a tool of its own, excepted.
func TestFirstView(t *testing.T) {
	const budget = 60_000
	worst, worstName := 0, ""
	for name, c := range samples() {
		if name == "terminal" {
			continue
		}
		html := render(t, c)
		total := gzipSize(t, html)
		for asset, size := range static.Sizes() {
			if strings.Contains(html, static.Path(asset)) || imported[asset] {
				total += size
			}
		}
		if total > worst {
			worst, worstName = total, name
		}
		if total > budget {
			t.Errorf("%s: %d bytes", name, total)
		}
	}
	t.Logf("largest first view: %s, %d bytes of %d", worstName, worst, budget)
}

// imported are the modules that app.js and the others load by themselves.
var imported = map[string]bool{"theme.js": true, "copy.js": true, "forms.js": true, "tick.js": true, "live.js": true, "refresh.js": true, "say.js": true, "socket.js": true, "plot.js": true}

func gzipSize(t *testing.T, text string) int {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Len()
}

// TestWhatIsTypedStaysText: nothing from outside becomes mark-up, and no password
// comes back.
func TestWhatIsTypedStaysText(t *testing.T) {
	all := samples()
	if html := render(t, all["signup-error"]); strings.Contains(html, "<Keel>") || strings.Contains(html, "secret never drawn") {
		t.Error("sign-up draws a name as mark-up or a password at all")
	}
	if html := render(t, all["logs"]); strings.Contains(html, "<b>not markup</b>") {
		t.Error("output is drawn as mark-up")
	}
	hostile := `"><script>alert(1)</script>`
	v := runningView()
	v.ID, v.Name = hostile, hostile
	if html := render(t, InstancePage(v)); strings.Contains(html, "<script>alert") {
		t.Error("a name is drawn as mark-up")
	}
}

func TestTestPaymentsSaySo(t *testing.T) {
	for _, name := range []string{"catalogue", "wallet", "invoice", "error-500"} {
		want := 1
		if name == "invoice" {
			want = 2 // also inside the document, which is printed
		}
		if n := strings.Count(render(t, samples()[name]), "Test payments: no real money"); n != want {
			t.Errorf("%s says so %d times, want %d", name, n, want)
		}
	}
}

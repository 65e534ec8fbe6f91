package static

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// prefix is where Handler serves.
const prefix = "/assets/"

// assets are the files by the name they are asked for and by their address.
type assets struct {
	byName map[string]*file
	byPath map[string]*file
}

// file is one asset as it is sent.
type file struct {
	path, contentType string
	body              []byte
	// gzipped is nil when compressing does not make it smaller.
	gzipped []byte
}

func (f *file) smallest() []byte {
	if f.gzipped != nil {
		return f.gzipped
	}
	return f.body
}

func (a *assets) path(name string) string {
	if f, ok := a.byName[name]; ok {
		return f.path
	}
	return prefix + name
}

// contentTypes are set here, since a host's own table may lack or differ.
var contentTypes = map[string]string{
	".css":   "text/css; charset=utf-8",
	".js":    "text/javascript; charset=utf-8",
	".woff2": "font/woff2",
	".svg":   "image/svg+xml",
}

// load reads the served files of fsys, joins the style sheets to berth.css, and
// hashes each after rewriting its references to hashed names.
func load(fsys fs.FS) (*assets, error) {
	l := &loader{fsys: fsys, sources: map[string]string{}, out: &assets{byName: map[string]*file{}, byPath: map[string]*file{}}}
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || contentTypes[path.Ext(p)] == "" || strings.HasPrefix(p, "css/") {
			return err
		}
		name := path.Base(p)
		if other, taken := l.sources[name]; taken {
			return fmt.Errorf("%s and %s have the same name", p, other)
		}
		l.sources[name] = p
		return nil
	})
	if err != nil {
		return nil, err
	}
	l.sources["berth.css"] = "" // joined from styles
	for name := range l.sources {
		if _, err := l.add(name, nil); err != nil {
			return nil, err
		}
	}
	return l.out, nil
}

// loader adds files so that what a file refers to is hashed before it.
type loader struct {
	fsys fs.FS
	// sources maps an asset's name to its path in fsys.
	sources map[string]string
	out     *assets
}

// reference finds what our own modules and style sheets refer to: "./x.js" in an
// import and url("../fonts/x.woff2") in a style sheet.
var reference = regexp.MustCompile(`(from |import |import\(|url\()"(?:\.\./fonts|\.)/([\w.-]+)"`)

func (l *loader) add(name string, from []string) (*file, error) {
	if f, ok := l.out.byName[name]; ok {
		return f, nil
	}
	for _, n := range from {
		if n == name {
			return nil, fmt.Errorf("%s refers to itself by way of %v", name, from)
		}
	}
	body, err := l.source(name)
	if err != nil {
		return nil, err
	}
	if source := l.sources[name]; strings.HasPrefix(source, "js/") || name == "berth.css" {
		body, err = l.rewrite(body, append(from, name))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	sum := sha256.Sum256(body)
	ext := path.Ext(name)
	f := &file{
		path:        prefix + strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(sum[:])[:10] + ext,
		contentType: contentTypes[ext],
		body:        body,
	}
	if ext != ".woff2" { // compressed by its own format
		if f.gzipped, err = compress(body); err != nil {
			return nil, err
		}
	}
	l.out.byName[name], l.out.byPath[f.path] = f, f
	return f, nil
}

func (l *loader) source(name string) ([]byte, error) {
	if name != "berth.css" {
		p, ok := l.sources[name]
		if !ok {
			return nil, fmt.Errorf("no file is called %s", name)
		}
		return fs.ReadFile(l.fsys, p)
	}
	var joined bytes.Buffer
	for _, p := range styles {
		part, err := fs.ReadFile(l.fsys, p)
		if err != nil {
			return nil, err
		}
		joined.Write(part)
	}
	return joined.Bytes(), nil
}

func (l *loader) rewrite(body []byte, from []string) ([]byte, error) {
	var bad error
	out := reference.ReplaceAllFunc(body, func(m []byte) []byte {
		parts := reference.FindSubmatch(m)
		f, err := l.add(string(parts[2]), from)
		if err != nil {
			bad = err
			return m
		}
		return []byte(string(parts[1]) + `"` + f.path + `"`)
	})
	return out, bad
}

// compress returns body gzipped, or nil if that is no smaller.
func compress(body []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if out.Len() >= len(body) {
		return nil, nil
	}
	return out.Bytes(), nil
}

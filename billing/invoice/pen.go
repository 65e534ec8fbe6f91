package invoice

import (
	"embed"
	"fmt"
	"strings"
	"unicode"

	"codeberg.org/go-pdf/fpdf"
	"golang.org/x/image/font/sfnt"
)

//go:embed fonts/*.ttf
var fontFiles embed.FS

// face is a weight.
type face string

const (
	plain face = ""
	bold  face = "B"
)

const (
	latin    = "dejavu"
	fallback = "droid" // Chinese, Japanese, Korean; one weight
	tofu     = '□'     // in the Latin font: what neither has
)

// pen writes text in the document's fonts. The PDF library drops or boxes what a
// font lacks, so every text is cut into runs that one font can draw.
type pen struct {
	pdf      *fpdf.Fpdf
	has      map[string]*sfnt.Font // glyphs by family
	fallback []byte                // loaded into the PDF when first needed: it is 4 MB
	loaded   *bool
	buffer   *sfnt.Buffer
}

func newPen(pdf *fpdf.Fpdf) (pen, error) {
	p := pen{pdf: pdf, has: map[string]*sfnt.Font{}, loaded: new(bool), buffer: &sfnt.Buffer{}}
	for _, f := range []struct {
		family, file string
		face         face
	}{{latin, "DejaVuSans.ttf", plain}, {latin, "DejaVuSans-Bold.ttf", bold}, {fallback, "DroidSansFallbackFull.ttf", plain}} {
		data, err := fontFiles.ReadFile("fonts/" + f.file)
		if err != nil {
			return p, err
		}
		if f.face == plain {
			if p.has[f.family], err = sfnt.Parse(data); err != nil {
				return p, fmt.Errorf("read font %s: %w", f.file, err)
			}
		}
		if f.family == fallback {
			p.fallback = data
			continue
		}
		pdf.AddUTF8FontFromBytes(f.family, string(f.face), data)
	}
	return p, pdf.Error()
}

// run is a stretch of text in one font.
type run struct{ family, text string }

func (p *pen) runs(text string) []run {
	var out []run
	for _, r := range text {
		if unicode.IsControl(r) {
			r = ' '
		}
		family := latin
		switch {
		case p.drawn(latin, r):
		case p.drawn(fallback, r):
			family = fallback
		default:
			r = tofu
		}
		if n := len(out); n > 0 && out[n-1].family == family {
			out[n-1].text += string(r)
		} else {
			out = append(out, run{family, string(r)})
		}
	}
	return out
}

// drawn tells whether a font has a glyph for r. The library's subsets hold no
// more than the basic plane.
func (p *pen) drawn(family string, r rune) bool {
	if r > 0xffff {
		return false
	}
	i, err := p.has[family].GlyphIndex(p.buffer, r)
	return err == nil && i != 0
}

func (p *pen) use(family string, f face, size float64) {
	if family == fallback {
		if !*p.loaded {
			p.pdf.AddUTF8FontFromBytes(fallback, "", p.fallback)
			*p.loaded = true
		}
		f = plain
	}
	p.pdf.SetFont(family, string(f), size)
}

// measure is the width of text in millimetres.
func (p *pen) measure(text string, size float64, f face) (w float64) {
	for _, r := range p.runs(text) {
		p.use(r.family, f, size)
		w += p.pdf.GetStringWidth(r.text)
	}
	return w
}

// write draws text with its baseline starting at x, y.
func (p *pen) write(x, y, size float64, f face, c colour, text string) {
	p.pdf.SetTextColor(c.r, c.g, c.b)
	for _, r := range p.runs(text) {
		p.use(r.family, f, size)
		p.pdf.Text(x, y, r.text)
		x += p.pdf.GetStringWidth(r.text)
	}
}

// writeRight draws text that ends at x.
func (p *pen) writeRight(x, y, size float64, f face, c colour, text string) {
	p.write(x-p.measure(text, size, f), y, size, f, c, text)
}

// fit cuts text to room, with an ellipsis where something was cut.
func (p *pen) fit(text string, size float64, f face, room float64) string {
	if p.measure(text, size, f) <= room {
		return text
	}
	letters := []rune(text)
	for len(letters) > 0 && p.measure(string(letters)+"…", size, f) > room {
		letters = letters[:len(letters)-1]
	}
	return strings.TrimRight(string(letters), " ") + "…"
}

// wrap breaks text into lines no wider than room, at spaces where it can.
func (p *pen) wrap(text string, size float64, f face, room float64) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		longer := strings.TrimPrefix(line+" "+word, " ")
		if p.measure(longer, size, f) <= room {
			line = longer
			continue
		}
		if line != "" {
			lines = append(lines, line)
		}
		for letters := []rune(word); len(letters) > 1 && p.measure(word, size, f) > room; letters = []rune(word) { // a word wider than the room
			n := len(letters) - 1
			for n > 1 && p.measure(string(letters[:n]), size, f) > room {
				n--
			}
			lines = append(lines, string(letters[:n]))
			word = string(letters[n:])
		}
		line = word
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

func (p *pen) fill(c colour) { p.pdf.SetFillColor(c.r, c.g, c.b) }

func (p *pen) stroke(c colour, width float64) {
	p.pdf.SetDrawColor(c.r, c.g, c.b)
	p.pdf.SetLineWidth(width)
}

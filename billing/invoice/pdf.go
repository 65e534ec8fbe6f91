package invoice

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"codeberg.org/go-pdf/fpdf"

	"berth/money"
)

// The page, in millimetres.
const (
	pageWidth  = 210.0
	pageHeight = 297.0
	margin     = 18.0
	bottom     = pageHeight - 22 // below it is the footer's
	width      = pageWidth - 2*margin

	usedRight  = margin + 118
	priceRight = margin + 150
	sumRight   = margin + width
)

type colour struct{ r, g, b int }

// The colours of the pages' light theme.
var (
	ink    = colour{0x1c, 0x23, 0x22}
	faint  = colour{0x5f, 0x67, 0x63}
	accent = colour{0x0a, 0x64, 0x68}
	rule   = colour{0xdc, 0xd4, 0xc4}
	mast   = colour{0x85, 0x7f, 0x70}
	warn   = colour{0x85, 0x50, 0x00}
	warned = colour{0xf8, 0xe6, 0xc4}
)

// page draws one document.
type page struct {
	*fpdf.Fpdf
	pen
	doc  Document
	cur  money.Currency
	zone *time.Location
	y    float64 // where the next thing is drawn
}

// PDF draws the document on A4. The same document always gives the same bytes.
func PDF(d Document) ([]byte, error) {
	cur, err := money.LookupCurrency(d.Currency)
	if err != nil {
		return nil, err
	}
	p := &page{Fpdf: fpdf.New("P", "mm", "A4", ""), doc: d, cur: cur, zone: d.Zone()}
	p.SetCatalogSort(true)
	p.SetCreationDate(d.IssuedAt.UTC())
	p.SetModificationDate(d.IssuedAt.UTC())
	p.SetProducer("Berth", false)
	p.SetTitle(d.Title(), true)
	p.SetAuthor(d.Seller.Name, true)
	p.SetLang("en")
	p.SetMargins(margin, margin, margin)
	p.SetAutoPageBreak(false, 0)
	p.AliasNbPages("{pages}")
	if p.pen, err = newPen(p.Fpdf); err != nil {
		return nil, err
	}
	p.SetFooterFunc(p.footer)

	p.AddPage()
	p.header()
	p.parties()
	p.lines()
	p.totals()
	p.notes()
	p.details()

	var out bytes.Buffer
	if err := p.Output(&out); err != nil {
		return nil, fmt.Errorf("draw invoice %s: %w", d.Number, err)
	}
	return out.Bytes(), nil
}

func (p *page) header() {
	p.y = margin
	if p.doc.TestPayments != "" {
		p.fill(warned)
		p.Rect(0, 0, pageWidth, 9, "F")
		p.write(margin, 6, 8.5, bold, warn, p.fit(p.doc.TestPayments, 8.5, bold, width))
		p.y = margin + 2
	}
	p.mark(margin, p.y)
	p.write(margin+9, p.y+4.5, 11, bold, ink, p.fit(p.doc.Seller.Name, 11, bold, 110))
	if p.doc.Number != "" {
		state := "Paid from wallet"
		p.writeRight(sumRight, p.y+4.3, 9, plain, ink, state)
		p.fill(accent)
		p.Circle(sumRight-p.measure(state, 9, plain)-3.2, p.y+3, 1.2, "F")
	}
	p.y += 18
	p.write(margin, p.y, 22, bold, ink, p.doc.Title())
	p.y += 8
	p.quay(p.y)
	p.y += 11
}

// mark draws Berth's sign, 28 by 20 units at 0.25 mm.
func (p *page) mark(x, y float64) {
	const u = 0.25
	at := func(ux, uy float64) (float64, float64) { return x + ux*u, y + uy*u }
	move := func(ux, uy float64) { mx, my := at(ux, uy); p.MoveTo(mx, my) }
	line := func(ux, uy float64) { lx, ly := at(ux, uy); p.LineTo(lx, ly) }
	bend := func(cx, cy, ux, uy float64) {
		bx, by := at(cx, cy)
		ex, ey := at(ux, uy)
		p.CurveTo(bx, by, ex, ey)
	}
	p.fill(accent)
	move(1.5, 0)
	line(14.5, 0)
	bend(16, 0, 16, 1.5)
	line(16, 9)
	line(12.5, 13)
	line(12.5, 18.5)
	bend(12.5, 20, 11, 20)
	line(1.5, 20)
	bend(0, 20, 0, 18.5)
	line(0, 1.5)
	bend(0, 0, 1.5, 0)
	p.ClosePath()
	p.DrawPath("F")
	p.stroke(accent, 1.6*u)
	move(19.4, .8)
	line(26.2, .8)
	bend(27.2, .8, 27.2, 1.8)
	line(27.2, 18.2)
	bend(27.2, 19.2, 26.2, 19.2)
	line(16.3, 19.2)
	line(16.3, 13.6)
	line(19.4, 9.8)
	p.ClosePath()
	p.DrawPath("D")
}

// quay draws the ruler: eight memory slices above, seven compute slices below.
func (p *page) quay(y float64) {
	p.stroke(mast, 0.25)
	p.Line(margin, y, margin+width, y)
	for i := range 9 {
		x := margin + width*float64(i)/8
		p.Line(x, y-1.6, x, y)
	}
	for i := range 8 {
		x := margin + width*float64(i)/7
		p.Line(x, y, x, y+1.6)
	}
}

func (p *page) parties() {
	const fromX, toX = margin + 72, margin + 124
	top := p.y
	pairs := [][2]string{{"Period", ""}, {"Issued", p.doc.IssuedAt.In(p.zone).Format("2 Jan 2006")}}
	if p.doc.Number != "" {
		pairs = append(pairs, [2]string{"Due", "Nothing to pay"})
	} else {
		pairs[1][0] = "As of"
	}
	y := top
	for _, pair := range pairs {
		p.write(margin, y, 8.5, plain, faint, pair[0])
		if pair[0] == "Period" {
			for i, text := range p.wrap(p.doc.Period(), 8.5, plain, 50) {
				if i > 0 {
					y += 4.4
				}
				p.write(margin+18, y, 8.5, plain, ink, text)
			}
		} else {
			p.write(margin+18, y, 8.5, plain, ink, pair[1])
		}
		y += 6
	}
	lowest := max(y, p.party(fromX, top, 48, "From", p.doc.Seller), p.party(toX, top, width-124, "To", p.doc.Buyer))
	p.y = lowest + 6
}

func (p *page) party(x, y, room float64, label string, who Party) float64 {
	p.write(x, y, 7.5, plain, faint, label)
	y += 4.6
	for _, text := range p.wrap(who.Name, 8.5, bold, room) {
		p.write(x, y, 8.5, bold, ink, text)
		y += 4.4
	}
	address := who.Address
	if who.TaxID != "" {
		address = append(append([]string(nil), address...), "VAT "+who.TaxID)
	}
	for _, row := range address {
		for _, text := range p.wrap(row, 8, plain, room) {
			p.write(x, y, 8, plain, ink, text)
			y += 4.2
		}
	}
	return y
}

// room starts a new page unless h millimetres are left.
func (p *page) room(h float64, onNew func()) {
	if p.y+h <= bottom {
		return
	}
	p.AddPage()
	p.y = margin + 4
	if onNew != nil {
		onNew()
	}
}

func (p *page) line(y float64) {
	p.stroke(rule, 0.25)
	p.Line(margin, y, sumRight, y)
}

func (p *page) tableHead() {
	p.write(margin, p.y, 7.5, plain, faint, "What")
	p.writeRight(usedRight, p.y, 7.5, plain, faint, "Used")
	p.writeRight(priceRight, p.y, 7.5, plain, faint, "Price")
	p.writeRight(sumRight, p.y, 7.5, plain, faint, p.cur.Code)
	p.y += 2.6
	p.line(p.y)
	p.y += 5.4
}

func (p *page) lines() {
	p.tableHead()
	if len(p.doc.Lines) == 0 {
		p.write(margin, p.y, 9, plain, faint, "Nothing was used.")
		p.y += 4
		p.line(p.y)
		p.y += 5
	}
	const room = usedRight - margin - 24
	for _, l := range p.doc.Lines {
		var small []string
		for _, text := range []string{l.Detail, l.Share} {
			if text != "" {
				small = append(small, p.wrap(text, 7.5, plain, room)...)
			}
		}
		p.room(float64(len(small))*4+8, p.tableHead)
		middle := p.y + float64(len(small))*2
		p.write(margin, p.y, 9, plain, ink, p.fit(l.Text, 9, plain, room))
		p.writeRight(usedRight, middle, 9, plain, ink, grouped(l.Seconds)+" s")
		p.writeRight(priceRight, middle, 9, plain, ink, p.cur.FormatRateHour(l.PricePerHour))
		p.writeRight(sumRight, middle, 9, plain, ink, l.Sum(p.cur))
		for _, text := range small {
			p.y += 4
			p.write(margin, p.y, 7.5, plain, faint, text)
		}
		p.y += 3.2
		p.line(p.y)
		p.y += 5.4
	}
}

// totals is kept together: half of it on the next page would read as a wrong sum.
func (p *page) totals() {
	const left = margin + 108
	p.room(45, nil)
	p.y += 4
	row := func(label, value string, face face) {
		tone := ink
		if face == plain {
			tone = faint
		}
		p.write(left, p.y, 9, face, tone, label)
		p.writeRight(sumRight, p.y, 9, face, ink, value)
		p.y += 5.6
	}
	ruled := func() {
		p.stroke(rule, 0.25)
		p.Line(left, p.y-2.8, sumRight, p.y-2.8)
		p.y += 2
	}
	if p.doc.Number == "" {
		row("Total so far", p.cur.Format(p.doc.Total), bold)
		p.y += 4
		return
	}
	row("Total", p.cur.Format(p.doc.Total), bold)
	row("Paid from wallet", Bare(p.cur, -p.doc.Total), plain)
	ruled()
	row("To pay", p.cur.Format(0), bold)
	p.y += 4
}

func (p *page) notes() {
	for _, note := range p.doc.Notes(p.cur) {
		for _, text := range p.wrap(note, 7.5, plain, 120) {
			p.room(4, nil)
			p.write(margin, p.y, 7.5, plain, faint, text)
			p.y += 4
		}
	}
}

// details lists the spans of every line: what the sums are sums of.
func (p *page) details() {
	if len(p.doc.Lines) == 0 {
		return
	}
	p.y += 9
	p.room(30, nil)
	p.write(margin, p.y, 12, bold, ink, "Usage in detail")
	p.y += 4.6
	p.write(margin, p.y, 7.5, plain, faint, "Times are in "+p.zone.String()+". Amounts are before rounding.")
	p.y += 7
	for _, l := range p.doc.Lines {
		head := func() {
			p.write(margin, p.y, 8, bold, ink, p.fit(l.Text+" · "+l.Detail, 8, bold, width))
			p.y += 2
			p.line(p.y)
			p.y += 4.2
		}
		p.room(14, nil)
		head()
		for _, s := range l.Spans {
			p.room(4.4, head)
			p.write(margin, p.y, 7.5, plain, ink, s.Start.In(p.zone).Format("2 Jan 2006, 15:04:05")+" – "+s.End.In(p.zone).Format("2 Jan 2006, 15:04:05"))
			p.write(margin+76, p.y, 7.5, plain, faint, p.fit(string(s.ID), 7.5, plain, 50))
			p.writeRight(priceRight, p.y, 7.5, plain, ink, grouped(s.Seconds)+" s")
			p.writeRight(sumRight, p.y, 7.5, plain, ink, p.cur.FormatExact(s.Exact))
			p.y += 4.4
		}
		p.y += 3
	}
}

func (p *page) footer() {
	y := pageHeight - 12
	p.write(margin, y, 7, plain, faint, p.fit(p.doc.Seller.Name+" · "+p.doc.Title(), 7, plain, 120))
	// The number of pages is not known before all are drawn: room for two digits.
	text := "Page " + strconv.Itoa(p.PageNo()) + " of "
	p.write(sumRight-p.measure(text+"00", 7, plain), y, 7, plain, faint, text+"{pages}")
}

// grouped writes n with thousands in commas.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

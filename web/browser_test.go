package web

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/static"

	"github.com/a-h/templ"
	cdp "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/gorilla/websocket"
)

// patience is how long a browser may take; it only matters on failure.
const patience = 30 * time.Second

// portal is the least server the pages' scripts need: pages that tests can change,
// the stream of topics, and the two sockets.
type portal struct {
	t      *testing.T
	server *httptest.Server

	mu     sync.Mutex
	pages  map[string]templ.Component
	asked  []string    // path and query of each page given
	posted []string    // path and body of each form posted
	topics chan string // what the next line of the stream says
	socket chan *websocket.Conn
	after  chan string // the query of each socket opened
}

func startPortal(t *testing.T) *portal {
	p := &portal{t: t, pages: map[string]templ.Component{}, topics: make(chan string), socket: make(chan *websocket.Conn, 8), after: make(chan string, 8)}
	mux := http.NewServeMux()
	mux.Handle("GET /assets/", static.Handler())
	mux.HandleFunc("GET /live", p.stream)
	mux.HandleFunc("GET /instances/i-1/live", p.upgrade)
	mux.HandleFunc("GET /instances/i-1/terminal/socket", p.upgrade)
	mux.HandleFunc("POST /", p.post)
	mux.HandleFunc("GET /", p.page)
	p.server = httptest.NewServer(mux)
	t.Cleanup(func() {
		p.server.CloseClientConnections() // streams stay open as long as the page does
		p.server.Close()
	})
	return p
}

func (p *portal) show(path string, c templ.Component) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pages[path] = c
}

func (p *portal) page(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, ok := p.pages[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	p.asked = append(p.asked, r.URL.RequestURI())
	policy := "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	if strings.HasSuffix(r.URL.Path, "/terminal") {
		policy = strings.Replace(policy, "style-src 'self'", "style-src 'self' 'nonce-bm9uY2U'; style-src-attr 'unsafe-inline'", 1)
	}
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	var b bytes.Buffer
	if err := c.Render(r.Context(), &b); err != nil {
		p.t.Error(err)
	}
	_, _ = w.Write(b.Bytes())
}

func (p *portal) post(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	p.mu.Lock()
	p.posted = append(p.posted, r.URL.Path+" "+r.PostForm.Encode())
	p.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

func (p *portal) requests() (asked, posted string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.asked, "\n"), strings.Join(p.posted, "\n")
}

func (p *portal) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case topic := <-p.topics:
			_, _ = fmt.Fprintf(w, "event: change\ndata: %s\n\n", topic)
			_ = http.NewResponseController(w).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

func (p *portal) upgrade(w http.ResponseWriter, r *http.Request) {
	c, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
	if err != nil {
		return
	}
	p.after <- r.URL.RawQuery
	p.socket <- c
}

// changed tells the page that a topic has changed.
func (p *portal) changed(topic string) {
	p.t.Helper()
	select {
	case p.topics <- topic:
	case <-time.After(patience):
		p.t.Fatal("the page has not opened its stream")
	}
}

// connection waits for the page to open a socket.
func (p *portal) connection() (c *websocket.Conn, query string) {
	p.t.Helper()
	select {
	case c = <-p.socket:
		p.t.Cleanup(func() { _ = c.Close() })
		return c, <-p.after
	case <-time.After(patience):
		p.t.Fatal("the page has not opened its socket")
		return nil, ""
	}
}

// browser is one tab, with everything that went wrong in it.
type browser struct {
	t   *testing.T
	ctx context.Context
}

func startBrowser(t *testing.T) *browser {
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("no Chromium here: install the package chromium to test the pages' scripts")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-component-update", true))
	alloc, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx}
	b.do(chromedp.EmulateViewport(1280, 900))
	watch := `window.wrong = [];
		addEventListener("error", (e) => wrong.push(e.message));
		addEventListener("unhandledrejection", (e) => wrong.push(String(e.reason)));
		document.addEventListener("securitypolicyviolation", (e) => wrong.push("policy: " + e.violatedDirective + " " + e.blockedURI));`
	if _, err := chromedp.Call(ctx, cdp.AddScriptToEvaluateOnNewDocument, cdp.AddScriptToEvaluateOnNewDocumentParams{Source: watch}); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

func (b *browser) eval(expression string) string {
	b.t.Helper()
	out, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("String("+expression+")"))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return out
}

// until polls an expression until it gives want.
func (b *browser) until(expression, want string) {
	b.t.Helper()
	got := ""
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if got = b.eval(expression); got == want {
			return
		}
	}
	b.t.Fatalf("%s is %q, want %q; gone wrong: %s", expression, got, want, b.eval("wrong.join()"))
}

func (b *browser) nothingWrong() {
	b.t.Helper()
	if got := b.eval("wrong.join('; ')"); got != "" {
		b.t.Errorf("gone wrong in the page: %s", got)
	}
}

func css(selector string) string {
	return fmt.Sprintf("document.querySelector(%q)", selector)
}

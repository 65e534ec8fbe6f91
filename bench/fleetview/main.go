// Command fleetview opens the fleet page with 1,000 cards on 125 nodes, each
// ticking once a second, in Chromium, and tells how fluid it is: frames drawn, the
// longest that the page's own work kept one waiting, and texts changed, at rest and
// while the fleet changes each second, so that the page is fetched and drawn anew.
//
//	cd bench && go run ./fleetview
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"berth/bench/portal"
	"berth/models"
)

const nodes, cards = 125, 8

// observe counts for ten seconds.
const observe = `new Promise((done) => {
	let frames = 0, texts = 0, longest = 0, busy = 0;
	const changes = new MutationObserver((list) => { texts += list.length; });
	changes.observe(document.querySelector("main"), { subtree: true, characterData: true, childList: true });
	const tasks = new PerformanceObserver((list) => { for (const t of list.getEntries()) { longest = Math.max(longest, t.duration); busy += t.duration; } });
	tasks.observe({ type: "longtask" });
	const begin = performance.now();
	(function frame() {
		frames++;
		if (performance.now() - begin < 10000) return requestAnimationFrame(frame);
		changes.disconnect(); tasks.disconnect();
		done({ frames: frames / 10, texts: texts / 10, longest, busy: busy / 10, elements: document.querySelectorAll("*").length });
	})();
})`

type seen struct{ Frames, Texts, Longest, Busy, Elements float64 }

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "berth-fleetview-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p, err := portal.Open(ctx, filepath.Join(dir, "berth.db"))
	if err != nil {
		return err
	}
	cookie, uuids, err := p.JoinCards(ctx, nodes, cards)
	if err != nil {
		return err
	}
	var ticking sync.WaitGroup
	defer ticking.Wait()
	defer cancel()
	i := 0
	for id, list := range uuids {
		i++
		ticking.Go(func() { tick(ctx, p, id, list, time.Duration(i)*time.Second/nodes) })
	}

	path, err := exec.LookPath("chromium")
	if err != nil {
		return err
	}
	alloc, stop := chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.Flag("disable-gpu", true))...)
	defer stop()
	tab, stopTab := chromedp.NewContext(alloc)
	defer stopTab()
	if err := chromedp.Do(tab, chromedp.EmulateViewport(1280, 900)); err != nil {
		return err
	}
	name, value, _ := strings.Cut(cookie, "=")
	if _, err := chromedp.Call(tab, network.SetCookie, network.SetCookieParams{Name: name, Value: value, URL: p.URL}); err != nil {
		return err
	}
	if err := chromedp.Do(tab, chromedp.Navigate(p.URL+"/fleet")); err != nil {
		return err
	}
	if err := watch(tab, "at rest"); err != nil {
		return err
	}
	var changing sync.WaitGroup
	changes, calm := context.WithCancel(ctx)
	changing.Go(func() { change(changes, p) })
	err = watch(tab, "with a change each second")
	calm()
	changing.Wait()
	return err
}

func watch(tab context.Context, when string) error {
	s, err := chromedp.Run(tab, chromedp.Evaluate[seen](observe, chromedp.EvalAwaitPromise))
	if err != nil {
		return err
	}
	fmt.Printf("%-26s %.0f frames/s, %.0f texts/s, longest task %.0f ms, %.0f ms/s in long tasks, %.0f elements\n", when, s.Frames, s.Texts, s.Longest, s.Busy, s.Elements)
	return nil
}

func tick(ctx context.Context, p *portal.Portal, id models.NodeID, uuids []string, offset time.Duration) {
	timer := time.NewTimer(offset)
	defer timer.Stop()
	for second := int64(1); ; second++ {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		timer.Reset(time.Second)
		if err := p.TickCards(ctx, id, uuids, second); err != nil && ctx.Err() == nil {
			log.Print(err)
		}
	}
}

// change says once a second that something of the fleet has changed.
func change(ctx context.Context, p *portal.Portal) {
	each := time.NewTicker(time.Second)
	defer each.Stop()
	for {
		select {
		case <-each.C:
			p.Store.Notify("fleet")
		case <-ctx.Done():
			return
		}
	}
}

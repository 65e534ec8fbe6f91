package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/centrifugal/centrifuge"

	"berth/bench/portal"
)

// ready is what a server says once it listens.
type ready struct {
	Kind    string
	URLs    []string // of the WebSocket, one per group of instances that is watched
	Cookies []string // a session for each viewer; berth only
}

// usage is what a server has used since it began.
type usage struct {
	CPU time.Duration
	RSS int64 // bytes
}

// server is a server in a process of its own.
type server struct {
	ready ready
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
}

func start(ctx context.Context, kind string, l load) (*server, error) {
	cmd := exec.CommandContext(ctx, os.Args[0], "-serve", kind, "-instances", strconv.Itoa(l.Instances), "-viewers", strconv.Itoa(l.Viewers), "-nodes", strconv.Itoa(l.Nodes), "-watch", strconv.Itoa(l.Watch), "-profile", l.Profile)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{cmd: cmd, in: in, out: bufio.NewReader(out)}
	if err := s.read(&s.ready); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func (s *server) read(v any) error {
	line, err := s.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("the server ended: %w", err)
	}
	return json.Unmarshal(line, v)
}

func (s *server) usage() (u usage, err error) {
	if _, err := io.WriteString(s.in, "\n"); err != nil {
		return u, err
	}
	return u, s.read(&u)
}

func (s *server) stop() error {
	return errors.Join(s.in.Close(), s.cmd.Wait())
}

// serve is the server's process: it says where it listens, then what it has used
// for each line it reads.
func serve(ctx context.Context, kind string, l load) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	open := map[string]func(context.Context, load) (ready, func(node int) error, error){"berth": berth, "centrifuge": centrifugal}[kind]
	if open == nil {
		return fmt.Errorf("no server is called %q", kind)
	}
	r, tick, err := open(ctx, l)
	if err != nil {
		return err
	}
	r.Kind = kind
	if l.Profile != "" && kind == "berth" {
		f, err := os.Create(l.Profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	answers := json.NewEncoder(os.Stdout)
	if err := answers.Encode(r); err != nil {
		return err
	}
	failed := make(chan error, l.Nodes)
	began := time.Now()
	for n := range l.Nodes {
		go func() {
			for due := began.Add(time.Duration(n) * time.Second / time.Duration(l.Nodes)); ; due = due.Add(time.Second) {
				time.Sleep(time.Until(due))
				if err := tick(n); err != nil {
					failed <- err
				}
			}
		}()
	}
	asked := make(chan bool)
	go func() {
		defer close(asked)
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			asked <- true
		}
	}()
	for {
		select {
		case err := <-failed:
			return err
		case _, ok := <-asked:
			if !ok {
				return nil
			}
			u, err := used()
			if err != nil {
				return err
			}
			if err := answers.Encode(u); err != nil {
				return err
			}
		}
	}
}

func used() (u usage, err error) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return u, err
	}
	u.CPU = time.Duration(r.Utime.Nano() + r.Stime.Nano())
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return u, err
	}
	pages, err := strconv.ParseInt(strings.Fields(string(b))[1], 10, 64)
	u.RSS = pages * int64(os.Getpagesize())
	return u, err
}

// berth is the portal on a SQLite file.
func berth(ctx context.Context, l load) (r ready, tick func(int) error, err error) {
	dir, err := os.MkdirTemp("", "berth-bench-")
	if err != nil {
		return r, nil, err
	}
	context.AfterFunc(ctx, func() { _ = os.RemoveAll(dir) })
	p, err := portal.Open(ctx, filepath.Join(dir, "berth.db"))
	if err != nil {
		return r, nil, err
	}
	for n := range l.Nodes {
		if err := p.Join(ctx, fmt.Sprintf("node-%d", n), l.Instances/l.Nodes); err != nil {
			return r, nil, err
		}
		base := "ws" + strings.TrimPrefix(p.URL, "http") + "/api/v1/instances/"
		for group := range slices.Chunk(p.Nodes[n].Instances, l.Watch) {
			if l.Watch == 1 {
				r.URLs = append(r.URLs, base+string(group[0])+"/live?after="+strconv.FormatInt(time.Now().Unix(), 10))
				continue
			}
			ids := url.Values{}
			for _, id := range group {
				ids.Add("id", string(id))
			}
			r.URLs = append(r.URLs, base+"live?"+ids.Encode())
		}
	}
	r.Cookies, err = p.Cookies(ctx, l.Viewers)
	return r, func(n int) error { return p.Tick(ctx, p.Nodes[n]) }, err
}

// centrifugal is a centrifuge node as its documentation sets one up, with the
// pool of write buffers, which saves it memory.
func centrifugal(_ context.Context, l load) (r ready, tick func(int) error, err error) {
	node, err := centrifuge.New(centrifuge.Config{})
	if err != nil {
		return r, nil, err
	}
	node.OnConnecting(func(context.Context, centrifuge.ConnectEvent) (centrifuge.ConnectReply, error) {
		return centrifuge.ConnectReply{Credentials: &centrifuge.Credentials{UserID: "bench"}}, nil
	})
	node.OnConnect(func(c *centrifuge.Client) {
		c.OnSubscribe(func(_ centrifuge.SubscribeEvent, answer centrifuge.SubscribeCallback) {
			answer(centrifuge.SubscribeReply{}, nil)
		})
	})
	if err := node.Run(); err != nil {
		return r, nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return r, nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/connection", centrifuge.NewWebsocketHandler(node, centrifuge.WebsocketConfig{UseWriteBufferPool: true, ReadBufferSize: 512}))
	go func() { panic(http.Serve(listener, mux)) }()
	for range l.Instances / l.Watch {
		r.URLs = append(r.URLs, "ws://"+listener.Addr().String()+"/connection")
	}
	seconds := make([]int64, l.Nodes)
	return r, func(n int) error {
		seconds[n]++
		each := l.Instances / l.Nodes
		for i := range each {
			now := time.Now()
			b, err := json.Marshal(sample{Seq: now.Unix(), At: now.UTC(), UtilizationPercent: 37.5, MemoryMiB: 8123, TemperatureC: 61.5, PowerW: 243.75})
			if err != nil {
				return err
			}
			if _, err := node.Publish(channel(n*each+i), b); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

func channel(instance int) string { return fmt.Sprintf("instance:%d", instance) }

// sample has the fields and the size of what the portal sends.
type sample struct {
	Seq                int64     `json:"seq"`
	At                 time.Time `json:"at"`
	UtilizationPercent float64   `json:"utilization_percent"`
	MemoryMiB          int64     `json:"memory_mib"`
	TemperatureC       float64   `json:"temperature_c"`
	PowerW             float64   `json:"power_w"`
}

package jail

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"

	"berth/agent/runtime"

	"golang.org/x/sys/unix"
)

// loadServer hears what berth-load asks for. A wish lives as long as the
// connection that made it, so one whose process was killed is never left over.
type loadServer struct {
	listener *net.UnixListener
	changed  func(runtime.LoadTarget)

	mu     sync.Mutex
	wishes map[*net.UnixConn]runtime.LoadTarget
}

// loadRequest is the one line berth-load sends; the answer is one line of text,
// "ok" or what is wrong.
type loadRequest struct {
	Off bool `json:"off,omitempty"` // end all wishes
	runtime.LoadTarget
}

// maxWishes bounds what a renter can make pid 1 keep.
const maxWishes = 64

func listenLoad(name string, changed func(runtime.LoadTarget)) (*loadServer, error) {
	if !strings.HasPrefix(name, "@") {
		unix.Unlink(name)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return nil, err
	}
	s := &loadServer{listener: l, changed: changed, wishes: map[*net.UnixConn]runtime.LoadTarget{}}
	go func() {
		for {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			go s.hear(c)
		}
	}()
	return s, nil
}

func (s *loadServer) close() { s.listener.Close() }

func (s *loadServer) hear(c *net.UnixConn) {
	defer c.Close()
	r := bufio.NewReaderSize(c, 1024)
	line, err := r.ReadSlice('\n')
	if err != nil {
		return
	}
	var req loadRequest
	if err := json.Unmarshal(line, &req); err != nil {
		fmt.Fprintln(c, "not understood")
		return
	}
	if req.Off {
		s.endAll()
		fmt.Fprintln(c, "ok")
		return
	}
	if !(req.UtilizationPercent >= 0 && req.UtilizationPercent <= 100) || req.MemoryMiB < 0 || req.MemoryMiB > 1<<30 {
		fmt.Fprintln(c, "utilisation must be 0 to 100, memory 0 or more")
		return
	}
	req.Active = true
	if !s.set(c, req.LoadTarget) {
		fmt.Fprintln(c, "too many at once: end some with `berth-load off`")
		return
	}
	defer s.drop(c)
	fmt.Fprintln(c, "ok")
	r.ReadByte() // blocks until berth-load ends
}

func (s *loadServer) set(c *net.UnixConn, l runtime.LoadTarget) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.wishes) >= maxWishes {
		return false
	}
	s.wishes[c] = l
	s.tell()
	return true
}

func (s *loadServer) drop(c *net.UnixConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.wishes[c]; ok {
		delete(s.wishes, c)
		s.tell()
	}
}

func (s *loadServer) endAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.wishes {
		c.Close()
	}
	clear(s.wishes)
	s.tell()
}

// tell is called with mu held, so that the shim hears changes in order.
func (s *loadServer) tell() {
	var sum runtime.LoadTarget
	for _, l := range s.wishes {
		sum = sum.Add(l)
	}
	s.changed(sum)
}

// deviceList is devices.json inside an instance.
type deviceList struct {
	Simulated bool                  `json:"simulated"`
	Devices   []runtime.DeviceGrant `json:"devices"`
}

func readDevices() (l deviceList, err error) {
	path := os.Getenv("BERTH_DEVICES")
	if path == "" {
		path = "/.berth/devices.json"
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return l, fmt.Errorf("%w (this command works inside an instance)", err)
	}
	return l, json.Unmarshal(b, &l)
}

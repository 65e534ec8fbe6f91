package doctor

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/agent/runtime"
)

var good = runtime.Info{Driver: "sandbox", Rung: runtime.RungRoot, Isolated: true, Tried: []runtime.Attempt{{Rung: runtime.RungRoot}},
	Limits: runtime.Limits{CPU: runtime.Enforced, Memory: runtime.Enforced, Pids: runtime.Enforced, Disk: runtime.Watched}}

func find(t *testing.T, checks []Check, name string) Check {
	t.Helper()
	for _, c := range checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no check %q in %+v", name, checks)
	return Check{}
}

func TestDriver(t *testing.T) {
	root := t.TempDir()
	drives := true
	look := func() Check {
		return find(t, Run(t.Context(), Config{Dir: t.TempDir(), Root: root, Drives: drives}, good), "GPU driver")
	}
	if c := look(); c.State != Problem || !strings.Contains(c.Next, "nvidia-driver") || !strings.Contains(c.Next, "--simulate") {
		t.Errorf("without: %+v", c)
	}
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07\nGCC\n")
	if c := look(); c.State != Problem || !strings.Contains(c.Next, "persistenced") {
		t.Errorf("without device files: %+v", c)
	}
	for _, f := range []string{"dev/nvidiactl", "dev/nvidia0", "dev/nvidia1"} {
		put(f, "")
	}
	if c := look(); c.State != Problem || !strings.Contains(c.Next, "nvidia-modprobe") {
		t.Errorf("without CUDA's device file: %+v", c)
	}
	put("dev/nvidia-uvm", "")
	drives = false
	if c := look(); c.State != Problem || !strings.Contains(c.Next, "-tags nvml") {
		t.Errorf("built without NVML: %+v", c)
	}
	drives = true
	if c := look(); c.State != OK || !strings.Contains(c.Seen, "550.90.07; 2 card(s)") {
		t.Errorf("with: %+v", c)
	}
	if c := find(t, Run(t.Context(), Config{Dir: t.TempDir(), Root: t.TempDir(), Simulated: true}, good), "GPU driver"); c.State != OK || !strings.Contains(c.Seen, "simulated") {
		t.Errorf("simulated: %+v", c)
	}
}

func TestIsolation(t *testing.T) {
	none := runtime.Info{Tried: []runtime.Attempt{{Rung: runtime.RungRoot, Problem: "needs root"}}}
	plain := runtime.Info{Rung: runtime.RungProcess, Tried: []runtime.Attempt{{Rung: runtime.RungRoot, Problem: "needs root"}, {Rung: runtime.RungProcess}}}
	for name, tc := range map[string]struct {
		info   runtime.Info
		state  State
		limits State // empty: no such check
	}{
		"root":    {good, OK, OK},
		"nothing": {none, Problem, ""},
		"plain":   {plain, Warning, Warning},
	} {
		checks := isolation(tc.info)
		if checks[0].State != tc.state || (tc.state != OK) != (checks[0].Next != "") || tc.state != OK && !strings.Contains(checks[0].Seen, "needs root") {
			t.Errorf("%s: %+v", name, checks[0])
		}
		if (len(checks) == 2) != (tc.limits != "") || len(checks) == 2 && checks[1].State != tc.limits {
			t.Errorf("%s: %+v", name, checks)
		}
	}
}

func TestPortalAndClock(t *testing.T) {
	skew := time.Duration(0)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", time.Now().Add(skew).UTC().Format(http.TimeFormat))
	}))
	defer srv.Close()
	for off, want := range map[time.Duration]State{0: OK, 10 * time.Second: Warning, -time.Hour: Problem, time.Hour: Problem} {
		skew = off
		checks := Run(t.Context(), Config{Dir: t.TempDir(), Portal: srv.URL + "/"}, good)
		if c := find(t, checks, "clock"); c.State != want {
			t.Errorf("%s off: %+v", off, c)
		}
		if c := find(t, checks, "portal"); c.State != OK {
			t.Errorf("%+v", c)
		}
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	if c := find(t, Run(t.Context(), Config{Dir: t.TempDir(), Portal: gone.URL}, good), "portal"); c.State != Problem || !strings.Contains(c.Seen, "404") {
		t.Errorf("another server: %+v", c)
	}
	gone.Close()
	checks := Run(t.Context(), Config{Dir: t.TempDir(), Portal: gone.URL}, good)
	if c := find(t, checks, "portal"); c.State != Problem || !strings.Contains(c.Seen, "refused") || Healthy(checks) {
		t.Errorf("gone: %+v", c)
	}
}

// A clock that is off shows first as a certificate out of its time.
func TestCertificateOutOfItsTime(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now().Add(time.Hour)
	like := x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: begin, NotAfter: begin.Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, &like, &like, public, private)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: private}}}
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	c := find(t, Run(t.Context(), Config{Dir: t.TempDir(), Portal: srv.URL}, good), "portal")
	if c.State != Problem || !strings.Contains(c.Next, "clock") {
		t.Errorf("%+v", c)
	}
}

func TestPortAndDisk(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	checks := Run(t.Context(), Config{Dir: filepath.Join(t.TempDir(), "not", "there", "yet"), Metrics: l.Addr().String()}, good)
	if c := find(t, checks, "metrics port"); c.State != Problem || !strings.Contains(c.Next, "--metrics-listen") {
		t.Errorf("%+v", c)
	}
	if c := find(t, checks, "disk"); !strings.Contains(c.Seen, "GiB free") {
		t.Errorf("%+v", c)
	}
	if c := find(t, Run(t.Context(), Config{Dir: t.TempDir(), Metrics: "127.0.0.1:0"}, good), "metrics port"); c.State != OK {
		t.Errorf("%+v", c)
	}
	if s := fmt.Sprint(find(t, checks, "service manager").State); s != "ok" && s != "warning" {
		t.Error(s)
	}
}

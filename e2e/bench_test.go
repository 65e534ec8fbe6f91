package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkStart measures how long a portal and a whole `berth up` take from the
// command to the first answer, and what they hold in memory then.
//
//	go test ./e2e -run '^$' -bench Start -benchtime 5x
func BenchmarkStart(b *testing.B) {
	binary(b)
	b.Run("serve", func(b *testing.B) {
		var memory []float64
		for range b.N {
			b.StopTimer()
			dir := shortTempDir(b)
			b.StartTimer()
			p := start(b, nil, "serve", "--listen", "127.0.0.1:0", "--data", dir)
			until(b, "the portal ready", func() bool {
				_, rest, ok := strings.Cut(p.text(), "Portal: ")
				if !ok {
					return false
				}
				base, _, _ := strings.Cut(rest, " ")
				res, err := http.Get(base + "/readyz")
				return err == nil && res.Body.Close() == nil && res.StatusCode == http.StatusOK
			})
			b.StopTimer()
			memory = append(memory, resident(b, p.cmd.Process.Pid))
			p.terminate()
			b.StartTimer()
		}
		report(b, memory)
	})
	b.Run("up", func(b *testing.B) {
		var memory []float64
		for range b.N {
			p := up(b)
			b.StopTimer()
			total := 0.0
			for _, pid := range group(b, p.up.cmd.Process.Pid) {
				total += resident(b, pid)
			}
			memory = append(memory, total)
			p.up.terminate()
			b.StartTimer()
		}
		report(b, memory)
	})
}

func report(b *testing.B, memory []float64) {
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)*1000, "ms/start")
	b.ReportMetric(slices.Max(memory), "MiB")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkLaunch measures how long it takes from the launch request until the
// API says that the instance runs, on a whole `berth up`: placement, slice,
// sandbox, and the look from inside. Instances are ended one by one.
//
//	go test ./e2e -run '^$' -bench Launch -benchtime 50x
func BenchmarkLaunch(b *testing.B) {
	p := up(b)
	ada := p.signUp("ada@example.org")
	ada.topUp(100_000_000, "4242424242424242")
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		in := ada.launch("a100-80gb.1g.10gb")
		took = append(took, time.Since(began))
		b.StopTimer()
		ada.must(http.StatusAccepted, http.MethodPost, "/api/v1/instances/"+in.ID+"/terminate", nil, nil)
		ada.await(in.ID, "terminated")
		b.StartTimer()
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2])/1e6, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100])/1e6, "p99-ms")
}

// group lists the processes of a process group.
func group(b testing.TB, leader int) (pids []int) {
	b.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		b.Fatal(err)
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, after, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(after) // state, parent, group
		if len(fields) > 2 && fields[2] == strconv.Itoa(leader) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if err != nil {
				b.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

var rss = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)

// resident is the memory that a process holds, in MiB.
func resident(b *testing.B, pid int) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	m := rss.FindSubmatch(text)
	if m == nil {
		b.Fatalf("no VmRSS in %s", text)
	}
	n, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		b.Fatal(err)
	}
	return n / 1024
}

package stripe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// mockVersion is the stripe-mock whose bundled specification is of APIVersion.
// Newer ones describe an API that the library does not speak.
const mockVersion = "v0.183.0"

// mockBinary builds stripe-mock, once per machine, or skips with the reason.
func mockBinary(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("building stripe-mock takes a minute and a half: not with -short")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skipf("no folder to build stripe-mock in: %v", err)
	}
	dir := filepath.Join(cache, "berth-test", "stripe-mock-"+mockVersion)
	path := filepath.Join(dir, "stripe-mock")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	build := exec.CommandContext(ctx, "go", "install", "github.com/stripe/stripe-mock@"+mockVersion)
	build.Dir = t.TempDir() // outside this module
	build.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("stripe-mock cannot be built here: %v: %s", err, out)
	}
	return path
}

// startMock runs stripe-mock, strict about the version, until the test ends.
func startMock(t *testing.T) (address string) {
	t.Helper()
	binary := mockBinary(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	var said bytes.Buffer
	mock := exec.Command(binary, "-strict-version-check", "-http-addr", fmt.Sprintf("127.0.0.1:%d", port))
	mock.Stdout, mock.Stderr = &said, &said
	if err := mock.Start(); err != nil {
		t.Skipf("stripe-mock does not start: %v", err)
	}
	t.Cleanup(func() {
		_ = mock.Process.Kill()
		_ = mock.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	address = fmt.Sprintf("http://127.0.0.1:%d", port)
	deadline := time.Now().Add(30 * time.Second)
	for {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			conn.Close()
			return address
		}
		if time.Now().After(deadline) {
			t.Fatalf("stripe-mock does not answer: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Every request the gateway makes is one that Stripe's own specification takes.
func TestRequestsAreStripes(t *testing.T) {
	address := startMock(t)
	g, err := New(Config{Key: "sk_test_123", WebhookSecrets: []string{"whsec_x"}, BaseURL: address}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	ctx := context.Background()
	for name, call := range map[string]func() error{
		"Balance": func() error { return g.Balance(ctx) },
		"CreateCustomer": func() error {
			id, err := g.CreateCustomer(ctx, "customer:1", Customer{AccountID: "acc_1", Name: "Ada", Email: "ada@example.org"})
			if err == nil && id == "" {
				return errors.New("no customer id")
			}
			return err
		},
		"CreateCheckout": func() error {
			page, err := g.CreateCheckout(ctx, "topup:1", CheckoutRequest{TopupID: "top_1", Customer: "cus_1", Currency: "usd", Amount: 5000,
				Name: "Wallet top-up", SuccessURL: "https://berth.example/wallet?topup=top_1", CancelURL: "https://berth.example/wallet?topup=top_1",
				ExpiresAt: time.Now().Add(23 * time.Hour).Unix()})
			if err == nil && page.ID == "" {
				return errors.New("no page id")
			}
			return err
		},
		"GetCheckout": func() error {
			page, err := g.GetCheckout(ctx, "cs_test_1")
			if err == nil && page.ID == "" {
				return errors.New("no page id")
			}
			return err
		},
		"ExpireCheckout": func() error { _, err := g.ExpireCheckout(ctx, "cs_test_1"); return err },
		"ListRefunds":    func() error { _, err := g.ListRefunds(ctx, "ch_1"); return err },
	} {
		if err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

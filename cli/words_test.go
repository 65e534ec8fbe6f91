package cli

import (
	"bytes"
	"strings"
	"testing"
)

// TestHelpTellsNoSecrets: help texts are pasted into tickets.
func TestHelpTellsNoSecrets(t *testing.T) {
	t.Setenv("DATABASE_URL", "postgres://berth:hunter2@db/berth")
	t.Setenv("BERTH_DATABASE_URL", "postgres://berth:hunter2@db/berth")
	t.Setenv("BERTH_TOKEN", "brt_hunter2")
	for _, command := range []string{"up", "down", "serve", "agent"} {
		var out bytes.Buffer
		if code := Main([]string{command, "--help"}, &out, &out); code != exitOK || !strings.Contains(out.String(), "--data") {
			t.Errorf("%s --help: %d\n%s", command, code, &out)
		}
		if strings.Contains(out.String(), "hunter2") {
			t.Errorf("%s --help tells a secret:\n%s", command, &out)
		}
	}
}

// TestUpClaimsNoDoubleBesideStripe: with Stripe's key, money may be real.
func TestUpClaimsNoDoubleBesideStripe(t *testing.T) {
	t.Setenv("STRIPE_SECRET_KEY", "")
	if said := simulated(defaultCards); !strings.Contains(said, "no real money") {
		t.Errorf("without a key: %q", said)
	}
	t.Setenv("STRIPE_SECRET_KEY", "sk_live_hunter2")
	if said := simulated(defaultCards); strings.Contains(said, "no real money") || strings.Contains(said, "hunter2") {
		t.Errorf("with a key: %q", said)
	}
}

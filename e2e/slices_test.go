package e2e

import (
	"net/http"
	"testing"

	"berth/gpu"
)

// Two accounts share an A100: their slices lie apart, and what the catalogue
// counts follows the geometry of the card at each step.
func TestTwoAccountsOneCard(t *testing.T) {
	t.Parallel()
	b := up(t, "--simulate", "a100-80gb:1")
	card, err := gpu.Lookup("a100-80gb")
	if err != nil {
		t.Fatal(err)
	}
	ada, bob := b.signUp("ada@example.org"), b.signUp("bob@example.org")
	ada.topUp(25_000_000, "4242424242424242")
	bob.topUp(25_000_000, "4242424242424242")

	var used []gpu.Placement
	counts := func(after string) {
		t.Helper()
		var offers struct {
			Items []struct {
				SKU       string
				Available int
			}
		}
		until(t, "the counts to follow "+after, func() bool {
			ada.must(http.StatusOK, http.MethodGet, "/api/v1/offers", nil, &offers)
			for _, o := range offers.Items {
				sku, err := gpu.ParseSKU(o.SKU)
				if err != nil {
					t.Fatal(err)
				}
				profile, err := card.Profile(sku.Profile)
				if err != nil {
					t.Fatal(err)
				}
				if o.Available != card.CountFit(profile, used) {
					return false
				}
			}
			return len(offers.Items) > 0
		})
	}
	counts("the start")
	held := map[string]gpu.Placement{}
	for i, step := range []struct {
		who *caller
		sku string
	}{{ada, "a100-80gb.3g.40gb"}, {bob, "a100-80gb.1g.10gb"}, {ada, "a100-80gb.2g.20gb"}, {bob, "a100-80gb.1g.10gb"}} {
		in := step.who.launch(step.sku)
		if len(in.Slices) != 1 {
			t.Fatalf("step %d: slices %+v", i, in.Slices)
		}
		s := in.Slices[0]
		held[in.ID] = gpu.Placement{Profile: s.Profile, Start: s.Start, Size: s.Size}
		used = append(used, held[in.ID])
		if err := card.CheckLayout(used); err != nil {
			t.Fatalf("step %d: %v: %v", i, used, err)
		}
		counts(step.sku)
		if step.who == bob && i == 1 { // given back, it can be had again
			step.who.must(http.StatusAccepted, http.MethodPost, "/api/v1/instances/"+in.ID+"/stop", nil, nil)
			step.who.await(in.ID, "stopped")
			used = used[:len(used)-1]
			counts("a stop")
		}
	}
	t.Logf("on one card, apart: %v", used)
}

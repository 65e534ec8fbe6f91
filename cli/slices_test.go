package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestSlices(t *testing.T) {
	for _, tc := range []struct {
		args string
		code int
		says []string
	}{
		{"list", exitOK, []string{"a100-80gb", "rtx4090"}},
		{"list a100-80gb", exitOK, []string{"1g.10gb+me", "40192", "0,2,4,6"}},
		{"list rtx4090", exitOK, []string{"cannot be divided"}},
		{"fit a100-80gb --used 3g.40gb@0 1g.10gb 2g.20gb", exitOK, []string{"at 4,5,6; best at 6; 3 of them at most", "together  1g.10gb@6 2g.20gb@4"}},
		{"fit a100-80gb --used 3g.40gb@0,3g.40gb@4", exitOK, []string{"whole    fits nowhere", "all its starts are taken: 0, 1, 2, 3 by 3g.40gb@0; 4, 5, 6 by 3g.40gb@4"}},
		{"fit a100-80gb 3g.40gb 2g.20gb 2g.20gb 2g.20gb", exitOK, []string{"no arrangement has room"}},
		{"fit a100-80gb --used 1g.10gb@9", exitUsage, []string{"cannot lie there", "→ berth slices list a100-80gb"}},
		{"fit a100-80gb --used 1g.10gb@1 --used 2g.20gb@0", exitUsage, []string{"slices overlap"}},
		{"fit a100-81gb", exitUsage, []string{"unknown GPU model", "→ berth slices list"}},
		{"fit a100-80gb 9g.90gb", exitUsage, []string{"unknown slice profile"}},
		{"plan a100-80gb --busy 1g.10gb@3 --now 2g.20gb@0,3g.40gb@4 7x1g.10gb", exitOK, []string{"keep    1g.10gb@3", "remove  2g.20gb@0 3g.40gb@4"}},
		{"plan a100-80gb --now 3g.40gb@4 3g.40gb", exitOK, []string{"nothing to do"}},
		{"plan a100-80gb --busy 1g.10gb@3 4g.40gb 3g.40gb", exitFailed, []string{"slices in use are in the way: 1g.10gb@3"}},
		// The seed of this project claimed it: an A100 80GB in 40 + 3 × 20 + 3 × 10 GB.
		{"plan a100-80gb 3g.40gb 3x2g.20gb 3x1g.10gb", exitFailed, []string{"needs 13 memory units", "8 of them free"}},
		{"plan a100-80gb 99x1g.10gb", exitUsage, []string{"from 1 to 32 times"}},
	} {
		var out bytes.Buffer
		if code := Main(append([]string{"slices"}, strings.Fields(tc.args)...), &out, &out); code != tc.code {
			t.Errorf("%s: exit code %d, want %d", tc.args, code, tc.code)
		}
		for _, s := range tc.says {
			if !strings.Contains(out.String(), s) {
				t.Errorf("%s does not say %q:\n%s", tc.args, s, &out)
			}
		}
	}
}

func TestSlicesForScripts(t *testing.T) {
	ask := func(into any, args string) {
		t.Helper()
		var out, said bytes.Buffer
		if code := Main(append([]string{"slices"}, strings.Fields(args+" --json")...), &out, &said); code != exitOK {
			t.Fatalf("%s: %d %s", args, code, &said)
		}
		if err := json.Unmarshal(out.Bytes(), into); err != nil {
			t.Fatalf("%s: %v in %s", args, err, &out)
		}
	}
	var fit fitAnswer
	ask(&fit, "fit a100-80gb --used 4g.40gb@0 3g.40gb 4g.40gb")
	if *fit.Profiles[0].Best != 4 || fit.Profiles[1].Best != nil || fit.Profiles[1].Why == "" || fit.Together != nil {
		t.Errorf("%+v", fit)
	}
	var plan planAnswer
	ask(&plan, "plan a100-80gb --now 1g.10gb@0 2x3g.40gb")
	if plan.Keep == nil || len(plan.Keep) != 0 || len(plan.Remove) != 1 || len(plan.Make) != 2 {
		t.Errorf("%+v", plan)
	}
}

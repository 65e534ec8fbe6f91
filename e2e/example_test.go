package e2e

import (
	"os/exec"
	"strings"
	"testing"
)

// The example in docs does what it says.
func TestExampleScript(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here (Debian: apt-get install python3)")
	}
	b := up(t)
	out, err := exec.Command(python, "../docs/examples/first_instance.py", b.base).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "stopped after") || !strings.Contains(string(out), "ledger") {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

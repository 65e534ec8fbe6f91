package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestAgentUnit(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	unit := AgentUnit([]string{self, "agent", "--data", "/var/lib/my data", "--name", `50% "off" $HOME`})
	for _, want := range []string{"KillMode=process\n", "Restart=always\n", "Delegate=yes\n", `ExecStart=` + self + ` agent --data "/var/lib/my data" --name "50%% \"off\" $$HOME"` + "\n"} {
		if !strings.Contains(unit, want) {
			t.Errorf("%q is missing in:\n%s", want, unit)
		}
	}
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd-analyze is not installed (Debian: systemd), so systemd's own word is missing")
	}
	path := filepath.Join(t.TempDir(), "berth-agent.service")
	if err := os.WriteFile(path, []byte(unit), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("systemd-analyze", "verify", "--man=no", path).CombinedOutput(); err != nil || strings.Contains(string(out), "berth-agent.service:") {
		t.Errorf("%v\n%s", err, out)
	}
}

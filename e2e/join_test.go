package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A node's folder is copied to another host: the second is refused as long as the
// first is alive, is told what to do, and the operator sees it. Were the first to
// die, the second takes its place.
func TestCopiedKey(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: another host is another boot id")
	}
	if out, err := exec.Command("unshare", "-m", "true").CombinedOutput(); err != nil {
		t.Skipf("needs a mount namespace: %v %s", err, out)
	}
	t.Parallel()
	p := apart(t)
	copied := filepath.Join(p.dir, "copy")
	if out, err := exec.Command("cp", "-r", filepath.Join(p.dir, "agent"), copied).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	first := p.agent
	second := onAnotherHost(t, filepath.Join(p.dir, "boot_id"), 7, binary(t), "agent", "--data", copied, "--simulate", "a100-80gb:1")
	until(t, "the second to be refused", func() bool {
		return strings.Contains(second.text(), "Another host is linked with this node") && strings.Contains(second.text(), "give this host an empty one")
	})
	if strings.Contains(second.text(), "linked to the portal") {
		t.Error("two hosts acted on one node's desired state")
	}
	until(t, "the operator to be told", func() bool {
		_, page := p.operator().call(http.MethodGet, "/fleet", nil, nil, "Accept", "text/html")
		return strings.Contains(page, "Key in use twice")
	})
	ada := p.signUp("ada@example.org")
	ada.topUp(25_000_000, "4242424242424242")
	ada.launch("a100-80gb.1g.10gb") // the first goes on
	first.kill()
	until(t, "the second to take its place", func() bool { return strings.Contains(second.text(), "linked to the portal") })
}

// What speaks another version of the protocol is told which side to update.
func TestAgentFromTheFuture(t *testing.T) {
	t.Parallel()
	p := &berth{t: t, dir: shortTempDir(t)}
	p.serve("127.0.0.1:0")
	var join struct{ Token string }
	p.operator().must(http.StatusCreated, http.MethodPost, "/api/v1/nodes/join-tokens", nil, &join)
	key := "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	for version, says := range map[int]string{9: "Update this portal first", 0: "Update the agent on the node"} {
		status, text := p.operator().call(http.MethodPost, "/agent/v1/join", map[string]any{"token": join.Token, "name": "x", "public_key": key, "version": version}, nil)
		if status != http.StatusConflict || !strings.Contains(text, says) {
			t.Errorf("version %d: %d %s", version, status, text)
		}
	}
	// The token is not used up by that; the next release of the protocol may join.
	if status, text := p.operator().call(http.MethodPost, "/agent/v1/join", map[string]any{"token": join.Token, "name": "x", "public_key": key, "version": 2}, nil); status != http.StatusCreated {
		t.Errorf("a neighbouring version: %d %s", status, text)
	}
}

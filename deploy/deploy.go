// Package deploy holds the files for running Berth for good: systemd, Prometheus,
// Grafana. Only what a command writes is in the program.
package deploy

import (
	_ "embed"
	"strings"
)

//go:embed systemd/berth-agent.service
var agentUnit string

// AgentUnit is the systemd unit of an agent that is started so: the program's path
// and its arguments.
func AgentUnit(command []string) string {
	quoted := make([]string, len(command))
	for i, word := range command {
		quoted[i] = quote(word)
	}
	return strings.Replace(agentUnit, "@EXEC@", strings.Join(quoted, " "), 1)
}

// quote writes a word of ExecStart: systemd.service(5), "Command lines".
func quote(word string) string {
	word = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "$", "$$", "\n", `\n`).Replace(word)
	if word == "" || strings.ContainsAny(word, " \t'\";\\") {
		return `"` + word + `"`
	}
	return word
}

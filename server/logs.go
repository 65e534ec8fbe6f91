package server

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/labstack/echo/v4"

	"berth/models"
	"berth/web"
)

// logTail is how much of an instance's output its page shows, in bytes.
const logTail = 256 << 10

// logsPage handles GET /instances/{id}/logs: what the instance wrote, asked of
// its node.
func (s *Server) logsPage(c echo.Context) error {
	in, err := s.fleet.Instance(c.Request().Context(), identityOf(c).Account.ID, instanceID(c))
	if err != nil {
		return err
	}
	v := web.LogsView{ID: string(in.ID), Name: in.Name}
	if v.Layout, err = s.layout(c, "Output of "+in.Name, web.NavInstances); err != nil {
		return err
	}
	status := http.StatusOK
	text, err := s.links.logs(c.Request().Context(), in.Instance, logTail)
	var p *models.Problem
	switch {
	case errors.As(err, &p):
		status = statusOf(p)
		v.Problem = &web.Problem{What: p.What, Next: p.Next}
	case err != nil:
		// The link broke under the question: that is the node's absence, not ours.
		s.log.Warn("read an instance's output", "request", requestID(c), "instance", in.ID, "error", err)
		status = http.StatusServiceUnavailable
		v.Problem = &web.Problem{What: "The node does not answer.", Next: "The output is kept there; try again in a moment."}
	default:
		v.Text = plainText(text)
		if len(text) >= logTail {
			v.Note = fmt.Sprintf("The last %d KiB.", logTail>>10)
		}
	}
	return s.render(c, status, web.LogsPage(v))
}

// controls are what a terminal does not show: colours and moves (CSI), titles
// (OSC), other escapes, NUL and bell.
var controls = regexp.MustCompile("\x1b\\[[0-?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|\x1b[ -/]*[0-~]|[\x00\x07]")

// plainText is output as a page shows it: of a line that was written over, such as
// a progress bar, what stood last.
func plainText(raw []byte) string {
	text := controls.ReplaceAllString(strings.ToValidUTF8(string(raw), "\uFFFD"), "")
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		line = strings.TrimRight(line, "\r")
		lines[i] = line[strings.LastIndexByte(line, '\r')+1:]
	}
	return strings.Join(lines, "\n")
}

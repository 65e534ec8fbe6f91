package stripe

import (
	"fmt"
	"log/slog"
)

// logger hands the library's messages to slog. Its debug messages are left out:
// they hold whole answers, with names and addresses. An error is returned to the
// caller as well, who decides how bad it is.
type logger struct{ log *slog.Logger }

func (l logger) Debugf(string, ...any) {}
func (l logger) Infof(format string, v ...any) {
	l.log.Debug("stripe", "message", fmt.Sprintf(format, v...))
}
func (l logger) Warnf(format string, v ...any) {
	l.log.Info("stripe", "message", fmt.Sprintf(format, v...))
}
func (l logger) Errorf(format string, v ...any) {
	l.log.Warn("stripe", "message", fmt.Sprintf(format, v...))
}

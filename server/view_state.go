package server

import (
	"fmt"

	"berth/models"
	"berth/web"
)

// stateView is an instance's state in a word, and how it is coloured.
func stateView(in models.Instance) (string, web.Tone) {
	switch in.State {
	case models.Queued:
		return "Queued", web.ToneWaiting
	case models.Placing:
		return "Making the slice", web.ToneStarting
	case models.Pulling:
		if percent, ok := pulled(in); ok {
			return fmt.Sprintf("Fetching image, %d %%", percent), web.ToneStarting
		}
		return "Fetching image", web.ToneStarting
	case models.Starting:
		return "Starting", web.ToneStarting
	case models.Running:
		return "Running", web.ToneRunning
	case models.Stopping:
		if in.Want == models.WantGone {
			return "Terminating", web.ToneDrain
		}
		return "Stopping", web.ToneDrain
	case models.Stopped:
		return "Stopped, disk kept", web.ToneStopped
	case models.Failed:
		if in.RunningAt.IsZero() {
			return "Failed to start", web.ToneFailed
		}
		return "Failed", web.ToneFailed
	case models.Interrupted:
		return "Interrupted", web.ToneWarn
	case models.Lost:
		return "Node lost", web.ToneWarn
	case models.Terminated:
		return "Terminated", web.ToneStopped
	}
	return string(in.State), ""
}

// pulled is how much of the image is there, in percent; false when not known.
func pulled(in models.Instance) (int64, bool) {
	if in.PullTotal <= 0 {
		return 0, false
	}
	return min(100, in.PullDone*100/in.PullTotal), true
}

// roleName is a role for people.
func roleName(r models.Role) string {
	switch r {
	case models.Owner:
		return "Owner"
	case models.Billing:
		return "Billing"
	case models.Developer:
		return "Developer"
	case models.Viewer:
		return "Viewer"
	}
	return string(r)
}

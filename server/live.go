package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"berth/models"
	"berth/models/store"
)

// followed is how many instances of an account a live stream names one by one.
const followed = 500

// writePatience is how long a browser may take to read from a live stream.
const writePatience = 20 * time.Second

// live handles GET /live: server-sent events that name what has changed, as
// "event: change" with one of the topics of package web: wallet, instances,
// instance:<id>, fleet. It carries no data: the page asks again for what it
// shows. It ends at once when the session does, after a last change, so that the
// open page notices.
func (s *Server) live(c echo.Context) error {
	ctx, cancel := s.whileSignedIn(c)
	defer cancel()
	id := identityOf(c)
	watch, err := s.follow(ctx, id)
	if err != nil {
		return err
	}
	defer func() { watch.Close() }()
	h := c.Response().Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would keep it back
	c.Response().WriteHeader(http.StatusOK)
	send := liveSender(c)
	if err := send(": open\n\n"); err != nil {
		return nil // the browser has gone
	}
	beat := time.NewTicker(s.cfg.Heartbeat)
	defer beat.Stop()
	for {
		var events strings.Builder
		select {
		case <-ctx.Done():
			if c.Request().Context().Err() == nil && s.closing.Err() == nil {
				_ = send(changes([]string{"wallet", "instances", "fleet"}))
			}
			return nil
		case <-beat.C:
			events.WriteString(": alive\n\n")
		case <-watch.C():
			topics := watch.Topics()
			events.WriteString(changes(pageTopics(topics)))
			if slices.ContainsFunc(topics, isInstances) {
				// There may be an instance that is not followed yet.
				fresh, err := s.follow(ctx, id)
				if err != nil {
					return nil // the browser comes back
				}
				events.WriteString(changes(pageTopics(watch.Topics())))
				watch.Close()
				watch = fresh
			}
		}
		if err := send(events.String()); err != nil {
			return nil // the browser has gone
		}
	}
}

// follow watches all that the pages of an account show.
func (s *Server) follow(ctx context.Context, id identity) (*store.Watch, error) {
	topics := []string{"account:" + string(id.Account.ID), "instances:" + string(id.Account.ID), "fleet", "prices"}
	err := s.store.View(ctx, func(tx *store.Tx) error {
		var states []models.InstanceState
		for _, state := range models.InstanceStates {
			if state != models.Terminated {
				states = append(states, state)
			}
		}
		list, _, err := tx.AccountInstances(id.Account.ID, states, "", followed)
		for _, in := range list {
			topics = append(topics, "instance:"+string(in.ID))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("follow account %s: %w", id.Account.ID, err)
	}
	return s.store.Watch(topics...), nil
}

func isInstances(topic string) bool { return strings.HasPrefix(topic, "instances:") }

// pageTopics are the names that pages know for topics of the store.
func pageTopics(topics []string) []string {
	var out []string
	for _, t := range topics {
		switch kind, _, _ := strings.Cut(t, ":"); kind {
		case "account":
			out = append(out, "wallet")
		case "instances":
			out = append(out, "instances")
		case "instance":
			out = append(out, t)
		case "fleet", "prices":
			out = append(out, "fleet")
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// changes writes topics as server-sent events. A topic has no line break.
func changes(topics []string) string {
	var b strings.Builder
	for _, t := range topics {
		b.WriteString("event: change\ndata: " + t + "\n\n")
	}
	return b.String()
}

// liveSender writes to a stream, with a deadline: a browser that stops reading
// must not keep a goroutine for ever.
func liveSender(c echo.Context) func(string) error {
	control := http.NewResponseController(c.Response())
	return func(text string) error {
		if text == "" {
			return nil
		}
		if err := control.SetWriteDeadline(time.Now().Add(writePatience)); err != nil {
			return err
		}
		if _, err := c.Response().Write([]byte(text)); err != nil {
			return err
		}
		return control.Flush()
	}
}

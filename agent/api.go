package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"berth/agent/runtime"
	"berth/wire"
)

// api answers the portal's requests inside the link.
type api struct {
	supervisor *supervisor
	sampler    *sampler
	state      func(context.Context) (wire.State, error)
}

// maxDesired is the largest desired state in bytes: some thousands of instances
// with long start-up scripts.
const maxDesired = 64 << 20

func (a *api) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/state", a.getState)
	mux.HandleFunc("PUT /v1/desired", a.putDesired)
	mux.HandleFunc("GET /v1/events", a.getEvents)
	mux.HandleFunc("GET /v1/samples", a.getSamples)
	mux.HandleFunc("POST /v1/instances/{id}/exec", a.exec)
	mux.HandleFunc("GET /v1/instances/{id}/logs", a.getLogs)
	return mux
}

func (a *api) getState(w http.ResponseWriter, r *http.Request) {
	state, err := a.state(r.Context())
	if err != nil {
		problem(w, http.StatusInternalServerError, "node", err)
		return
	}
	answer(w, state)
}

func (a *api) putDesired(w http.ResponseWriter, r *http.Request) {
	var d wire.Desired
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxDesired)).Decode(&d); err != nil {
		problem(w, http.StatusBadRequest, "malformed", fmt.Errorf("desired state: %w", err))
		return
	}
	if err := checkDesired(d); err != nil {
		problem(w, http.StatusUnprocessableEntity, "invalid", err)
		return
	}
	switch err := a.supervisor.put(r.Context(), d); {
	case errors.Is(err, errOlder):
		problem(w, http.StatusConflict, "older_generation", err)
	case err != nil:
		problem(w, http.StatusInternalServerError, "node", err)
	default:
		a.getState(w, r)
	}
}

// getEvents acknowledges up to after and streams what follows, old and new.
func (a *api) getEvents(w http.ResponseWriter, r *http.Request) {
	after, ok := number(w, r, "after", 0)
	if !ok {
		return
	}
	journal := a.supervisor.journal
	if err := journal.acknowledge(after); err != nil {
		problem(w, http.StatusInternalServerError, "node", err)
		return
	}
	stream := newStream(w)
	for {
		events, more := journal.after(after)
		for _, ev := range events {
			if !stream.send(ev) {
				return
			}
			after = ev.Seq
		}
		select {
		case <-more:
		case <-r.Context().Done():
			return
		}
	}
}

func (a *api) getSamples(w http.ResponseWriter, r *http.Request) {
	ticks, end := a.sampler.listen()
	defer end()
	stream := newStream(w)
	for {
		select {
		case t := <-ticks:
			if !stream.send(t) {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

func (a *api) getLogs(w http.ResponseWriter, r *http.Request) {
	run, ok := number(w, r, "run", 0)
	if !ok {
		return
	}
	tail, ok := number(w, r, "tail", -1)
	if !ok {
		return
	}
	text, err := a.supervisor.runtime.Logs(r.Context(), r.PathValue("id"), int(run), tail, false)
	switch {
	case errors.Is(err, runtime.ErrNotFound):
		problem(w, http.StatusNotFound, "not_found", err)
		return
	case err != nil:
		problem(w, http.StatusInternalServerError, "node", err)
		return
	}
	defer text.Close()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	io.Copy(w, text) // an error here is the reader's going away
}

// number reads a query parameter that may be absent.
func number(w http.ResponseWriter, r *http.Request, name string, absent int64) (int64, bool) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return absent, true
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		problem(w, http.StatusBadRequest, "malformed", fmt.Errorf("%s=%q is not a number of zero or above", name, text))
		return 0, false
	}
	return n, true
}

// stream writes one JSON line at a time and lets each go at once.
type stream struct {
	lines *json.Encoder
	flush func() error
}

func newStream(w http.ResponseWriter) stream {
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	s := stream{lines: json.NewEncoder(w), flush: http.NewResponseController(w).Flush}
	s.flush() // the headers; an error shows at the first line
	return s
}

// send returns false when the reader is gone.
func (s stream) send(v any) bool { return s.lines.Encode(v) == nil && s.flush() == nil }

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v) // an error here is the reader's going away
}

// problem answers with an RFC 9457 problem.
func problem(w http.ResponseWriter, status int, code string, err error) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{"status": status, "title": http.StatusText(status), "code": code, "detail": err.Error()})
}

package stripedouble

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// object is a Stripe object on its way out.
type object = map[string]any

// call is one API request after its checks.
type call struct {
	id   string // of the object in the address
	form form
}

// endpoint does one request's work inside one transaction.
type endpoint func(x *tx, c call) (object, error)

// reply is a stored answer under an idempotency key.
type reply struct {
	Method, Path, Params string // Params: hash of the parameters in canonical order
	Status               int
	Body                 []byte
	Created              int64
}

// old says whether Stripe would have forgotten the key.
func (r reply) old(now time.Time) bool { return r.Created < now.Add(-24*time.Hour).Unix() }

const maxBody = 1 << 20

// handle wraps an endpoint in everything Stripe does for every request.
func (s *Server) handle(rules []rule, do endpoint) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		request := newID("req_", 14)
		w.Header().Set("Request-Id", request)
		w.Header().Set("Stripe-Version", apiVersion)
		status, body, hangUp := s.answer(w, r, request, rules, do)
		if hangUp {
			// The change is on disk and the caller must not learn it: the connection
			// ends without an answer.
			panic(http.ErrAbortHandler)
		}
		writeJSON(w, status, body)
	}
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, request string, rules []rule, do endpoint) (status int, body []byte, hangUp bool) {
	fail := func(err *apiError) (int, []byte, bool) { return err.status, errorBody(err), false }
	if err := s.authorize(r); err != nil {
		return fail(err)
	}
	values, bad := readParams(w, r)
	if bad != nil {
		return fail(bad)
	}
	key := r.Header.Get("Idempotency-Key")
	if r.Method == http.MethodGet {
		key = ""
	}
	if len(key) > 255 {
		return fail(invalid("", "", "Idempotency keys can be at most 255 characters long."))
	}
	sum := sha256.Sum256([]byte(values.Encode()))
	asked := reply{Method: r.Method, Path: r.URL.Path, Params: hex.EncodeToString(sum[:])}

	if bad := s.takeRefusal(); bad != nil {
		return fail(bad)
	}
	err := s.update(func(x *tx) error {
		x.request, x.key = request, key
		if stored, ok := x.state.replies.get(key); key != "" && ok && !stored.old(x.now) {
			if stored.Method != asked.Method || stored.Path != asked.Path || stored.Params != asked.Params {
				return &apiError{status: http.StatusBadRequest, Type: "idempotency_error",
					Message: "Keys for idempotent requests can only be used with the same parameters they were first used with. Try using a key other than '" + key + "' if you meant to execute a different request."}
			}
			w.Header().Set("Idempotent-Replayed", "true")
			w.Header().Set("Idempotency-Key", key)
			status, body = stored.Status, stored.Body
			hangUp = x.takeHangUp(r.Method)
			return nil
		}
		form, err := newForm(values, rules)
		if err != nil {
			return err
		}
		out, doErr := do(x, call{id: r.PathValue("id"), form: form})
		var refusal *apiError
		switch {
		case doErr == nil:
			if doErr = x.expand(out, form.list("expand")); doErr != nil {
				return doErr
			}
			status, body = http.StatusOK, mustJSON(out)
		case errors.As(doErr, &refusal) && refusal.status == http.StatusPaymentRequired:
			status, body = refusal.status, errorBody(refusal)
		default:
			return doErr
		}
		if key != "" {
			asked.Status, asked.Body, asked.Created = status, body, x.now.Unix()
			x.state.replies.put(key, asked)
		}
		hangUp = x.takeHangUp(r.Method)
		return doErr
	})
	var refusal *apiError
	switch {
	case err == nil:
		return status, body, hangUp
	case errors.As(err, &refusal):
		return refusal.status, errorBody(refusal), hangUp && refusal.status == http.StatusPaymentRequired // only a decline was kept
	default:
		s.log.Error("test payment request", "method", r.Method, "path", r.URL.Path, "request", request, "error", err)
		return fail(wentWrong(http.StatusInternalServerError, "The test payments could not answer: "+err.Error()))
	}
}

// authorize checks key and version.
func (s *Server) authorize(r *http.Request) *apiError {
	key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if user, _, basic := r.BasicAuth(); basic {
		key, ok = user, true
	}
	refused := &apiError{status: http.StatusUnauthorized, Type: "invalid_request_error"}
	switch {
	case !ok || key == "":
		refused.Message = "You did not provide an API key. You need to provide your API key in the Authorization header, using Bearer auth (e.g. 'Authorization: Bearer YOUR_SECRET_KEY')."
		return refused
	case subtle.ConstantTimeCompare([]byte(key), []byte(s.cfg.SecretKey)) != 1:
		refused.Message = "Invalid API Key provided: " + masked(key)
		return refused
	}
	if v := r.Header.Get("Stripe-Version"); v != "" && v != apiVersion {
		return invalid("", "", "Invalid Stripe API version: %s. The test payments speak %s.", v, apiVersion)
	}
	return nil
}

// masked keeps what tells two keys apart and hides the rest.
func masked(key string) string {
	if len(key) < 16 {
		return strings.Repeat("*", len(key))
	}
	return key[:8] + strings.Repeat("*", len(key)-12) + key[len(key)-4:]
}

// readParams gives the parameters of the body, or of the address for a GET.
func readParams(w http.ResponseWriter, r *http.Request) (url.Values, *apiError) {
	raw := r.URL.RawQuery
	if r.Method != http.MethodGet {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			return nil, invalid("", "", "The request body could not be read, or is larger than %d bytes.", maxBody)
		}
		kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if len(body) > 0 && kind != "application/x-www-form-urlencoded" {
			return nil, invalid("", "", "Invalid request: the body must be application/x-www-form-urlencoded, not %q.", kind)
		}
		raw = string(body)
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, invalid("", "", "Invalid request: the parameters are not form-encoded.")
	}
	return values, nil
}

func (s *Server) unknownRoute(w http.ResponseWriter, r *http.Request) {
	if err := s.authorize(r); err != nil {
		writeJSON(w, err.status, errorBody(err))
		return
	}
	err := invalid("", "", "Unrecognized request URL (%s: %s). Berth's test payments know the requests Berth sends.", r.Method, r.URL.Path)
	writeJSON(w, http.StatusNotFound, errorBody(err))
}

func errorBody(err *apiError) []byte { return mustJSON(object{"error": err}) }

// mustJSON encodes what this package built itself: maps, strings and numbers.
func mustJSON(v any) []byte {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic("stripedouble: " + err.Error())
	}
	return append(body, '\n')
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	w.Write(body) // an error here is the caller's hang-up; the change stands
}

package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"
	"github.com/labstack/echo/v4"

	"berth/api"
	"berth/models"
	"berth/money"
)

// apiBodyLimit is the most that a JSON body may hold, in bytes.
const apiBodyLimit = 1 << 20

// restAPI is the JSON API: huma reads, validates and describes; the operations
// in the api_*.go files call fleet, billing or the store and map what comes back.
type restAPI struct {
	*Server
	huma  huma.API
	needs map[string]need // "GET /api/v1/me" → who may
}

type callerKey struct{}

// caller is who an API request acts as, and its number.
type caller struct {
	identity
	request string
	base    string // the origin it reached us at
}

func callerOf(ctx context.Context) caller {
	who, _ := ctx.Value(callerKey{}).(caller)
	return who
}

// newAPI mounts the API on the router.
func newAPI(s *Server) *restAPI {
	config := huma.DefaultConfig("Berth", s.cfg.Version)
	config.CreateHooks = nil // no $schema links in bodies
	config.DocsPath, config.SchemasPath = "", ""
	config.OpenAPIPath = "/openapi"
	config.Servers = []*huma.Server{{URL: api.Prefix}}
	config.Info.Description = "Money is {micros, currency} in micro-units, times are RFC 3339 UTC, ids are opaque. " +
		"Errors are RFC 9457 problems with code, detail and next. Send an Idempotency-Key with every POST that costs money."
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer", Description: "An API token, brt_…"}}
	config.Security = []map[string][]string{{"token": {}}}
	a := &restAPI{Server: s, needs: map[string]need{"GET " + api.Prefix + "/openapi.json": anyone}}
	config.Transformers = []huma.Transformer{a.explain}
	group := s.echo.Group(api.Prefix, a.admit)
	a.huma = humaecho.NewWithGroup(s.echo, group, config)
	a.accountOperations()
	a.catalogueOperations()
	a.instanceOperations()
	a.walletOperations()
	a.invoiceOperations()
	a.operatorOperations()
	a.historyOperations()
	a.describeSockets()
	a.describeProblems()
	return a
}

// admit lets through who may call an operation, and tells it who that is.
func (a *restAPI) admit(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		n, ok := a.needs[c.Request().Method+" "+c.Path()]
		if !ok {
			if others := a.methods(c.Request().URL.Path); len(others) > 0 {
				c.Response().Header().Set("Allow", strings.Join(others, ", "))
				return &models.Problem{Code: codeMethod, What: "This address does not take " + c.Request().Method + ".", Next: "Use " + strings.Join(others, " or ") + "."}
			}
			return httpProblem(http.StatusNotFound)
		}
		return a.guard(n, func(c echo.Context) error {
			who := caller{identity: identityOf(c), request: requestID(c), base: a.base(c)}
			c.SetRequest(c.Request().WithContext(context.WithValue(c.Request().Context(), callerKey{}, who)))
			if id, ok := strings.CutSuffix(c.Param("id"), ".pdf"); ok && c.Path() == api.Prefix+"/invoices/:id" {
				return a.sendPDF(c, models.InvoiceID(id))
			}
			return next(c)
		})(c)
	}
}

// methods lists what the address at path takes, sorted.
func (a *restAPI) methods(path string) (out []string) {
	asked := strings.Split(path, "/")
	for key := range a.needs {
		method, pattern, _ := strings.Cut(key, " ")
		parts := strings.Split(pattern, "/")
		same := len(parts) == len(asked)
		for i := 0; same && i < len(parts); i++ {
			same = parts[i] == asked[i] || strings.HasPrefix(parts[i], ":")
		}
		if same {
			out = append(out, method)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// operate registers one operation. Its errors become problems here.
func operate[I, O any](a *restAPI, n need, op huma.Operation, handler func(ctx context.Context, who caller, in *I) (*O, error)) {
	a.needs[op.Method+" "+api.Prefix+strings.NewReplacer("{", ":", "}", "").Replace(op.Path)] = n
	op.MaxBodyBytes = apiBodyLimit
	huma.Register(a.huma, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := handler(ctx, callerOf(ctx), in)
		if err != nil {
			return nil, a.problem(ctx, err)
		}
		return out, nil
	})
}

// problem writes err as the API does; what is nobody's fault but ours is logged.
func (a *restAPI) problem(ctx context.Context, err error) *api.Problem {
	p := problemOf(err)
	request := callerOf(ctx).request
	if p.Code == codeInternal {
		a.log.Error("request failed", "request", request, "error", err)
	}
	return problemJSON(p, request)
}

// explain turns huma's own refusals (a body that does not validate) into ours.
func (a *restAPI) explain(ctx huma.Context, _ string, v any) (any, error) {
	var refused *huma.ErrorModel
	if err, ok := v.(error); !ok || !errors.As(err, &refused) {
		return v, nil
	}
	p := &models.Problem{What: refused.Detail, Next: "Correct it and send again; nothing was changed."}
	switch refused.Status {
	case http.StatusUnprocessableEntity:
		p.Code, p.What = models.Invalid, "Some fields need another look."
	case http.StatusRequestEntityTooLarge:
		p.Code = codeTooLarge
	case http.StatusUnsupportedMediaType:
		p.Code = codeMediaType
	default:
		p.Code = codeMalformed
	}
	for _, d := range refused.Errors {
		if p.Fields == nil {
			p.Fields = map[string]string{}
		}
		field, what := strings.TrimPrefix(strings.TrimPrefix(d.Location, "body."), "query."), d.Message
		// What is missing is told of what it is missing from.
		if name, ok := strings.CutPrefix(d.Message, "expected required property "); ok {
			name, _, _ = strings.Cut(name, " ")
			field, what = strings.TrimPrefix(strings.TrimPrefix(d.Location+"."+name, "body."), "query."), "It is needed."
		}
		p.Fields[field] = what
	}
	doc := problemJSON(p, callerOf(ctx.Context()).request)
	doc.Status, doc.Title = refused.Status, http.StatusText(refused.Status)
	return doc, nil
}

// describeProblems says in the OpenAPI document what errors look like.
func (a *restAPI) describeProblems() {
	schema := a.huma.OpenAPI().Components.Schemas.Schema(problemType, true, "Problem")
	for _, path := range a.huma.OpenAPI().Paths {
		for _, op := range []*huma.Operation{path.Get, path.Post, path.Delete} {
			if op == nil {
				continue
			}
			for status := range op.Responses {
				if status >= "4" {
					delete(op.Responses, status)
				}
			}
			op.Responses["default"] = &huma.Response{Description: "A problem: code says which, next says what to do",
				Content: map[string]*huma.MediaType{"application/problem+json": {Schema: schema}}}
		}
	}
}

// Paging is how lists are asked for. Like ByID it is exported for huma, which fills
// no embedded field that is not.
type Paging struct {
	Cursor string `query:"cursor" maxLength:"200" doc:"next_cursor of the page before"`
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
}

// list is a page of mapped rows.
type list[T any] struct{ Body api.List[T] }

func listOf[T, R any](rows []R, next string, row func(R) T) *list[T] {
	out := &list[T]{Body: api.List[T]{Items: make([]T, 0, len(rows))}}
	for _, r := range rows {
		out.Body.Items = append(out.Body.Items, row(r))
	}
	if next != "" {
		out.Body.NextCursor = &next
	}
	return out
}

// one is an answer of one thing.
type one[T any] struct{ Body T }

func oneOf[T any](v T) *one[T] { return &one[T]{Body: v} }

// empty is a request that needs nothing, or an answer that says nothing.
type empty struct{}

// ByID names one thing.
type ByID struct {
	ID string `path:"id" maxLength:"100"`
}

func moneyJSON(a money.Amount, currency string) api.Money {
	return api.Money{Micros: int64(a), Currency: currency}
}

func rateJSON(r money.Rate, currency string) api.Money {
	return api.Money{Micros: int64(r), Currency: currency}
}

func timeJSON(i models.Instant) api.Time {
	if i.IsZero() {
		return nil
	}
	t := i.Time()
	return &t
}

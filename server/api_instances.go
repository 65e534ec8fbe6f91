package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"berth/api"
	"berth/fleet"
	"berth/models"
)

func (a *restAPI) catalogueOperations() {
	operate(a, anyone, huma.Operation{OperationID: "list-skus", Method: http.MethodGet, Path: "/skus", Summary: "What is sold"}, a.listSKUs)
	operate(a, anyone, huma.Operation{OperationID: "list-offers", Method: http.MethodGet, Path: "/offers", Summary: "Prices now, and how many can really be placed now"}, a.listOffers)
}

type offersIn struct {
	SKU string `query:"sku" maxLength:"100" doc:"Only this one"`
}

func (a *restAPI) listSKUs(ctx context.Context, who caller, _ *empty) (*list[api.SKU], error) {
	offers, err := a.fleet.OffersTo(ctx, who.Account.ID, "", models.At(a.now()))
	return listOf(offers, "", skuJSON), err
}

func skuJSON(o fleet.Offer) api.SKU {
	return api.SKU{ID: o.SKU.ID, Device: string(o.SKU.Model), Profile: o.SKU.Profile, Count: o.SKU.Count,
		MemoryMiB: o.Profile.MemoryMiB * o.SKU.Count, ComputeSlices: o.SKU.ComputeSlices() / o.SKU.Count, MemorySlices: memorySlices(o),
		VCPUs: float64(o.MilliCPU) / 1000, RAMMiB: o.MemoryMiB, Simulated: o.Simulated}
}

// memorySlices is 0 for a card that cannot be cut.
func memorySlices(o fleet.Offer) int {
	if o.Model.ComputeSlices == 0 || o.Model.Share.N > 0 {
		return 0
	}
	return o.Profile.Units
}

func (a *restAPI) listOffers(ctx context.Context, who caller, in *offersIn) (*list[api.Offer], error) {
	offers, err := a.fleet.OffersTo(ctx, who.Account.ID, in.SKU, models.At(a.now()))
	return listOf(offers, "", func(o fleet.Offer) api.Offer {
		return api.Offer{ID: o.ID, SKU: o.SKU.ID, BillingMode: string(o.BillingMode), PricePerHour: rateJSON(o.PricePerHour, o.Currency), Available: o.Available}
	}), err
}

func (a *restAPI) instanceOperations() {
	operate(a, mayView, huma.Operation{OperationID: "list-instances", Method: http.MethodGet, Path: "/instances", Summary: "Your instances, newest first"}, a.listInstances)
	operate(a, mayRun, huma.Operation{OperationID: "launch", Method: http.MethodPost, Path: "/instances", Summary: "Launch an instance", DefaultStatus: http.StatusCreated}, a.launchInstance)
	operate(a, mayView, huma.Operation{OperationID: "get-instance", Method: http.MethodGet, Path: "/instances/{id}", Summary: "One instance"}, a.getInstance)
	operate(a, mayView, huma.Operation{OperationID: "list-events", Method: http.MethodGet, Path: "/instances/{id}/events", Summary: "Its history, oldest first"}, a.listEvents)
	for name, act := range map[string]func(context.Context, models.AccountID, models.InstanceID, models.Instant) (models.Instance, error){
		"stop": a.fleet.Stop, "start": a.fleet.Start, "restart": a.fleet.Restart, "terminate": a.fleet.Terminate,
	} {
		operate(a, mayRun, huma.Operation{OperationID: name + "-instance", Method: http.MethodPost, Path: "/instances/{id}/" + name, Summary: actSummaries[name], DefaultStatus: http.StatusAccepted},
			func(ctx context.Context, who caller, in *ByID) (*one[api.Instance], error) {
				if _, err := act(ctx, who.Account.ID, models.InstanceID(in.ID), models.At(a.now())); err != nil {
					return nil, err
				}
				return a.getInstance(ctx, who, in)
			})
	}
}

var actSummaries = map[string]string{
	"stop":      "Stop: compute billing ends now, the disk is kept",
	"start":     "Start a stopped instance again, on its node",
	"restart":   "Restart on the same slices",
	"terminate": "Terminate: billing ends now, the disk is erased",
}

type instancesIn struct {
	Paging
	State      []string `query:"state" enum:"queued,placing,pulling,starting,running,stopping,stopped,failed,interrupted,lost,terminated" doc:"Only these states"`
	Terminated bool     `query:"terminated" doc:"Terminated ones too"`
}

func (a *restAPI) listInstances(ctx context.Context, who caller, in *instancesIn) (*list[api.Instance], error) {
	filter := fleet.InstanceFilter{Terminated: in.Terminated}
	for _, s := range in.State {
		filter.States = append(filter.States, models.InstanceState(s))
	}
	views, next, err := a.fleet.Instances(ctx, who.Account.ID, filter, in.Cursor, in.Limit)
	return listOf(views, next, instanceJSON), err
}

type launchIn struct {
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"255" doc:"The same key makes one instance"`
	Body           api.NewInstance
}

func (a *restAPI) launchInstance(ctx context.Context, who caller, in *launchIn) (*one[api.Instance], error) {
	b := in.Body
	if len(b.KeyIDs) > 0 {
		return nil, models.Fieldset{"key_ids": "There are no SSH keys to name yet; leave it empty and use the web terminal."}.Problem()
	}
	if b.DiskGiB == 0 {
		b.DiskGiB = fleet.DefaultDiskGiB
	}
	made, err := a.fleet.Launch(ctx, fleet.Order{Account: who.Account.ID, User: who.User.ID, SKU: b.SKU, BillingMode: models.BillingMode(b.BillingMode),
		Name: b.Name, Image: b.Image, Command: b.Command, Env: b.Env, StartupScript: b.StartupScript, DiskGiB: b.DiskGiB, ClientKey: in.IdempotencyKey}, models.At(a.now()))
	if err != nil {
		return nil, err
	}
	return a.getInstance(ctx, who, &ByID{ID: string(made.ID)})
}

func (a *restAPI) getInstance(ctx context.Context, who caller, in *ByID) (*one[api.Instance], error) {
	view, err := a.fleet.Instance(ctx, who.Account.ID, models.InstanceID(in.ID))
	if err != nil {
		return nil, err
	}
	return oneOf(instanceJSON(view)), nil
}

func instanceJSON(v fleet.InstanceView) api.Instance {
	out := api.Instance{ID: string(v.ID), Name: v.Name, State: string(v.State), Reason: v.Reason, Detail: v.Detail, Notice: v.Notice, SKU: v.SKU,
		BillingMode: string(v.BillingMode), PricePerHour: rateJSON(v.PricePerHour, v.Currency), Image: v.Image, DiskGiB: v.DiskGiB,
		Node: v.NodeName, Placement: v.Why, Slices: []api.Slice{}, Run: v.Run,
		CreatedAt: timeJSON(v.CreatedAt), RunningAt: timeJSON(v.RunningAt), EndedAt: timeJSON(v.EndedAt),
		Seconds: v.Span.Cursor, Charged: moneyJSON(v.Span.Charged, v.Currency)}
	for _, s := range v.Slices {
		out.Slices = append(out.Slices, api.Slice{DeviceUUID: s.DeviceUUID, Profile: s.Profile, Start: s.Start, Size: s.Size})
	}
	return out
}

type eventsIn struct {
	ByID
	After int64 `query:"after" minimum:"0" doc:"Only events with a higher seq"`
}

func (a *restAPI) listEvents(ctx context.Context, who caller, in *eventsIn) (*list[api.Event], error) {
	events, err := a.fleet.Events(ctx, who.Account.ID, models.InstanceID(in.ID), in.After)
	return listOf(events, "", func(e models.InstanceEvent) api.Event {
		return api.Event{Seq: e.Seq, At: e.At.Time(), Kind: e.Kind, From: string(e.From), To: string(e.To), Reason: e.Reason}
	}), err
}

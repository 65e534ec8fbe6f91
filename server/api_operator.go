package server

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"berth/api"
	"berth/fleet"
	"berth/gpu"
	"berth/models"
	"berth/models/store"
	"berth/money"
)

func (a *restAPI) operatorOperations() {
	operate(a, mayOperate, huma.Operation{OperationID: "list-nodes", Method: http.MethodGet, Path: "/nodes", Summary: "Operator: the fleet"}, a.listNodes)
	operate(a, mayOperate, huma.Operation{OperationID: "list-devices", Method: http.MethodGet, Path: "/devices", Summary: "Operator: every card and who holds what of it"}, a.listDevices)
	operate(a, mayOperate, huma.Operation{OperationID: "set-device-layout", Method: http.MethodPost, Path: "/devices/{uuid}/layout", Summary: "Operator: divide a card into slices that lie ready, or only plan it"}, a.setLayout)
	operate(a, mayOperate, huma.Operation{OperationID: "set-device-sharing", Method: http.MethodPost, Path: "/devices/{uuid}/sharing", Summary: "Operator: share a card by turns, or not"}, a.setSharing)
	operate(a, mayOperate, huma.Operation{OperationID: "create-join-token", Method: http.MethodPost, Path: "/nodes/join-tokens", Summary: "Operator: a one-time token for a new node", DefaultStatus: http.StatusCreated}, a.createJoinToken)
	operate(a, mayOperate, huma.Operation{OperationID: "cordon-node", Method: http.MethodPost, Path: "/nodes/{id}/cordon", Summary: "Operator: nothing new starts on a node; what runs goes on"}, a.cordonNode(true))
	operate(a, mayOperate, huma.Operation{OperationID: "uncordon-node", Method: http.MethodPost, Path: "/nodes/{id}/uncordon", Summary: "Operator: open a node to rentals again"}, a.cordonNode(false))
	operate(a, mayOperate, huma.Operation{OperationID: "maintain-node", Method: http.MethodPost, Path: "/nodes/{id}/maintenance", Summary: "Operator: announce when a node is worked on; renters are told, what runs is stopped then and starts again afterwards"}, a.maintainNode)
	operate(a, mayOperate, huma.Operation{OperationID: "end-maintenance", Method: http.MethodDelete, Path: "/nodes/{id}/maintenance", Summary: "Operator: the work is done, or called off", DefaultStatus: http.StatusOK}, a.endMaintenance)
	operate(a, mayOperate, huma.Operation{OperationID: "retire-node", Method: http.MethodPost, Path: "/nodes/{id}/retire", Summary: "Operator: give up a node that never comes back; its instances are terminated"}, a.retireNode)
	operate(a, mayOperate, huma.Operation{OperationID: "list-prices", Method: http.MethodGet, Path: "/prices", Summary: "Operator: the price list, each SKU's rows newest first"}, a.listPrices)
	operate(a, mayOperate, huma.Operation{OperationID: "set-price", Method: http.MethodPost, Path: "/prices", Summary: "Operator: a price from a moment on; running instances keep theirs", DefaultStatus: http.StatusCreated}, a.setPrice)
	operate(a, mayOperate, huma.Operation{OperationID: "close-invoice", Method: http.MethodPost, Path: "/invoices/close", Summary: "Operator: bill an account up to a moment, without waiting for the month's end", DefaultStatus: http.StatusCreated}, a.closeInvoice)
}

func (a *restAPI) listNodes(ctx context.Context, _ caller, _ *empty) (*list[api.Node], error) {
	nodes, err := a.fleet.Nodes(ctx)
	return listOf(nodes, "", nodeJSON), err
}

func nodeJSON(n fleet.NodeView) api.Node {
	out := api.Node{ID: string(n.ID), Name: n.Name, State: n.State, Cordoned: n.Cordoned, SeenAt: timeJSON(n.SeenAt), AgentVersion: n.AgentVersion,
		Runtime: n.HostInfo.Runtime.Mode, Simulated: n.HostInfo.Simulated, ClockSkewMS: n.ClockSkewMS, CreatedAt: n.CreatedAt.Time()}
	if n.MaintenanceFrom != 0 {
		out.Maintenance = &api.Window{From: n.MaintenanceFrom.Time(), Until: timeJSON(n.MaintenanceUntil)}
	}
	return out
}

func (a *restAPI) nodeOf(ctx context.Context, id string) (*one[api.Node], error) {
	n, _, err := a.fleet.Node(ctx, models.NodeID(id))
	if err != nil {
		return nil, err
	}
	return oneOf(nodeJSON(n)), nil
}

func (a *restAPI) maintainNode(ctx context.Context, _ caller, in *struct {
	ByID
	Body api.Window
}) (*one[api.Node], error) {
	until := models.Instant(0)
	if in.Body.Until != nil {
		until = models.At(*in.Body.Until)
	}
	if err := a.fleet.SetMaintenance(ctx, models.NodeID(in.ID), models.At(in.Body.From), until, models.At(a.now())); err != nil {
		return nil, err
	}
	return a.nodeOf(ctx, in.ID)
}

func (a *restAPI) endMaintenance(ctx context.Context, _ caller, in *ByID) (*one[api.Node], error) {
	if err := a.fleet.EndMaintenance(ctx, models.NodeID(in.ID), models.At(a.now())); err != nil {
		return nil, err
	}
	return a.nodeOf(ctx, in.ID)
}

func (a *restAPI) cordonNode(cordoned bool) func(context.Context, caller, *ByID) (*one[api.Node], error) {
	return func(ctx context.Context, _ caller, in *ByID) (*one[api.Node], error) {
		if err := a.fleet.Cordon(ctx, models.NodeID(in.ID), cordoned); err != nil {
			return nil, err
		}
		return a.nodeOf(ctx, in.ID)
	}
}

func (a *restAPI) retireNode(ctx context.Context, _ caller, in *ByID) (*one[api.RetiredNode], error) {
	ended, err := a.fleet.Retire(ctx, models.NodeID(in.ID), models.At(a.now()))
	if err != nil {
		return nil, err
	}
	return oneOf(api.RetiredNode{ID: in.ID, Instances: ended}), nil
}

func (a *restAPI) listDevices(ctx context.Context, _ caller, _ *empty) (*list[api.Device], error) {
	devices, err := a.fleet.Devices(ctx)
	return listOf(devices, "", deviceJSON), err
}

func deviceJSON(d fleet.DeviceView) api.Device {
	out := api.Device{UUID: d.UUID, Model: string(d.Model), Node: d.NodeName, State: d.State, Detail: d.Detail, Slices: []api.DeviceSlice{},
		Layout: placementsJSON(d.Layout), Sharing: cmp.Or(d.Share().Name(), models.SharingNone), Mixed: d.Mixed}
	for _, l := range d.Leases {
		out.Slices = append(out.Slices, api.DeviceSlice{Profile: l.Profile, Start: l.Start, Size: l.Size, Instance: string(l.InstanceID)})
	}
	return out
}

func (a *restAPI) setSharing(ctx context.Context, _ caller, in *struct {
	UUID string `path:"uuid"`
	Body api.NewSharing
}) (*one[api.Device], error) {
	if _, err := a.fleet.SetSharing(ctx, in.UUID, in.Body.Sharing, in.Body.Mixed, models.At(a.now())); err != nil {
		return nil, err
	}
	devices, err := a.fleet.Devices(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range devices {
		if d.UUID == in.UUID {
			return oneOf(deviceJSON(d)), nil
		}
	}
	return nil, models.Missing("device", in.UUID)
}

func placementsJSON(ps []gpu.Placement) []api.Placement {
	out := make([]api.Placement, len(ps))
	for i, p := range ps {
		out[i] = api.Placement{Profile: p.Profile, Start: p.Start, Size: p.Size}
	}
	return out
}

func (a *restAPI) setLayout(ctx context.Context, _ caller, in *struct {
	UUID string `path:"uuid"`
	Body api.NewLayout
}) (*one[api.LayoutPlan], error) {
	set := a.fleet.SetLayout
	if in.Body.DryRun {
		set = a.fleet.PlanLayout
	}
	plan, err := set(ctx, in.UUID, in.Body.Profiles)
	if err != nil {
		return nil, err
	}
	out := api.LayoutPlan{Device: plan.Device.UUID, Keep: []api.KeptSlice{}, Remove: placementsJSON(plan.Remove), Make: placementsJSON(plan.Make), Layout: placementsJSON(plan.Layout)}
	for _, h := range plan.Keep {
		out.Keep = append(out.Keep, api.KeptSlice{Placement: placementsJSON([]gpu.Placement{h.Placement})[0], Holder: h.Holder})
	}
	return oneOf(out), nil
}

func (a *restAPI) createJoinToken(ctx context.Context, who caller, _ *empty) (*one[api.JoinToken], error) {
	token, row, err := a.fleet.CreateJoinToken(ctx, who.User.ID, models.At(a.now()))
	if err != nil {
		return nil, err
	}
	return oneOf(api.JoinToken{Token: token, ExpiresAt: row.ExpiresAt.Time(), Command: joinCommand(who.base, token)}), nil
}

// joinCommand is what to run on the host that shall join.
func joinCommand(portal, token string) string {
	return "berth agent join " + portal + " --token " + token
}

func priceJSON(p models.Price) api.Price {
	return api.Price{ID: p.ID, SKU: p.SKU, BillingMode: string(p.BillingMode), PricePerHour: rateJSON(p.PricePerHour, p.Currency), EffectiveAt: p.EffectiveAt.Time()}
}

func (a *restAPI) listPrices(ctx context.Context, _ caller, in *offersIn) (*list[api.Price], error) {
	var prices []models.Price
	err := a.store.View(ctx, func(tx *store.Tx) (err error) {
		prices, err = tx.PriceHistory(in.SKU)
		return err
	})
	return listOf(prices, "", priceJSON), err
}

func (a *restAPI) setPrice(ctx context.Context, who caller, in *struct{ Body api.NewPrice }) (*one[api.Price], error) {
	b := in.Body
	at := models.At(a.now())
	row := models.Price{SKU: b.SKU, BillingMode: models.BillingMode(b.BillingMode), PricePerHour: money.Rate(b.PricePerHour.Micros),
		Currency: b.PricePerHour.Currency, EffectiveAt: at, CreatedBy: who.User.ID}
	if b.BillingMode == "" {
		row.BillingMode = models.OnDemand
	}
	if b.EffectiveAt != nil {
		row.EffectiveAt = max(1, models.At(*b.EffectiveAt)) // 0 would mean now; year 1 is in the past
	}
	made, err := a.billing.SetPrice(ctx, row, at)
	if err != nil {
		return nil, err
	}
	return oneOf(priceJSON(made)), nil
}

func (a *restAPI) closeInvoice(ctx context.Context, _ caller, in *struct{ Body api.CloseInvoice }) (*one[api.Invoice], error) {
	at := models.At(a.now())
	until := at
	if in.Body.Until != nil {
		until = models.At(in.Body.Until.UTC().Truncate(time.Microsecond))
	}
	account := models.AccountID(in.Body.Account)
	invoice, err := a.billing.CloseInvoice(ctx, account, until, at)
	if err != nil {
		return nil, err
	}
	invoice, doc, err := a.billing.Invoice(ctx, account, invoice.ID)
	if err != nil {
		return nil, err
	}
	return oneOf(invoiceJSON(invoice, doc)), nil
}

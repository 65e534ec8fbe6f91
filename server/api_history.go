package server

import (
	"context"
	"math"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"berth/api"
	"berth/fleet"
	"berth/models"
)

func (a *restAPI) historyOperations() {
	operate(a, mayView, huma.Operation{OperationID: "instance-history", Method: http.MethodGet, Path: "/instances/{id}/history", Summary: "What was measured of it: 1h by the minute, 24h by five, 30d by the hour"}, a.instanceHistory)
	operate(a, mayOperate, huma.Operation{OperationID: "device-history", Method: http.MethodGet, Path: "/devices/{uuid}/history", Summary: "Operator: what was measured of a card"}, a.deviceHistory)
	operate(a, mayOperate, huma.Operation{OperationID: "node-history", Method: http.MethodGet, Path: "/nodes/{id}/history", Summary: "Operator: what was measured of all cards of a node: mean utilisation, sum of memory and power, highest temperature"}, a.nodeHistory)
}

// Ranged is a request with a range.
type Ranged struct {
	Range string `query:"range" enum:"1h,24h,30d" default:"1h" doc:"How far back"`
}

func (r Ranged) lookUp() fleet.Range {
	found, _ := fleet.LookupRange(r.Range) // the enum has been checked
	return found
}

func (a *restAPI) instanceHistory(ctx context.Context, who caller, in *struct {
	ByID
	Ranged
}) (*one[api.History], error) {
	h, err := a.fleet.InstanceHistory(ctx, who.Account.ID, models.InstanceID(in.ID), in.lookUp(), models.At(a.now()))
	return oneOf(historyJSON(h)), err
}

func (a *restAPI) deviceHistory(ctx context.Context, _ caller, in *struct {
	UUID string `path:"uuid" maxLength:"100"`
	Ranged
}) (*one[api.History], error) {
	h, err := a.fleet.CardHistory(ctx, in.UUID, in.lookUp(), models.At(a.now()))
	return oneOf(historyJSON(h)), err
}

func (a *restAPI) nodeHistory(ctx context.Context, _ caller, in *struct {
	ByID
	Ranged
}) (*one[api.History], error) {
	h, err := a.fleet.NodeHistory(ctx, models.NodeID(in.ID), in.lookUp(), models.At(a.now()))
	return oneOf(historyJSON(h)), err
}

func historyJSON(h fleet.History) api.History {
	out := api.History{Range: h.Name, From: h.From.Time(), To: h.To.Time(), StepSeconds: int64(h.Step / time.Second), Points: make([]api.HistoryPoint, len(h.Points))}
	for i, p := range h.Points {
		out.Points[i] = api.HistoryPoint{At: p.At.Time(), Samples: p.Samples, UtilizationPercent: figuresJSON(p.Utilization, 10),
			MemoryMiB: figuresJSON(p.Memory, 1), TemperatureC: figuresJSON(p.Temperature, 10), PowerW: figuresJSON(p.Power, 10)}
	}
	return out
}

// figuresJSON divides by how many parts of the unit are stored. What was not
// measured is nil.
func figuresJSON(f models.Figures, parts float64) *api.Figures {
	if f.Count == 0 {
		return nil
	}
	mean := float64(*f.Sum) / float64(f.Count) / parts
	return &api.Figures{Min: float64(*f.Min) / parts, Mean: math.Round(mean*100) / 100, Max: float64(*f.Max) / parts}
}

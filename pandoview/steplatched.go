package pandoview

import (
	"fmt"
	"net/http"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/origin"
	"github.com/pando-index/pando/papers/thesis"
	"github.com/pando-index/pando/papers/thesis/debugger"
)

// latchedSteps is a recording of a batch on the latched tree.
type latchedSteps struct {
	Seed     uint64        `json:"seed"`
	Schedule string        `json:"schedule"`
	Note     string        `json:"note"`
	Name     string        `json:"name"`
	Tiles    int           `json:"tiles"`
	Room     int           `json:"room"` // pairs of a node
	Turns    int           `json:"turns"`
	Work     uint64        `json:"work"`
	Dropped  int           `json:"dropped"`
	Ops      []latchedOp   `json:"ops"`
	Steps    []latchedStep `json:"steps"`
}

type latchedOp struct {
	Kind  string `json:"kind"`
	Key   string `json:"key"`
	Found bool   `json:"found"`
}

type latchedStep struct {
	Step  string        `json:"step"`
	Tile  int           `json:"tile"`
	Op    int           `json:"op"`
	Node  int           `json:"node"`
	Other int           `json:"other"` // node or tile, -1 for none
	Turn  int           `json:"turn"`
	Ran   []int         `json:"ran"` // turns of each tile since the step before
	Retry bool          `json:"retry,omitempty"`
	Nodes []latchedNode `json:"nodes"`
}

type latchedNode struct {
	ID       int    `json:"id"`
	Level    int    `json:"level"`
	Used     int    `json:"used"`
	Low      string `json:"low"`
	High     string `json:"high"`
	Next     int    `json:"next"`
	Children []int  `json:"children,omitempty"`
	Holder   int    `json:"holder"` // tile, -1 for none
	Told     bool   `json:"told"`
}

var latchedKinds = map[thesis.BlinkOp]string{thesis.BlinkGet: "get", thesis.BlinkSet: "set", thesis.BlinkDelete: "delete"}

// latched records a batch on the latched tree.
func (h *handler) latched(in *index.Inside, q query) (any, error) {
	key, n, seed, err := drawn(in, q, debugger.MostLatched, 64)
	if err != nil {
		return nil, err
	}
	how := debugger.Random
	switch s := q.Get("schedule"); s {
	case "", string(debugger.Random):
	case string(debugger.Frozen):
		how = debugger.Frozen
	default:
		return nil, problemf(http.StatusBadRequest, "schedule is %q; it must be random or frozen", origin.Clip(s))
	}
	bits := in.Type.Bits()
	if bits == 0 {
		return nil, problemf(http.StatusNotImplemented, "the latched tree is one of numbers")
	}
	codes := in.Codes(key, debugger.LatchedCodes)
	if len(codes) == 0 {
		return nil, problemf(http.StatusNotFound, "the index is empty: there is nothing to make a tree of")
	}
	rec, err := debugger.Latch(bits, codes, n, seed, how)
	if err != nil {
		return nil, err
	}
	return latchedOf(in, rec), nil
}

// latchedOf makes a recording ready for the page.
func latchedOf(in *index.Inside, rec *debugger.Latched) latchedSteps {
	out := latchedSteps{
		Seed: rec.Seed, Schedule: string(rec.Schedule), Name: rec.Name, Tiles: rec.Tiles, Room: debugger.LatchedNodeRoom,
		Turns: rec.Turns, Work: rec.Work, Dropped: rec.Dropped, Ops: []latchedOp{}, Steps: []latchedStep{},
		Note: fmt.Sprintf("A latched tree of %d keys of the index.", rec.Keys),
	}
	for _, o := range rec.Ops {
		out.Ops = append(out.Ops, latchedOp{latchedKinds[o.Kind], show(in, order.Probe{Code: o.Key}), o.Outcome == thesis.BlinkFound})
	}
	for _, s := range rec.Steps {
		x := latchedStep{
			Step: string(s.What), Tile: s.Tile, Op: s.Op, Node: s.Node, Other: s.Other, Turn: s.Turn, Ran: s.Ran, Retry: s.What.Retries(), Nodes: []latchedNode{},
		}
		for _, n := range s.Nodes {
			to := latchedNode{
				ID: n.ID, Level: n.Level, Used: n.Used, Next: n.Next, Children: n.Children, Holder: n.Holder, Told: n.Told,
				Low: show(in, order.Probe{Code: n.Low}), High: show(in, order.Probe{Code: n.High}),
			}
			if n.Next == 0 { // nothing is further right
				to.High = "∞"
			}
			x.Nodes = append(x.Nodes, to)
		}
		out.Steps = append(out.Steps, x)
	}
	return out
}

package pandoview

import (
	"fmt"
	"net/http"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
)

// shownNode is all there is to say of a node.
type shownNode struct {
	Level    int      `json:"level"`
	Node     int      `json:"node"`
	Kind     string   `json:"kind"`
	Name     string   `json:"name,omitempty"`
	First    int      `json:"first"`
	End      int      `json:"end"`
	Child    int      `json:"child"`
	Children int      `json:"children"`
	Used     int      `json:"used"`
	Room     int      `json:"room"`
	Bytes    int      `json:"bytes"`
	Entry    int      `json:"entry"`
	Entries  int      `json:"entries"`
	State    string   `json:"state,omitempty"`
	Link     int      `json:"link"`
	Hops     int      `json:"hops"`
	Version  uint64   `json:"version,omitempty"`
	Keys     []string `json:"keys"`
	Values   []string `json:"values,omitempty"` // of entries, in the order of their keys
	Holds    bool     `json:"holds"`            // keys are those of entries
	Partials []string `json:"partials,omitempty"`
	Bits     []int    `json:"bits,omitempty"`
	Lines    []int    `json:"lines,omitempty"`
	PerLine  int      `json:"perLine"`
	Notes    []string `json:"notes,omitempty"`
}

func hex(p uint64) string { return fmt.Sprintf("%x", p) }

// node answers /api/node: ?level=&node=.
func (h *handler) node(q query) (any, error) {
	in := h.see()
	lk, _, err := look(in)
	if err != nil {
		return nil, err
	}
	levels := lk.Levels()
	l, err := q.number("level", 0, len(levels)-1, 0)
	if err != nil {
		return nil, err
	}
	i, err := q.number("node", 0, levels[l].Nodes-1, 0)
	if err != nil {
		return nil, err
	}
	if levels[l].Nodes == 0 {
		return nil, problemf(http.StatusNotFound, "the index is empty")
	}
	n := nodeOf(in, lk, l, i)
	h.see()
	return n, nil
}

func nodeOf(in *index.Inside, lk layout.Look, l, i int) shownNode {
	lv, n, x := lk.Levels()[l], lk.Node(l, i), lk.Inside(l, i)
	s := shownNode{
		Level: l, Node: i, Kind: lv.Name, Name: n.Name, First: n.First, End: n.End, Child: n.Child, Children: n.Children,
		Used: n.Used, Room: n.Room, Bytes: lv.Bytes, Entry: n.Entry, Entries: n.Entries, State: n.State.String(), Link: n.Link, Hops: n.Hops,
		Version: n.Version, Keys: []string{}, Holds: x.Entries, Bits: x.Bits, Lines: x.Lines, PerLine: x.PerLine, Notes: x.Notes,
	}
	for _, k := range x.Keys {
		s.Keys = append(s.Keys, show(in, k))
	}
	if x.Entries && in.Value != noValue {
		s.Values = valuesOf(in, n.Entry, x.Keys)
	}
	for _, p := range x.Partials {
		s.Partials = append(s.Partials, hex(p))
	}
	return s
}

// noValue is the name of the type of values that have no bytes.
const noValue = "none"

// valuesOf returns the values of entries from first on, which is -1 if they have no
// numbers, as text; an empty one for an entry that was deleted meanwhile.
func valuesOf(in *index.Inside, first int, keys []order.Probe) []string {
	out := make([]string, len(keys))
	for i, k := range keys {
		entry := -1
		if first >= 0 {
			entry = first + i
		}
		if v, ok := in.Val(entry, k); ok {
			out[i] = short(v)
		}
	}
	return out
}

// found is the result of a search.
type found struct {
	Key   string  `json:"key"`
	Found bool    `json:"found"`
	Value string  `json:"value"`
	Way   []visit `json:"way"`
}

// visit is a node on the way of a search.
type visit struct {
	shownNode
	Slot int    `json:"slot"`
	Here bool   `json:"here"` // the key is in this node
	Note string `json:"note,omitempty"`
}

// search answers /api/search: ?key=, or a key in the middle.
func (h *handler) search(q query) (any, error) {
	in := h.see()
	key, err := keyOf(in, q)
	if err != nil {
		return nil, err
	}
	lk, _, err := look(in)
	if err != nil {
		return nil, err
	}
	f := found{Key: show(in, key), Way: []visit{}}
	if levels := lk.Levels(); levels[len(levels)-1].Nodes == 0 {
		return f, nil
	}
	for _, v := range lk.Way(key) {
		f.Way = append(f.Way, visit{nodeOf(in, lk, v.Level, v.Node), v.Slot, v.Found, v.Note})
	}
	if f.Value, f.Found = in.Get(key); !f.Found {
		f.Value = ""
	}
	return f, nil
}

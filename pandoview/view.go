package pandoview

import (
	"net/http"
	"strings"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
)

// description is the data about an index that the page needs before it draws.
type description struct {
	Name    string  `json:"name"`
	Key     string  `json:"key"`
	Value   string  `json:"value"`
	Entries int     `json:"entries"`
	Layout  string  `json:"layout"`
	Device  string  `json:"device"`
	Path    string  `json:"path"`
	Mutable bool    `json:"mutable"`
	Kernel  bool    `json:"kernel"`  // a search can be shown on the interpreter
	Changes bool    `json:"changes"` // of a B+-tree are recorded
	Radix   bool    `json:"radix"`   // changes are shown on a radix tree
	Latched bool    `json:"latched"` // a batch can be shown on the latched tree
	Levels  []level `json:"levels"`
	Types   []kind  `json:"types,omitempty"` // of nodes, where there are several
	Memory  []part  `json:"memory"`
	Total   int64   `json:"total"`
}

// kind is all nodes of a type.
type kind struct {
	Name  string `json:"name"`
	Nodes int    `json:"nodes"`
	Bytes int64  `json:"bytes"`
	Used  int    `json:"used"`
	Room  int    `json:"room"`
}

type level struct {
	Name  string `json:"name"`
	Nodes int    `json:"nodes"`
	Bytes int    `json:"bytes"`
	Room  int    `json:"room"`
}

// part is some of the memory of an index.
type part struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// look returns the index as it is now, level by level.
func look(in *index.Inside) (layout.Look, any, error) {
	tree := in.Layout()
	shown, ok := tree.(layout.Shown)
	if !ok {
		return nil, nil, problemf(http.StatusNotImplemented, "this layout cannot be shown")
	}
	return shown.Look(), tree, nil
}

// describe answers /api/index.
func (h *handler) describe(query) (any, error) {
	in := h.see()
	lk, tree, err := look(in)
	if err != nil {
		return nil, err
	}
	s := in.Stats()
	d := description{
		Name: h.name, Key: in.Key, Value: in.Value, Entries: s.Len, Layout: s.Layout, Device: s.Device.String(), Path: s.Path,
		Mutable: in.Mutable, Kernel: searched(tree) && !inRadix(lk), Changes: !radixed(in), Radix: radixed(in), Latched: in.Type.Bits() > 0, Total: s.TotalBytes,
	}
	for _, l := range lk.Levels() {
		d.Levels = append(d.Levels, level(l))
	}
	if t, ok := lk.(layout.Typed); ok {
		for _, x := range t.Types() {
			d.Types = append(d.Types, kind(x))
		}
		d.Memory = memoryByType(s, d.Types)
		return d, nil
	}
	d.Memory = memory(s, lk.Levels(), in.Mutable)
	return d, nil
}

// inRadix reports whether a look is one at a radix tree that changes: no kernel
// searches it, and none of its changes are recorded.
func inRadix(lk layout.Look) bool {
	_, typed := lk.(layout.Typed)
	return typed
}

// memoryByType returns the memory by type where inner nodes are of several
// types. Leaves are as long as their keys.
func memoryByType(s index.Stats, types []kind) (out []part) {
	rest := s.TotalBytes - s.KeptBytes
	for _, t := range types {
		out = append(out, part{t.Name, t.Bytes})
		rest -= t.Bytes
	}
	for _, p := range []part{{"leaves and the rest", rest}, {"old states for snapshots", s.KeptBytes}} {
		if p.Bytes > 0 {
			out = append(out, p)
		}
	}
	return out
}

// searched reports whether kernels search a layout, or one that stands in for it:
// there is none for lists of strings.
func searched(tree any) bool {
	_, strings := tree.(layout.StringTree)
	_, can := tree.(layout.StringsOnDevice)
	return !strings || can
}

// memory returns the memory of an index, part by part. The levels of a tree that
// changes tell its memory; the rest are nodes that wait to be used again.
func memory(s index.Stats, levels []layout.Level, mutable bool) (out []part) {
	rest := "padding"
	if mutable {
		rest = "nodes to be reused"
		s.LeafBytes = int64(levels[len(levels)-1].Nodes) * int64(levels[len(levels)-1].Bytes)
		for _, l := range levels[:len(levels)-1] {
			s.InnerBytes += int64(l.Nodes) * int64(l.Bytes)
		}
	}
	sum := s.InnerBytes + s.LeafBytes + s.ValueBytes + s.HeapBytes
	if mutable {
		sum += s.KeptBytes
	}
	for _, p := range []part{
		{"inner nodes", s.InnerBytes}, {"leaves", s.LeafBytes}, {"values", s.ValueBytes}, {"old states for snapshots", s.KeptBytes},
		{"Go memory", s.HeapBytes}, {"on the device", s.DeviceBytes}, {rest, s.TotalBytes - sum},
	} {
		if p.Bytes > 0 {
			out = append(out, p)
		}
	}
	return out
}

// viewed is a stretch of an index: for each level the nodes that stand over it, or
// groups of them.
type viewed struct {
	Lo     int     `json:"lo"`
	Hi     int     `json:"hi"`
	Last   int     `json:"last"` // nodes of the last level
	Levels []strip `json:"levels"`
}

// strip is some nodes of a level, or groups of step nodes each. A group is
// [first, end, used, room, state, hops]: the last-level nodes it stands over, keys
// in it and that fit it, the worst state in it, and nodes that no parent knows of.
type strip struct {
	Nodes  int        `json:"nodes"`
	From   int        `json:"from"`
	Step   int        `json:"step"`
	Groups [][6]int   `json:"groups"`
	Keys   [][]string `json:"keys,omitempty"`
}

// Bounds of a request.
const (
	mostGroups  = 2000 // groups on a level
	groupSample = 6    // nodes of a group that are looked at
	fewNodes    = 48   // up to which the first key of each node is shown,
	fewerNodes  = 10   // and up to which more of them are
	mostKeys    = 64
)

// view answers /api/view: ?lo=&hi= are numbers of last-level nodes, max is how many
// groups a level may have.
func (h *handler) view(q query) (any, error) {
	in := h.see()
	lk, _, err := look(in)
	if err != nil {
		return nil, err
	}
	levels := lk.Levels()
	last := levels[len(levels)-1].Nodes
	lo, err := q.number("lo", 0, maxInt, 0)
	if err != nil {
		return nil, err
	}
	hi, err := q.number("hi", 0, maxInt, last)
	if err != nil {
		return nil, err
	}
	most, err := q.number("max", 1, mostGroups, 200)
	if err != nil {
		return nil, err
	}
	hi = min(hi, last)
	lo = max(0, min(lo, hi-1))
	v := viewed{Lo: lo, Hi: hi, Last: last}
	for l := range levels {
		v.Levels = append(v.Levels, h.strip(in, lk, l, levels[l].Nodes, lo, hi, most))
	}
	h.see() // panics if it was closed meanwhile: the answer is garbage then
	return v, nil
}

const maxInt = int(^uint(0) >> 1)

// strip returns the nodes of a level that stand over last-level nodes [lo, hi).
func (h *handler) strip(in *index.Inside, lk layout.Look, level, nodes, lo, hi, most int) strip {
	s := strip{Nodes: nodes, Step: 1, Groups: [][6]int{}}
	if nodes == 0 || hi <= lo {
		return s
	}
	from, to := lk.Over(level, lo), lk.Over(level, hi-1)+1
	if n := to - from; n > most {
		s.Step = (n + most - 1) / most
		from -= from % s.Step // so that groups stay the same while a view moves
	}
	s.From = from
	for i := from; i < to; i += s.Step {
		s.Groups = append(s.Groups, group(lk, level, i, min(i+s.Step, nodes)))
	}
	if s.Step == 1 && to-from <= fewNodes {
		few := 1
		if to-from <= fewerNodes {
			few = mostKeys
		}
		for i := from; i < to; i++ {
			s.Keys = append(s.Keys, keysOf(in, lk.Inside(level, i), few))
		}
	}
	return s
}

// group sums up nodes [from, to) of a level, by a look at some of them.
func group(lk layout.Look, level, from, to int) [6]int {
	first, last := lk.Node(level, from), lk.Node(level, to-1)
	g := [6]int{first.First, last.End, 0, 0, 0, 0}
	n := min(to-from, groupSample)
	for i := range n {
		x := lk.Node(level, from+i*(to-from)/n)
		g[2] += x.Used
		g[3] += x.Room
		g[4] = max(g[4], int(x.State))
		g[5] += x.Hops
	}
	return g
}

// keysOf returns at most n keys of a node as text.
func keysOf(in *index.Inside, x layout.Inside, n int) []string {
	out := []string{}
	for _, k := range x.Keys[:min(len(x.Keys), n)] {
		out = append(out, show(in, k))
	}
	return out
}

// show returns a key as text that is not too long.
func show(in *index.Inside, p order.Probe) string { return short(in.Format(p)) }

// short cuts a text for people.
func short(s string) string {
	const most = 120
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

package pandoview

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/live"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/origin"
	"github.com/pando-index/pando/internal/steps"
)

// treeSteps is a recording of a tree on the CPU.
type treeSteps struct {
	Note    string  `json:"note"`
	Dropped int     `json:"dropped"`
	Events  []event `json:"events"`
}

type event struct {
	Step  string   `json:"step"`
	Key   string   `json:"key,omitempty"`
	At    []string `json:"at"`
	Nodes []stated `json:"nodes"`
	Gone  []string `json:"gone,omitempty"`
	Root  string   `json:"root"`
}

// stated is a node of a recording, as it was.
type stated struct {
	ID       string   `json:"id"`
	Level    int      `json:"level"`
	Used     int      `json:"used"`
	Room     int      `json:"room"`
	Low      string   `json:"low,omitempty"`
	High     string   `json:"high"`
	Next     string   `json:"next,omitempty"`
	Children []string `json:"children,omitempty"`
	Lines    []int    `json:"lines,omitempty"`
	State    string   `json:"state,omitempty"`
	Told     bool     `json:"told"`
}

// steps answers /api/steps: ?op= is insert, batch, delete, beside, kernel, latched or
// watch.
func (h *handler) steps(q query) (any, error) {
	in := h.see()
	lk, _, err := look(in)
	if err != nil {
		return nil, err
	}
	select {
	case h.busy <- struct{}{}:
		defer func() { <-h.busy }()
	default:
		return nil, problemf(http.StatusServiceUnavailable, "%d recordings are under way; try again in a second", mostRecordings)
	}
	switch op := q.Get("op"); op {
	case "insert", "batch", "delete", "beside":
		return h.change(in, op, q)
	case "latched":
		return h.latched(in, q)
	case "kernel":
		if inRadix(lk) {
			return nil, problemf(http.StatusNotImplemented, "no kernel searches a radix tree that changes: the way of a key is shown by a search")
		}
		return h.kernel(in, q)
	case "watch":
		if in.Mutable && radixed(in) {
			return nil, problemf(http.StatusNotImplemented, "a radix tree records nothing of what others do")
		}
		return h.watchTree(in, q)
	default:
		return nil, problemf(http.StatusBadRequest, "op is %q; it must be insert, batch, delete, beside, kernel, latched or watch", origin.Clip(op))
	}
}

// change records changes of a tree of the kind that a Tree of such keys is.
func (h *handler) change(in *index.Inside, op string, q query) (any, error) {
	switch {
	case radixed(in):
		return h.radix(in, q)
	case op == "insert":
		return h.insert(in, q)
	case op == "batch":
		return h.batch(in, q)
	}
	return nil, notRadix(op)
}

// keyOf returns the key that is asked for, or one in the middle of the index.
func keyOf(in *index.Inside, q query) (order.Probe, error) {
	if !q.Has("key") {
		if lk, _, err := look(in); err == nil {
			levels := lk.Levels()
			l := len(levels) - 1
			if keys := lk.Inside(l, levels[l].Nodes/2).Keys; len(keys) > 0 {
				return keys[len(keys)/2], nil
			}
		}
		return order.Probe{}, nil
	}
	key, err := in.Parse(q.Get("key"))
	if err != nil {
		return key, problemf(http.StatusBadRequest, "%v", err)
	}
	return key, nil
}

// drawn returns what a request for operations that are drawn at random, or run in a
// random order, says: the key that they are around, how many, and the seed.
func drawn(in *index.Inside, q query, most, usual int) (key order.Probe, n int, seed uint64, err error) {
	if key, err = keyOf(in, q); err != nil {
		return key, 0, 0, err
	}
	if n, err = q.number("n", 1, most, usual); err != nil {
		return key, 0, 0, err
	}
	number, err := q.number("seed", 0, maxInt, 1)
	return key, n, uint64(number), err
}

func (h *handler) insert(in *index.Inside, q query) (any, error) {
	key, err := keyOf(in, q)
	if err != nil {
		return nil, err
	}
	n, err := q.number("n", 1, steps.MostInserts, 40)
	if err != nil {
		return nil, err
	}
	bits := in.Type.Bits()
	codes := in.Codes(key, steps.ScratchEntries(bits))
	tree, err := live.SampleTree(bits, codes)
	if err != nil {
		return nil, err
	}
	rec, err := steps.Insert(tree, codes, key.Code, in.Greatest, n)
	if err != nil {
		return nil, err
	}
	return eventsOf(in, rec), nil
}

func (h *handler) batch(in *index.Inside, q query) (any, error) {
	key, n, seed, err := drawn(in, q, steps.MostBatch, 2000)
	if err != nil {
		return nil, err
	}
	bits := in.Type.Bits()
	codes := in.Codes(key, steps.ScratchEntries(bits))
	tree, err := live.SampleTree(bits, codes)
	if err != nil {
		return nil, err
	}
	rec, err := steps.Batch(tree, codes, in.Greatest, n, seed)
	if err != nil {
		return nil, err
	}
	return eventsOf(in, rec), nil
}

// mostWatch is how long a tree is watched at most.
const mostWatch = 2000

// watchTree records changes of the tree itself by others.
func (h *handler) watchTree(in *index.Inside, q query) (any, error) {
	ms, err := q.number("ms", 1, mostWatch, 500)
	if err != nil {
		return nil, err
	}
	t, ok := in.Layout().(live.Recorded)
	if !ok {
		return nil, problemf(http.StatusNotImplemented, "nothing happens to an index that is never changed")
	}
	h.watch.Lock()
	defer h.watch.Unlock()
	r := bplus.NewRecorder(steps.MostEvents, false)
	t.Record(r)
	defer t.Record(nil)
	select {
	case <-time.After(time.Duration(ms) * time.Millisecond):
	case <-q.r.Context().Done():
	}
	t.Record(nil)
	rec := steps.Tree{Note: fmt.Sprintf("What others did to the tree in %d ms, but for lines written and searches, which pass no recorder.", ms)}
	rec.Events, rec.Dropped = r.Events()
	return eventsOf(in, rec), nil
}

// eventsOf makes events ready for the page.
func eventsOf(in *index.Inside, rec steps.Tree) treeSteps {
	out := treeSteps{Note: rec.Note, Dropped: rec.Dropped, Events: []event{}}
	for _, e := range rec.Events {
		x := event{Step: string(e.Step), At: idsOf(e.At), Nodes: []stated{}, Gone: idsOf(e.Gone), Root: idOf(e.Root)}
		if e.Key > 0 || e.Step == bplus.StepWrite || e.Step == bplus.StepSearch {
			x.Key = show(in, order.Probe{Code: e.Key})
		}
		for _, n := range e.Nodes {
			x.Nodes = append(x.Nodes, statedOf(in, n))
		}
		out.Events = append(out.Events, x)
	}
	return out
}

func statedOf(in *index.Inside, n bplus.Recorded) stated {
	s := stated{ID: idOf(n.NodeID), Level: n.Level, Used: n.Used, Room: n.Room, State: n.State.String(), Told: n.Told}
	s.High = show(in, order.Probe{Code: n.High})
	if n.High == in.Greatest {
		s.High = "∞"
	}
	if !n.First && !n.Upper {
		s.Low = show(in, order.Probe{Code: n.Low})
	}
	if n.Next != 1<<32-1 {
		s.Next = idOf(bplus.NodeID{Number: n.Next})
	}
	for _, c := range n.Children {
		s.Children = append(s.Children, idOf(bplus.NodeID{Upper: n.Level > 1, Number: c}))
	}
	for _, l := range n.Lines {
		s.Lines = append(s.Lines, int(l))
	}
	return s
}

func idOf(id bplus.NodeID) string {
	if id.Upper {
		return fmt.Sprint("U", id.Number)
	}
	return fmt.Sprint("L", id.Number)
}

func idsOf(ids []bplus.NodeID) []string {
	out := []string{}
	for _, id := range ids {
		out = append(out, idOf(id))
	}
	return out
}

// kernelSteps is a recording of a search on the interpreter.
type kernelSteps struct {
	Seed    uint64       `json:"seed"`
	Note    string       `json:"note"`
	Names   []string     `json:"names"`
	Blocks  int          `json:"blocks"`
	Threads int          `json:"threads"`
	Work    uint64       `json:"work"`
	Dropped int          `json:"dropped"`
	Keys    []string     `json:"keys"`
	Ranks   []uint32     `json:"ranks"`
	Levels  []level      `json:"levels"`
	Turns   [][4]uint32  `json:"turns"` // block, warp, lanes, waiting
	Steps   []kernelStep `json:"steps"`
}

type kernelStep struct {
	Turn  int      `json:"turn"`
	Block int      `json:"block"`
	Warp  int      `json:"warp"`
	Line  int      `json:"line"`
	What  string   `json:"what"`
	Lanes [][4]int `json:"lanes"` // lane, level or -1, node or query, 1 if it was there before
}

func (h *handler) kernel(in *index.Inside, q query) (any, error) {
	key, n, seed, err := drawn(in, q, steps.MostQueries, 32)
	if err != nil {
		return nil, err
	}
	bits := in.Type.Bits()
	if bits == 0 {
		return kernelOfStrings(in, key, n, seed)
	}
	tree, note, release, err := kernelTree(in, bits, key)
	if err != nil {
		return nil, err
	}
	defer release()
	lk := tree.(layout.Shown).Look()
	where, ok := lk.(layout.Located)
	on, can := tree.(layout.OnDevice)
	if !ok || !can {
		return nil, problemf(http.StatusNotImplemented, "no kernel searches this layout")
	}
	asked := in.Codes(key, n)
	if len(asked) == 0 {
		return nil, problemf(http.StatusNotFound, "the index is empty: there is nothing to search for")
	}
	rec, err := steps.Search(on, where, bits, asked, seed)
	if err != nil {
		return nil, err
	}
	out := kernelOf(rec, lk, note)
	for _, c := range asked {
		out.Keys = append(out.Keys, show(in, order.Probe{Code: c}))
	}
	return out, nil
}

// kernelOfStrings records a search for strings.
func kernelOfStrings(in *index.Inside, key order.Probe, n int, seed uint64) (any, error) {
	tree, note := in.Layout(), "The index's own strings."
	s := in.Stats()
	if s.TotalBytes > steps.MostImage {
		texts := in.Texts(key, 20_000)
		t, err := index.SampleStrings(layout.Name(s.Layout), texts)
		if err != nil {
			return nil, err
		}
		defer t.Release()
		tree, note = t, fmt.Sprintf("A list of %d strings of the index.", len(texts))
	}
	on, can := tree.(layout.StringsOnDevice)
	if !can {
		return nil, problemf(http.StatusNotImplemented, "no kernel searches strings that are not compressed")
	}
	asked := in.Texts(key, n)
	if len(asked) == 0 {
		return nil, problemf(http.StatusNotFound, "the index is empty: there is nothing to search for")
	}
	lk := tree.(layout.Shown).Look()
	rec, err := steps.SearchStrings(on, lk.(layout.LocatedParts), asked, seed)
	if err != nil {
		return nil, err
	}
	out := kernelOf(rec, lk, note)
	for _, t := range asked {
		out.Keys = append(out.Keys, show(in, order.Probe{Text: t}))
	}
	return out, nil
}

// kernelTree returns a tree to search on the interpreter: the index's own where it
// is small and a device can hold it, else one of the same layout, of keys around
// the one that is asked for.
func kernelTree(in *index.Inside, bits int, key order.Probe) (tree any, note string, release func(), err error) {
	s := in.Stats()
	if on, ok := in.Layout().(layout.OnDevice); ok && s.TotalBytes <= steps.MostImage {
		return on, fmt.Sprintf("The index's own %d entries.", s.Len), func() {}, nil
	}
	const most = 100_000
	codes := in.Codes(key, most)
	t, err := index.Sample(bits, layout.Name(s.Layout), codes)
	if err != nil {
		return nil, "", nil, err
	}
	return t, fmt.Sprintf("A %s tree of %d keys of the index.", t.Stats().Kind, len(codes)), t.Release, nil
}

func kernelOf(rec *steps.Kernel, lk layout.Look, note string) kernelSteps {
	out := kernelSteps{
		Seed: rec.Seed, Note: note, Blocks: rec.Blocks, Threads: rec.Threads, Work: rec.Work, Dropped: rec.Dropped,
		Ranks: rec.Ranks, Turns: [][4]uint32{}, Steps: []kernelStep{},
	}
	for _, n := range rec.Names {
		out.Names = append(out.Names, strings.TrimPrefix(n, "pando_"))
	}
	for _, l := range lk.Levels() {
		out.Levels = append(out.Levels, level(l))
	}
	for _, t := range rec.Turns {
		out.Turns = append(out.Turns, [4]uint32{uint32(t.Block), uint32(t.Warp), t.Lanes, t.Waiting})
	}
	for _, s := range rec.Steps {
		k := kernelStep{Turn: s.Turn, Block: s.Block, Warp: s.Warp, Line: s.Line, What: string(s.What)}
		for _, l := range s.Lanes {
			at := [4]int{l.Lane, l.Level, l.Node, 0}
			if l.Level < 0 {
				at[2] = l.Query
			}
			if l.Again {
				at[3] = 1
			}
			k.Lanes = append(k.Lanes, at)
		}
		out.Steps = append(out.Steps, k)
	}
	return out
}

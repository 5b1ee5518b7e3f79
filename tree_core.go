package pando

import (
	"fmt"
	"io"
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/live"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/snapshot"
	"github.com/pando-index/pando/internal/vector"
)

// treeCore is a Tree without its types, as frozenCore is a Frozen.
type treeCore struct {
	m      *live.Map
	key    keyType
	val    *index.ValueType
	kept   bool // val.Kept()
	config config
	types  types // for String
	closed atomic.Bool
}

// load makes the tree, of n entries that span hands out.
func (t *treeCore) load(d door, key index.KeyType, val *index.ValueType, types types, n int, span func(lo int, keys order.Keys, vals index.Column), opts []Option) error {
	c, err := configure(d, opts)
	if err != nil {
		return err
	}
	codec, err := codecOf(val, c)
	if err != nil {
		return err
	}
	t.key, t.val, t.kept, t.types, t.config = keyType{key}, val, val.Kept(), types, c
	if t.m, err = live.LoadMap(key, val, n, span, c.index(), codec); err != nil {
		return translate(err)
	}
	return nil
}

// open panics if the tree was closed.
func (t *treeCore) open() *live.Map {
	if t.closed.Load() {
		panic("pando: Tree used after Close")
	}
	return t.m
}

// done panics if the tree was closed while an answer was read.
func (t *treeCore) done() {
	if t.closed.Load() {
		panic("pando: Tree closed while it was in use")
	}
}

// Alive panics if the tree was closed.
func (t *treeCore) Alive() { t.done() }

// failed returns an error under its public name.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return translate(err)
}

// must panics over an error of a method that returns none: the tree was closed.
func (t *treeCore) must(err error) {
	if err != nil {
		t.open()
		panic("pando: " + err.Error())
	}
}

func (t *treeCore) close() error {
	if !t.closed.Swap(true) {
		t.m.Close()
	}
	return nil
}

func (t *treeCore) get(key order.Probe) (index.Value, bool) {
	x, ok := t.open().Get(key)
	t.done()
	return x, ok
}

func (t *treeCore) has(key order.Probe) bool {
	ok := t.open().Has(key)
	t.done()
	return ok
}

func (t *treeCore) set(key order.Probe, val index.Value) error {
	if err := t.m.Set(key, val); err != nil {
		return translate(err)
	}
	return nil
}

func (t *treeCore) swap(key order.Probe, val index.Value) (index.Value, bool, error) {
	x, had, err := t.m.Swap(key, val)
	return x, had, failed(err)
}

func (t *treeCore) update(key order.Probe, f func(old index.Value, had bool) (index.Value, bool)) error {
	return failed(t.m.Update(key, f))
}

func (t *treeCore) delete(key order.Probe) (index.Value, bool) {
	x, had, err := t.m.Delete(key)
	t.must(err)
	return x, had
}

func (t *treeCore) deleteRange(lo, hi order.Probe) int {
	deleted, err := t.open().DeleteRange(lo, hi)
	t.must(err)
	return deleted
}

func (t *treeCore) pop(greatest bool) (order.Probe, index.Value, bool) {
	k, x, ok, err := t.m.Pop(greatest)
	t.must(err)
	return k, x, ok
}

// setBatch is SetBatch.
func (t *treeCore) setBatch(keys order.Keys, vals index.Column) error {
	if keys.Len() != vals.Len() {
		return fmt.Errorf("%w: %d keys, %d values", ErrLength, keys.Len(), vals.Len())
	}
	return failed(t.m.Apply(keys, nil, op.Set, vals, nil, false))
}

// deleteBatch is DeleteBatch.
func (t *treeCore) deleteBatch(keys order.Keys, found []bool) int {
	t.open()
	if found != nil {
		mustHold("DeleteBatch", "found", len(found), keys.Len())
		found = found[:keys.Len()]
	}
	deleted, err := t.m.DeleteBatch(keys, found)
	t.must(err)
	return deleted
}

// apply is Apply.
func (t *treeCore) apply(ops []Op, keys order.Keys, vals index.Column, found []bool) error {
	n := keys.Len()
	if len(ops) != n || vals.Len() != n || found != nil && len(found) != n {
		return fmt.Errorf("%w: %d operations, %d keys, %d values, room for %d reports", ErrLength, len(ops), n, vals.Len(), len(found))
	}
	if i := unknownOp(ops); i >= 0 {
		return fmt.Errorf("%w: operation %d is Op(%d); take OpGet, OpSet or OpDelete", ErrOption, i, ops[i])
	}
	kinds := unsafe.Slice((*op.Kind)(unsafe.Pointer(unsafe.SliceData(ops))), len(ops))
	return failed(t.m.Apply(keys, kinds, op.Get, vals, found, found != nil))
}

// snapshot takes a snapshot.
func (t *treeCore) snapshot() *unread {
	s, err := t.m.Freeze()
	t.must(err)
	return &unread{from: s}
}

// freeze makes a compact copy of this moment.
func (t *treeCore) freeze(opts []Option) (*index.Index, error) {
	c, err := configure(freezing, opts)
	if err != nil {
		return nil, err
	}
	codec, err := codecOf(t.val, c)
	if err != nil {
		return nil, err
	}
	if c.values == nil {
		codec, _ = codecOf(t.val, t.config)
	}
	s, err := t.m.Freeze()
	if err != nil {
		return nil, failed(err)
	}
	defer s.Drop()
	ix, err := s.Open()
	if err != nil {
		return nil, failed(err)
	}
	own, err := ix.Compact(c.index(), codec)
	return own, failed(err)
}

// save is Save.
func (t *treeCore) save(path string) error {
	ix, err := t.freeze([]Option{On(CPU)})
	if err != nil {
		return err
	}
	defer ix.Release()
	if err := snapshot.Replace(path, func(w io.Writer) error { _, err := ix.WriteTo(w); return failed(err) }, func() {}); err != nil {
		return fmt.Errorf("pando: cannot save %s: %w", path, err)
	}
	return nil
}

// writeTo is WriteTo.
func (t *treeCore) writeTo(w io.Writer) (int64, error) {
	ix, err := t.freeze([]Option{On(CPU)})
	if err != nil {
		return 0, err
	}
	defer ix.Release()
	n, err := ix.WriteTo(w)
	return n, failed(err)
}

// nearest returns the first entry from an edge on, or down from it.
func (t *treeCore) nearest(from index.Edge, down bool) (order.Probe, index.Value, bool) {
	c := t.open().Cursor()
	c.Move(from, down)
	k, x, ok := c.Next()
	c.Done()
	t.done()
	return k, x, ok
}

// stats is Stats.
func (t *treeCore) stats() Stats {
	s := stats(t.open().Stats())
	t.done()
	return s
}

// len is Len.
func (t *treeCore) len() int {
	n := t.open().Len()
	t.done()
	return n
}

// getBatch is GetBatch.
func (t *treeCore) getBatch(keys order.Keys, vals index.Column, found []bool) (hits int) {
	m := t.open()
	vals, found = results("GetBatch", vals, found, keys.Len())
	hits = m.GetBatch(keys, vals, found)
	t.done()
	return hits
}

// getPacked is GetBatchBytes.
func (t *treeCore) getPacked(data []byte, offsets []int32, vals index.Column, found []bool) (hits int) {
	t.key.mustBeText("GetBatchBytes")
	m := t.open()
	vals, found = results("GetBatchBytes", vals, found, mustSpan(data, offsets, m.Workers()))
	hits = m.GetPacked(data, offsets, vals, found)
	t.done()
	return hits
}

func (t *treeCore) rank(key order.Probe) int {
	n := t.open().Rank(key, false)
	t.done()
	return n
}

func (t *treeCore) rankBatch(keys order.Keys, ranks []int) {
	m := t.open()
	mustHold("RankBatch", "ranks", len(ranks), keys.Len())
	m.RankBatch(keys, false, ranks[:keys.Len()])
	t.done()
}

// at returns entry i, and false if there is none.
func (t *treeCore) at(i int) (order.Probe, index.Value, bool) {
	k, x, ok := t.open().At(i)
	t.done()
	return k, x, ok
}

// mustAt returns entry i, or panics.
func (t *treeCore) mustAt(i int) (order.Probe, index.Value, bool) {
	m := t.open()
	if i >= 0 {
		if k, x, ok := t.at(i); ok {
			return k, x, ok
		}
	}
	panic(fmt.Sprintf("pando: At(%d): the tree has %d entries", i, m.Len()))
}

func (t *treeCore) count(lo, hi order.Probe) int {
	m := t.open()
	n := m.Rank(hi, true) - m.Rank(lo, false)
	t.done()
	return max(0, n)
}

func (t *treeCore) countBatch(lo, hi order.Keys, counts []int) {
	m := t.open()
	mustPair("CountBatch", lo.Len(), hi.Len())
	mustHold("CountBatch", "counts", len(counts), lo.Len())
	first := make([]int, lo.Len())
	m.RankBatch(lo, false, first)
	m.RankBatch(hi, true, counts[:lo.Len()])
	for i, n := range first {
		counts[i] = max(0, counts[i]-n)
	}
	t.done()
}

func (t *treeCore) prefixCount(p order.Probe) int {
	t.key.mustHavePrefixes("PrefixCount")
	m := t.open()
	n := m.Len()
	if end, ok := order.AfterPrefix(p.Text); ok {
		n = m.Rank(order.Probe{Text: end}, false)
	}
	n -= m.Rank(p, false)
	t.done()
	return max(0, n)
}

// rangeBatch is RangeBatch: it copies entries to the memory that room returns for
// them, and returns the offsets of ranges.
func (t *treeCore) rangeBatch(lo, hi order.Keys, limit int, room func(n int) (order.Keys, index.Column)) []int {
	m := t.open()
	mustPair("RangeBatch", lo.Len(), hi.Len())
	offsets := make([]int, lo.Len()+1)
	if !m.RangeBatch(lo, hi, limit, offsets, room) {
		m.EachRange(t, lo, hi, limit, offsets, room)
	}
	t.done()
	return offsets
}

// walk begins an iteration over the entries in reach.
func (t *treeCore) walk(what reachKind, lo, hi order.Probe, s *scan) *index.Walk {
	m := t.open()
	from, to, down, limit := index.NoEdge, index.NoEdge, what == reachDown, math.MaxInt
	switch what {
	case reachRange:
		from, to = index.Edge{Key: lo}, index.Edge{Key: hi}
	case reachPrefix:
		from = index.Edge{Key: lo}
		if end, ok := order.AfterPrefix(lo.Text); ok {
			to = index.Edge{Key: order.Probe{Text: end}, Open: true}
		}
	case reachScan:
		var some bool
		if from, to, some = s.bounds.Edges(t.key.KeyType); s.reverse {
			from, to, down = to, from, true
		}
		if s.limited {
			limit = s.limit
		}
		if !some {
			limit = 0
		}
	}
	return m.Walk(t, from, to, down, limit)
}

// string is String.
func (t *treeCore) string() string {
	name := "pando.Tree" + t.types.String()
	if t.closed.Load() {
		return name + "{closed}"
	}
	return name + "{" + inWords(t.m.Stats()) + "}"
}

// values calls do with the values of a range, or returns false if they cannot be read
// many at a time.
func (t *treeCore) values(lo, hi order.Probe, do func(src vector.Source, workers int)) bool {
	m := t.open()
	src, ok := m.Entries(lo, hi, m.Workers())
	if ok {
		do(src, m.Workers())
	}
	t.done()
	return ok
}

func (t *treeCore) aggregateBatch(lo, hi order.Keys, out []vector.Summary) bool {
	m := t.open()
	if m.SummarizeRanges(lo.Len(), func(i int) (from, to order.Probe) { return lo.Probe(i), hi.Probe(i) }, out) {
		t.done()
		return true
	}
	if lo.Len() < m.Workers() { // better one after the other, each on all workers
		return false
	}
	if _, ok := m.Entries(order.Probe{}, order.Probe{}, 1); !ok {
		return false
	}
	typ := index.NumberType(t.val.Type())
	par.Run(m.Workers(), lo.Len(), par.Func(func(i int) {
		src, _ := m.Entries(lo.Probe(i), hi.Probe(i), 1)
		out[i] = vector.Summarize(src, typ, 1)
	}))
	t.done()
	return true
}

// selectValues copies the entries that satisfy a condition to the memory that room
// returns for them, or returns false if values cannot be read many at a time.
func (t *treeCore) selectValues(lo, hi order.Probe, c vector.Condition, room func(n int) (order.Keys, index.Column)) bool {
	m := t.open()
	if _, ok := m.Entries(lo, hi, 1); !ok {
		return false
	}
	m.Select(lo, hi, c, room)
	t.done()
	return true
}

// transformEach is Transform for values that do not lie in the tree.
func (t *treeCore) transformEach(lo, hi order.Probe, f func(old index.Value) index.Value) (changed int, err error) {
	c, end, last := t.m.Cursor(), index.Edge{Key: hi}, index.Edge{Key: hi, Open: true}
	defer c.Done()
	c.Move(index.Edge{Key: lo}, false)
	for {
		k, _, ok := c.Next()
		if !ok || t.m.Beyond(k, end, false) {
			break
		}
		was := false
		err := t.m.Update(k, func(old index.Value, had bool) (index.Value, bool) {
			if was = had; !had {
				return index.Value{}, false
			}
			return f(old), true
		})
		if err != nil {
			return changed, failed(err)
		}
		if was {
			changed++
		}
		if t.m.Beyond(k, last, false) {
			return changed, nil // all are changed, though the caller should close the tree now
		}
	}
	if t.closed.Load() {
		return changed, ErrClosed
	}
	return changed, nil
}

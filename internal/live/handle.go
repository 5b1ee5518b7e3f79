package live

import (
	"fmt"
	"io"
	"math"
	"reflect"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/vector"
)

// Handle is a map that may be closed while it is in use: a pando.Tree without its types, as
// index.Handle is a pando.Frozen. Errors are public ones.
type Handle struct {
	Key    index.KeyType
	Val    *index.ValueType
	Form   index.Form // of Val
	m      *Map
	closed atomic.Bool
}

// Load makes the map, of n entries that span hands out, as LoadMap does.
func (h *Handle) Load(key index.KeyType, val *index.ValueType, n int, span func(lo int, keys order.Keys, vals index.Column), o *index.Options) error {
	codec, err := o.Codec(val)
	if err != nil {
		return err
	}
	h.Key, h.Val, h.Form = key, val, val.Form()
	h.m, err = LoadMap(key, val, n, span, o.Config, codec)
	return index.Public(err)
}

// Take makes the map that of another handle, which has none then. Nobody uses either yet.
func (h *Handle) Take(from *Handle) {
	h.Key, h.Val, h.Form, h.m = from.Key, from.Val, from.Form, from.m
	from.m = nil
}

// OpenFile makes the map, of the entries of the file that file returns. path is its name, and
// typ the Go type of keys, for messages.
func (h *Handle) OpenFile(key index.KeyType, typ reflect.Type, val *index.ValueType, o *index.Options, path string, file func() (*index.File, error)) error {
	reading := *o
	reading.Device, reading.Layout, reading.Layouts, reading.Verified = index.OnCPU, layout.Auto, index.AllLayouts, true
	ix, err := index.OpenAs(key, val, &reading, file)
	if err != nil {
		return err
	}
	defer ix.Release()
	own := *o
	if own.Given&index.OptNote == 0 {
		own.Note = ix.Note()
	}
	if err := h.Load(key, val, ix.Len(), ix.CopyOut, &own); err != nil {
		return err
	}
	if err := h.m.Check(); err != nil {
		h.Close()
		if i, found := ix.FirstTwice(); found {
			text := index.KeyText(key.Type, typ, ix.Engine.Key(i))
			return fmt.Errorf("%w: %s has %v more than once, and a Tree keeps one value a key; Open takes the file, or Set each of its entries in an empty Tree, which keeps the last of equal ones",
				index.ErrEqualKeys, path, text)
		}
		return fmt.Errorf("%w: %s: %w", index.ErrFile, path, err)
	}
	return nil
}

// Open returns the map, or panics if it was closed.
func (h *Handle) Open() *Map {
	if h.closed.Load() {
		panic("pando: Tree used after Close")
	}
	return h.m
}

// done panics if the map was closed while an answer was read.
func (h *Handle) done() {
	if h.closed.Load() {
		panic("pando: Tree closed while it was in use")
	}
}

// Alive panics if the map was closed.
func (h *Handle) Alive() { h.done() }

// must panics over an error of a method that returns none: the map was closed.
func (h *Handle) must(err error) {
	if err != nil {
		h.Open()
		panic("pando: " + err.Error())
	}
}

// Close gives the memory back that no snapshot needs.
func (h *Handle) Close() error {
	if !h.closed.Swap(true) {
		h.m.Close()
	}
	return nil
}

// Get returns the value of a key, and reports whether there is one.
func (h *Handle) Get(key order.Probe) (index.Value, bool) {
	x, ok := h.Open().Get(key)
	h.done()
	return x, ok
}

// Has reports whether there is an entry with a key.
func (h *Handle) Has(key order.Probe) bool {
	ok := h.Open().Has(key)
	h.done()
	return ok
}

// Set sets the value of a key.
func (h *Handle) Set(key order.Probe, val index.Value) error {
	if err := h.m.Set(key, val); err != nil {
		return index.Public(err)
	}
	return nil
}

// Swap sets the value of a key, and returns the one it had.
func (h *Handle) Swap(key order.Probe, val index.Value) (index.Value, bool, error) {
	x, had, err := h.m.Swap(key, val)
	return x, had, index.Public(err)
}

// Update sets the value of a key to the result of f for the old one, or deletes the key.
func (h *Handle) Update(key order.Probe, f func(old index.Value, had bool) (index.Value, bool)) error {
	return index.Public(h.m.Update(key, f))
}

// Delete deletes a key, and returns the value it had.
func (h *Handle) Delete(key order.Probe) (index.Value, bool) {
	x, had, err := h.m.Delete(key)
	h.must(err)
	return x, had
}

// DeleteRange deletes the entries from lo to hi, and returns how many there were.
func (h *Handle) DeleteRange(lo, hi order.Probe) int {
	deleted, err := h.Open().DeleteRange(lo, hi)
	h.must(err)
	return deleted
}

// Pop deletes the least entry, or the greatest, and returns it.
func (h *Handle) Pop(greatest bool) (order.Probe, index.Value, bool) {
	k, x, ok, err := h.m.Pop(greatest)
	h.must(err)
	return k, x, ok
}

// SetBatch sets the values of many keys.
func (h *Handle) SetBatch(keys order.Keys, vals index.Column) error {
	if keys.Len() != vals.Len() {
		return fmt.Errorf("%w: %d keys, %d values", index.ErrLength, keys.Len(), vals.Len())
	}
	return index.Public(h.m.Apply(keys, nil, op.Set, vals, nil, false))
}

// DeleteBatch deletes many keys, and returns how many were there.
func (h *Handle) DeleteBatch(keys order.Keys, found []bool) int {
	h.Open()
	if found != nil {
		index.MustHold("DeleteBatch", "found", len(found), keys.Len())
		found = found[:keys.Len()]
	}
	deleted, err := h.m.DeleteBatch(keys, found)
	h.must(err)
	return deleted
}

// Apply does many operations. ops has an op.Kind for each.
func (h *Handle) Apply(ops []uint8, keys order.Keys, vals index.Column, found []bool) error {
	n := keys.Len()
	if len(ops) != n || vals.Len() != n || found != nil && len(found) != n {
		return fmt.Errorf("%w: %d operations, %d keys, %d values, room for %d reports", index.ErrLength, len(ops), n, vals.Len(), len(found))
	}
	if i := unknownOp(ops); i >= 0 {
		return fmt.Errorf("%w: operation %d is Op(%d); take OpGet, OpSet or OpDelete", index.ErrOption, i, ops[i])
	}
	kinds := unsafe.Slice((*op.Kind)(unsafe.Pointer(unsafe.SliceData(ops))), len(ops))
	return index.Public(h.m.Apply(keys, kinds, op.Get, vals, found, found != nil))
}

// unknownOp returns the first operation that is none of the three, or -1. It looks
// at eight at a time: one by one they take as long as a GPU takes to do them.
func unknownOp(ops []uint8) int {
	const each = 0x0101010101010101
	i := 0
	for ; i+8 <= len(ops); i += 8 {
		w := *(*uint64)(unsafe.Pointer(&ops[i]))
		if w&(0xfc*each)|w&(w>>1)&each != 0 { // above 3, or 3
			break
		}
	}
	for ; i < len(ops); i++ {
		if op.Kind(ops[i]) > op.Delete {
			return i
		}
	}
	return -1
}

// Snapshot takes a snapshot.
func (h *Handle) Snapshot() *Freezing {
	s, err := h.m.Freeze()
	h.must(err)
	return s
}

// Freeze makes a compact copy of this moment.
func (h *Handle) Freeze(o *index.Options) (*index.Index, error) {
	codec, err := o.Codec(h.Val)
	if err != nil {
		return nil, err
	}
	if o.Values == nil {
		codec = h.m.codec
	}
	s, err := h.m.Freeze()
	if err != nil {
		return nil, index.Public(err)
	}
	defer s.Drop()
	ix, err := s.Open()
	if err != nil {
		return nil, index.Public(err)
	}
	own, err := ix.Compact(o.Config, codec)
	return own, index.Public(err)
}

// onCPU makes a compact copy of this moment for a file.
func (h *Handle) onCPU() (*index.Index, error) {
	o := index.NewOptions()
	o.Device = index.OnCPU
	return h.Freeze(o)
}

// Save writes the map as it is at this moment to a file, which appears whole or not at all.
func (h *Handle) Save(path string) error {
	ix, err := h.onCPU()
	if err != nil {
		return err
	}
	defer ix.Release()
	return ix.SaveOwn(path)
}

// WriteTo writes the map as it is at this moment.
func (h *Handle) WriteTo(w io.Writer) (int64, error) {
	ix, err := h.onCPU()
	if err != nil {
		return 0, err
	}
	defer ix.Release()
	n, err := ix.WriteTo(w)
	return n, index.Public(err)
}

// Nearest returns the first entry from an edge on, or down from it.
func (h *Handle) Nearest(from index.Edge, down bool) (order.Probe, index.Value, bool) {
	c := h.Open().Cursor()
	defer c.Done()
	if !c.Move(from, down) {
		return order.Probe{}, index.Value{}, false
	}
	k, x, ok := c.Next()
	h.done()
	return k, x, ok
}

// Stats describes the map.
func (h *Handle) Stats() index.Stats {
	s := h.Open().Stats()
	h.done()
	return s
}

// Words describes the map in a few words.
func (h *Handle) Words() string {
	if h.closed.Load() {
		return "closed"
	}
	return h.m.Stats().Words()
}

// Inside returns the view of the map, whose keys have a Go type.
func (h *Handle) Inside(key reflect.Type) *index.Inside {
	return h.Open().Inside(h.Alive).WithText(key)
}

// Len returns the number of entries.
func (h *Handle) Len() int {
	n := h.Open().Len()
	h.done()
	return n
}

// GetBatch looks keys up, and returns the number of keys found.
func (h *Handle) GetBatch(keys order.Keys, vals index.Column, found []bool) (hits int) {
	m := h.Open()
	vals, found = index.Results("GetBatch", vals, found, keys.Len())
	hits = m.GetBatch(keys, vals, found)
	h.done()
	return hits
}

// GetPacked is GetBatch for strings that lie one behind the other.
func (h *Handle) GetPacked(data []byte, offsets []int32, vals index.Column, found []bool) (hits int) {
	h.Key.MustBeText("GetBatchBytes")
	m := h.Open()
	vals, found = index.Results("GetBatchBytes", vals, found, index.MustSpan(data, offsets, m.workers))
	hits = m.GetPacked(data, offsets, vals, found)
	h.done()
	return hits
}

// Rank returns the number of entries below a key.
func (h *Handle) Rank(key order.Probe) int {
	n := h.Open().Rank(key, false)
	h.done()
	return n
}

// RankBatch sets ranks[i] to the number of entries below keys[i].
func (h *Handle) RankBatch(keys order.Keys, ranks []int) {
	m := h.Open()
	index.MustHold("RankBatch", "ranks", len(ranks), keys.Len())
	m.RankBatch(keys, false, ranks[:keys.Len()])
	h.done()
}

// At returns entry i, and false if there is none.
func (h *Handle) At(i int) (order.Probe, index.Value, bool) {
	k, x, ok := h.Open().At(i)
	h.done()
	return k, x, ok
}

// MustAt returns entry i, or panics.
func (h *Handle) MustAt(i int) (order.Probe, index.Value, bool) {
	m := h.Open()
	if i >= 0 {
		if k, x, ok := h.At(i); ok {
			return k, x, ok
		}
	}
	panic(fmt.Sprintf("pando: At(%d): the tree has %d entries", i, m.Len()))
}

// Count returns the number of entries from lo to hi.
func (h *Handle) Count(lo, hi order.Probe) int {
	m := h.Open()
	n := m.Rank(hi, true) - m.Rank(lo, false)
	h.done()
	return max(0, n)
}

// CountBatch sets counts[i] to the number of entries from lo[i] to hi[i].
func (h *Handle) CountBatch(lo, hi order.Keys, counts []int) {
	m := h.Open()
	index.MustPair("CountBatch", lo.Len(), hi.Len())
	index.MustHold("CountBatch", "counts", len(counts), lo.Len())
	first := make([]int, lo.Len())
	m.RankBatch(lo, false, first)
	m.RankBatch(hi, true, counts[:lo.Len()])
	for i, n := range first {
		counts[i] = max(0, counts[i]-n)
	}
	h.done()
}

// PrefixCount returns the number of entries whose key begins with p.
func (h *Handle) PrefixCount(p order.Probe) int {
	h.Key.MustHavePrefixes("PrefixCount")
	m := h.Open()
	n := m.Len()
	if end, ok := order.AfterPrefix(p.Text); ok {
		n = m.Rank(order.Probe{Text: end}, false)
	}
	n -= m.Rank(p, false)
	h.done()
	return max(0, n)
}

// RangeBatch copies the entries of ranges to the memory that room returns for them, and
// returns the offsets of ranges.
func (h *Handle) RangeBatch(lo, hi order.Keys, limit int, room func(n int) (order.Keys, index.Column)) []int {
	m := h.Open()
	index.MustPair("RangeBatch", lo.Len(), hi.Len())
	offsets := make([]int, lo.Len()+1)
	if !m.RangeBatch(lo, hi, limit, offsets, room) {
		m.EachRange(h, lo, hi, limit, offsets, room)
	}
	h.done()
	return offsets
}

// Walk begins an iteration over the entries in reach.
func (h *Handle) Walk(what index.Reach, lo, hi order.Probe, s *index.Scan) *index.Walk {
	m := h.Open()
	from, to, down, limit := index.NoEdge, index.NoEdge, what == index.ReachDown, math.MaxInt
	switch what {
	case index.ReachRange:
		from, to = index.Edge{Key: lo}, index.Edge{Key: hi}
	case index.ReachPrefix:
		from = index.Edge{Key: lo}
		if end, ok := order.AfterPrefix(lo.Text); ok {
			to = index.Edge{Key: order.Probe{Text: end}, Open: true}
		}
	case index.ReachScan:
		var some bool
		if from, to, some = s.Bounds.Edges(h.Key); s.Reverse {
			from, to, down = to, from, true
		}
		if s.Limited {
			limit = s.Limit
		}
		if !some {
			limit = 0
		}
	}
	return m.Walk(h, from, to, down, limit)
}

// withValues calls do with the values of a range, or returns false if they cannot be read
// many at a time.
func (h *Handle) withValues(lo, hi order.Probe, do func(src vector.Source, m *Map)) bool {
	m := h.Open()
	src, ok := m.Entries(lo, hi, m.workers)
	if ok {
		do(src, m)
	}
	h.done()
	return ok
}

// Summarize sums up the values of the entries from lo to hi. It returns false if they
// cannot be read many at a time, as the other methods for values do.
func (h *Handle) Summarize(lo, hi order.Probe) (sum index.Summary, ok bool) {
	ok = h.withValues(lo, hi, func(src vector.Source, m *Map) {
		sum = vector.Summarize(src, m.val.Number(), m.workers)
	})
	return sum, ok
}

// Histogram counts the values of the entries from lo to hi between bounds, given by their
// bits.
func (h *Handle) Histogram(lo, hi order.Probe, bounds []uint64, counts []int) bool {
	return h.withValues(lo, hi, func(src vector.Source, m *Map) {
		vector.Histogram(src, m.val.Number(), bounds, counts, m.workers)
	})
}

// SummarizeBatch sums up the values of many ranges. It returns false also where it is
// better to do that one after the other, each on all workers.
func (h *Handle) SummarizeBatch(lo, hi order.Keys, out []index.Summary) bool {
	m := h.Open()
	if m.SummarizeRanges(lo.Len(), func(i int) (from, to order.Probe) { return lo.Probe(i), hi.Probe(i) }, out) {
		h.done()
		return true
	}
	if lo.Len() < m.workers {
		return false
	}
	if _, ok := m.Entries(order.Probe{}, order.Probe{}, 1); !ok {
		return false
	}
	typ := m.val.Number()
	par.Run(m.workers, lo.Len(), par.Func(func(i int) {
		src, _ := m.Entries(lo.Probe(i), hi.Probe(i), 1)
		out[i] = vector.Summarize(src, typ, 1)
	}))
	h.done()
	return true
}

// Select copies the entries from lo to hi whose value satisfies a condition to the memory
// that room returns for them.
func (h *Handle) Select(lo, hi order.Probe, c index.Condition, room func(n int) (order.Keys, index.Column)) bool {
	m := h.Open()
	if _, ok := m.Entries(lo, hi, 1); !ok {
		return false
	}
	m.Select(lo, hi, c, room)
	h.done()
	return true
}

// Transform changes the values of the entries from lo to hi, and returns how many there
// were: by c where they lie in the tree, else one by one by each.
func (h *Handle) Transform(lo, hi order.Probe, c *index.Change, each func(old index.Value) index.Value) (changed int, err error) {
	changed, inTree, err := h.m.Transform(lo, hi, c)
	if inTree || err != nil {
		return changed, index.Public(err)
	}
	return h.transformEach(lo, hi, each)
}

// transformEach is Transform for values that do not lie in the tree.
func (h *Handle) transformEach(lo, hi order.Probe, f func(old index.Value) index.Value) (changed int, err error) {
	c, end, last := h.m.Cursor(), index.Edge{Key: hi}, index.Edge{Key: hi, Open: true}
	defer c.Done()
	c.Move(index.Edge{Key: lo}, false)
	for {
		k, _, ok := c.Next()
		if !ok || h.m.Beyond(k, end, false) {
			break
		}
		was := false
		err := h.m.Update(k, func(old index.Value, had bool) (index.Value, bool) {
			if was = had; !had {
				return index.Value{}, false
			}
			return f(old), true
		})
		if err != nil {
			return changed, index.Public(err)
		}
		if was {
			changed++
		}
		if h.m.Beyond(k, last, false) {
			return changed, nil // all are changed, though the caller should close the tree now
		}
	}
	if h.closed.Load() {
		return changed, index.ErrClosed
	}
	return changed, nil
}

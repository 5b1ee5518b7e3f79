package index

import (
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/vector"
)

func (e *numbers[C]) Body() layout.Body { return e.tree }

func (e *numbers[C]) Seek(key order.Probe) (rank int, equal bool) { return e.tree.Seek(C(key.Code)) }

func (e *numbers[C]) After(key order.Probe) int {
	next := C(key.Code) + 1
	if next == 0 { // nothing is above the greatest code
		return e.n
	}
	rank, _ := e.tree.Seek(next)
	return rank
}

// nearKeys is the number of keys that are looked at before a search begins at
// the root: the caller reads them next anyway.
const nearKeys = 8

func (e *numbers[C]) EndNear(rank int, key order.Probe) int {
	for i := rank; i < min(rank+nearKeys, e.n); i++ {
		if e.tree.Key(i) > C(key.Code) {
			return i
		}
	}
	return e.After(key)
}

func (e *numbers[C]) Key(i int) order.Probe { return order.Probe{Code: uint64(e.tree.Key(i))} }

// window is the number of codes that are decoded at a time.
const window = 64

func (e *numbers[C]) CopyKeys(lo int, keys order.Keys) {
	if keys.Raw() != nil {
		e.tree.CopyKeys(order.Codes[C](keys, nil), lo)
		return
	}
	e.decodeKeys(lo, keys)
}

// decodeKeys copies keys that need to be turned back from codes.
func (e *numbers[C]) decodeKeys(lo int, keys order.Keys) {
	var codes [window]C
	for at := 0; at < keys.Len(); at += window {
		n := min(keys.Len()-at, window)
		e.tree.CopyKeys(codes[:n], lo+at)
		order.SetKeys(keys.Slice(at, at+n), codes[:n])
	}
}

func (e *numbers[C]) copyKeyRuns(first, offsets []int, from, to int, keys order.Keys) {
	e.copyBoth(first, offsets, from, to, keys, nil, nil)
}

// copyRuns copies runs of entries on the CPU.
func (e *withValues[C]) copyRuns(first, offsets []int, keys order.Keys, vals []byte) {
	eachRuns(e.cpu.Workers(), len(first), func(from, to int) { e.copyBoth(first, offsets, from, to, keys, e.Valued, vals) })
}

// bytes returns the memory of values, which the tree keeps and which are of valSize bytes
// therefore.
func (e *withValues[C]) bytes(c Column) []byte { return unsafe.Slice((*byte)(c.at), c.n*e.valSize) }

// Get returns the value of a key.
func (e *withValues[C]) Get(key order.Probe) (v Value, found bool) {
	i, found := e.Seek(key)
	if found && i < e.n { // always, unless the index is being closed
		v = e.Val(i)
	}
	return v, found
}

// Val returns value i.
func (e *withValues[C]) Val(i int) Value {
	if e.valSize == 4 {
		return Value{Bits: uint64(*(*uint32)(e.Valued.Val(i)))}
	}
	return Value{Bits: *(*uint64)(e.Valued.Val(i))}
}

// CopyEntries copies entries from lo on.
func (e *withValues[C]) CopyEntries(lo int, keys order.Keys, vals Column) error {
	e.CopyKeys(lo, keys)
	e.CopyVals(e.bytes(vals), lo)
	return nil
}

// Readable returns true: values can be read many at a time.
func (e *withValues[C]) Readable() bool { return true }

// ReadValues hands values [lo, hi) to r.
func (e *withValues[C]) ReadValues(lo, hi int, r *vector.Reader) {
	readKept(e.Valued, lo, hi, e.valSize, r)
}

// copyBoth copies runs [from, to) of entries: keys and, where in is not nil,
// the values that lie in the tree beside them.
func (e *numbers[C]) copyBoth(first, offsets []int, from, to int, keys order.Keys, in layout.Valued, vals []byte) {
	var codes []C // the keys themselves, where their bits are codes
	if keys.Raw() != nil {
		codes = order.Codes[C](keys, nil)
	}
	for i := from; i < to; i++ {
		if j := i + prefetchAhead; j < to {
			e.tree.Prefetch(first[j], offsets[j+1]-offsets[j])
		}
		lo, hi := offsets[i], offsets[i+1]
		if lo == hi {
			continue
		}
		if codes != nil {
			e.tree.CopyKeys(codes[lo:hi], first[i])
		} else {
			e.decodeKeys(first[i], keys.Slice(lo, hi))
		}
		if in != nil {
			in.CopyVals(vals[lo*e.valSize:hi*e.valSize], first[i])
		}
	}
}

// schedule is a way to run batches.
type schedule[C order.Code] interface {
	Rank(keys order.Keys, ranks []int)
	RankAfter(keys order.Keys, ranks []int)
	FindEach(keys order.Keys, sink exec.Sink) (hits int)
	GetPairs(keys order.Keys, vals []C, found []bool) (hits int)
}

// on returns the schedule for a batch of n keys.
func (e *numbers[C]) on(n int) schedule[C] {
	if e.takes(n) {
		return e.gpu
	}
	return e.cpu
}

func (e *numbers[C]) Rank(keys order.Keys, ranks []int) { e.on(keys.Len()).Rank(keys, ranks) }

func (e *numbers[C]) RankAfter(keys order.Keys, ranks []int) { e.on(keys.Len()).RankAfter(keys, ranks) }

func (e *numbers[C]) FindEach(keys order.Keys, sink exec.Sink) (hits int) {
	return e.on(keys.Len()).FindEach(keys, sink)
}

// GetValues looks keys up where values are in the tree.
func (e *withValues[C]) GetValues(keys order.Keys, to Column, found []bool) (hits int) {
	vals := e.bytes(to)
	if e.pairs {
		return e.on(keys.Len()).GetPairs(keys, arena.As[C](vals), found)
	}
	s := par.Get(e.sinks)
	*s = column{entries: e.n, size: e.valSize, first: e.Valued.Val(0), vals: vals, found: found}
	if e.takes(keys.Len()) {
		hits = e.gpu.FindVals(keys, s, vals, found)
	} else {
		hits = e.cpu.FindEach(keys, s)
	}
	*s = column{} // the caller's slices are not ours to keep
	par.Put(e.sinks, s)
	return hits
}

// column is a sink that turns ranks into values of a column.
type column struct {
	entries int
	size    int // bytes of a value: 4 or 8
	first   unsafe.Pointer
	vals    []byte
	found   []bool
}

// Take sets the results of a bucket. The values were prefetched when they were
// found.
func (t *column) Take(lo int, ranks []int) (hits int) {
	if t.size == 4 {
		hits = takeColumn[uint32](t, lo, ranks)
	} else {
		hits = takeColumn[uint64](t, lo, ranks)
	}
	setFound(t.found, lo, ranks)
	return hits
}

func takeColumn[T uint32 | uint64](t *column, lo int, ranks []int) (hits int) {
	vals, all := arena.As[T](t.vals)[lo:lo+len(ranks)], unsafe.Slice((*T)(t.first), t.entries)
	for i, r := range ranks {
		var v T
		if uint(r) < uint(len(all)) { // below 0: not found; above: being closed
			v = all[r]
			hits++
		}
		vals[i] = v
	}
	return hits
}

// setFound sets which queries of a bucket were found.
func setFound(found []bool, lo int, ranks []int) {
	if found == nil {
		return
	}
	found = found[lo : lo+len(ranks)]
	for i, r := range ranks {
		found[i] = r >= 0
	}
}

// Fetch asks for the values of entries, which Take will read.
func (t *column) Fetch(ranks []int) { simd.FetchEach(t.first, ranks, t.size) }

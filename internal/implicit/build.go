package implicit

import (
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
)

// A worker takes pieces of 2 MiB of leaves: a huge page, which the system
// zeroes when it is first touched, so that no two workers wait for the same
// one and its lines are still in the cache when they are written. It goes
// through a piece in runs that stay in its first-level cache, since their keys
// are read three times: to see their order, to copy, to separate. Where entries
// are read from elsewhere a run fits the second-level cache, since each begins
// with a search.
const (
	pieceLeaves = 32 << 10
	runLeaves   = 512
	readLeaves  = 2048
)

// Build makes a tree. Keys that are not in order give layout.ErrUnsorted, most often
// at once, and leave nothing behind; equal keys stay in the order they come
// in. Nothing of the source is kept.
func Build[C simd.Code](src layout.Source[C], cfg Config) (*Tree[C], error) {
	stop := cfg.Stop
	cfg.Stop = nil // the tree keeps the rest
	t, err := shape[C](src.Len, cfg)
	if err != nil {
		return nil, err
	}
	if err := t.allocate(); err != nil {
		return nil, err
	}
	t.padInner()
	if src.Len == 0 {
		return t, nil
	}
	pieces, step := (t.leaves+pieceLeaves-1)/pieceLeaves, runLeaves
	if src.Both != nil {
		step = readLeaves
	}
	var unsorted, stopped atomic.Bool
	par.Run(par.Workers(cfg.Workers), pieces, par.Func(func(p int) {
		if stopped.Load() || stop != nil && stop() {
			stopped.Store(true)
			return
		}
		end := min((p+1)*pieceLeaves, t.leaves)
		r := reader[C]{src: src}
		for first := p * pieceLeaves; first < end && !unsorted.Load(); first += step {
			if !t.buildLeaves(&r, first, min(first+step, end)) {
				unsorted.Store(true)
			}
		}
	}))
	switch {
	case stopped.Load():
		t.Release()
		return nil, op.ErrStopped
	case unsorted.Load():
		t.Release()
		return nil, layout.ErrUnsorted
	}
	return t, nil
}

// padInner fills the last node of each level with the maximum: the only one
// that may have places without a child. With a fanout one below the most,
// the last place of every node is such a place.
func (t *Tree[C]) padInner() {
	slots := simd.LineBytes / keyBytes[C]()
	for l, count := range t.counts {
		fill(t.line(l, count-1), ^C(0))
		if t.cfg.Fanout > slots {
			continue
		}
		for x := range count {
			t.line(l, x)[slots-1] = ^C(0)
		}
	}
}

func fill[C simd.Code](s []C, v C) {
	for i := range s {
		s[i] = v
	}
}

// reader reads the entries of a source one run after the other: where they lie,
// or in memory that it uses again.
type reader[C simd.Code] struct {
	src  layout.Source[C]
	keys []C
	vals []uint64
}

// read returns keys [lo, hi) and where their values of size bytes lie.
func (r *reader[C]) read(lo, hi, size int) (keys []C, vals unsafe.Pointer) {
	if r.src.Codes == nil && cap(r.keys) < hi-lo {
		r.keys = make([]C, hi-lo)
	}
	if r.src.Both == nil || size == 0 {
		if r.src.Vals != nil {
			vals = unsafe.Add(r.src.Vals, lo*size)
		}
		return r.src.Span(lo, hi, r.keys), vals
	}
	if words := ((hi-lo)*size + 7) / 8; len(r.vals) < words {
		r.vals = make([]uint64, words)
	}
	keys, vals = r.keys[:hi-lo], unsafe.Pointer(&r.vals[0])
	r.src.Both(keys, unsafe.Slice((*byte)(vals), (hi-lo)*size), lo)
	return keys, vals
}

// buildLeaves writes leaves [first, end) and the separators behind them. It
// returns false if it finds their keys, the one before included, out of order.
func (t *Tree[C]) buildLeaves(r *reader[C], first, end int) bool {
	per, size := t.perLeaf(), t.cfg.ValSize
	lo, hi := first*per, min(end*per, r.src.Len)
	before := min(lo, 1)
	keys, vals := r.read(lo-before, hi, size)
	if !order.Sorted(keys, 1) {
		return false
	}
	keys, vals = keys[before:], unsafe.Add(vals, before*size)
	if t.cfg.Leaves == Pairs {
		t.writePairs(keys, vals, first)
	} else {
		t.writeApart(keys, vals, first)
	}
	if hi < end*per {
		t.padLeaf(keys[len(keys)-1], hi-(end-1)*per)
	}
	if t.Levels > 0 {
		t.writeSeparators(keys, first, end)
	}
	return true
}

// writeSeparators writes a separator for each leaf in [first, end) but the
// tree's last. The last leaf under an inner node has its separator higher up.
func (t *Tree[C]) writeSeparators(keys []C, first, end int) {
	per := t.perLeaf()
	node, slot := first/t.cfg.Fanout, first%t.cfg.Fanout
	for x := first; x < min(end, t.leaves-1); x++ {
		greatest := keys[(x-first)*per+per-1]
		if slot < t.cfg.Fanout-1 {
			t.line(t.Levels-1, node)[slot] = greatest
			slot++
			continue
		}
		t.separate(t.Levels-2, node, greatest)
		node, slot = node+1, 0
	}
}

// separate stores the greatest key under node x of level l+1 into level l, or
// higher up where x is the last child of its parent.
func (t *Tree[C]) separate(l, x int, greatest C) {
	for x%t.cfg.Fanout == t.cfg.Fanout-1 {
		x /= t.cfg.Fanout
		l--
	}
	t.line(l, x/t.cfg.Fanout)[x%t.cfg.Fanout] = greatest
}

const halfLine = simd.LineBytes / 2

// writePairs writes whole leaves of pairs, then the rest.
func (t *Tree[C]) writePairs(keys []C, vals unsafe.Pointer, first int) {
	per := t.perLeaf()
	at, from, whole := t.leaf(first), unsafe.Pointer(unsafe.SliceData(keys)), len(keys)/per
	for i := range whole {
		line := (*[2][halfLine]byte)(unsafe.Add(at, i*simd.LineBytes))
		line[0] = *(*[halfLine]byte)(unsafe.Add(from, i*halfLine))
		line[1] = *(*[halfLine]byte)(unsafe.Add(vals, i*halfLine))
	}
	if rest := (len(keys) - whole*per) * keyBytes[C](); rest > 0 {
		line := unsafe.Slice((*byte)(t.leaf(first+whole)), simd.LineBytes)
		copy(line, unsafe.Slice((*byte)(unsafe.Add(from, whole*halfLine)), rest))
		copy(line[halfLine:], unsafe.Slice((*byte)(unsafe.Add(vals, whole*halfLine)), rest))
	}
}

// writeApart writes leaves of keys alone, and the values into their column.
func (t *Tree[C]) writeApart(keys []C, vals unsafe.Pointer, first int) {
	copy(unsafe.Slice((*C)(t.leaf(first)), len(keys)), keys)
	if t.cfg.ValSize == 0 {
		return
	}
	lo, n := first*t.perLeaf()*t.cfg.ValSize, len(keys)*t.cfg.ValSize
	copy(unsafe.Slice((*byte)(unsafe.Add(t.Vals, lo)), n), unsafe.Slice((*byte)(vals), n))
}

// padLeaf fills the last leaf, which holds n keys, with its greatest.
func (t *Tree[C]) padLeaf(greatest C, n int) {
	fill(t.line(t.Levels, t.leaves-1)[n:t.perLeaf()], greatest)
}

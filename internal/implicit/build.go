package implicit

import (
	"unsafe"

	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
)

// Source is what a tree is built from: n sorted keys and their values.
type Source[C simd.Code] struct {
	Len int
	// Codes are the keys, where they lie in memory as codes already.
	Codes []C
	// Encode, where Codes is nil, sets dst to the codes from key lo on. It is
	// called from several goroutines.
	Encode func(dst []C, lo int)
	// Vals points at the values in key order, of the tree's ValSize each; nil
	// where ValSize is 0.
	Vals unsafe.Pointer
}

// pieceLeaves is the number of leaves a worker builds at a time: some 128 KiB,
// which stay in the worker's cache while they are written.
const pieceLeaves = 2048

// Build makes a tree. The source's keys must be in order; equal keys stay in
// the order they come in. Nothing of the source is kept.
func Build[C simd.Code](src Source[C], cfg Config) (*Tree[C], error) {
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
	pieces := (t.leaves + pieceLeaves - 1) / pieceLeaves
	par.Run(par.Workers(cfg.Workers), pieces, par.Func(func(p int) {
		first := p * pieceLeaves
		t.buildLeaves(src, first, min(first+pieceLeaves, t.leaves))
	}))
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

// buildLeaves writes leaves [first, end) and the separators behind them.
func (t *Tree[C]) buildLeaves(src Source[C], first, end int) {
	per := t.perLeaf()
	lo, hi := first*per, min(end*per, src.Len)
	keys := src.codes(lo, hi)
	if t.cfg.Leaves == Pairs {
		t.writePairs(keys, unsafe.Add(src.Vals, lo*t.cfg.ValSize), first)
	} else {
		t.writeApart(keys, src.Vals, first)
	}
	if hi < end*per {
		t.padLeaf(keys[len(keys)-1], hi-(end-1)*per)
	}
	// Separators: one for each leaf but the tree's last. The last leaf under
	// an inner node has its separator higher up.
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

// codes gives keys [lo, hi) as codes.
func (src *Source[C]) codes(lo, hi int) []C {
	if src.Codes != nil {
		return src.Codes[lo:hi]
	}
	buf := make([]C, hi-lo)
	src.Encode(buf, lo)
	return buf
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

// writePairs writes whole leaves of pairs, then what is left over.
func (t *Tree[C]) writePairs(keys []C, vals unsafe.Pointer, first int) {
	per, size := t.perLeaf(), keyBytes[C]()
	at := t.leaf(first)
	from := unsafe.Pointer(unsafe.SliceData(keys))
	whole := len(keys) / per
	for range whole {
		line := (*[2][halfLine]byte)(at)
		line[0] = *(*[halfLine]byte)(from)
		line[1] = *(*[halfLine]byte)(vals)
		at = unsafe.Add(at, simd.LineBytes)
		from, vals = unsafe.Add(from, halfLine), unsafe.Add(vals, halfLine)
	}
	if rest := (len(keys) - whole*per) * size; rest > 0 {
		line := unsafe.Slice((*byte)(at), simd.LineBytes)
		copy(line, unsafe.Slice((*byte)(from), rest))
		copy(line[halfLine:], unsafe.Slice((*byte)(vals), rest))
	}
}

// writeApart writes leaves of keys alone, and the values into their column.
func (t *Tree[C]) writeApart(keys []C, vals unsafe.Pointer, first int) {
	copy(unsafe.Slice((*C)(t.leaf(first)), len(keys)), keys)
	if t.cfg.ValSize == 0 {
		return
	}
	lo, n := first*t.perLeaf()*t.cfg.ValSize, len(keys)*t.cfg.ValSize
	copy(unsafe.Slice((*byte)(unsafe.Add(t.Vals, lo)), n), unsafe.Slice((*byte)(unsafe.Add(vals, lo)), n))
}

// padLeaf fills the last leaf, which holds n keys, with its greatest.
func (t *Tree[C]) padLeaf(greatest C, n int) {
	fill(t.line(t.Levels, t.leaves-1)[n:t.perLeaf()], greatest)
}

package live

import (
	"math"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/epoch"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
)

// codes is the Tree of numbers, over a B+-tree of their codes. The tree has a name, since
// all methods of an embedded one would be compiled again for this type and those around it.
type codes[C order.Code] struct {
	Body    // the tree
	tree    *bplus.Tree[C]
	workers int
}

func newCodes[C order.Code](t *bplus.Tree[C], workers int) *codes[C] { return &codes[C]{t, t, workers} }

// loadCodes makes the tree of a map.
func loadCodes[C order.Code](l *loading) (Tree, error) {
	t, err := bplus.Load(l.n, func(lo int, ks, vs []C) {
		keys, vals := order.MakeKeys(l.key.Type, len(ks)), l.val.Zeros(len(vs))
		l.span(lo, keys, vals)
		codesOf(ks, keys)
		skip := 0
		if lo > 0 {
			skip = 1 // another call puts it aside
		}
		loadEach(l, vs[skip:], l.val.Part(vals, skip, len(vs)))
	}, l.cfg.Bound(), l.workers)
	if err != nil {
		return nil, err
	}
	l.setLimit = t.SetLimit
	return newCodes(t, l.workers), nil
}

func (t *codes[C]) Shown() any { return t.tree }

func (t *codes[C]) Get(key order.Probe) (uint64, bool) {
	v, ok := t.tree.Get(C(key.Code))
	return uint64(v), ok
}

func (t *codes[C]) Set(key order.Probe, val uint64) (uint64, bool, error) {
	v, had, err := t.tree.Set(C(key.Code), C(val))
	return uint64(v), had, err
}

func (t *codes[C]) Delete(key order.Probe) (uint64, bool, error) {
	v, had, err := t.tree.Delete(C(key.Code))
	return uint64(v), had, err
}

func (t *codes[C]) Update(key order.Probe, f func(uint64, bool, uint64) (uint64, bool)) (uint64, bool, error) {
	v, had, err := t.tree.Update(C(key.Code), func(old C, had bool, gen uint64) (C, bool) {
		val, keep := f(uint64(old), had, gen)
		return C(val), keep
	})
	return uint64(v), had, err
}

func (t *codes[C]) Pop(greatest bool) (order.Probe, uint64, bool, error) {
	k, v, ok, err := t.tree.Pop(greatest)
	return order.Probe{Code: uint64(k)}, uint64(v), ok, err
}

func (t *codes[C]) DeleteRange(lo, hi order.Probe, gone func(uint64)) (int, error) {
	return t.tree.DeleteRange(C(lo.Code), C(hi.Code), widening[C](gone))
}

// widening returns a function of values that the tree calls with narrower ones.
func widening[C order.Code](f func(uint64)) func(C) {
	if f == nil {
		return nil
	}
	return func(v C) { f(uint64(v)) }
}

func (t *codes[C]) Rank(key order.Probe, after bool) int { return t.tree.Rank(C(key.Code), after) }

func (t *codes[C]) RankBatch(keys order.Keys, after bool, ranks []int) {
	const piece = 512
	par.Run(t.workers, (len(ranks)+piece-1)/piece, par.Func(func(p int) {
		var ks [piece]C
		lo, hi := p*piece, min((p+1)*piece, len(ranks))
		codesOf(ks[:hi-lo], keys.Slice(lo, hi))
		t.tree.RankBatch(ks[:hi-lo], after, ranks[lo:hi])
	}))
}

func (t *codes[C]) At(i int) (order.Probe, uint64, bool) {
	k, v, ok := t.tree.At(i)
	return order.Probe{Code: uint64(k)}, uint64(v), ok
}

// Generations returns those of the tree.
func (t *codes[C]) Generations() Generations {
	switch t := any(t.tree).(type) {
	case *bplus.Tree[uint32]:
		return narrow{t}
	case *bplus.Tree[uint64]:
		return t
	}
	panic("live: no such codes")
}

// narrow is the generations of a tree whose values are narrower than a map's.
type narrow struct{ t *bplus.Tree[uint32] }

func (n narrow) Gen() uint64             { return n.t.Gen() }
func (n narrow) Itself() *epoch.Clock    { return n.t.Itself() }
func (n narrow) Current(gen uint64) bool { return n.t.Current(gen) }
func (n narrow) Epoch() uint64           { return n.t.Epoch() }

func (n narrow) Newest() uint64        { return n.t.Newest() }
func (n narrow) Reclaim() bool         { return n.t.Reclaim() }
func (n narrow) OnOver(f func())       { n.t.OnOver(f) }
func (n narrow) Beside(f func() int64) { n.t.Beside(f) }

func (n narrow) Retire(vals, born []uint64) { n.t.Retire(codesTo[uint32](vals), born) }

func (n narrow) OnFree(f func(vals []uint64)) {
	n.t.OnFree(func(vals []uint32) {
		wide := make([]uint64, len(vals))
		for i, v := range vals {
			wide[i] = uint64(v)
		}
		f(wide)
	})
}

type cursor[C order.Code] struct{ *bplus.Cursor[C] }

func (c cursor[C]) Next() (order.Probe, uint64, bool) {
	k, v, ok := c.Cursor.Next()
	return order.Probe{Code: uint64(k)}, uint64(v), ok
}

func (c cursor[C]) Move(from index.Edge, down bool) bool {
	code, ok := edgeCode[C](from, down)
	if ok {
		c.Cursor.Move(code, down)
	}
	return ok
}

// edgeCode returns the first code within an edge, upwards or down, and false if
// there is none.
func edgeCode[C order.Code](from index.Edge, down bool) (code C, ok bool) {
	code = C(from.Key.Code)
	switch {
	case from.None && down:
		return ^C(0), true
	case from.None:
		return 0, true
	case from.Open && down:
		return code - 1, code != 0
	case from.Open:
		return code + 1, code != ^C(0)
	}
	return code, true
}

func (t *codes[C]) Cursor() TreeCursor { return cursor[C]{t.tree.Ascend(0)} }

// window is the number of codes that are converted at a time.
const window = 64

// codesOf sets dst to the codes of keys, which may be narrower than C.
func codesOf[C order.Code](dst []C, keys order.Keys) {
	if keys.Bits() == order.CodeBits[C]() {
		order.CodesTo(dst, keys)
		return
	}
	var buf [window]uint32
	for lo := 0; lo < len(dst); lo += window {
		hi := min(lo+window, len(dst))
		order.CodesTo(buf[:hi-lo], keys.Slice(lo, hi))
		for i, c := range buf[:hi-lo] {
			dst[lo+i] = C(c)
		}
	}
}

// setKeys sets keys to those of codes, which may be wider.
func setKeys[C order.Code](keys order.Keys, codes []C) {
	if keys.Bits() == order.CodeBits[C]() {
		order.SetKeys(keys, codes)
		return
	}
	var buf [window]uint32
	for lo := 0; lo < len(codes); lo += window {
		hi := min(lo+window, len(codes))
		for i, c := range codes[lo:hi] {
			buf[i] = uint32(c)
		}
		order.SetKeys(keys.Slice(lo, hi), buf[:hi-lo])
	}
}

// loadVals sets dst to values of size bytes each.
func loadVals[C order.Code](dst []C, vals []byte, size int) {
	switch {
	case size == 0:
		clear(dst)
	case size*8 == order.CodeBits[C]():
		copy(dst, arena.As[C](vals))
	case size == 4:
		for i, v := range arena.As[uint32](vals)[:len(dst)] {
			dst[i] = C(v)
		}
	default:
		for i, v := range arena.As[uint64](vals)[:len(dst)] {
			dst[i] = C(v)
		}
	}
}

// storeVals sets values of size bytes each.
func storeVals[C order.Code](vals []byte, size int, src []C) {
	switch {
	case size == 0:
	case size*8 == order.CodeBits[C]():
		copy(arena.As[C](vals), src)
	case size == 4:
		to := arena.As[uint32](vals)
		for i, v := range src {
			to[i] = uint32(v)
		}
	default:
		to := arena.As[uint64](vals)
		for i, v := range src {
			to[i] = uint64(v)
		}
	}
}

// getPiece is the number of keys that are converted together.
const getPiece = 4096

func (t *codes[C]) GetBatch(keys order.Keys, vals []byte, size int, found []bool, use func(lo, hi int)) (hits int) {
	direct := keys.Raw() != nil && keys.Bits() == order.CodeBits[C]() && size*8 == order.CodeBits[C]() && use == nil
	if n := keys.Len(); direct && n > 0 && &vals[0] != &keys.Raw()[0] {
		return t.tree.GetBatch(order.Codes[C](keys, nil), arena.As[C](vals), found, t.workers, nil)
	}
	pieces := (keys.Len() + getPiece - 1) / getPiece
	counts := make([]int, pieces)
	par.Run(t.workers, pieces, par.Func(func(p int) {
		lo, hi := p*getPiece, min((p+1)*getPiece, keys.Len())
		ks, vs := make([]C, hi-lo), make([]C, hi-lo)
		codesOf(ks, keys.Slice(lo, hi))
		var f []bool
		if found != nil {
			f = found[lo:hi]
		}
		counts[p] = t.tree.GetBatch(ks, vs, f, 1, func(from, to int) {
			storeVals(vals[(lo+from)*size:(lo+to)*size], size, vs[from:to])
			if use != nil {
				use(lo+from, lo+to)
			}
		})
	}))
	for _, n := range counts {
		hits += n
	}
	return hits
}

// apply sorts a batch and hands it to the tree.
func (t *codes[C]) Apply(b *changes) error {
	n := b.keys.Len()
	if uint64(n) > math.MaxUint32 {
		return index.Problem(index.ErrTooLarge, "%d operations in a batch; %d are the most", n, uint32(math.MaxUint32))
	}
	ops := &bplus.Ops[C]{Kind: b.kind}
	if b.found == nil && b.kinds == nil && b.kind == op.Set && n >= order.SplitLeast && !t.tree.Limited() {
		if done, err := t.setMany(b); done {
			return err
		}
	}
	ks := make([]C, n)
	codesOf(ks, b.keys)
	sorted := order.Sorted(ks, t.workers)
	if b.found == nil && b.kinds == nil {
		vs := make([]C, n)
		loadVals(vs, b.vals, b.size)
		if !sorted {
			ks, vs = order.Sort(ks, make([]C, n), vs, make([]C, n), t.workers)
		}
		ops.Keys, ops.Vals = ks, vs
		return t.tree.Apply(ops, t.workers)
	}
	rows := make([]uint32, n)
	for i := range rows {
		rows[i] = uint32(i)
	}
	if !sorted {
		ks, rows = order.Sort(ks, make([]C, n), rows, make([]uint32, n), t.workers)
	}
	ops.Keys = ks
	return t.applyRows(b, ops, rows)
}

// setMany sets the values of many keys. They are split by their highest bits, straight
// from the caller's memory, and each part is sorted by the worker that puts it into
// the tree, in that worker's cache. It returns false if the keys are sorted already.
func (t *codes[C]) setMany(b *changes) (done bool, err error) {
	n, width := b.keys.Len(), order.CodeBits[C]()
	room := setRoom
	var ks, vs []C // the caller's, where they are as the tree has them
	if b.keys.Raw() != nil && b.keys.Bits() == width {
		ks = order.Codes[C](b.keys, nil)
	}
	if b.size*8 == width {
		vs = arena.As[C](b.vals)
	}
	if ks != nil && vs != nil {
		room = 0
	}
	span := func(lo, hi int, codes, vals []C) ([]C, []C) {
		if ks != nil {
			codes = ks[lo:hi]
		} else {
			codes = codes[:hi-lo]
			codesOf(codes, b.keys.Slice(lo, hi))
		}
		if vs != nil {
			vals = vs[lo:hi]
		} else {
			vals = vals[:hi-lo]
			loadVals(vals, b.vals[lo*b.size:hi*b.size], b.size)
		}
		return codes, vals
	}
	if first, _ := span(0, min(n, setRoom), make([]C, setRoom), make([]C, setRoom)); order.Sorted(first, 1) {
		return false, nil
	}
	size := n * width / 8
	block, err := arena.New([]int{size, size}, 0, arena.HugeAll, 0)
	if err != nil {
		return true, err
	}
	defer block.Release()
	parts := order.Split(arena.As[C](block.Segment(0)), arena.As[C](block.Segment(1)), room, span, t.workers)
	return true, t.tree.SetParts(n, parts.Len(), parts.Sorted, t.workers)
}

// setRoom is the number of pairs that setMany converts at a time.
const setRoom = 2048

// applyRows applies operations that come from rows of a batch, and reports the
// values before.
func (t *codes[C]) applyRows(b *changes, ops *bplus.Ops[C], rows []uint32) error {
	n := len(rows)
	all := make([]C, n)
	loadVals(all, b.vals, b.size)
	ops.Vals = make([]C, n)
	if b.kinds != nil {
		ops.Kinds = make([]op.Kind, n)
	}
	for i, r := range rows {
		ops.Vals[i] = all[r]
		if b.kinds != nil {
			ops.Kinds[i] = b.kinds[r]
		}
	}
	if b.found != nil {
		ops.Old, ops.Found = make([]C, n), make([]bool, n)
	}
	if b.seen != nil {
		ops.Seen = func(i int, val C) { b.seen(int(rows[i]), uint64(val)) }
	}
	err := t.tree.Apply(ops, t.workers)
	if b.half = ops.Half; err != nil || b.found == nil {
		return err
	}
	for i, r := range rows {
		all[r], b.found[r] = ops.Old[i], ops.Found[i]
	}
	if b.old != nil {
		storeVals(b.old, b.size, all)
	}
	return nil
}

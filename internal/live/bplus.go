package live

import (
	"math"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
)

// keyMap is a map from keys to values of at most 8 bytes. A Map is made of one,
// for either width of codes, or for strings.
type keyMap interface {
	get(key order.Probe) (val uint64, ok bool)
	set(key order.Probe, val uint64) (old uint64, had bool, err error)
	remove(key order.Probe) (old uint64, had bool, err error)
	update(key order.Probe, f func(old uint64, had bool, gen uint64) (uint64, bool)) (old uint64, had bool, err error)
	pop(greatest bool) (key order.Probe, val uint64, ok bool, err error)
	deleteRange(lo, hi order.Probe, gone func(val uint64)) (int, error)
	apply(b *changes) error
	// getBatch looks keys up: vals is the memory of the results, of size bytes
	// each. use is called with spans of them, as bplus.Tree.GetBatch has it.
	getBatch(keys order.Keys, vals []byte, size int, found []bool, use func(lo, hi int)) (hits int)
	shown() any // the tree, for a viewer
	rank(key order.Probe, after bool) int
	rankBatch(keys order.Keys, after bool, ranks []int)
	at(i int) (key order.Probe, val uint64, ok bool)
	cursor() keyCursor
	freeze() (moment, error)
	onFree(f func(vals []uint64))

	Len() int
	Gen() uint64
	Current(gen uint64) bool
	Epoch() uint64
	Closed() bool
	Bytes() int64
	Kept() int64
	Check() error
	Close()
	retire(vals, born []uint64)
}

// keyCursor reads entries one after the other.
type keyCursor interface {
	next() (key order.Probe, val uint64, ok bool)
	// Undo goes back to before the entry that next has returned last.
	Undo()
	// move makes next return the first entry within an edge, upwards or down. It
	// returns false, and must not be asked for more, if there can be none.
	move(from index.Edge, down bool) bool
	Done()
}

// changes is a batch of operations as a Map takes it.
type changes struct {
	keys  order.Keys
	kinds []op.Kind // nil where all are of one kind
	kind  op.Kind
	vals  []byte // of size bytes each
	size  int
	old   []byte // like vals, and may be the same memory; nil if nobody asks
	found []bool
	// deleted, of a deleteCounter and unless it is nil, gets the number of entries
	// that were deleted. All operations delete, and found is nil.
	deleted *int
	// seen, unless it is nil, is called with the value that a Get has found
	// while it is in the tree, as bplus.Ops.Seen is; row is the operation's
	// number.
	seen func(row int, bits uint64)
}

// deleteCounter is a keyMap that counts the keys a batch deletes, which costs
// less than to report them key by key.
type deleteCounter interface{ countsDeleted() }

// codes implements keyMap. The tree has a name, since all methods of an embedded one would
// be compiled again for this type and those around it.
type codes[C order.Code] struct {
	Tree    *bplus.Tree[C]
	key     order.Type
	workers int
}

func (t *codes[C]) Len() int                { return t.Tree.Len() }
func (t *codes[C]) Gen() uint64             { return t.Tree.Gen() }
func (t *codes[C]) Current(gen uint64) bool { return t.Tree.Current(gen) }
func (t *codes[C]) Epoch() uint64           { return t.Tree.Epoch() }
func (t *codes[C]) Closed() bool            { return t.Tree.Closed() }
func (t *codes[C]) Bytes() int64            { return t.Tree.Bytes() }
func (t *codes[C]) Kept() int64             { return t.Tree.Kept() }
func (t *codes[C]) Check() error            { return t.Tree.Check() }
func (t *codes[C]) Close()                  { t.Tree.Close() }

func (t *codes[C]) get(key order.Probe) (uint64, bool) {
	v, ok := t.Tree.Get(C(key.Code))
	return uint64(v), ok
}

func (t *codes[C]) set(key order.Probe, val uint64) (uint64, bool, error) {
	v, had, err := t.Tree.Set(C(key.Code), C(val))
	return uint64(v), had, err
}

func (t *codes[C]) remove(key order.Probe) (uint64, bool, error) {
	v, had, err := t.Tree.Delete(C(key.Code))
	return uint64(v), had, err
}

func (t *codes[C]) update(key order.Probe, f func(uint64, bool, uint64) (uint64, bool)) (uint64, bool, error) {
	v, had, err := t.Tree.Update(C(key.Code), func(old C, had bool, gen uint64) (C, bool) {
		val, keep := f(uint64(old), had, gen)
		return C(val), keep
	})
	return uint64(v), had, err
}

func (t *codes[C]) pop(greatest bool) (order.Probe, uint64, bool, error) {
	k, v, ok, err := t.Tree.Pop(greatest)
	return order.Probe{Code: uint64(k)}, uint64(v), ok, err
}

func (t *codes[C]) deleteRange(lo, hi order.Probe, gone func(uint64)) (int, error) {
	if gone == nil {
		return t.Tree.DeleteRange(C(lo.Code), C(hi.Code), nil)
	}
	return t.Tree.DeleteRange(C(lo.Code), C(hi.Code), func(v C) { gone(uint64(v)) })
}

func (t *codes[C]) rank(key order.Probe, after bool) int { return t.Tree.Rank(C(key.Code), after) }

func (t *codes[C]) rankBatch(keys order.Keys, after bool, ranks []int) {
	const piece = 512
	par.Run(t.workers, (len(ranks)+piece-1)/piece, par.Func(func(p int) {
		var ks [piece]C
		lo, hi := p*piece, min((p+1)*piece, len(ranks))
		codesOf(ks[:hi-lo], keys.Slice(lo, hi))
		t.Tree.RankBatch(ks[:hi-lo], after, ranks[lo:hi])
	}))
}

func (t *codes[C]) at(i int) (order.Probe, uint64, bool) {
	k, v, ok := t.Tree.At(i)
	return order.Probe{Code: uint64(k)}, uint64(v), ok
}

func (t *codes[C]) onFree(f func([]uint64)) {
	t.Tree.OnFree(func(vals []C) { f(widened(vals)) })
}

func (t *codes[C]) retire(vals, born []uint64) {
	narrow := make([]C, len(vals))
	for i, v := range vals {
		narrow[i] = C(v)
	}
	t.Tree.Retire(narrow, born)
}

func widened[C order.Code](vals []C) []uint64 {
	out := make([]uint64, len(vals))
	for i, v := range vals {
		out[i] = uint64(v)
	}
	return out
}

type cursor[C order.Code] struct{ *bplus.Cursor[C] }

func (c cursor[C]) next() (order.Probe, uint64, bool) {
	k, v, ok := c.Cursor.Next()
	return order.Probe{Code: uint64(k)}, uint64(v), ok
}

func (c cursor[C]) move(from index.Edge, down bool) bool {
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

func (t *codes[C]) cursor() keyCursor { return cursor[C]{t.Tree.Ascend(0)} }

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

func (t *codes[C]) getBatch(keys order.Keys, vals []byte, size int, found []bool, use func(lo, hi int)) (hits int) {
	direct := keys.Raw() != nil && keys.Bits() == order.CodeBits[C]() && size*8 == order.CodeBits[C]() && use == nil
	if n := keys.Len(); direct && n > 0 && &vals[0] != &keys.Raw()[0] {
		return t.Tree.GetBatch(order.Codes[C](keys, nil), arena.As[C](vals), found, t.workers, nil)
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
		counts[p] = t.Tree.GetBatch(ks, vs, f, 1, func(from, to int) {
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
func (t *codes[C]) apply(b *changes) error {
	n := b.keys.Len()
	if uint64(n) > math.MaxUint32 {
		return index.Problem(index.CauseTooLarge, "%d operations in a batch; %d are the most", n, uint32(math.MaxUint32))
	}
	ops := &bplus.Ops[C]{Kind: b.kind}
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
		return t.Tree.Apply(ops, t.workers)
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
	if err := t.Tree.Apply(ops, t.workers); err != nil || b.found == nil {
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

package live

import (
	"fmt"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/radix"
)

// textMap implements keyMap over a radix tree, for strings and for numbers as strings of
// digits.
type textMap struct {
	Tree    *radix.Tree
	digits  digits // how keys become strings
	workers int
	bad     error // the loaded keys were out of order
}

// loadTexts makes the tree of a map.
func loadTexts(m *Map, n int, span func(lo int, keys order.Keys, vals index.Column)) (keyMap, error) {
	t := &textMap{Tree: radix.New(m.cfg.Limit), digits: digitsOf(m.key.Type), workers: m.workers}
	t.Tree.Workers = m.workers
	const piece = 1 << 14
	last := ""
	for lo := 0; lo < n; lo += piece {
		k := min(piece, n-lo)
		all, vals, bits := index.MakeKeys(m.key.Type, k), m.val.Zeros(k), make([]uint64, k)
		span(lo, all, vals)
		keys := t.digits.texts(all)
		for i, key := range keys {
			if lo+i > 0 && last >= key && t.bad == nil {
				t.bad = fmt.Errorf("entry %d does not ascend", lo+i)
			}
			last = key
		}
		loadEach(m, bits, vals)
		if err := t.Tree.Apply(&radix.Ops{Kind: op.Set, Keys: keys, Vals: bits, Workers: m.workers}); err != nil {
			t.Tree.Close()
			return nil, err
		}
	}
	return t, nil
}

// Check looks through the tree for anything that cannot be.
func (t *textMap) Check() error {
	if t.bad != nil {
		return t.bad
	}
	return t.Tree.Check()
}

func (t *textMap) Len() int                { return t.Tree.Len() }
func (t *textMap) Gen() uint64             { return t.Tree.Gen() }
func (t *textMap) Current(gen uint64) bool { return t.Tree.Current(gen) }
func (t *textMap) Epoch() uint64           { return t.Tree.Epoch() }
func (t *textMap) Closed() bool            { return t.Tree.Closed() }
func (t *textMap) Bytes() int64            { return t.Tree.Bytes() }
func (t *textMap) Kept() int64             { return t.Tree.Kept() }
func (t *textMap) Close()                  { t.Tree.Close() }

func (t *textMap) get(key order.Probe) (uint64, bool) { return t.Tree.Get(t.digits.text(key)) }

func (t *textMap) set(key order.Probe, val uint64) (uint64, bool, error) {
	return t.Tree.Set(t.digits.text(key), val)
}

func (t *textMap) remove(key order.Probe) (uint64, bool, error) {
	return t.Tree.Delete(t.digits.text(key))
}

func (t *textMap) update(key order.Probe, f func(uint64, bool, uint64) (uint64, bool)) (uint64, bool, error) {
	return t.Tree.Update(t.digits.text(key), f)
}

func (t *textMap) pop(greatest bool) (order.Probe, uint64, bool, error) {
	k, v, ok, err := t.Tree.Pop(greatest)
	return t.digits.probe(k), v, ok, err
}

func (t *textMap) deleteRange(lo, hi order.Probe, gone func(uint64)) (int, error) {
	return t.Tree.DeleteRange(t.digits.text(lo), t.digits.text(hi), gone)
}

func (t *textMap) rank(key order.Probe, after bool) int {
	return t.Tree.Rank(t.digits.text(key), after)
}

func (t *textMap) rankBatch(keys order.Keys, after bool, ranks []int) {
	eachText(t.workers, t.digits.texts(keys), func(i int, key string) { ranks[i] = t.Tree.Rank(key, after) })
}

// eachText calls do with each of some strings, on at most workers goroutines.
func eachText(workers int, keys []string, do func(i int, key string)) {
	const piece = 512
	par.Run(workers, (len(keys)+piece-1)/piece, par.Func(func(p int) {
		for i := p * piece; i < min((p+1)*piece, len(keys)); i++ {
			do(i, keys[i])
		}
	}))
}

func (t *textMap) at(i int) (order.Probe, uint64, bool) {
	k, v, ok := t.Tree.At(i)
	return t.digits.probe(k), v, ok
}

func (t *textMap) onFree(f func([]uint64)) { t.Tree.OnFree(f) }

func (t *textMap) retire(vals, born []uint64) { t.Tree.Retire(vals, born) }

type textCursor struct {
	*radix.Cursor
	digits digits
}

func (t *textMap) cursor() keyCursor { return textCursor{t.Tree.Cursor(), t.digits} }

func (c textCursor) next() (order.Probe, uint64, bool) {
	k, v, ok := c.Cursor.Next()
	return c.digits.probe(k), v, ok
}

func (c textCursor) move(from index.Edge, down bool) bool {
	if from.None {
		c.Cursor.MoveEnd(down)
	} else {
		c.Cursor.Move(c.digits.text(from.Key), from.Open, down)
	}
	return true
}

func (textCursor) Done() {}

func (t *textMap) getBatch(keys order.Keys, vals []byte, size int, found []bool, use func(lo, hi int)) (hits int) {
	return getTexts(t.digits.texts(keys), vals, size, found, use, func(ks []string, vs []uint64, found []bool, use func(lo, hi int)) int {
		return t.Tree.GetBatch(ks, vs, found, t.workers, use)
	})
}

// getTexts looks strings up by get, which takes values of 8 bytes.
func getTexts(keys []string, vals []byte, size int, found []bool, use func(lo, hi int), get func([]string, []uint64, []bool, func(lo, hi int)) int) (hits int) {
	if found == nil {
		found = make([]bool, len(keys))
	}
	if size == 8 && len(keys) > 0 {
		return get(keys, arena.As[uint64](vals), found, use)
	}
	wide := make([]uint64, len(keys))
	return get(keys, wide, found, func(lo, hi int) {
		storeVals(vals[lo*size:hi*size], size, wide[lo:hi])
		if use != nil {
			use(lo, hi)
		}
	})
}

func (t *textMap) apply(b *changes) error {
	n := b.keys.Len()
	o := &radix.Ops{Keys: t.digits.texts(b.keys), Kinds: b.kinds, Kind: b.kind, Found: b.found, Seen: b.seen, Workers: t.workers}
	if b.kinds != nil || b.kind == op.Set {
		o.Vals = make([]uint64, n)
		loadVals(o.Vals, b.vals, b.size)
	}
	if b.old != nil {
		o.Old = make([]uint64, n)
	}
	if err := t.Tree.Apply(o); err != nil {
		return err
	}
	if b.old != nil {
		storeVals(b.old, b.size, o.Old)
	}
	return nil
}

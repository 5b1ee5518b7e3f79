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

// texts is the Tree of strings, and of numbers as strings of digits, over a radix tree.
type texts struct {
	Body    // the tree
	tree    *radix.Tree
	digits  digits // how keys become strings
	workers int
	bad     error // the loaded keys were out of order
}

// loadTexts makes the tree of a map.
func loadTexts(l *loading) (Tree, error) {
	m, n, r := l.Map, l.n, radix.New(l.cfg.Bound())
	m.setLimit = r.SetLimit
	t := &texts{Body: r, tree: r, digits: digitsOf(m.key.Type), workers: m.workers}
	t.tree.Workers = m.workers
	const piece = 1 << 14
	last := ""
	for lo := 0; lo < n; lo += piece {
		k := min(piece, n-lo)
		all, vals, bits := index.MakeKeys(m.key.Type, k), m.val.Zeros(k), make([]uint64, k)
		l.span(lo, all, vals)
		keys := t.digits.texts(all)
		for i, key := range keys {
			if lo+i > 0 && last >= key && t.bad == nil {
				t.bad = fmt.Errorf("entry %d does not ascend", lo+i)
			}
			last = key
		}
		loadEach(l, bits, vals)
		if err := t.tree.Apply(&radix.Ops{Kind: op.Set, Keys: keys, Vals: bits, Workers: m.workers}); err != nil {
			t.tree.Close()
			return nil, err
		}
	}
	return t, nil
}

// Check looks through the tree for anything that cannot be.
func (t *texts) Check() error {
	if t.bad != nil {
		return t.bad
	}
	return t.tree.Check()
}

func (t *texts) Get(key order.Probe) (uint64, bool) { return t.tree.Get(t.digits.text(key)) }

func (t *texts) Set(key order.Probe, val uint64) (uint64, bool, error) {
	return t.tree.Set(t.digits.text(key), val)
}

func (t *texts) Delete(key order.Probe) (uint64, bool, error) {
	return t.tree.Delete(t.digits.text(key))
}

func (t *texts) Update(key order.Probe, f func(uint64, bool, uint64) (uint64, bool)) (uint64, bool, error) {
	return t.tree.Update(t.digits.text(key), f)
}

func (t *texts) Pop(greatest bool) (order.Probe, uint64, bool, error) {
	k, v, ok, err := t.tree.Pop(greatest)
	return t.digits.probe(k), v, ok, err
}

func (t *texts) DeleteRange(lo, hi order.Probe, gone func(uint64)) (int, error) {
	return t.tree.DeleteRange(t.digits.text(lo), t.digits.text(hi), gone)
}

func (t *texts) Rank(key order.Probe, after bool) int {
	return t.tree.Rank(t.digits.text(key), after)
}

func (t *texts) RankBatch(keys order.Keys, after bool, ranks []int) {
	eachText(t.workers, t.digits.texts(keys), func(i int, key string) { ranks[i] = t.tree.Rank(key, after) })
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

func (t *texts) At(i int) (order.Probe, uint64, bool) {
	k, v, ok := t.tree.At(i)
	return t.digits.probe(k), v, ok
}

func (t *texts) Shown() any { return t.digits.shown(t.tree) }

// Generations returns those of the tree.
func (t *texts) Generations() Generations { return t.tree }

type textCursor struct {
	*radix.Cursor
	digits digits
}

func (t *texts) Cursor() TreeCursor { return textCursor{t.tree.Cursor(), t.digits} }

func (c textCursor) Next() (order.Probe, uint64, bool) {
	k, v, ok := c.Cursor.Next()
	return c.digits.probe(k), v, ok
}

func (c textCursor) Move(from index.Edge, down bool) bool {
	if from.None {
		c.Cursor.MoveEnd(down)
	} else {
		c.Cursor.Move(c.digits.text(from.Key), from.Open, down)
	}
	return true
}

func (textCursor) Done() {}

func (t *texts) GetBatch(keys order.Keys, vals []byte, size int, found []bool, use func(lo, hi int)) (hits int) {
	return getTexts(t.digits.texts(keys), vals, size, found, use, func(ks []string, vs []uint64, found []bool, use func(lo, hi int)) int {
		return t.tree.GetBatch(ks, vs, found, t.workers, use)
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

func (t *texts) Apply(b *changes) error {
	n := b.keys.Len()
	o := &radix.Ops{Keys: t.digits.texts(b.keys), Kinds: b.kinds, Kind: b.kind, Found: b.found, Seen: b.seen, Workers: t.workers}
	if b.kinds != nil || b.kind == op.Set {
		o.Vals = make([]uint64, n)
		loadVals(o.Vals, b.vals, b.size)
	}
	if b.old != nil {
		o.Old = make([]uint64, n)
	}
	if err := t.tree.Apply(o); err != nil {
		return err
	}
	if b.old != nil {
		storeVals(b.old, b.size, o.Old)
	}
	return nil
}

package index

import (
	"fmt"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/radix"
)

// textMap implements keyMap for strings.
type textMap struct {
	Tree    *radix.Tree
	workers int
	bad     error // the loaded keys were out of order
}

// loadTexts makes the tree of a map.
func loadTexts(m *Map, n int, span func(lo int, keys order.Keys, vals Column)) (keyMap, error) {
	t := &textMap{Tree: radix.New(m.cfg.Limit), workers: m.workers}
	t.Tree.Workers = m.workers
	const piece = 1 << 14
	last := ""
	for lo := 0; lo < n; lo += piece {
		k := min(piece, n-lo)
		keys, vals, bits := make([]string, k), m.val.Zeros(k), make([]uint64, k)
		span(lo, order.KeysOf(keys), vals)
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

func (t *textMap) get(key order.Probe) (uint64, bool) { return t.Tree.Get(key.Text) }

func (t *textMap) set(key order.Probe, val uint64) (uint64, bool, error) {
	return t.Tree.Set(key.Text, val)
}

func (t *textMap) remove(key order.Probe) (uint64, bool, error) { return t.Tree.Delete(key.Text) }

func (t *textMap) update(key order.Probe, f func(uint64, bool, uint64) (uint64, bool)) (uint64, bool, error) {
	return t.Tree.Update(key.Text, f)
}

func (t *textMap) pop(greatest bool) (order.Probe, uint64, bool, error) {
	k, v, ok, err := t.Tree.Pop(greatest)
	return order.Probe{Text: k}, v, ok, err
}

func (t *textMap) deleteRange(lo, hi order.Probe, gone func(uint64)) (int, error) {
	return t.Tree.DeleteRange(lo.Text, hi.Text, gone)
}

func (t *textMap) rank(key order.Probe, after bool) int { return t.Tree.Rank(key.Text, after) }

func (t *textMap) rankBatch(keys order.Keys, after bool, ranks []int) {
	eachText(t.workers, keys, func(i int, key string) { ranks[i] = t.Tree.Rank(key, after) })
}

// eachText calls do with each of some strings, on at most workers goroutines.
func eachText(workers int, keys order.Keys, do func(i int, key string)) {
	const piece = 512
	all := keys.Strings()
	par.Run(workers, (len(all)+piece-1)/piece, par.Func(func(p int) {
		for i := p * piece; i < min((p+1)*piece, len(all)); i++ {
			do(i, all[i])
		}
	}))
}

func (t *textMap) at(i int) (order.Probe, uint64, bool) {
	k, v, ok := t.Tree.At(i)
	return order.Probe{Text: k}, v, ok
}

func (t *textMap) onFree(f func([]uint64)) { t.Tree.OnFree(f) }

func (t *textMap) retire(vals, born []uint64) { t.Tree.Retire(vals, born) }

type textCursor struct{ *radix.Cursor }

func (t *textMap) cursor() keyCursor { return textCursor{t.Tree.Cursor()} }

func (c textCursor) next() (order.Probe, uint64, bool) {
	k, v, ok := c.Cursor.Next()
	return order.Probe{Text: k}, v, ok
}

func (c textCursor) move(from Edge, down bool) bool {
	if from.None {
		c.Cursor.MoveEnd(down)
	} else {
		c.Cursor.Move(from.Key.Text, from.Open, down)
	}
	return true
}

func (textCursor) Done() {}

func (t *textMap) getBatch(keys order.Keys, vals []byte, size int, found []bool, use func(lo, hi int)) (hits int) {
	return getTexts(keys.Strings(), vals, size, found, use, func(ks []string, vs []uint64, found []bool, use func(lo, hi int)) int {
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
	o := &radix.Ops{Keys: b.keys.Strings(), Kinds: b.kinds, Kind: b.kind, Found: b.found, Seen: b.seen, Workers: t.workers}
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

// textMoment is a map of strings as it was at one moment: an engine over a
// snapshot of its tree, which needs no directory.
type textMoment struct {
	*radix.Snapshot
	tree *radix.Tree
	work int
}

func (t *textMap) freeze() (moment, error) {
	s, err := t.Tree.Snapshot()
	if err != nil {
		return nil, err
	}
	return &textMoment{s, t.Tree, t.workers}, nil
}

func (e *textMoment) open(int) (n int, err error) { return e.Snapshot.Len(), nil }

func (e *textMoment) Seek(key order.Probe) (rank int, equal bool) {
	_, equal = e.Snapshot.Get(key.Text)
	return e.Snapshot.Rank(key.Text, false), equal
}

func (e *textMoment) single(key order.Probe) (uint64, bool) { return e.Snapshot.Get(key.Text) }

func (e *textMoment) After(key order.Probe) int { return e.Snapshot.Rank(key.Text, true) }

func (e *textMoment) endNear(_ int, key order.Probe) int { return e.After(key) }

func (e *textMoment) Key(i int) order.Probe {
	k, _, _ := e.Snapshot.At(i)
	return order.Probe{Text: k}
}

func (e *textMoment) CopyKeys(lo int, keys order.Keys) { e.entries(lo, keys.Len(), keys, nil) }

func (e *textMoment) entries(lo, n int, keys order.Keys, vals []uint64) error {
	var ks []string
	if keys.Len() > 0 {
		ks = keys.Strings()
	}
	if n == 0 {
		return nil
	}
	if n == 1 && ks == nil {
		_, vals[0], _ = e.Snapshot.At(lo)
		return nil
	}
	first, _, _ := e.Snapshot.At(lo)
	c := e.Snapshot.Cursor()
	c.Move(first, false, false)
	for i := range n {
		k, v, _ := c.Next()
		if ks != nil {
			ks[i] = k
		}
		if vals != nil {
			vals[i] = v
		}
	}
	return nil
}

func (e *textMoment) copyKeyRuns(first, offsets []int, from, to int, keys order.Keys) {
	for i := from; i < to; i++ {
		if lo, hi := offsets[i], offsets[i+1]; lo < hi {
			e.CopyKeys(first[i], keys.Slice(lo, hi))
		}
	}
}

func (e *textMoment) Rank(keys order.Keys, ranks []int) {
	eachText(e.work, keys, func(i int, key string) { ranks[i] = e.Snapshot.Rank(key, false) })
}

func (e *textMoment) RankAfter(keys order.Keys, ranks []int) {
	eachText(e.work, keys, func(i int, key string) { ranks[i] = e.Snapshot.Rank(key, true) })
}

func (e *textMoment) FindEach(keys order.Keys, sink exec.Sink) (hits int) {
	ranks := make([]int, keys.Len())
	eachText(e.work, keys, func(i int, key string) {
		rank, equal := e.Seek(order.Probe{Text: key})
		if ranks[i] = rank; !equal {
			ranks[i] = -1
		}
	})
	return sink.Take(0, ranks)
}

func (e *textMoment) lookup(keys order.Keys, vals []uint64, found []bool) (hits int) {
	return e.Snapshot.GetBatch(keys.Strings(), vals, found, e.work)
}

// prefix returns the entries [lo, hi) whose key begins with p.
func (e *textMoment) prefix(p string) (lo, hi int) {
	hi = e.Snapshot.Len()
	if next, ok := order.AfterPrefix(p); ok {
		hi = e.Snapshot.Rank(next, false)
	}
	return e.Snapshot.Rank(p, false), hi
}

func (e *textMoment) appendKey(dst []byte, i int) []byte { return e.Snapshot.AppendKey(dst, i) }

func (e *textMoment) body() layout.Body {
	return bodyOfMoment{func() layout.Stats { return layout.Stats{Kind: "radix", Fanout: 256} }}
}

func (e *textMoment) attach(Config) (Device, string, error) {
	return onCPU, "a snapshot shares the memory of its tree", nil
}

func (e *textMoment) report(s *Stats) { s.KeptBytes = e.tree.Kept() }

func (e *textMoment) release() error {
	e.Snapshot.Close()
	return nil
}

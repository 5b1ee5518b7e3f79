package stalls

import (
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"runtime"
	"slices"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
)

// waitKeys is the keys of trees that are waited for.
type waitKeys[K pando.Key] struct {
	name  string
	value func(K) uint64
	keys  []K // there from the start, sorted
	vals  []uint64
	mine  []K // of the calls that are timed: at even places some of keys, at odd ones others
	at    int // the next of them

	more  []K // of the operations beside: not in keys, in any order
	some  []K // of the lower half of keys, in any order
	batch []K // more and some in turn
	of    []uint64
}

const (
	mostWaitBatch   = contest.Mega      // keys of a batch, at most
	mostWaitChanges = 64 * contest.Kilo // keys changed before an operation that depends on changes
	mostWaitCalls   = 4 * contest.Mega  // different keys of the calls that are timed
)

func numbersToWaitFor(n int, seed uint64) *waitKeys[uint64] {
	return newWaitKeys(waitsOfNumbers, n, seed, data.SortedKeys[uint64], data.ValueOf[uint64])
}

func stringsToWaitFor(n int, seed uint64) *waitKeys[string] {
	return newWaitKeys(waitsOfStrings, n, seed, data.UUIDs, func(k string) uint64 {
		return binary.LittleEndian.Uint64([]byte(k[:8]))
	})
}

// newWaitKeys makes keys. Those of the operations and those of the calls have
// seeds of their own: hardly any are equal, and nothing depends on it.
func newWaitKeys[K pando.Key](name string, n int, seed uint64, draw func(n int, seed uint64) []K, value func(K) uint64) *waitKeys[K] {
	shuffled := func(keys []K) []K {
		rng := data.NewRand(seed, data.StreamShuffle)
		rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		return keys
	}
	n = max(n, 2) // half of them are nobody's but the operation's
	d := &waitKeys[K]{name: name, value: value, keys: draw(n, seed)}
	for _, k := range d.keys {
		d.vals = append(d.vals, value(k))
	}
	d.some = shuffled(slices.Clone(d.keys[:n/2]))
	d.some = d.some[:min(n/2, mostWaitBatch/2)]
	d.more = shuffled(draw(max(len(d.some), 1), seed+1))
	for i, k := range d.some {
		d.batch = append(d.batch, d.more[i], k)
	}
	for _, k := range d.batch {
		d.of = append(d.of, value(k))
	}
	there, others := shuffled(slices.Clone(d.keys)), shuffled(draw(min(n, mostWaitCalls/2), seed+2))
	for i, k := range others {
		d.mine = append(d.mine, there[i], k)
	}
	return d
}

// beside is an operation that calls are timed beside.
type beside struct {
	name     string
	do       func() error
	prepare  func() error  // before it, while nothing is timed; nil: nothing
	after    func() error  // at the end of all, the same
	times    int           // how often it is done in a row; 0: once
	pause    time.Duration // after each
	parallel bool          // it takes as many threads as it is given
	greedy   bool          // it takes all there are
	changes  bool          // it changes values
	empty    bool          // it begins with an empty tree
	ends     bool          // it deletes keys of the upper half, too
}

func (w *waiting[K]) threadsOf(b *beside) int {
	switch {
	case b.greedy:
		return runtime.GOMAXPROCS(0)
	case b.parallel:
		return w.threads
	}
	return 1
}

const besideNothing = "nothing"

// besides returns the operations.
func (w *waiting[K]) besides() []beside {
	nothing := []beside{
		{name: besideNothing, do: func() error { time.Sleep(10 * time.Millisecond); return nil }},
		{name: "a collection", do: func() error { runtime.GC(); return nil }},
	}
	return slices.Concat(nothing, w.singles(), w.batches(), w.snapshots(), w.readers())
}

func nothingToReturn(f func()) func() error { return func() error { f(); return nil } }

// restore puts back what operations have deleted of the lower half.
func (w *waiting[K]) restore() error {
	half := len(w.keys) / 2
	return w.tree.SetBatch(w.keys[:half], w.vals[:half])
}

// restoreAll puts back what operations have deleted.
func (w *waiting[K]) restoreAll() error { return w.tree.SetBatch(w.keys, w.vals) }

// change makes changes all over the tree, and takes them back.
func (w *waiting[K]) change() error {
	some := min(len(w.more), mostWaitChanges)
	if err := w.tree.SetBatch(w.more[:some], make([]uint64, some)); err != nil {
		return err
	}
	w.tree.DeleteBatch(w.more[:some], nil)
	return nil
}

// singles are operations on one key.
func (w *waiting[K]) singles() []beside {
	const row = 16 * contest.Kilo // calls in a row
	next := 0
	some := func() K { next++; return w.batch[next%len(w.batch)] }
	grown := 0
	all := data.NewRand(1, data.StreamShuffle).Perm(len(w.keys))
	grow := func() error {
		i := all[grown]
		grown++
		return w.tree.Set(w.keys[i], w.vals[i])
	}
	anew := func() error {
		if grown+row <= len(all) && w.tree.Len() > 0 {
			return nil
		}
		grown = 0
		if err := w.tree.Close(); err != nil {
			return err
		}
		return w.load(&beside{empty: true})
	}
	pops := min(len(w.keys)/2, row)
	pop := func(pop func(*pando.Tree[K, uint64]) (K, uint64, bool)) func() error {
		return func() error {
			if k, _, ok := pop(w.tree); !ok {
				return fmt.Errorf("key %v: nothing is left", k)
			}
			return nil
		}
	}
	return []beside{
		{name: "PopMin", prepare: w.restore, do: pop((*pando.Tree[K, uint64]).PopMin), times: pops},
		{name: "PopMax", prepare: w.restoreAll, do: pop((*pando.Tree[K, uint64]).PopMax), times: pops, ends: true},
		{name: "Set, from empty", empty: true, prepare: anew, do: grow, times: min(len(w.keys), row)},
		{name: "Set and Delete", times: row, do: func() error {
			k := some()
			if err := w.tree.Set(k, w.value(k)); err != nil {
				return err
			}
			w.tree.Delete(k)
			return nil
		}},
		{name: "Swap", times: row, do: func() error {
			k := some()
			_, _, err := w.tree.Swap(k, w.value(k))
			return err
		}},
		{name: "Update", times: row, do: func() error {
			k := some()
			return w.tree.Update(k, func(uint64, bool) (uint64, bool) { return w.value(k), true })
		}},
		{name: "Get and Has", times: row, do: nothingToReturn(func() { w.tree.Get(some()); w.tree.Has(some()) })},
		{name: "Floor and Ceil", times: row, do: nothingToReturn(func() { w.tree.Floor(some()); w.tree.Ceil(some()) })},
		{name: "Min and Max", times: row, do: nothingToReturn(func() { w.tree.Min(); w.tree.Max() })},
		{name: "Len and Stats", times: row, do: nothingToReturn(func() { w.tree.Len(); w.tree.Stats() })},
	}
}

// batches are operations on many keys.
func (w *waiting[K]) batches() []beside {
	label := "of " + contest.SizeText(len(w.batch))
	without := nothingToReturn(func() { w.tree.DeleteBatch(w.more, nil) })
	with := func() error { return w.tree.SetBatch(w.batch, w.of) }
	ops, vals := make([]pando.Op, len(w.batch)), make([]uint64, len(w.batch))
	for i := range ops {
		ops[i] = []pando.Op{pando.OpSet, pando.OpSet, pando.OpGet, pando.OpDelete}[i%4]
	}
	found := make([]bool, len(w.batch))
	last := max(len(w.keys)/2-1, 0)
	return []beside{
		{name: "SetBatch " + label, parallel: true, prepare: without, do: with},
		{name: "DeleteBatch " + label, parallel: true, prepare: with, do: nothingToReturn(func() { w.tree.DeleteBatch(w.batch, found) })},
		{name: "Apply " + label, parallel: true, prepare: func() error { copy(vals, w.of); return without() }, do: func() error {
			return w.tree.Apply(ops, w.batch, vals, found)
		}},
		{name: "GetBatch " + label, parallel: true, do: nothingToReturn(func() { w.tree.GetBatch(w.batch, vals, found) })},
		{name: "DeleteRange of half", prepare: w.restore, do: nothingToReturn(func() { w.tree.DeleteRange(w.keys[0], w.keys[last]) })},
	}
}

// snapshots are operations that look at one moment.
func (w *waiting[K]) snapshots() []beside {
	const kept = 4
	var held []*pando.Frozen[K, uint64]
	drop := func() (err error) {
		for ; len(held) > 0 && err == nil; held = held[1:] {
			err = held[0].Close()
		}
		return err
	}
	take := func() { held = append(held, w.tree.Snapshot()) }
	return []beside{
		{name: "Snapshot each ms", times: 50, pause: time.Millisecond, after: drop, do: func() (err error) {
			take()
			if len(held) > kept {
				err, held = held[0].Close(), held[1:]
			}
			return err
		}},
		{name: "first Get of a snapshot", parallel: true, after: drop, prepare: func() error { err := drop(); take(); return err }, do: nothingToReturn(func() { held[0].Get(w.keys[0]) })},
		{name: "Close of a snapshot", prepare: func() error { take(); return w.change() }, do: drop},
		{name: "Freeze", parallel: true, do: func() error {
			f, err := w.tree.Freeze(pando.On(pando.CPU), pando.Workers(w.threads))
			if err != nil {
				return err
			}
			return f.Close()
		}},
		{name: "Save", greedy: true, do: func() error { return w.tree.Save(w.path) }},
		{name: "WriteTo", greedy: true, do: func() error { _, err := w.tree.WriteTo(io.Discard); return err }},
	}
}

// readers are operations that change nothing.
func (w *waiting[K]) readers() []beside {
	n := len(w.keys)
	var lo, hi []K
	for i := 0; i+100 < n && len(lo) < 1000; i += max(n/1000, 1) {
		lo, hi = append(lo, w.keys[i]), append(hi, w.keys[i+100])
	}
	ranks := make([]int, len(w.batch))
	all := func(entries func() iter.Seq2[K, uint64]) func() error {
		return nothingToReturn(func() {
			for range entries() {
			}
		})
	}
	return []beside{
		{name: "Rank after changes", prepare: w.change, do: nothingToReturn(func() { w.tree.Rank(w.keys[n/2]) })},
		{name: "Count after changes", prepare: w.change, do: nothingToReturn(func() { w.tree.Count(w.keys[0], w.keys[n-1]) })},
		{name: "At after changes", prepare: w.change, do: nothingToReturn(func() { w.tree.At(n / 4) })},
		{name: "RankBatch after changes", parallel: true, prepare: w.change, do: nothingToReturn(func() { w.tree.RankBatch(w.batch, ranks) })},
		{name: "CountBatch after changes", parallel: true, prepare: w.change, do: nothingToReturn(func() { w.tree.CountBatch(lo, hi, ranks) })},
		{name: "RangeBatch", parallel: true, times: 10, do: nothingToReturn(func() { w.tree.RangeBatch(lo, hi, 0) })},
		{name: "All", do: all(func() iter.Seq2[K, uint64] { return w.tree.All() })},
		{name: "Backward", do: all(func() iter.Seq2[K, uint64] { return w.tree.Backward() })},
		{name: "Range of half", do: all(func() iter.Seq2[K, uint64] { return w.tree.Range(w.keys[n/4], w.keys[n*3/4]) })},
		{name: "Scan of half, backwards", do: all(func() iter.Seq2[K, uint64] {
			return w.tree.Scan(pando.From(w.keys[n/4]), pando.To(w.keys[n*3/4]), pando.Reverse())
		})},
		{name: "Cursor", do: nothingToReturn(func() {
			c := w.tree.Cursor()
			for ok := c.First(); ok; ok = c.Next() {
			}
		})},
	}
}

// numberBesides are operations on values, which are the same for all keys, and so are
// measured beside numbers alone.
func numberBesides(w *waiting[uint64]) []beside {
	n := len(w.keys)
	var lo, hi []uint64 // all keys together
	for step, i := max(n/1000, 1), 0; i < n; i += step {
		lo, hi = append(lo, w.keys[i]), append(hi, w.keys[min(i+step, n)-1])
	}
	sums := make([]pando.Summary[uint64], len(lo))
	bounds, counts := []uint64{1 << 61, 1 << 62, 1 << 63}, make([]int, 4)
	most := ^uint64(0)
	return []beside{
		{name: "Aggregate", parallel: true, do: nothingToReturn(func() { pando.Aggregate(w.tree, 0, most) })},
		{name: "AggregateBatch", parallel: true, do: nothingToReturn(func() { pando.AggregateBatch(w.tree, lo, hi, sums) })},
		{name: "Histogram", parallel: true, do: nothingToReturn(func() { pando.Histogram(w.tree, 0, most, bounds, counts) })},
		{name: "Select", parallel: true, do: nothingToReturn(func() { pando.Select(w.tree, 0, most, pando.Below[uint64](1<<63)) })},
		{name: "Transform", parallel: true, changes: true, do: func() error {
			_, err := pando.Transform(w.tree, 0, most, pando.Add[uint64](1))
			return err
		}},
	}
}

// textBesides are operations that strings alone have.
func textBesides(w *waiting[string]) []beside {
	p := w.keys[len(w.keys)/2][:1]
	return []beside{
		{name: "Prefix", do: nothingToReturn(func() {
			for range w.tree.Prefix(p) {
			}
		})},
		{name: "PrefixCount after changes", prepare: w.change, do: nothingToReturn(func() { w.tree.PrefixCount(p) })},
	}
}

package bplus

import (
	"fmt"
	"sync/atomic"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
)

// fill is the number of entries that Load puts into a leaf: not quite all, so
// that the first insert does not split it.
func fill[C Code]() int { return capacity[C]() - capacity[C]()/64 }

// Load makes a tree of sorted keys without duplicates. span sets keys and vals
// to the entries from lo on; several goroutines call it. Of each call but the one
// from 0 on, the first value is not used: another call has it.
func Load[C Code](n int, span func(lo int, keys, vals []C), limit int64, workers int) (*Tree[C], error) {
	t, err := New[C](limit)
	if err != nil || n == 0 {
		return t, err
	}
	count := (n + fill[C]() - 1) / fill[C]()
	if err := t.loadLeaves(n, count, span, workers); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// loadLeaves fills the leaves, then builds the upper nodes.
func (t *Tree[C]) loadLeaves(n, count int, span func(lo int, keys, vals []C), workers int) error {
	if err := t.room(int64(count) * int64(t.leaves.pool.SlotBytes()+t.uppers.pool.SlotBytes()/(fanout/2))); err != nil {
		return err
	}
	if err := t.leaves.promise(count - 1); err != nil {
		return err
	}
	list := make([]child[C], count)
	list[0].ref = uint32(t.root.Load())
	for i := 1; i < count; i++ {
		x, _, err := t.takeLeaf(true)
		if err != nil {
			return err
		}
		list[i].ref = x
	}
	const piece = 64
	par.Run(workers, (count+piece-1)/piece, par.Func(func(p int) {
		s := run[C]{make([]C, capacity[C]()+1), make([]C, capacity[C]()+1)}
		for i := p * piece; i < min((p+1)*piece, count); i++ {
			t.loadLeaf(list, i, n, span, s)
		}
	}))
	t.counts[0].entries.Store(int64(n))
	fresh := []uint32{}
	height := uint64(0)
	for len(list) > 1 {
		nodes, ok := t.build(list, &fresh)
		if !ok {
			return t.noUpper()
		}
		list = nodes
		height++
	}
	t.root.Store(height<<32 | uint64(list[0].ref))
	return nil
}

// noUpper returns why there is no memory for an upper node: by the limit, or by the
// system.
func (t *Tree[C]) noUpper() error {
	if err := t.room(int64(t.uppers.pool.SlotBytes())); err != nil {
		return err
	}
	return fmt.Errorf("%w: for upper nodes", arena.ErrMemory)
}

// loadLeaf fills leaf i of the list.
func (t *Tree[C]) loadLeaf(list []child[C], i, n int, span func(lo int, keys, vals []C), s run[C]) {
	count := len(list)
	lo, hi := i*n/count, (i+1)*n/count
	before := min(lo, 1) // one more at the front: the key that the leaf begins above
	keys, vals := s.keys[:before+hi-lo], s.vals[:before+hi-lo]
	span(lo-before, keys, vals)
	in := info{epoch: t.Epoch(), born: t.Epoch(), owner: t.id, next: nothing, first: 1, counted: uint32(hi - lo)}
	if i > 0 {
		in.first, in.low = 0, uint64(keys[0])
	}
	high := ^C(0)
	if i+1 < count {
		in.next, high = list[i+1].ref, keys[len(keys)-1]
	}
	l := t.leaf(list[i].ref)
	*l.info() = in
	l.pack(run[C]{keys[before:], vals[before:]}, high)
	t.revive(l, hi-lo)
	list[i].sep, list[i].count = high, int64(hi-lo)
}

// Close ends the tree, and gives its memory back unless snapshots need it. It waits
// for batches that are under way.
func (t *Tree[C]) Close() {
	t.many.Lock()
	defer t.many.Unlock()
	t.rw.Lock()
	defer t.rw.Unlock()
	t.structure.Lock()
	defer t.structure.Unlock()
	t.filling.Lock()
	defer t.filling.Unlock()
	t.snapshots.mu.Lock()
	defer t.snapshots.mu.Unlock()
	if !t.End() {
		return
	}
	t.stop()
	if len(t.snapshots.all) == 0 {
		t.release()
	}
}

// release gives all memory back. The tree no longer frees retired nodes: a late
// writer would free memory that another tree has by then. The caller holds the
// structure's lock.
func (t *Tree[C]) release() {
	t.limbo.Forget()
	t.values.Load().Forget()
	t.memory.release()
}

// stop seals every leaf for good, so that no change is under way when memory is
// given back: a writer that holds a leaf is waited for.
func (t *Tree[C]) stop() {
	for x := t.first; x != nothing; {
		l := t.leaf(x)
		for try := 0; ; try++ {
			word := l.loadWord()
			if word&simd.WordLocked == 0 && atomic.CompareAndSwapUint64(l.word(), word, word|simd.WordSealed) {
				break
			}
			simd.Wait(try)
		}
		x = l.info().next
	}
}

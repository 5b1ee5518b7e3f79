package radix

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/epoch"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/simd"
)

// Pop and DeleteRange work beside a writer that keeps its desk: they wait for nobody who changes something else.
func TestRemoveBesideDesks(t *testing.T) {
	if !epoch.Optimistic {
		t.Skip("there is one desk")
	}
	tree := New(0)
	defer tree.Close()
	for i := range 1000 {
		tree.Set(fmt.Sprintf("%04d", i), uint64(i))
	}
	d := tree.enter()
	done := make(chan bool)
	go func() {
		defer close(done)
		if k, v, ok, err := tree.Pop(false); k != "0000" || v != 0 || !ok || err != nil {
			t.Errorf("Pop(false) = %q, %d, %t, %v", k, v, ok, err)
		}
		if k, v, ok, err := tree.Pop(true); k != "0999" || v != 999 || !ok || err != nil {
			t.Errorf("Pop(true) = %q, %d, %t, %v", k, v, ok, err)
		}
		sum := uint64(0)
		if n, err := tree.DeleteRange("0100", "0899", func(v uint64) { sum += v }); n != 800 || sum != 800*999/2 || err != nil {
			t.Errorf("DeleteRange = %d, %v, values up to %d", n, err, sum)
		}
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Error("Pop or DeleteRange wait for a writer that has nothing to do with them")
	}
	tree.leave(d)
	<-done
	mustCheck(t, tree)
}

// What Pop returns is the first entry at one moment, whatever others put before it meanwhile.
func TestPopsBesideWriters(t *testing.T) {
	for _, greatest := range []bool{false, true} {
		for _, frozen := range []bool{false, true} {
			t.Run(fmt.Sprint(greatest, " ", frozen), func(t *testing.T) { popsBesideWriters(t, greatest, frozen) })
		}
	}
}

func popsBesideWriters(t *testing.T, greatest, frozen bool) {
	hurry(t)
	tree := New(0)
	defer tree.Close()
	for _, k := range []string{"m1", "m2", "m3", "m4", "n", "o"} { // nodes that stay
		tree.Set(k, 0)
	}
	// The first entry of all, and one that comes before it, below other nodes.
	inner, outer := "m0", "a"
	if greatest {
		inner, outer = "o5", "z"
		tree.Set("o0", 0)
		tree.Set("o1", 0)
	}
	until := func(done func() bool) {
		for try := 0; !done() && !t.Failed(); try++ {
			simd.Wait(try)
		}
	}
	var both, asked, popped atomic.Int64 // last rounds in which both entries were there at once, that was looked at, and that are over
	var wg sync.WaitGroup
	const rounds = 2000
	wg.Go(func() {
		for i := int64(1); i <= rounds && !t.Failed(); i++ {
			tree.Set(inner, uint64(i))
			tree.Set(outer, uint64(i))
			if tree.has(inner) {
				both.Store(i)
			}
			asked.Store(i)
			until(func() bool { return popped.Load() == i })
			if frozen && i%100 == 0 {
				defer mustSnapshot(t, tree).Close()
			}
		}
	})
	pop := func(i int64) string {
		k, v, ok, err := tree.Pop(greatest)
		if err != nil || !ok || v != uint64(i) || k != inner && k != outer {
			t.Errorf("round %d: Pop = %q, %d, %t, %v", i, k, v, ok, err)
		}
		return k
	}
	for i := int64(1); i <= rounds && !t.Failed(); i++ {
		until(func() bool { return tree.has(inner) || tree.has(outer) })
		first := pop(i)
		until(func() bool { return tree.has(inner) || tree.has(outer) })
		pop(i)
		if until(func() bool { return asked.Load() == i }); first == inner && both.Load() == i {
			t.Errorf("round %d: Pop has left out %q, which was there before %q was deleted", i, outer, inner)
		}
		popped.Store(i)
	}
	wg.Wait()
	mustCheck(t, tree)
}

func (t *Tree) has(key string) bool {
	_, ok := t.Get(key)
	return ok
}

// Once Pop has decided that an entry is the first one, readers do not find it any more, not
// even by a shortcut that leads to its leaf: one that did could have seen a smaller key come first.
func TestPopBesideShortcut(t *testing.T) {
	tree := New(0)
	defer tree.Close()
	for i := range 1 << 16 {
		key := fmt.Sprintf("%08x", uint32(i)*0x9e3779b9)
		if _, _, err := tree.Set("k"+key, 1); err != nil {
			t.Fatal(err)
		}
	}
	const least = "a lonely key, long enough for any shortcut"
	if _, _, err := tree.Set(least, 7); err != nil {
		t.Fatal(err)
	}
	tree.renewShort()
	s := tree.short.Load()
	if _, entered := s.Enter(least); !entered {
		t.Fatal("no shortcut leads to the leaf")
	}
	d := tree.enter()
	l, ok := d.walkEdge(false)
	if !ok || !l.isLeaf() || len(d.steps) == 0 {
		t.Fatal("no way to the first entry")
	}
	for _, changed := range []bool{true, false} {
		last := *d.last()
		if !d.lock(&last) {
			t.Fatal("somebody else writes")
		}
		if changed {
			d.steps = append([]step{{node: last.node, word: last.word + nextSeq}}, d.steps...)
		}
		c := change{key: least, kind: op.Delete, edge: true}
		if d.see(&c, l, 1) == changed {
			t.Errorf("a way that has changed: %t; it is to be deleted: %t", changed, !c.missed)
		}
		if _, entered := s.Enter(least); entered != changed {
			t.Errorf("a way that has changed: %t; a shortcut leads to the leaf: %t", changed, entered)
		}
		if changed {
			d.steps = d.steps[1:]
		}
		d.release(&last)
	}
	tree.leave(d)
}

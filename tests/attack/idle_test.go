package attack

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/pando-index/pando"
)

// kib is a value of 1 KiB, which a Tree keeps in memory of Go.
type kib [1024]byte

// idle fills a Tree with values of 1 KiB, deletes or overwrites them, maybe beside
// readers and snapshots, and then leaves the tree alone: what is dead is free after
// some collections, although nobody writes any more.
func idle(c *testCase) error {
	text := func(i int) string { return fmt.Sprintf("key %06d", i) }
	code := func(i int) uint64 { return uint64(i) * 7 }
	value := func(i int) kib { return kib{0: byte(i), 1023: byte(i >> 8)} }
	pointer := func(i int) *kib { v := value(i); return &v }
	switch c.rng.IntN(5) {
	case 0:
		return idleOf(c, "uint64 to 1 KiB", code, value)
	case 1:
		return idleOf(c, "uint64 to *1 KiB", code, pointer)
	case 2:
		return idleOf(c, "string to 1 KiB", text, value)
	case 3:
		return idleOf(c, "string to *1 KiB", text, pointer)
	}
	return idleOf(c, "uint64 to 1 KiB, radix", code, value, pando.Layout(pando.Radix))
}

// The bytes of Go memory beside its values that a tree of a few thousand keys may
// keep, and for each key that it ever had, whatever it is for.
const (
	idleBytes       = 1 << 20
	idleBytesPerKey = 128
)

func idleOf[K pando.Key, V any](c *testCase, name string, key func(int) K, val func(int) V, opts ...pando.Option) error {
	n := 2000 + upTo(c.rng, 6000)
	before := heapInUse()
	tree, err := pando.NewTree[K, V](append(opts, pando.On(pando.CPU), pando.Workers(2))...)
	if err != nil {
		return err
	}
	defer tree.Close()
	w := &waster[K, V]{testCase: c, tree: tree, n: n, key: key, val: val}
	way := draw(c, wasters[K, V]())
	c.note("Tree of %s: %d keys; %s", name, n, way.name)
	if err := w.fill(); err != nil {
		return err
	}
	stop := w.beside(c.rng.IntN(3))
	var held *pando.Frozen[K, V]
	if oneIn(c.rng, 3) {
		held = tree.Snapshot()
		c.note("beside a snapshot")
	}
	err = way.do(w)
	stop()
	if held != nil {
		held.Close()
	}
	if err != nil {
		return err
	}
	live := tree.Len()
	most := before + int64(live)*1100 + int64(n)*idleBytesPerKey + idleBytes
	held = nil
	now := settled(most)
	c.compared.Add(1)
	if now > most {
		return fmt.Errorf("%d bytes of Go memory where %d values of 1 KiB are left, %d before all; Stats says %d", now, live, before, tree.Stats().HeapBytes)
	}
	return nil
}

// settled returns the Go memory in use after some collections, as soon as it is
// not above most. Those that run when something is found unused have a moment.
func settled(most int64) (now int64) {
	for range 10 {
		if now = heapInUse(); now <= most {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return now
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// waster makes values that are no longer needed.
type waster[K pando.Key, V any] struct {
	*testCase
	tree *pando.Tree[K, V]
	n    int
	key  func(int) K
	val  func(int) V
}

func (w *waster[K, V]) fill() error {
	for i := range w.n {
		if err := w.tree.Set(w.key(i), w.val(i)); err != nil {
			return err
		}
	}
	return nil
}

// beside starts readers, which stop ends.
func (w *waster[K, V]) beside(readers int) (stop func()) {
	over := make(chan struct{})
	var wg sync.WaitGroup
	for r := range readers {
		wg.Go(func() {
			for i := r; ; i++ {
				select {
				case <-over:
					return
				default:
					w.tree.Floor(w.key(i % w.n))
				}
			}
		})
	}
	return func() { close(over); wg.Wait() }
}

// waste is a way to delete most values, or to overwrite all.
type waste[K pando.Key, V any] struct {
	name string
	do   func(w *waster[K, V]) error
}

func wasters[K pando.Key, V any]() []waste[K, V] {
	type maker = *waster[K, V]
	each := func(do func(w maker, i int) error) func(w maker) error {
		return func(w maker) error {
			for i := range w.n {
				if err := do(w, i); err != nil {
					return err
				}
			}
			return nil
		}
	}
	all := func(w maker) (keys []K, vals []V) {
		for i := range w.n {
			keys, vals = append(keys, w.key(i)), append(vals, w.val(i+1))
		}
		return keys, vals
	}
	return []waste[K, V]{
		{"Delete", each(func(w maker, i int) error { w.tree.Delete(w.key(i)); return nil })},
		{"Set", each(func(w maker, i int) error { return w.tree.Set(w.key(i), w.val(i+1)) })},
		{"Update", each(func(w maker, i int) error {
			return w.tree.Update(w.key(i), func(old V, _ bool) (V, bool) { return old, false })
		})},
		{"PopMin", each(func(w maker, _ int) error { w.tree.PopMin(); return nil })},
		{"PopMax", each(func(w maker, _ int) error { w.tree.PopMax(); return nil })},
		{"DeleteRange", func(w maker) error { w.tree.DeleteRange(w.key(0), w.key(w.n-1)); return nil }},
		{"SetBatch", func(w maker) error { return w.tree.SetBatch(all(w)) }},
		{"DeleteBatch", func(w maker) error { keys, _ := all(w); w.tree.DeleteBatch(keys, nil); return nil }},
	}
}

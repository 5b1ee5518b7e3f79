package concurrent_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/seed"
)

// Each method of a radix tree, or of its snapshot, beside Close ends, with an error or a panic: none goes round in memory
// that was given back.
func TestMethodsEndBesideClose(t *testing.T) {
	first := seed.Of(t)
	text := func(i int) string { return fmt.Sprintf("%04d/%d", i, i%7) }
	t.Run("strings", func(t *testing.T) {
		methodsEnd(t, first, text, func(i int) uint64 { return uint64(i) })
	})
	t.Run("strings, boxes", func(t *testing.T) { methodsEnd(t, first+1, text, text) })
	t.Run("numbers", func(t *testing.T) {
		methodsEnd(t, first+2, func(i int) uint64 { return uint64(i) * 977 }, func(i int) uint64 { return uint64(i) }, pando.Layout(pando.Radix))
	})
}

// method calls a method of an index with key i, and returns its error. It may panic.
type method struct {
	name string
	call func(i int) error
}

// silent is a call of a method that returns no error.
func silent(f func(i int)) func(int) error {
	return func(i int) error {
		f(i)
		return nil
	}
}

// methodsEnd tries methods on trees of such keys and values. Of three calls with one seed and those that follow it, a
// quick run tries each method in one.
func methodsEnd[K pando.Key, V any](t *testing.T, first uint64, key func(int) K, val func(int) V, opts ...pando.Option) {
	const n = 3000
	keys, vals := make([]K, n), make([]V, n)
	for i := range keys {
		keys[i], vals[i] = key(i), val(i)
	}
	made := func() *pando.Tree[K, V] {
		tree, err := pando.TreeOf(keys, vals, opts...)
		if err != nil {
			t.Fatal(err)
		}
		return tree
	}
	rng := rand.New(rand.NewPCG(first, 0))
	skip := func(i int) bool { return !seed.Long() && (first+uint64(i))%3 > 0 }
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for round := range seed.Times(1, 2) {
		for i := range treeMethods[K, V](nil, keys, vals) {
			if skip(i) {
				continue
			}
			runtime.GOMAXPROCS([]int{1, 2, 4, 16}[(round+i)%4])
			tree := made()
			m := treeMethods(tree, keys, vals)[i]
			endsBesideClose(t, rng, m.name, n, tree.Close, func(i int) error {
				if err := tree.Set(keys[n/2], vals[0]); err != nil && i%2 == 0 {
					return err
				}
				return m.call(i)
			})
		}
		for i := range readMethods[K, V](nil, keys) {
			if skip(i) {
				continue
			}
			runtime.GOMAXPROCS([]int{1, 2, 4, 16}[(round+i)%4])
			tree := made()
			snap := tree.Snapshot()
			tree.Close()
			m := readMethods(snap, keys)[i]
			endsBesideClose(t, rng, "a snapshot's "+m.name, n, snap.Close, m.call)
		}
	}
}

// endsBesideClose lets goroutines call a method with numbers below n until it says that the tree is closed, closes that, and
// waits for them.
func endsBesideClose(t *testing.T, rng *rand.Rand, name string, n int, end func() error, call func(i int) error) {
	t.Helper()
	var wg sync.WaitGroup
	for range 8 {
		own := rand.New(rand.NewPCG(rng.Uint64(), 0))
		wg.Go(func() {
			for untilClosed(t, name, func() error { return call(own.IntN(n)) }) {
			}
		})
	}
	time.Sleep(time.Duration(rng.IntN(1000)) * time.Microsecond)
	end()
	mustEnd(t, name, &wg)
}

// untilClosed calls a method, and reports whether the tree is not closed.
func untilClosed(t *testing.T, name string, call func() error) (more bool) {
	defer func() {
		if r := recover(); r != nil {
			if text, ok := r.(string); !ok || len(text) < 6 || text[:6] != "pando:" {
				t.Errorf("%s panics: %v", name, r)
			}
			more = false
		}
	}()
	err := call()
	if err != nil && !errors.Is(err, pando.ErrClosed) {
		t.Errorf("%s: %v", name, err)
	}
	return err == nil
}

// mustEnd waits for goroutines, and shows where they are if they do not end.
func mustEnd(t *testing.T, name string, wg *sync.WaitGroup) {
	t.Helper()
	done := make(chan bool)
	go func() {
		wg.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		stacks := make([]byte, 1<<20)
		t.Fatalf("%s does not end after Close:\n%s", name, stacks[:runtime.Stack(stacks, true)])
	}
}

// readMethods returns those that trees and snapshots have.
func readMethods[K pando.Key, V any](t pando.Index[K, V], keys []K) []method {
	some := func(i int) []K { return keys[i/2 : i/2+100] }
	return []method{
		{"Get", silent(func(i int) { t.Get(keys[i]) })},
		{"GetBatch", silent(func(i int) { t.GetBatch(some(i), make([]V, 100), make([]bool, 100)) })},
		{"Min", silent(func(i int) { t.Min() })},
		{"Max", silent(func(i int) { t.Max() })},
		{"Floor", silent(func(i int) { t.Floor(keys[i]) })},
		{"Ceil", silent(func(i int) { t.Ceil(keys[i]) })},
		{"All", silent(func(i int) {
			for range t.All() {
			}
		})},
		{"Backward", silent(func(i int) {
			for range t.Backward() {
			}
		})},
		{"Range", silent(func(i int) {
			for range t.Range(keys[i/2], keys[i/2+100]) {
			}
		})},
		{"Cursor", silent(func(i int) {
			c := t.Cursor()
			for ok := c.Seek(keys[i]); ok; ok = c.Next() {
			}
		})},
		{"Rank", silent(func(i int) { t.Rank(keys[i]) })},
		{"RankBatch", silent(func(i int) { t.RankBatch(some(i), make([]int, 100)) })},
		{"At", silent(func(i int) { t.At(i) })},
		{"Count", silent(func(i int) { t.Count(keys[i/2], keys[i]) })},
		{"RangeBatch", silent(func(i int) { t.RangeBatch(keys[i/2:i/2+3], keys[i/2+1:i/2+4], 0) })},
		{"WriteTo", func(i int) error { _, err := t.WriteTo(io.Discard); return err }},
		{"Len", silent(func(i int) { t.Len() })},
	}
}

// treeMethods returns all methods of a tree but Close.
func treeMethods[K pando.Key, V any](t *pando.Tree[K, V], keys []K, vals []V) []method {
	some := func(i int) []K { return keys[i/2 : i/2+100] }
	return append(readMethods(t, keys), []method{
		{"Has", silent(func(i int) { t.Has(keys[i]) })},
		{"Set", func(i int) error { return t.Set(keys[i], vals[i]) }},
		{"Swap", func(i int) error { _, _, err := t.Swap(keys[i], vals[i]); return err }},
		{"Update", func(i int) error {
			return t.Update(keys[i], func(V, bool) (V, bool) { return vals[i], i%2 == 0 })
		}},
		{"Delete", silent(func(i int) { t.Delete(keys[i]) })},
		{"DeleteRange", silent(func(i int) { t.DeleteRange(keys[i], keys[min(i+200, len(keys)-1)]) })},
		{"PopMin", silent(func(i int) { t.PopMin() })},
		{"PopMax", silent(func(i int) { t.PopMax() })},
		{"SetBatch", func(i int) error { return t.SetBatch(some(i), vals[:100]) }},
		{"DeleteBatch", silent(func(i int) { t.DeleteBatch(some(i), nil) })},
		{"Apply", func(i int) error {
			ops := make([]pando.Op, 100)
			for j := range ops {
				ops[j] = pando.Op(j % 3)
			}
			return t.Apply(ops, some(i), append([]V(nil), vals[:100]...), make([]bool, 100))
		}},
		{"Snapshot", silent(func(i int) {
			s := t.Snapshot()
			defer s.Close()
			s.Get(keys[i])
			s.Rank(keys[i])
		})},
		{"Freeze", func(i int) error {
			f, err := t.Freeze()
			if err == nil {
				err = f.Close()
			}
			return err
		}},
		{"Stats", silent(func(i int) { t.Stats() })},
	}...)
}

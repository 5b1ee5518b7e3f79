package backlog

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// change is a run of one change of a map that others read.
type change struct {
	tree     *sync.Map
	key, val int
	size     int
	hold     chan struct{} // unless nil, Fold waits for it
	keep     chan struct{} // unless nil, Free does
	freed    *atomic.Int64
}

func (c *change) Get(key int) (int, bool, bool) { return c.val, true, key == c.key }
func (c *change) Size() int                     { return c.size }
func (c *change) Free() {
	if c.keep != nil {
		<-c.keep
	}
	c.freed.Add(1)
}
func (c *change) Fold() {
	if c.hold != nil {
		<-c.hold
	}
	c.tree.Store(c.key, c.val)
}

// rig is a log over a map.
type rig struct {
	tree    sync.Map
	stripes Stripes[int]
	log     Log[int, int]
	freed   atomic.Int64
}

func newRig(most int) *rig {
	r := new(rig)
	r.log.Init(&r.stripes, most)
	return r
}

func (r *rig) get(key int) int {
	if v, _, known := r.log.Get(key); known {
		return v
	}
	v, _ := r.tree.Load(key)
	n, _ := v.(int)
	return n
}

// A log that is full makes batches wait, by the number of its runs or by their size;
// a run that is larger than the log is taken when that is empty.
func TestLogIsBounded(t *testing.T) {
	for _, c := range []struct{ most, size, runs int }{{1 << 20, 1, MostRuns}, {10, 5, 2}, {10, 20, 1}} {
		synctest.Test(t, func(t *testing.T) {
			r, hold := newRig(c.most), make(chan struct{})
			for i := range c.runs {
				r.log.Begin(c.size)
				r.log.Accept(&change{tree: &r.tree, key: i, val: i + 1, size: c.size, hold: hold, freed: &r.freed}, i+1)
			}
			var begun atomic.Bool
			go func() {
				r.log.Begin(c.size)
				begun.Store(true)
				r.log.End()
			}()
			synctest.Wait() // nobody can go on by itself
			if begun.Load() {
				t.Errorf("%+v: a batch begins though the log is full", c)
			}
			for i := range c.runs {
				if got := r.get(i); got != i+1 {
					t.Errorf("key %d is %d in the log", i, got)
				}
			}
			hold <- struct{}{}
			synctest.Wait()
			if !begun.Load() {
				t.Errorf("%+v: a batch waits though a run was folded", c)
			}
			close(hold)
			r.log.Wait()
			if n := r.freed.Load(); n != int64(c.runs) {
				t.Errorf("%d of %d runs were freed", n, c.runs)
			}
		})
	}
}

// A log is empty when the memory of its last run is free: who has waited for that may
// give all memory back.
func TestEmptyIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, hold, keep := newRig(10), make(chan struct{}), make(chan struct{})
		r.log.Begin(1)
		r.log.Accept(&change{tree: &r.tree, key: 1, val: 2, size: 1, hold: hold, keep: keep, freed: &r.freed}, 1)
		var waited atomic.Bool
		go func() {
			r.log.Wait()
			waited.Store(true)
		}()
		synctest.Wait()
		close(hold)
		synctest.Wait() // it is folded, and being freed
		if _, done := r.tree.Load(1); !done || waited.Load() || !r.log.Pending() {
			t.Errorf("folded %t, the log is empty %t and %t, and its last run has memory", done, waited.Load(), !r.log.Pending())
		}
		close(keep)
		synctest.Wait()
		if !waited.Load() || r.log.Pending() || r.freed.Load() != 1 {
			t.Errorf("all memory is free, and the log is empty %t and %t", waited.Load(), !r.log.Pending())
		}
	})
}

// A batch lets the log become empty where somebody waits for that.
func TestBatchLetsOthersThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, hold := newRig(1<<20), make(chan struct{})
		r.log.Begin(1)
		r.log.Accept(&change{tree: &r.tree, key: 1, val: 1, hold: hold, freed: &r.freed}, 1)
		var waited, begun atomic.Bool
		go func() {
			r.log.Wait()
			waited.Store(true)
		}()
		synctest.Wait()
		go func() {
			r.log.Begin(1)
			begun.Store(true)
			r.log.End()
		}()
		synctest.Wait()
		if waited.Load() || begun.Load() {
			t.Errorf("a run is in the log, and who waits for none goes on %t, a batch begins %t", waited.Load(), begun.Load())
		}
		close(hold)
		synctest.Wait()
		if !waited.Load() || !begun.Load() {
			t.Errorf("the log is empty, and who waits for that goes on %t, a batch begins %t", waited.Load(), begun.Load())
		}
	})
}

// Single changes wait until the log is empty, and a batch waits for that, too, where one
// of them does.
func TestOrderOfSingles(t *testing.T) {
	r, hold := newRig(1<<20), make(chan struct{})
	r.log.Begin(1)
	r.log.Accept(&change{tree: &r.tree, key: 1, val: 1, hold: hold, freed: &r.freed}, 1)
	single := make(chan bool)
	go func() {
		folded := false
		r.stripes.One(1, func() (int, bool) {
			_, folded = r.tree.Load(1)
			r.tree.Store(1, 2)
			return 1, true
		})
		single <- folded
	}()
	for r.stripes.waiting.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	if r.get(1) != 1 {
		t.Error("a single change does not wait for the log")
	}
	time.AfterFunc(time.Millisecond, func() { close(hold) })
	r.log.Begin(1) // the log is empty, and either of them may have come first
	if _, folded := r.tree.Load(1); !folded {
		t.Error("a batch begins though somebody waits")
	}
	r.log.End()
	if folded := <-single; !folded {
		t.Error("a single change comes before a run that was accepted")
	}
	if got := r.get(1); got != 2 {
		t.Errorf("the key is %d", got)
	}
	r.log.Begin(1)
	if noted := r.stripes.Noted(); len(noted) != 1 || noted[0] != 1 || r.stripes.Dirty() != 1 {
		t.Errorf("noted %v, %d", noted, r.stripes.Dirty())
	}
	r.stripes.Clear()
	r.log.End()
	r.stripes.All(func() []int { return []int{3, 4} }) // the stripes are held by nobody
	if n := r.stripes.Dirty(); n != 2 {
		t.Errorf("%d keys are noted", n)
	}
}

// Batches that come faster than they are folded do not keep others waiting.
func TestWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(10)
		var stop atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := 1; !stop.Load(); i++ {
				hold := make(chan struct{})
				time.AfterFunc(time.Millisecond, func() { close(hold) })
				r.log.Begin(1)
				r.log.Accept(&change{tree: &r.tree, key: 1, val: i, size: 1, hold: hold, freed: &r.freed}, 1)
			}
		})
		waited := make(chan struct{})
		go func() {
			for range 20 {
				r.log.Wait()
				time.Sleep(time.Millisecond)
			}
			close(waited)
		}()
		select {
		case <-waited:
		case <-time.After(20 * time.Second): // of the bubble's time, in which nothing but sleep takes any
			t.Error("the log is never empty for who waits")
		}
		stop.Store(true)
		wg.Wait()
		r.log.Wait()
		<-waited
	})
}

// Who waits for the log to be empty gets there though batches come and go.
func TestManyGoroutines(t *testing.T) {
	r := newRig(3)
	var batches sync.Mutex
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 200 {
				key, val := w, i+1
				switch i % 3 {
				case 0:
					r.stripes.One(uint64(w), func() (int, bool) { r.tree.Store(key, val); return key, true })
				case 1:
					r.stripes.All(func() []int { r.tree.Store(key, val); return nil })
				case 2:
					batches.Lock()
					r.log.Begin(1)
					r.stripes.Clear()
					r.log.Accept(&change{tree: &r.tree, key: key, val: val, size: 1, freed: &r.freed}, 4)
					batches.Unlock()
				}
				if got := r.get(key); got != val {
					t.Errorf("key %d is %d, want %d", key, got, val)
				}
				if n, known := r.log.Entries(); known && n != 4 {
					t.Errorf("%d entries", n)
				}
			}
		})
	}
	wg.Wait()
	if r.log.Wait(); r.log.Pending() {
		t.Error("the log is not folded")
	}
}

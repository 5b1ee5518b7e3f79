package backlog

import (
	"sync"
	"sync/atomic"
	"testing"
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

// within reports whether something is done soon.
func within(f func()) bool {
	done := make(chan struct{})
	go func() { f(); close(done) }()
	select {
	case <-done:
		return true
	case <-time.After(20 * time.Millisecond):
		return false
	}
}

// A log that is full makes batches wait, by the number of its runs or by their size;
// a run that is larger than the log is taken when that is empty.
func TestLogIsBounded(t *testing.T) {
	for _, c := range []struct{ most, size, runs int }{{1 << 20, 1, MostRuns}, {10, 5, 2}, {10, 20, 1}} {
		r, hold := newRig(c.most), make(chan struct{})
		for i := range c.runs {
			r.log.Begin(c.size)
			r.log.Accept(&change{tree: &r.tree, key: i, val: i + 1, size: c.size, hold: hold, freed: &r.freed}, i+1)
		}
		begun := make(chan struct{})
		go func() { r.log.Begin(c.size); close(begun) }()
		select {
		case <-begun:
			t.Errorf("%+v: a batch begins though the log is full", c)
		case <-time.After(20 * time.Millisecond):
		}
		for i := range c.runs {
			if got := r.get(i); got != i+1 {
				t.Errorf("key %d is %d in the log", i, got)
			}
		}
		hold <- struct{}{}
		<-begun
		r.log.End()
		close(hold)
		r.log.Wait()
		if n := r.freed.Load(); n != int64(c.runs) {
			t.Errorf("%d of %d runs were freed", n, c.runs)
		}
	}
}

// A log is empty when the memory of its last run is free: who has waited for that may
// give all memory back.
func TestEmptyIsFree(t *testing.T) {
	r, keep := newRig(10), make(chan struct{})
	r.log.Begin(1)
	r.log.Accept(&change{tree: &r.tree, key: 1, val: 2, size: 1, keep: keep, freed: &r.freed}, 1)
	waited := make(chan int64)
	for _, done := r.tree.Load(1); !done; _, done = r.tree.Load(1) {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond) // it is being freed
	go func() {
		r.log.Wait()
		waited <- r.freed.Load()
	}()
	time.Sleep(20 * time.Millisecond)
	close(keep)
	if <-waited != 1 {
		t.Error("the log is empty, and its last run has memory")
	}
}

// Single changes wait until the log is empty, and a batch lets it become so where
// somebody waits.
func TestOrderOfSingles(t *testing.T) {
	r, hold := newRig(1<<20), make(chan struct{})
	r.log.Begin(1)
	r.log.Accept(&change{tree: &r.tree, key: 1, val: 1, hold: hold, freed: &r.freed}, 1)
	single := make(chan struct{})
	go func() {
		r.stripes.One(1, func() (int, bool) { r.tree.Store(1, 2); return 1, true })
		close(single)
	}()
	for r.stripes.waiting.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	if r.get(1) != 1 {
		t.Error("a single change does not wait for the log")
	}
	begun := make(chan struct{})
	go func() { r.log.Begin(1); close(begun) }()
	select {
	case <-begun:
		t.Error("a batch begins though somebody waits")
	case <-time.After(20 * time.Millisecond):
	}
	close(hold)
	<-begun // the log is empty, and either of them may have come first
	r.log.End()
	<-single
	if got := r.get(1); got != 2 {
		t.Errorf("the key is %d", got)
	}
	r.log.Begin(1)
	if noted := r.stripes.Noted(); len(noted) != 1 || noted[0] != 1 || r.stripes.Dirty() != 1 {
		t.Errorf("noted %v, %d", noted, r.stripes.Dirty())
	}
	r.stripes.Clear()
	r.log.End()
	if !within(func() { r.stripes.All(func() []int { return []int{3, 4} }) }) || r.stripes.Dirty() != 2 {
		t.Error("the stripes are held by nobody")
	}
}

// Batches that come faster than they are folded do not keep others waiting.
func TestWaitEnds(t *testing.T) {
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
	case <-time.After(20 * time.Second):
		t.Error("the log is never empty for who waits")
	}
	stop.Store(true)
	wg.Wait()
	r.log.Wait()
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
	if !within(r.log.Wait) || r.log.Pending() {
		t.Error("the log is not folded")
	}
}

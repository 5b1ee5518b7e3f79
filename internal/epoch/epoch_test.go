package epoch

import (
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/seed"
)

// newClock returns a clock with a sweep that does nothing: tests end generations by hand.
func newClock() *Clock {
	c := new(Clock)
	c.Start(func() bool { return false }, func() {})
	return c
}

func TestCurrent(t *testing.T) {
	c := newClock()
	gen := c.Gen()
	for passed := range 4 {
		if got, want := c.Current(gen), passed < 2; got != want {
			t.Errorf("after %d generations, Current is %t", passed, got)
		}
		c.Advance(c.Gen() - 1) // another goroutine was faster
		c.Advance(c.Gen())
	}
}

// No generation of a closed tree is current, be it noted before or after.
func TestClosedIsNeverCurrent(t *testing.T) {
	c := newClock()
	before := c.Gen()
	if c.Closed() || !c.End() || c.End() || !c.Closed() {
		t.Error("a tree is closed once")
	}
	if c.Current(before) || c.Current(c.Gen()) {
		t.Error("a generation of a closed tree is current")
	}
	c.Advance(c.Gen())
	if c.Current(c.Gen()) {
		t.Error("so is the next one")
	}
}

// Of many goroutines one is told that it is time for another generation.
func TestDueToOne(t *testing.T) {
	t.Cleanup(SetPace(time.Hour))
	c := newClock()
	for range seed.Size(100, 1000) {
		c.Hasten()
		var due atomic.Int64
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if c.Due() {
					due.Add(1)
				}
			})
		}
		wg.Wait()
		if due.Load() != 1 {
			t.Fatalf("%d goroutines were told", due.Load())
		}
	}
	if c.Due() {
		t.Error("another generation is due at once")
	}
}

// References are free as soon as two generations have ended, and no sooner, and not too many at a
// time.
func TestLimbo(t *testing.T) {
	rng := seed.Rand(t)
	c, l := newClock(), new(Limbo)
	retired, next := map[uint64]uint64{}, uint64(0)
	free := func(refs []uint64) {
		if len(refs) > limboRoom {
			t.Fatalf("%d references are freed at once, want at most %d", len(refs), limboRoom)
		}
		for _, ref := range refs {
			if c.Gen()-retired[ref] < 2 {
				t.Fatalf("a reference that was retired in generation %d is free in %d", retired[ref], c.Gen())
			}
			delete(retired, ref)
		}
	}
	for range seed.Size(10_000, 100_000) {
		switch rng.IntN(4) {
		case 0:
			c.Advance(c.Gen())
		case 1:
			if rng.IntN(2) == 0 {
				l.ReapAll(c, free)
			}
			for l.Reap(c, free); l.Ripe(); l.Reap(c, free) {
			}
			for ref, gen := range retired {
				if c.Gen()-gen >= 2 {
					t.Fatalf("reference %d of generation %d waits in %d", ref, gen, c.Gen())
				}
			}
			if left := slices.Sorted(l.All); !slices.Equal(left, slices.Sorted(maps.Keys(retired))) || l.Empty() != (len(left) == 0) {
				t.Fatalf("%d references wait, want %d", len(left), len(retired))
			}
		default:
			l.Open(c, free)
			most := limboRoom / 50
			if rng.IntN(100) == 0 {
				most = 4 * limboRoom
			}
			for range rng.IntN(most) {
				retired[next] = c.Gen()
				l.Add(next)
				next++
			}
		}
	}
	if l.Added != int(next) {
		t.Errorf("%d references were added, want %d", l.Added, next)
	}
	l.Forget()
	if !l.Empty() {
		t.Error("forgotten references are there")
	}
}

// A reader that finds its generation current has read no memory that was used again
// meanwhile.
func TestReadersBesideReuse(t *testing.T) {
	if !Optimistic {
		t.Skip("a lock guards trees")
	}
	c, l := newClock(), new(Limbo)
	var (
		memory [8]atomic.Uint64 // slot i has numbers that are i modulo 8
		root   atomic.Uint64    // of a slot
		stop   atomic.Bool
		wg     sync.WaitGroup
	)
	memory[0].Store(8)
	root.Store(8) // the number that the slot has
	for range 2 {
		wg.Go(func() {
			for i := 0; !stop.Load(); i++ {
				gen := c.Gen()
				ref := root.Load()
				if i%64 == 0 {
					time.Sleep(time.Microsecond)
				}
				if got := memory[ref%8].Load(); c.Current(gen) && got != ref {
					t.Errorf("slot %d has %d, want %d", ref%8, got, ref)
					return
				}
			}
		})
	}
	slots := []uint64{1, 2, 3, 4, 5, 6, 7}
	free := func(refs []uint64) {
		for _, ref := range refs {
			slots = append(slots, ref%8)
		}
	}
	end := time.Now().Add(seed.Lasting(50*time.Millisecond, 500*time.Millisecond))
	for ref := uint64(16); time.Now().Before(end); ref += 8 {
		for len(slots) == 0 {
			c.Advance(c.Gen())
			l.Reap(c, free)
		}
		x := ref + slots[0]
		slots = slots[1:]
		memory[x%8].Store(x)
		old := root.Swap(x)
		l.Open(c, free)
		l.Add(old)
	}
	stop.Store(true)
	wg.Wait()
}

// Sweeps go on until nothing waits, even if nobody writes.
func TestSweepLater(t *testing.T) {
	var c Clock
	left := make(chan int, 4)
	n := 3
	c.Start(func() bool { n--; left <- n; return n > 0 }, func() {})
	c.SweepLater()
	c.SweepLater()
	for want := 2; want >= 0; want-- {
		if got := <-left; got != want {
			t.Errorf("%d sweeps are left, want %d", got, want)
		}
	}
}

// A list has all references, however they were added, and hands them over in pieces.
func TestList(t *testing.T) {
	rng := seed.Rand(t)
	for _, n := range []int{0, 1, listLeast - 1, listLeast, listChunk, listChunk + 1, 3*listChunk + 5} {
		var l, other List
		for i := range n {
			to := &l
			if rng.IntN(2) == 0 {
				to = &other
			}
			to.Add(Kept{uint64(i), rng.Uint64N(10)})
		}
		l.Take(&other)
		all := map[uint64]uint64{}
		l.Each(func(k *Kept) { all[k.Ref] = k.Born })
		if len(all) != n {
			t.Fatalf("%d references of %d", len(all), n)
		}
		var older List
		free := 0
		for l.Pass(1000, &older, 5, func(ref uint64) {
			if free++; all[ref] <= 5 {
				t.Fatalf("a reference of epoch %d is free", all[ref])
			}
			delete(all, ref)
		}) {
		}
		older.Each(func(k *Kept) {
			if k.Born > 5 {
				t.Fatalf("a reference of epoch %d went to a snapshot of 5", k.Born)
			}
			delete(all, k.Ref)
		})
		if len(all) != 0 {
			t.Fatalf("%d references of %d are lost, %d are free", len(all), n, free)
		}
	}
}

// shelf is values that were retired, with the snapshots that have them.
type shelf struct {
	t     *testing.T
	clock *Clock
	vals  *Values
	open  []uint64            // epochs of snapshots
	kept  map[uint64][]uint64 // snapshots that have each retired value
	next  uint64
}

func newShelf(t *testing.T) *shelf {
	s := &shelf{t: t, clock: newClock(), kept: map[uint64][]uint64{}}
	s.vals = NewValues(s.clock, func(refs []uint64) {
		for _, ref := range refs {
			if by, there := s.kept[ref]; !there || len(by) > 0 {
				t.Fatalf("value %d is free, there: %t, kept for %d", ref, there, by)
			}
			delete(s.kept, ref)
		}
	})
	return s
}

// retire retires values that were put in in any epochs.
func (s *shelf) retire(rng *rand.Rand) {
	var refs, born []uint64
	for range rng.IntN(100) {
		b, by := 1+rng.Uint64N(s.clock.Epoch()), []uint64(nil)
		for _, e := range s.open {
			if e >= b {
				by = append(by, e)
			}
		}
		s.kept[s.next] = by
		refs, born = append(refs, s.next), append(born, b)
		s.next++
	}
	s.vals.Retire(refs, born)
}

func (s *shelf) snapshot() {
	s.open = append(s.open, s.clock.Epoch())
	s.vals.Begin(s.clock.Epoch())
	s.clock.NextEpoch()
}

// end closes snapshot i.
func (s *shelf) end(i int) {
	epoch := s.open[i]
	s.open = slices.Delete(s.open, i, i+1)
	for ref, by := range s.kept {
		s.kept[ref] = slices.DeleteFunc(by, func(e uint64) bool { return e == epoch })
	}
	s.vals.End(epoch)
	s.vals.End(epoch) // nothing happens
}

// settle frees all values that may be free, and checks that no others are left.
func (s *shelf) settle() {
	for s.vals.Sweep() {
		s.clock.Advance(s.clock.Gen())
	}
	if s.vals.Waiting() {
		s.t.Fatal("values wait after a sweep")
	}
	for ref, by := range s.kept {
		if len(by) == 0 {
			s.t.Fatalf("value %d is kept for nobody", ref)
		}
	}
}

// A value is free when no snapshot has it, whichever of them are closed first, and
// two generations have ended.
func TestValues(t *testing.T) {
	rng := seed.Rand(t)
	for range seed.Size(20, 200) {
		s := newShelf(t)
		for range 300 {
			switch n := rng.IntN(10); {
			case n == 0 && len(s.open) < 5:
				s.snapshot()
			case n == 1 && len(s.open) > 0:
				s.end(rng.IntN(len(s.open)))
			case n == 2:
				s.clock.Advance(s.clock.Gen())
			case n == 3:
				s.settle()
			default:
				s.retire(rng)
			}
		}
		for len(s.open) > 0 {
			s.end(rng.IntN(len(s.open)))
		}
		s.settle()
		if len(s.kept) != 0 {
			t.Fatalf("%d values are not free", len(s.kept))
		}
	}
}

// Values of a closed tree, whose memory is given back as a whole, are left alone.
func TestValuesForget(t *testing.T) {
	c := newClock()
	v := NewValues(c, func([]uint64) { t.Error("a value is free") })
	v.Begin(c.Epoch())
	c.NextEpoch()
	v.Retire([]uint64{1, 2}, []uint64{1, 2})
	c.End()
	v.Forget()
	v.End(1)
	v.Retire([]uint64{3}, []uint64{1})
	if v.Sweep() || v.Waiting() {
		t.Error("values wait")
	}
}

// Without values nothing happens.
func TestNoValues(t *testing.T) {
	var v *Values
	v.Retire([]uint64{1}, []uint64{1})
	v.Begin(1)
	v.End(1)
	v.Forget()
	if v.Sweep() || v.Waiting() {
		t.Error("values wait")
	}
}

// Many goroutines retire values beside snapshots and sweeps: each value is free once, and none
// before the snapshots that have it are closed.
func TestValuesBesideSnapshots(t *testing.T) {
	t.Cleanup(SetPace(0))
	c := new(Clock)
	var frees, early atomic.Int64
	var oldest atomic.Uint64 // epoch of the oldest open snapshot; greatest for none
	oldest.Store(1 << 62)
	v := NewValues(c, func(refs []uint64) {
		frees.Add(int64(len(refs)))
		for _, ref := range refs {
			if born, died := ref>>32, ref&(1<<32-1); born <= oldest.Load() && oldest.Load() < died {
				early.Add(1)
			}
		}
	})
	c.Start(func() bool { c.Advance(c.Gen()); return v.Sweep() }, func() {})
	var stop atomic.Bool
	var wg sync.WaitGroup
	var retired atomic.Int64
	for range 3 {
		wg.Go(func() {
			for !stop.Load() {
				born := c.Epoch()
				time.Sleep(time.Microsecond)
				// The epoch is looked at before the value is retired: a snapshot may be listed between.
				v.Retire([]uint64{born<<32 | c.Epoch()}, []uint64{born})
				retired.Add(1)
			}
		})
	}
	for end := time.Now().Add(seed.Lasting(50*time.Millisecond, 500*time.Millisecond)); time.Now().Before(end); {
		epoch := c.Epoch()
		v.Begin(epoch)
		oldest.Store(epoch)
		c.NextEpoch()
		time.Sleep(50 * time.Microsecond)
		oldest.Store(1 << 62)
		v.End(epoch)
	}
	stop.Store(true)
	wg.Wait()
	for v.Sweep() {
		c.Advance(c.Gen())
	}
	if frees.Load() != retired.Load() || early.Load() > 0 {
		t.Errorf("%d values are free of %d, %d too early", frees.Load(), retired.Load(), early.Load())
	}
}

// Memory is released when the last owner of a Hold is gone.
func TestHold(t *testing.T) {
	released := make(chan bool)
	func() {
		h := NewHold(func() { close(released) })
		_ = h
	}()
	for deadline := time.After(20 * time.Second); ; {
		runtime.GC()
		select {
		case <-released:
			return
		case <-deadline:
			t.Fatal("the memory is still there")
		case <-time.After(time.Millisecond):
		}
	}
}

package blob

import (
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/epoch"
	"github.com/pando-index/pando/internal/hostmem"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/stall"
)

// table is the least that a tree does with a store: cells that hold Refs, generations and
// epochs.
type table struct {
	s     *Store
	cells []atomic.Uint64
	clock epoch.Clock
	vals  *epoch.Values

	// mu is held for reading by writers, so that no generation and no epoch ends meanwhile.
	mu     sync.RWMutex
	newest uint64 // epoch of the newest snapshot
}

func newTable(s *Store, n int) *table {
	t := &table{s: s, cells: make([]atomic.Uint64, n)}
	t.vals = epoch.NewValues(&t.clock, func(refs []uint64) { s.Free(Refs(refs)) })
	t.clock.Start(t.sweep, func() {})
	return t
}

func (t *table) sweep() (more bool) {
	if t.clock.Due() {
		t.mu.Lock()
		t.clock.Advance(t.clock.Gen())
		t.mu.Unlock()
	}
	return t.vals.Sweep()
}

// read returns a copy of the value of a cell, as readers of trees do.
func (t *table) read(i int, buf []byte) []byte {
	for {
		gen := t.clock.Gen()
		r := Ref(t.cells[i].Load())
		stall.At("table: reference read")
		buf = r.Append(buf[:0])
		if t.clock.Current(gen) {
			return buf
		}
	}
}

// set sets the value of a cell; nil is none.
func (t *table) set(i int, val []byte) error {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var r Ref
	var err error
	if val != nil {
		if r, err = t.s.Put(val, t.clock.Epoch()); err != nil {
			return err
		}
	}
	t.retire(Ref(t.cells[i].Swap(uint64(r))))
	return nil
}

func (t *table) retire(r Ref) {
	if r != 0 {
		t.s.Retire([]Ref{r})
		t.vals.Retire([]uint64{uint64(r)}, []uint64{t.s.Born(r)})
	}
}

// advance begins a new generation.
func (t *table) advance() {
	t.clock.Hasten()
	t.sweep()
}

// snapshot returns the Refs of this moment, which stay good until the snapshot is ended.
func (t *table) snapshot() (refs []Ref, end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Epoch()
	t.vals.Begin(now)
	t.clock.NextEpoch()
	for i := range t.cells {
		refs = append(refs, Ref(t.cells[i].Load()))
	}
	was := t.newest
	t.newest = now
	return refs, func() {
		t.vals.End(now)
		t.mu.Lock()
		t.newest = was
		t.mu.Unlock()
		t.s.Reconsider()
	}
}

// empty moves values out of slabs that are mostly free, but for those of a snapshot.
func (t *table) empty(tb testing.TB) {
	e := t.s.Empty()
	if e == nil {
		return
	}
	defer e.Done()
	for i := range t.cells {
		if !e.Has(Ref(t.cells[i].Load())) {
			continue
		}
		t.mu.RLock()
		if r := Ref(t.cells[i].Load()); e.Has(r) {
			to, err := t.move(e, r)
			switch {
			case err != nil:
				tb.Error(err)
			case to == 0:
			case t.cells[i].CompareAndSwap(uint64(r), uint64(to)):
				t.retire(r)
			default:
				t.s.Drop(to)
			}
		}
		t.mu.RUnlock()
	}
}

// move moves a value that no snapshot has. Another writer may have taken it out meanwhile, but
// it cannot have been freed.
func (t *table) move(e *Emptying, r Ref) (Ref, error) {
	if t.newest > 0 && t.s.Born(r) <= t.newest {
		return 0, nil
	}
	return e.Move(r, t.clock.Epoch())
}

// Readers beside writers and slabs that are emptied never see a value that is torn, or another
// cell's.
func TestBeside(t *testing.T) {
	s := newStore(t, 0)
	const cells = 3000
	x := newTable(s, cells)
	start := seed.Of(t)
	var stop atomic.Bool
	var wg sync.WaitGroup
	begin := func(n int, f func(rnd *rand.Rand)) {
		for i := range n {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for rnd := rand.New(rand.NewPCG(start, uint64(i))); !stop.Load() && !t.Failed(); {
					f(rnd)
				}
			}()
		}
	}
	begin(3, func(rnd *rand.Rand) {
		i := rnd.IntN(cells)
		if rnd.IntN(4) == 0 {
			x.set(i, nil)
			return
		}
		val := valueOf(uint64(i), 16+someLength(rnd, 100_000)) // the first word tells the cell
		if err := x.set(i, val); err != nil {
			t.Error(err)
		}
	})
	begin(2, func(rnd *rand.Rand) {
		var buf []byte
		i := rnd.IntN(cells)
		if buf = x.read(i, buf); len(buf) > 0 && (!whole(buf) || [8]byte(buf) != [8]byte(valueOf(uint64(i), 16))) {
			t.Errorf("cell %d: %d bytes that are torn, or another's", i, len(buf))
		}
	})
	begin(1, func(*rand.Rand) { x.advance(); time.Sleep(200 * time.Microsecond) })
	begin(1, func(*rand.Rand) { // one snapshot at a time, each value of which stays as it is
		refs, end := x.snapshot()
		defer end()
		for range 3 {
			time.Sleep(time.Millisecond)
			for i, r := range refs {
				if buf := r.Append(nil); !s.Holds(r) && r != 0 || len(buf) > 0 && (!whole(buf) || [8]byte(buf) != [8]byte(valueOf(uint64(i), 16))) {
					t.Errorf("cell %d of a snapshot: %d bytes that are torn, or another's", i, len(buf))
					return
				}
			}
		}
	})
	begin(1, func(*rand.Rand) { x.empty(t); time.Sleep(time.Millisecond) })
	begin(1, func(*rand.Rand) {
		if st := s.Stats(); st.Free < 0 || st.Slack < 0 {
			t.Errorf("%+v", st)
		}
		time.Sleep(time.Millisecond)
	})
	time.Sleep(seed.Lasting(300*time.Millisecond, 5*time.Second))
	stop.Store(true)
	wg.Wait()
	x.settle(t)
}

// settle frees everything that was retired, and checks the store.
func (t *table) settle(tb testing.TB) {
	tb.Helper()
	for range 3 {
		t.advance()
	}
	n := int64(0)
	for i := range t.cells {
		if r := Ref(t.cells[i].Load()); r.Len() > mostShort {
			n++
		}
	}
	if st := t.s.Stats(); st.Values != n || st.Kept != 0 {
		tb.Errorf("%+v, there are %d values", st, n)
	}
	mustCheck(tb, t.s)
}

// Memory over waves of filling, overwriting with other sizes and deleting stays within 1.3
// times the live bytes and a constant.
func TestWaves(t *testing.T) {
	defer SetFreeAnyway(1 << 20)()
	rnd := seed.Rand(t)
	s := newStore(t, 0)
	n := seed.Size(30_000, 300_000)
	if seed.RaceDetector { // there is nothing for it to see: one goroutine
		n = 1000
	}
	x := newTable(s, n)
	// Each of the lengths of a wave may have a slab that is open.
	const constant, lengths = 24 << 20, 48
	rss := resident(t)
	within := func(what string) {
		t.Helper()
		for range 4 {
			if !s.Sparse() {
				break
			}
			x.empty(t)
			x.advance()
			x.advance()
		}
		x.settle(t)
		st := s.Stats()
		if float64(st.Held) > 1.3*float64(st.Live)+constant {
			t.Errorf("%s: %+v", what, st)
		}
		if now := resident(t) - rss; float64(now) > 1.3*float64(st.Live)+64<<20 && !seed.RaceDetector {
			t.Errorf("%s: %d bytes are resident, %d live", what, now, st.Live)
		}
		t.Logf("%-12s %4d MiB live, %4d held, %4d resident", what, st.Live>>20, st.Held>>20, (resident(t)-rss)>>20)
	}
	for range 10 {
		sizes := make([]int, lengths)
		for i := range sizes {
			sizes[i] = someLength(rnd, 5000)
		}
		draw := func() []byte { return valueOf(rnd.Uint64(), sizes[rnd.IntN(lengths)]) }
		change := func(share int, val func() []byte) {
			for i := range x.cells {
				if rnd.IntN(100) < share {
					if err := x.set(i, val()); err != nil {
						t.Fatal(err)
					}
				}
				if i%4096 == 0 {
					x.advance()
				}
			}
		}
		change(100, draw)
		within("filled")
		for i := range sizes[:lengths/2] {
			sizes[i] = someLength(rnd, 5000)
		}
		change(80, draw)
		within("overwritten")
		change(90, func() []byte { return nil })
		within("deleted")
	}
}

// The worst that can be deleted leaves one value in each slab, of every size. Memory comes back
// all the same.
func TestOneValueASlab(t *testing.T) {
	s := newStore(t, 0)
	var cells []Ref
	var drop []Ref
	for _, c := range classes {
		val := valueOf(1, c.size)
		seen := map[uint32]bool{}
		for range c.slots * seed.Size(3, 20) {
			r, err := s.Put(val, 1)
			if err != nil {
				t.Fatal(err)
			}
			if seen[r.slab()] {
				drop = append(drop, r)
				continue
			}
			seen[r.slab()] = true
			cells = append(cells, r)
		}
	}
	full := s.Stats()
	s.Drop(drop...)
	sparse := s.Stats()
	if full.Held-sparse.Held > full.Held/10 {
		t.Errorf("%d bytes were held, and %d are when most values are gone: this is not the worst", full.Held, sparse.Held)
	}
	x := newTable(s, len(cells))
	for i, r := range cells {
		x.cells[i].Store(uint64(r))
	}
	for s.Sparse() {
		x.empty(t)
		x.advance()
		x.advance()
	}
	x.settle(t)
	st := s.Stats()
	if float64(st.Held) > 1.3*float64(st.Live)+64<<20 || st.Held > sparse.Held/2 {
		t.Errorf("%+v, before %+v", st, sparse)
	}
	t.Logf("%d MiB full, %d with one value a slab, %d when they were emptied, %d of values", full.Held>>20, sparse.Held>>20, st.Held>>20, st.Live>>20)
	for i := range x.cells {
		if r := Ref(x.cells[i].Load()); !whole(r.Append(nil)) {
			t.Fatalf("value %d is torn", i)
		}
	}
}

// resident returns the bytes of this process that are in memory.
func resident(t testing.TB) int64 {
	text, err := os.ReadFile(hostmem.Proc + "/self/status")
	if err != nil {
		t.Skip(err)
	}
	kib, _ := hostmem.Field(string(text), "VmRSS")
	return kib << 10
}

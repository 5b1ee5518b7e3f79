package blob

import (
	"bytes"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/stall"
)

// stallAt makes the first goroutine that comes to a point wait there. It returns a channel that is
// closed when one has come, and a function that lets it go on.
func stallAt(t *testing.T, point string) (there chan struct{}, release func()) {
	if !stall.On {
		t.Skip("needs the build tag stalls")
	}
	defer func(n int) { t.Cleanup(func() { runtime.GOMAXPROCS(n) }) }(runtime.GOMAXPROCS(4)) // for more than one shard
	there, gone := make(chan struct{}), make(chan struct{})
	var caught atomic.Bool
	undo := stall.Use(func(p string) {
		if p == point && !caught.Swap(true) {
			close(there)
			<-gone
		}
	})
	t.Cleanup(undo)
	return there, func() { close(gone) }
}

// filled returns a store with values of n bytes in one slab that is full, and in another.
func filled(t *testing.T, n int) (s *Store, refs []Ref) {
	s = newStore(t, 0)
	for i := range classes[classOf(n)].slots + 1 {
		r, err := s.Put(valueOf(uint64(i), n), 1)
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, r)
	}
	return s, refs
}

// A goroutine that has freed a slot, and comes to the list of slabs late, finds that others have
// freed the rest, that the slab was given back, or that it is another's.
func TestStalledFree(t *testing.T) {
	for _, again := range []bool{false, true} {
		there, release := stallAt(t, "held: slot counted")
		s, refs := filled(t, mostSlot)
		other := newStore(t, 0)
		slots := len(refs) - 1
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.Drop(refs[0])
		}()
		<-there
		s.Drop(refs[1:slots]...)
		if n := slabs.Taken(); again {
			for range slots { // the slab of another store
				if r, err := other.Put(valueOf(5, mostSlot), 1); err != nil || r.slab() != refs[0].slab() {
					t.Fatalf("%v: slab %d of %d, want %d", err, r.slab(), n, refs[0].slab())
				}
			}
		}
		release()
		<-done
		mustCheck(t, s)
		mustCheck(t, other)
		if val := refs[slots].Append(nil); !bytes.Equal(val, valueOf(uint64(slots), mostSlot)) {
			t.Error("the value that was left is another")
		}
		other.Close()
		s.Close()
	}
}

// A reader whose value is freed, and its slot used again, before it has copied the bytes reads
// again.
func TestStalledReader(t *testing.T) {
	there, release := stallAt(t, "table: reference read")
	s := newStore(t, 0)
	x := newTable(s, 2)
	if err := x.set(0, valueOf(1, 1000)); err != nil {
		t.Fatal(err)
	}
	old := Ref(x.cells[0].Load())
	got := make(chan []byte)
	go func() { got <- x.read(0, nil) }()
	<-there
	x.set(0, valueOf(2, 1000))
	for range 3 {
		x.advance()
	}
	for i := 0; Ref(x.cells[1].Load()) != old; i++ {
		if i == 1000 {
			t.Fatal("the slot is not used again")
		}
		s.unstashAll()
		x.set(1, valueOf(3, 1000))
		for cl := range s.shelves {
			(&Emptying{s: s}).mark(cl) // which closes the open slab, so that it is gone through again
		}
	}
	release()
	if val := <-got; !bytes.Equal(val, valueOf(2, 1000)) {
		t.Error("a reader has the bytes of another value")
	}
}

// A slot that is free and not counted yet keeps its slab.
func TestStalledCount(t *testing.T) {
	there, release := stallAt(t, "held: slot freed, not counted")
	s, refs := filled(t, mostSlot)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Drop(refs[0])
	}()
	<-there
	s.Drop(refs[1 : len(refs)-1]...)
	if h := headerOf(refs[0].slab()); h.who.Load() != s.who(classOf(mostSlot)) {
		t.Error("the slab was given back")
	}
	release()
	<-done
	mustCheck(t, s)
	if n := len(s.shelves[classOf(mostSlot)].slabs); n != 1 {
		t.Errorf("%d slabs, want 1", n)
	}
}

// A value is not said to be put later than it was by a goroutine that looks while tags begin at
// another epoch.
func TestStalledBorn(t *testing.T) {
	if !stall.On {
		t.Skip("needs the build tag stalls")
	}
	const epoch = 200
	for _, point := range []string{"held: tags moved", "held: base moved", "blob: base read"} {
		s := newStore(t, 0)
		first, _ := s.Put(valueOf(1, 40), 1)
		s.unstashAll() // so that slots are taken anew
		r, _ := s.Put(valueOf(2, 40), epoch)
		next := func() {
			s.unstashAll()
			if _, err := s.Put(valueOf(3, 40), epoch+300); err != nil {
				t.Error(err)
			}
		}
		look := func() {
			if a, b := s.Born(first), s.Born(r); a > 1 || b > epoch {
				t.Errorf("%s: born in %d and %d, put in 1 and %d", point, a, b, epoch)
			}
		}
		here, there := next, look
		if point == "blob: base read" {
			here, there = look, next
		}
		var caught atomic.Bool
		undo := stall.Use(func(p string) {
			if p == point && !caught.Swap(true) {
				there()
			}
		})
		here()
		undo()
		look()
	}
}

// Close waits for a value that is being copied: its memory is another store's afterwards.
func TestStalledClose(t *testing.T) {
	for point, n := range map[string]int{"held: slot taken": 1000, "blob: run taken": 100_000} {
		there, release := stallAt(t, point)
		s, other := newStore(t, 0), newStore(t, 0)
		put, closed := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(put)
			s.Put(valueOf(1, n), 1)
		}()
		<-there
		go func() {
			defer close(closed)
			s.Close()
		}()
		time.Sleep(10 * time.Millisecond) // for a Close that does not wait
		var refs []Ref
		for i := range 100 {
			r, err := other.Put(valueOf(uint64(i), n), 1)
			if err != nil {
				t.Fatal(err)
			}
			refs = append(refs, r)
		}
		release()
		<-put
		<-closed
		for i, r := range refs {
			if !bytes.Equal(r.Append(nil), valueOf(uint64(i), n)) {
				t.Fatalf("%s: value %d of another store has changed", point, i)
			}
		}
		mustCheck(t, s)
		mustCheck(t, other)
		if s.held.Load() != 0 {
			t.Errorf("%s: %d bytes are held by a store that was closed", point, s.held.Load())
		}
		other.Close()
	}
}

// No value is put into a slab that is being emptied, whoever has free slots of it at hand.
func TestStalledEmptying(t *testing.T) {
	s, refs := filled(t, 1000)
	for i := range 700 { // more slabs
		r, err := s.Put(valueOf(uint64(i), 1000), 1)
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, r)
	}
	keep := refs[:0]
	for i, r := range refs {
		if i%10 == 0 {
			keep = append(keep, r)
			continue
		}
		s.Drop(r)
	}
	e := s.Empty()
	if e == nil {
		t.Fatal("nothing is to be emptied")
	}
	for i := range 500 {
		r, err := s.Put(valueOf(uint64(i), 1000), 1)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(e.slabs, victim{r.slab(), classOf(1000)}) { // Has looks at the slab's state, too
			t.Fatalf("value %d was put into a slab that is being emptied", i)
		}
	}
	moved := 0
	for i, r := range keep {
		if !e.Has(r) {
			continue
		}
		to, err := e.Move(r, 1)
		if err != nil || !bytes.Equal(to.Append(nil), r.Append(nil)) {
			t.Fatalf("value %d was not moved: %v", i, err)
		}
		s.Drop(r)
		moved++
	}
	if n := e.Left(); n != 0 || moved == 0 {
		t.Errorf("%d values were moved, %d are left", moved, n)
	}
	e.Done()
	mustCheck(t, s)
}

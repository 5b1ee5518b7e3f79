package bplus

import (
	"bytes"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
)

// The short way does what the long one does: two trees that get the same changes,
// one of them with somebody who wants to see each step, have the same leaves.
// (Batches write leaves anew or line by line as it happens, so theirs may differ.)
func TestQuickIsLong(t *testing.T) {
	onPutPaths(t, quickIsLong[uint32], quickIsLong[uint64])
}

// onPutPaths runs tests of keys of 32 and 64 bits on each path that has a short way.
func onPutPaths(t *testing.T, narrow, wide func(*testing.T)) {
	alone(t)
	for _, path := range simd.Paths() {
		undo := simd.Use(path)
		if simd.CanPut() {
			t.Run(fmt.Sprintf("%v/32", path), narrow)
			t.Run(fmt.Sprintf("%v/64", path), wide)
		}
		undo()
	}
}

func quickIsLong[C Code](t *testing.T) {
	rng := seed.Rand(t)
	for _, space := range []uint64{300, 5000, 1 << 20, 1<<64 - 1} {
		t.Run(fmt.Sprint(space), func(t *testing.T) {
			quick, err := New[C](0)
			if err != nil {
				t.Fatal(err)
			}
			defer quick.Close()
			long, err := New[C](0)
			if err != nil {
				t.Fatal(err)
			}
			defer long.Close()
			long.Record(NewRecorder(0, false))
			next := C(rng.Uint64())
			draw := func() C {
				switch rng.IntN(12) {
				case 0:
					return ^C(0) - C(rng.IntN(4))
				case 1:
					return C(rng.IntN(4))
				case 2, 3, 4:
					next++
					return next
				}
				return C(rng.Uint64N(space))
			}
			for round := range 12 {
				for range 3000 {
					k, v := draw(), C(rng.Uint64N(3))
					if rng.IntN(5) == 0 {
						a, b, _ := quick.Delete(k)
						c, d, _ := long.Delete(k)
						if a != c || b != d {
							t.Fatalf("Delete(%d) = %d, %v and %d, %v", k, a, b, c, d)
						}
						continue
					}
					a, b, _ := quick.Set(k, v)
					c, d, _ := long.Set(k, v)
					if a != c || b != d {
						t.Fatalf("Set(%d) = %d, %v and %d, %v", k, a, b, c, d)
					}
				}
				if quick.Len() != long.Len() {
					t.Fatalf("%d and %d entries", quick.Len(), long.Len())
				}
				if round%3 == 2 { // leaves are noted anew
					if a, b := quick.Rank(next, false), long.Rank(next, false); a != b {
						t.Fatalf("Rank(%d) = %d and %d", next, a, b)
					}
				}
				if round == 7 { // leaves are kept first
					s, err := quick.Snapshot()
					if err != nil {
						t.Fatal(err)
					}
					defer s.Close()
				}
				sameLeaves(t, quick, long)
				if err := quick.Check(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// sameLeaves fails if the leaves of two trees differ.
func sameLeaves[C Code](t *testing.T, a, b *Tree[C]) {
	t.Helper()
	x, y := a.first, b.first
	for n := 0; ; n++ {
		l, m := a.leaf(x), b.leaf(y)
		var r, s run[C]
		l.unpack(&r)
		m.unpack(&s)
		if !slices.Equal(r.keys, s.keys) || !slices.Equal(r.vals, s.vals) {
			t.Fatalf("leaf %d: %d and %d", n, r, s)
		}
		if *l.seps() != *m.seps() || l.info().full != m.info().full {
			t.Fatalf("leaf %d: separators %d and %d, full %b and %b", n, *l.seps(), *m.seps(), l.info().full, m.info().full)
		}
		if !slices.Equal(simd.RegularIndex[C](l.pilot), simd.RegularIndex[C](m.pilot)) {
			t.Fatalf("leaf %d: index lines %d and %d", n, simd.RegularIndex[C](l.pilot), simd.RegularIndex[C](m.pilot))
		}
		if p, q := simd.Entries(l.loadWord()), simd.Entries(m.loadWord()); p != q {
			t.Fatalf("leaf %d: %d and %d entries", n, p, q)
		}
		for j := range lines {
			ka, kb := unsafe.Slice((*byte)(l.at(j)), 32), unsafe.Slice((*byte)(m.at(j)), 32)
			if !bytes.Equal(ka, kb) {
				t.Fatalf("leaf %d, line %d: keys %x and %x", n, j, ka, kb)
			}
		}
		x, y = l.info().next, m.info().next
		if x == nothing || y == nothing {
			if x != y {
				t.Fatal("one tree has more leaves")
			}
			return
		}
	}
}

// What must keep the short way off a leaf does, and leaves no trace; and a change
// leaves the word, and the list of leaves to be counted, as it should.
func TestQuickKeepsOff(t *testing.T) {
	onPutPaths(t, quickKeepsOff[uint32], quickKeepsOff[uint64])
}

func quickKeepsOff[C Code](t *testing.T) {
	tree, err := New[C](0)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	half := C(linePairs[C]())
	for i := C(1); i <= C(capacity[C]())+half*4; i++ { // a full leaf, and one that begins with full lines
		tree.Set(i*10, i)
	}
	x := tree.leaf(tree.first).info().next
	l := tree.leaf(x)
	low := C(l.info().low)
	for _, change := range []struct {
		name     string
		key, val C
	}{
		{"same value", low + 10, (low + 10) / 10},
		{"other value", low + 10, 0},
		{"line with room", low + 10*(half*4) + 1, 0},
		{"full line", low + 11, 0},
	} {
		put := func(x uint32, epoch, gen int) (p simd.Puts, dirty uint32) {
			control := *tree.Control()
			p = simd.Puts{
				Control: &control, EpochIs: control.Epoch, GenIs: control.Gen, Root: uint64(x),
				Keys: unsafe.Pointer(&change.key), Vals: unsafe.Pointer(&change.val), N: 1, Dirty: &dirty,
			}
			control.Epoch += uint64(epoch)
			control.Gen += uint64(gen)
			simd.PutRegular[C](&tree.at, &p)
			return p, dirty
		}
		before := bytesOf(l)
		keepsOff := func(why string, x uint32, epoch, gen int) {
			t.Helper()
			was := bytesOf(l)
			if p, _ := put(x, epoch, gen); p.Done != 0 || !bytes.Equal(bytesOf(l), was) {
				t.Errorf("%s, %s: done", change.name, why)
			}
		}
		if change.name != "same value" { // that changes nothing that a snapshot could see
			keepsOff("another epoch since", x, 1, 0)
		}
		keepsOff("a late generation", x, 0, 2)
		keepsOff("a leaf to the left", tree.first, 0, 0)
		for _, bit := range []uint64{simd.WordLocked, simd.WordSealed, simd.WordDead} {
			*l.word() |= bit
			keepsOff(fmt.Sprintf("word bits %b", bit), x, 0, 0)
			*l.word() &^= bit
		}
		l.info().epoch--
		keepsOff("a leaf of an earlier epoch", x, 0, 0)
		l.info().epoch++
		if !bytes.Equal(bytesOf(l), before) {
			t.Fatalf("%s: bytes have changed", change.name)
		}

		l.info().dirty = 0
		word, n := *l.word(), simd.Entries(*l.word())
		p, dirty := put(x, 0, 1)
		switch added := p.Had == 0; {
		case p.Done != 1 || int(p.Leaf) != int(x) || added != (p.Added == 1) || p.Dirtied != p.Added:
			t.Errorf("%s: %+v", change.name, p)
		case added && (dirty != x || l.info().dirty != 1):
			t.Errorf("%s: the leaf is not to be counted", change.name)
		case change.name == "same value" && *l.word() != word || change.name != "same value" && *l.word() != simd.NextWord(word, n+p.Added):
			t.Errorf("%s: word %#x became %#x", change.name, word, *l.word())
		}
		l.info().dirty = 1
		tree.count(x, p.Added)
	}
	if err := tree.Check(); err != nil {
		t.Fatal(err)
	}
}

// bytesOf returns a copy of a leaf's bytes.
func bytesOf[C Code](l leaf[C]) []byte {
	return slices.Concat(unsafe.Slice((*byte)(l.pilot), simd.RegularPilot[C]()), unsafe.Slice((*byte)(l.block), simd.RegularBlock))
}

// A value that seems to be there already, since its line is being changed, is set.
func TestQuickBesideNeighbour(t *testing.T) {
	onPutPaths(t, quickBesideNeighbour[uint32], quickBesideNeighbour[uint64])
}

func quickBesideNeighbour[C Code](t *testing.T) {
	tree, err := New[C](0)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	for k := C(10); k <= 30; k += 10 {
		tree.Set(k, 7)
	}
	beside(func() { // its neighbours move to the right, keys before values
		tree.Set(15, 7)
		tree.Delete(15)
	}, func() {
		for _, v := range []C{3, 7} {
			tree.Set(20, v)
			if got, _ := tree.Get(20); got != v {
				t.Errorf("Get(20) = %d after Set(20, %d)", got, v)
			}
		}
	}, func() bool { return true })
}

// A line that has room at one look and none at the next, since others change its leaf,
// keeps the short way off.
func TestQuickBesideRoom(t *testing.T) {
	onPutPaths(t, quickBesideRoom[uint32], quickBesideRoom[uint64])
}

func quickBesideRoom[C Code](t *testing.T) {
	tree, err := New[C](0)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	half := C(linePairs[C]())
	for i := C(1); i <= half*8; i++ { // the leaf's first lines are full
		tree.Set(i*10, i)
	}
	l := tree.leaf(tree.first)
	before, bit := bytesOf(l), uint64(1)<<7
	key, val, dirty, done := half*75+1, C(1), uint32(0), 0 // in the last full line
	beside(func() {
		atomic.AndUint64(&l.info().full, ^bit)
		atomic.OrUint64(&l.info().full, bit)
	}, func() {
		p := simd.Puts{
			Control: tree.Control(), EpochIs: tree.Epoch(), GenIs: tree.Gen(), Root: uint64(tree.first),
			Keys: unsafe.Pointer(&key), Vals: unsafe.Pointer(&val), N: 1, Dirty: &dirty,
		}
		simd.PutRegular[C](&tree.at, &p)
		if done += p.Done; p.Done > 0 { // as if it had not been
			n := copy(unsafe.Slice((*byte)(l.pilot), simd.RegularPilot[C]()), before)
			copy(unsafe.Slice((*byte)(l.block), simd.RegularBlock), before[n:])
		}
	}, func() bool { return done > 0 })
	if l.info().full |= bit; done == 0 || !bytes.Equal(bytesOf(l), before) {
		t.Errorf("the key was put %d times; the leaf is as before: %t", done, bytes.Equal(bytesOf(l), before))
	}
}

// beside calls two functions over and over again, each on its own goroutine, for a moment, and
// then until they have met: on a machine that is busy that may take a while.
func beside(f, g func(), met func() bool) {
	var over atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !over.Load() {
			f()
		}
	}()
	for begin, moment := time.Now(), seed.Lasting(50*time.Millisecond, time.Second); time.Since(begin) < moment || !met() && time.Since(begin) < time.Minute; {
		g()
	}
	over.Store(true)
	<-done
}

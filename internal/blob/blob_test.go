package blob

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/seed"
)

// valueOf returns a value of n bytes that is like no other, and ends, if it is long enough, with
// a checksum of the rest.
func valueOf(id uint64, n int) []byte {
	b := make([]byte, n)
	var word [8]byte
	for i := 0; i < n; i += 8 {
		binary.LittleEndian.PutUint64(word[:], (id+uint64(i)<<32)*0x9E3779B97F4A7C15)
		copy(b[i:], word[:])
	}
	if n >= 8 {
		binary.LittleEndian.PutUint32(b[n-4:], crc32.ChecksumIEEE(b[:n-4]))
	}
	return b
}

// whole reports whether a value has its own checksum.
func whole(b []byte) bool {
	return len(b) < 8 || binary.LittleEndian.Uint32(b[len(b)-4:]) == crc32.ChecksumIEEE(b[:len(b)-4])
}

// someLength draws a length: a short one most of the time, up to most.
func someLength(rnd *rand.Rand, most int) int {
	n := 1 + rnd.IntN(1<<rnd.IntN(20))
	if rnd.IntN(8) == 0 {
		n = rnd.IntN(9)
	}
	return min(n, most)
}

func newStore(t testing.TB, limit int64) *Store {
	s := New(limit, nil)
	t.Cleanup(s.Close)
	return s
}

func mustCheck(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
}

// Each size has a class whose slots are the smallest that it fits into, and no slot is more
// than an eighth too large.
func TestClasses(t *testing.T) {
	for i, c := range classes {
		if i > 0 && c.size <= classes[i-1].size || c.first+c.slots*c.size > slabBytes || c.slots >= 1<<slotBits || c.slots < 7 {
			t.Errorf("class %d: %+v", i, c)
		}
		if lost := slabBytes - c.slots*c.size; float64(lost) > float64(slabBytes)*(1.2/float64(c.size)+0.01)+float64(c.size) {
			t.Errorf("class %d: %d bytes of a slab have no slot", i, lost)
		}
	}
	for n := leastSlot; n <= mostSlot; n++ {
		i := classOf(n)
		if size := classes[i].size; size < n || i > 0 && classes[i-1].size >= n || size-n > n/8 {
			t.Fatalf("%d bytes: class %d, of %d", n, i, size)
		}
	}
}

// A Ref tells the length of its value; the empty value is not the same as none.
func TestRefs(t *testing.T) {
	s := newStore(t, 0)
	if Ref(0).Len() != 0 || len(Ref(0).Append(nil)) != 0 || s.Holds(0) {
		t.Error("no value is a value")
	}
	for _, n := range []int{0, 1, 6, 7, 8, 9, 15, 16, 17, 255, 256, 257, 4095, 4096, mostSlot - 1, mostSlot, mostSlot + 1, slabBytes - 1, slabBytes, slabBytes + 1, 3<<20 + 5} {
		val := valueOf(uint64(n), n)
		r, err := s.Put(val, 1)
		if err != nil {
			t.Fatal(err)
		}
		dst := make([]byte, n)
		if r == 0 || r.Len() != n || !bytes.Equal(r.Append([]byte("ab")), append([]byte("ab"), val...)) || r.Copy(dst) != n || !bytes.Equal(dst, val) || !s.Holds(r) {
			t.Errorf("%d bytes: Ref %#x, length %d", n, uint64(r), r.Len())
		}
		Fetch([]uint64{uint64(r)})
		mustCheck(t, s)
	}
}

// Any word may be taken for a Ref: reading what it stands for does not fault.
func TestAnyWordIsReadable(t *testing.T) {
	rnd := seed.Rand(t)
	s := newStore(t, 0)
	var buf []byte
	for range seed.Times(20_000, 1_000_000) {
		r := Ref(rnd.Uint64() >> rnd.IntN(64))
		if rnd.IntN(2) == 0 {
			r = Ref(rnd.IntN(4))<<kindShift | r&(1<<kindShift-1)
		}
		if rnd.IntN(4) == 0 { // one of the last slots or chunks
			r = slabRef(uint32(slabs.Most()-1), rnd.IntN(1<<slotBits), rnd.IntN(mostSlot+1))
		}
		Fetch([]uint64{uint64(r)})
		s.Holds(r)
		if r.Len() < 1<<20 {
			buf = r.Append(buf[:0])
		}
	}
}

// A model of a store is a map from Refs to values.
func TestModel(t *testing.T) {
	rnd := seed.Rand(t)
	for range seed.Count(16) {
		model(t, rnd, seed.Times(3000, 10_000))
	}
}

func model(t *testing.T, rnd *rand.Rand, steps int) {
	s := newStore(t, 0)
	defer s.Close()
	type entry struct {
		ref Ref
		val []byte
	}
	var live, kept []entry
	id, epoch := rnd.Uint64(), uint64(1)
	take := func(from *[]entry) entry {
		i := rnd.IntN(len(*from))
		e := (*from)[i]
		(*from)[i] = (*from)[len(*from)-1]
		*from = (*from)[:len(*from)-1]
		return e
	}
	for step := range steps {
		switch k := rnd.IntN(20); {
		case k < 9:
			id++
			val := valueOf(id, someLength(rnd, 1<<20))
			r, err := s.Put(val, epoch)
			if err != nil {
				t.Fatal(err)
			}
			live = append(live, entry{r, val})
		case k < 10:
			vals := make([][]byte, rnd.IntN(600))
			for i := range vals {
				id++
				vals[i] = valueOf(id, someLength(rnd, 100))
			}
			refs := make([]Ref, len(vals))
			if err := s.PutBatch(refs, func(i int) []byte { return vals[i] }, epoch); err != nil {
				t.Fatal(err)
			}
			for i, r := range refs {
				live = append(live, entry{r, vals[i]})
			}
		case k < 16 && len(live) > 0:
			n := 1
			if rnd.IntN(50) == 0 {
				n = len(live)
			}
			for range n {
				e := take(&live)
				s.Retire([]Ref{e.ref})
				kept = append(kept, e)
			}
		case k < 18 && len(kept) > 0:
			var refs []Ref
			for range rnd.IntN(len(kept)) + 1 {
				refs = append(refs, take(&kept).ref)
			}
			s.Free(refs)
		case k == 18:
			epoch += uint64(rnd.IntN(1 << rnd.IntN(10)))
		case rnd.IntN(20) == 0:
			if e := s.Empty(); e != nil {
				for i := range live {
					if old := live[i].ref; e.Has(old) {
						to, err := e.Move(old, epoch)
						if err != nil {
							t.Fatal(err)
						}
						live[i].ref = to
						s.Drop(old)
					}
				}
				e.Done()
			}
		}
		if step%64 == 0 || step == steps-1 {
			mustCheck(t, s)
			var bytesOf int64
			for _, e := range append(live[:len(live):len(live)], kept...) {
				if got := e.ref.Append(nil); !bytes.Equal(got, e.val) || !s.Holds(e.ref) {
					t.Fatalf("Ref %#x: %d bytes, want %d", uint64(e.ref), len(got), len(e.val))
				}
				if b := s.Born(e.ref); b > epoch {
					t.Fatalf("put in epoch %d, it is %d", b, epoch)
				}
			}
			for _, e := range live {
				if len(e.val) > mostShort {
					bytesOf += int64(len(e.val))
				}
			}
			if st := s.Stats(); st.Live != bytesOf {
				t.Fatalf("%+v, want %d live bytes", st, bytesOf)
			}
		}
	}
}

// A value is never said to be put later than it was, however far epochs go on.
func TestBorn(t *testing.T) {
	rnd := seed.Rand(t)
	s := newStore(t, 0)
	type put struct {
		ref   Ref
		epoch uint64
	}
	var all []put
	epoch := uint64(1)
	for i := range 3000 {
		n := []int{9, 40, 9, 40_000}[max(rnd.IntN(40)-36, 0)]
		r, err := s.Put(valueOf(uint64(i), n), epoch)
		if err != nil {
			t.Fatal(err)
		}
		if b := s.Born(r); b > epoch {
			t.Fatalf("born in %d, it is %d", b, epoch)
		}
		all = append(all, put{r, epoch})
		if rnd.IntN(3) == 0 {
			epoch += uint64(rnd.IntN(1 << rnd.IntN(9)))
		}
	}
	for _, p := range all {
		if b := s.Born(p.ref); b > p.epoch {
			t.Fatalf("born in %d, put in %d", b, p.epoch)
		}
	}
	// A shard without free slots asks for them in the epoch of the value.
	s.unstashAll()
	r, _ := s.Put(valueOf(1, 77), epoch)
	for range 100 {
		epoch++
		s.unstashAll()
		if _, err := s.Put(valueOf(1, 77), epoch); err != nil {
			t.Fatal(err)
		}
	}
	if b := s.Born(r); b != epoch-100 {
		t.Errorf("born in %d, want %d", b, epoch-100)
	}
}

// Over the limit, and where memory is denied at any point in turn, nothing has changed.
func TestLimits(t *testing.T) {
	rnd := seed.Rand(t)
	others := int64(1000)
	s := New(10_000, func() int64 { return others })
	defer s.Close()
	var refs []Ref
	for {
		before, was := s.Stats(), s.taken.Load()
		r, err := s.Put(valueOf(1, 100), 1)
		if err == nil {
			refs = append(refs, r)
			continue
		}
		if st := s.Stats(); !errors.Is(err, op.ErrLimit) || st != before || s.taken.Load() != was {
			t.Fatalf("%v: %+v, was %+v", err, st, before)
		}
		break
	}
	if room := int64(len(refs)) * roomOf(100); room+others > 10_000 || room+others+roomOf(100) <= 10_000 {
		t.Errorf("%d values of %d bytes and %d bytes are within the limit", len(refs), roomOf(100), others)
	}
	for _, n := range []int{101, 50_000} {
		if err := s.PutBatch(make([]Ref, 3), func(int) []byte { return valueOf(1, n) }, 1); !errors.Is(err, op.ErrLimit) {
			t.Error(err)
		}
	}
	if _, err := s.Put([]byte("short"), 1); err != nil {
		t.Error(err)
	}
	s.Drop(refs...)
	if n := s.taken.Load(); n != 0 || s.Bytes() != 0 {
		t.Errorf("%d bytes count against the limit, %d are in use; all were freed", n, s.Bytes())
	}
	mustCheck(t, s)
	denied(t, rnd)
}

// denied puts batches while each request for memory fails in turn.
func denied(t *testing.T, rnd *rand.Rand) {
	vals := make([][]byte, 400)
	for i := range vals {
		vals[i] = valueOf(uint64(i), someLength(rnd, 1<<20))
	}
	s := New(1<<40, nil)
	defer s.Close()
	refs := make([]Ref, len(vals))
	for at := 0; ; at++ {
		n := 0
		deny := func() bool { n++; return n > at }
		slabs.Deny(deny)
		runs.Pool.Deny(deny)
		before := s.Stats()
		err := s.PutBatch(refs, func(i int) []byte { return vals[i] }, 1)
		slabs.Deny(nil)
		runs.Pool.Deny(nil)
		mustCheck(t, s)
		if err == nil {
			break
		}
		if st := s.Stats(); !errors.Is(err, arena.ErrLimit) || st.Live != before.Live || st.Kept != 0 || s.taken.Load() != 0 || s.Bytes() != 0 {
			t.Fatalf("denied at %d: %v, %+v, was %+v", at, err, st, before)
		}
		if e := s.Empty(); e != nil { // slabs that were taken before it failed
			e.Done()
		}
	}
	for i, r := range refs {
		if !bytes.Equal(r.Append(nil), vals[i]) {
			t.Fatalf("value %d is another: %#x, length %d, want %d", i, uint64(r), r.Len(), len(vals[i]))
		}
	}
}

// A store that was closed has given everything back, and takes nothing more.
func TestClose(t *testing.T) {
	before := slabs.Taken() + runs.Pool.Taken()
	s := New(0, nil)
	var refs []Ref
	for i := range 5000 {
		r, err := s.Put(valueOf(uint64(i), 8+i*8), 1)
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, r)
	}
	s.Retire(refs[:10])
	s.Close()
	s.Close()
	if now := slabs.Taken() + runs.Pool.Taken(); now != before || s.held.Load() != 0 {
		t.Errorf("%d chunks are taken, %d were before", now, before)
	}
	for _, n := range []int{10, 100_000} {
		if _, err := s.Put(valueOf(1, n), 1); !errors.Is(err, op.ErrClosed) {
			t.Error(err)
		}
		if err := s.PutBatch(make([]Ref, 2), func(int) []byte { return valueOf(1, n) }, 1); !errors.Is(err, op.ErrClosed) {
			t.Error(err)
		}
	}
	s.Drop(refs...)
	if st := s.Stats(); st != (Stats{}) {
		t.Errorf("a closed store has %+v", st)
	}
	if s.Empty() != nil {
		t.Error("a closed store has slabs to be emptied")
	}
	for _, r := range refs {
		if b := r.Append(nil); len(b) != r.Len() {
			t.Error("bytes of a closed store cannot be read")
		}
	}
	mustCheck(t, s)
}

// A store that nobody refers to gives its memory back.
func TestForgotten(t *testing.T) {
	before := slabs.Taken()
	func() {
		s := New(0, nil)
		for range 100 {
			if _, err := s.Put(valueOf(1, 5000), 1); err != nil {
				t.Fatal(err)
			}
		}
	}()
	for range 100 {
		if runtime.GC(); slabs.Taken() <= before {
			return
		}
	}
	t.Errorf("%d slabs are taken, %d were before", slabs.Taken(), before)
}

// A value longer than the bound is refused.
func TestTooLong(t *testing.T) {
	most := uint64(MostBytes)
	if uint64(runs.Pool.Most())<<slabShift <= most {
		t.Skip("there is no such value")
	}
	if n := int(most); roomOf(n) != 1<<32 || runRef(5, n).Len() != n || runRef(5, n).chunk() != 5 {
		t.Error("the longest value has no Ref")
	}
	s := newStore(t, 0)
	val := unsafe.Slice((*byte)(runs.Pool.Base(0)), most+1) // which nobody reads
	if _, err := s.Put(val, 1); !errors.Is(err, ErrTooLong) {
		t.Error(err)
	}
	if err := s.PutBatch(make([]Ref, 2), func(i int) []byte { return val[:i*len(val)] }, 1); !errors.Is(err, ErrTooLong) {
		t.Error(err)
	}
	mustCheck(t, s)
}

func FuzzStore(f *testing.F) {
	f.Add([]byte{1, 200, 3, 4, 0, 9, 250, 17, 255, 31, 66})
	f.Fuzz(func(t *testing.T, ops []byte) {
		s := New(64<<20, nil)
		defer s.Close()
		var refs []Ref
		var vals [][]byte
		for i, o := range ops {
			switch {
			case o < 200 || len(refs) == 0:
				val := valueOf(uint64(i), int(o)*int(o))
				r, err := s.Put(val, uint64(i)*uint64(o)+1)
				if err != nil {
					t.Fatal(err)
				}
				refs, vals = append(refs, r), append(vals, val)
			case o < 250:
				j := int(o) % len(refs)
				s.Drop(refs[j])
				refs[j], vals[j] = refs[len(refs)-1], vals[len(vals)-1]
				refs, vals = refs[:len(refs)-1], vals[:len(vals)-1]
			default:
				if e := s.Empty(); e != nil {
					for j, r := range refs {
						if e.Has(r) {
							to, err := e.Move(r, 1)
							if err != nil {
								t.Fatal(err)
							}
							refs[j] = to
							s.Drop(r)
						}
					}
					if n := e.Left(); n != 0 {
						t.Fatalf("%d values are left", n)
					}
					e.Done()
				}
			}
		}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		for i, r := range refs {
			if !bytes.Equal(r.Append(nil), vals[i]) {
				t.Fatalf("value %d is another", i)
			}
		}
	})
}

// Words that are no Refs have no length that Append would not append.
func TestLengthOfNonsense(t *testing.T) {
	for _, r := range []Ref{15 << 56, 3<<62 | 9<<56, 1<<62 | Ref(1<<26-1)<<36, 1<<62 | 3<<36, 2<<62 | 5<<30} {
		if n, got := r.Len(), len(r.Append(nil)); n != got {
			t.Errorf("%#x: Len says %d, Append appends %d", uint64(r), n, got)
		}
	}
}

// A word of a late reader's that claims to be longer than any value there is not believed:
// the reader would ask for that much memory.
func TestNonsenseIsNotPlausible(t *testing.T) {
	s := newStore(t, 0)
	short, _ := s.Put(valueOf(1, 5), 1)
	slot, _ := s.Put(valueOf(2, 1000), 1)
	run, _ := s.Put(valueOf(3, 3<<20), 1)
	for _, r := range []Ref{short, slot, run} {
		if !s.Plausible(r) {
			t.Errorf("a value of %d bytes is there, and not plausible", r.Len())
		}
	}
	for i, r := range []Ref{1<<62 | Ref(1<<26-1)<<36, 2<<62 | Ref(1<<32-1)<<30, 3<<62 | 9<<56, run + 1<<30, run ^ 1<<40} {
		if s.Plausible(r) {
			t.Errorf("%d: %#x claims to have %d bytes, and is plausible", i, uint64(r), r.Len())
		}
	}
	s.Drop(run)
	if s.Plausible(run) {
		t.Errorf("a value of %d bytes was freed, and is plausible", run.Len())
	}
}

// Values that are refused by a limit make no others refused that fit.
func TestRefusedBeside(t *testing.T) {
	s := newStore(t, 1<<20)
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		large := make([]byte, 2<<20)
		for !stop.Load() {
			if _, err := s.Put(large, 1); !errors.Is(err, op.ErrLimit) {
				t.Errorf("a value of 2 MiB: %v", err)
			}
		}
	})
	small := make([]byte, 100)
	for i := range seed.Size(20_000, 300_000) {
		r, err := s.Put(small, 1)
		if err != nil {
			t.Errorf("value %d of 100 bytes: %v", i, err)
			break
		}
		s.Drop(r)
	}
	stop.Store(true)
	wg.Wait()
}

// A walk that comes across a word that is no Ref does not take it for a value to be moved.
func TestNonsenseIsNotMoved(t *testing.T) {
	defer SetFreeAnyway(0)()
	s := newStore(t, 0)
	refs := make([]Ref, 40_000)
	for i := range refs {
		var err error
		if refs[i], err = s.Put(make([]byte, 64), 1); err != nil {
			t.Fatal(err)
		}
	}
	for i := range refs {
		if i%100 != 0 {
			s.Retire(refs[i : i+1])
			s.Free(refs[i : i+1])
		}
	}
	e := s.Empty()
	if e == nil {
		t.Fatal("nothing is to be emptied")
	}
	defer e.Done()
	if short := refs[0]&(1<<36-1) | 1<<62 | 3<<36; !e.Has(refs[0]) || e.Has(short) {
		t.Errorf("Has: %v of a value, %v of a word with its slab; want true and false", e.Has(refs[0]), e.Has(short))
	}
}

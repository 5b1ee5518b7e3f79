package ptx

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/device"
)

func (r *rig) reserve(bytes int64) device.Range {
	r.Helper()
	g, err := r.dev.Reserve(bytes)
	r.must(err)
	return g
}

func (r *rig) free() int64 {
	r.Helper()
	n, err := r.dev.FreeBytes()
	r.must(err)
	return n
}

// TestRangeGrows tests that a range grows in 20 steps at one address, keeps
// what it had, counts as memory only by what is there, and that new memory is
// noise.
func TestRangeGrows(t *testing.T) {
	rng := numbers(t, 1, 2)
	r := newRig(t, Memory(1<<20))
	g := r.reserve(1 << 40)
	var model []byte
	for i := range 20 {
		n := 1 + int64(len(model)) + rng.Int64N(40000)
		r.must(g.Grow(n))
		if have := g.Len(); have < n || have > n+3 || r.free() != 1<<20-have {
			t.Fatalf("step %d: %d bytes for %d, %d free", i, have, n, r.free())
		}
		fresh := r.read(g.Base()+device.Ptr(len(model)), int(g.Len())-len(model))
		if len(fresh) > 64 && bytes.Count(fresh, []byte{0}) > len(fresh)/4 {
			t.Fatalf("step %d: new memory is zero", i)
		}
		more := make([]byte, len(fresh))
		for j := range more {
			more[j] = byte(rng.Uint32())
		}
		r.must(r.s.CopyIn(g.Base()+device.Ptr(len(model)), more))
		model = append(model, more...)
		if !bytes.Equal(r.read(g.Base(), len(model)), model) {
			t.Fatalf("step %d: not what was written", i)
		}
	}
	for _, n := range []int64{1<<20 + 1, 1<<40 + 1, math.MaxInt64} {
		if err := g.Grow(n); !errors.Is(err, device.ErrOutOfMemory) {
			t.Errorf("grown to %d: %v", n, err)
		}
	}
	if g.Len() != int64(len(model)) || !bytes.Equal(r.read(g.Base(), len(model)), model) {
		t.Error("an error has changed the range")
	}
	r.must(g.Grow(1)) // less than there is: nothing to do
	r.must(g.Free())
	if g.Len() != 0 || r.free() != 1<<20 || g.Free() == nil || g.Grow(1) == nil {
		t.Error("not freed, or freed twice")
	}
}

// TestRangeNoise tests that new memory depends on the seed and nothing else.
func TestRangeNoise(t *testing.T) {
	content := func(seed uint64) []byte {
		r := newRig(t, Seed(seed))
		g := r.reserve(1 << 20)
		r.must(g.Grow(100))
		r.must(g.Grow(1000))
		return r.read(g.Base(), 1000)
	}
	if a, b, c := content(1), content(1), content(2); !bytes.Equal(a, b) || bytes.Equal(a, c) {
		t.Error("noise does not depend on the seed alone")
	}
}

// TestRangeBounds tests that what is not there cannot be touched by kernels or
// copies, with a message that tells why, until the range has grown.
func TestRangeBounds(t *testing.T) {
	r := newRig(t)
	add := r.load(program(2, addBody))("k")
	g, next := r.reserve(1<<30), r.alloc32([]uint32{1})
	if next < g.Base()+1<<30 {
		t.Fatal("addresses of the range are used for something else")
	}
	const there = "bytes are there yet"
	refused := func(err error) {
		t.Helper()
		if !errors.Is(err, device.ErrLaunchFailed) || !strings.Contains(err.Error(), there) {
			t.Error(err)
		}
	}
	for _, n := range []int64{0, 8, 4096} {
		r.must(g.Grow(n))
		at := g.Base() + device.Ptr(n)
		err := r.launch(add, one(1), at, uint64(1))
		if !isKind(err, OutOfBounds) {
			t.Error(err)
		}
		refused(err)
		r.must(r.s.Fill(at, 1, 4))
		refused(r.s.Synchronize())
		if n > 0 {
			r.must(r.s.CopyOut(make([]byte, 8), at-4)) // half of it is there
			refused(r.s.Synchronize())
			r.must(r.launch(add, one(1), at-4, uint64(1)))
		}
	}
	if err := r.dev.Free(g.Base()); err == nil {
		t.Error("Free takes a range")
	}
	r.must(g.Free())
	if err := r.launch(add, one(1), g.Base(), uint64(1)); !isKind(err, Freed) {
		t.Error(err)
	}
	if again := r.reserve(1); again.Base() == g.Base() {
		t.Error("an address is used again")
	}
	for _, n := range []int64{0, -1, math.MaxInt64} {
		if _, err := r.dev.Reserve(n); err == nil {
			t.Errorf("%d bytes were reserved", n)
		}
	}
	g = r.reserve(5)
	r.must(g.Grow(5))
	if err := g.Grow(6); !errors.Is(err, device.ErrOutOfMemory) || g.Len() != 5 {
		t.Error(g.Len(), err)
	}
	r.must(r.dev.Close())
	if g.Grow(5) == nil || g.Free() == nil {
		t.Error("a closed device has ranges")
	}
	if _, err := r.dev.Reserve(1); !errors.Is(err, device.ErrLost) {
		t.Error(err)
	}
}

// countBody adds 1 to a word 50 times, by atomics and by plain accesses to a
// second word.
const countBody = `ld.param.u64 %d0, [p0];
mov.u32 %r1, 0;
again:
atom.relaxed.gpu.global.add.u32 %r2, [%d0], 1;
ld.global.u32 %r3, [%d0+4];
add.u32 %r3, %r3, 1;
st.global.u32 [%d0+4], %r3;
add.u32 %r1, %r1, 1;
setp.lt.u32 %p1, %r1, 50;
@%p1 bra again;`

// TestRangeGrowsBesideKernel tests that what a running kernel writes arrives in
// a range that grows meanwhile, in every mode.
func TestRangeGrowsBesideKernel(t *testing.T) {
	grown := 0
	for seed := range uint64(20) {
		r := newRig(t, Seed(seed), Concurrent(true), Weak(seed%2 == 0), Strict(seed%4 == 0))
		count := r.load(program(1, countBody))("k")
		g := r.reserve(1 << 20)
		r.must(g.Grow(8))
		r.must(r.s.Fill(g.Base(), 0, 8))
		r.must(r.s.Synchronize())
		r.must(r.s.Launch(count, one(1), pack(g.Base())))
		for n := int64(100); ; n *= 2 {
			r.dev.mu.Lock()
			ran := r.dev.step()
			r.dev.mu.Unlock()
			if !ran {
				break
			}
			if n < 1<<20 {
				r.must(g.Grow(n))
				grown++
			}
		}
		if got := r.read32(g.Base(), 2); got[0] != 50 || got[1] != 50 {
			t.Fatalf("seed %d: %v", seed, got)
		}
	}
	if grown < 40 {
		t.Error("the range grew only", grown, "times")
	}
}

// TestHostRange tests that memory of the host takes none of the device's, is at one
// address, and is the same for both sides.
func TestHostRange(t *testing.T) {
	r := newRig(t, Memory(1<<10))
	g, err := r.dev.ReserveHost(1 << 40)
	r.must(err)
	r.must(g.Grow(1 << 16))
	if len(g.Bytes()) != 1<<16 || r.free() != 1<<10 {
		t.Fatalf("%d bytes are there, %d of the device are free", len(g.Bytes()), r.free())
	}
	base := g.Base()
	copy(g.Bytes(), "from the host")
	r.must(g.Grow(1 << 20))
	if got := r.read(g.Base(), 13); string(got) != "from the host" || g.Base() != base {
		t.Errorf("the device reads %q", got)
	}
	r.must(r.s.CopyIn(base+1<<19, []byte("from the device")))
	r.must(r.s.Synchronize())
	if got := g.Bytes()[1<<19:][:15]; string(got) != "from the device" {
		t.Errorf("the host reads %q", got)
	}
	r.must(g.Free())
	if r.free() != 1<<10 || len(g.Bytes()) != 0 {
		t.Error("not freed")
	}
}

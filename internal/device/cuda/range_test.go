//go:build !nogpu && linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/seed"
)

// The structures lie in memory as those of cuda.h do.
func TestMemoryLayouts(t *testing.T) {
	var p memProp
	var a memAccess
	for name, x := range map[string][2]uintptr{
		"CUmemLocation":       {unsafe.Sizeof(p.location), 8},
		"CUmemLocation.id":    {unsafe.Offsetof(p.location.id), 4},
		"CUmemAllocationProp": {unsafe.Sizeof(p), 32},
		".type":               {unsafe.Offsetof(p.kind), 0},
		".requestedHandle":    {unsafe.Offsetof(p.handleTypes), 4},
		".location":           {unsafe.Offsetof(p.location), 8},
		".win32HandleMeta":    {unsafe.Offsetof(p.win32), 16},
		".compressionType":    {unsafe.Offsetof(p.compression), 24},
		".gpuDirectRDMA":      {unsafe.Offsetof(p.rdma), 25},
		".usage":              {unsafe.Offsetof(p.usage), 26},
		"CUmemAccessDesc":     {unsafe.Sizeof(a), 12},
		".flags":              {unsafe.Offsetof(a.flags), 8},
	} {
		if x[0] != x[1] {
			t.Errorf("%s: %d, want %d", name, x[0], x[1])
		}
	}
}

// testGrow grows a range in steps, which sizes returns the lengths of, and
// compares all of it with a model after each.
func testGrow(t *testing.T, d device.Device, rng *rand.Rand, sizes []int64) {
	t.Helper()
	most := sizes[len(sizes)-1]
	r := must[device.Range](t)(d.Reserve(most))
	s := must[device.Stream](t)(d.NewStream())
	base := r.Base()
	if base == 0 || base%256 != 0 || r.Len() != 0 {
		t.Fatalf("%d bytes at %#x", r.Len(), uint64(base))
	}
	model := make([]byte, 0, most)
	for _, n := range sizes {
		check(t, r.Grow(n))
		if r.Base() != base || r.Len() < n {
			t.Fatalf("grown to %d: %d bytes at %#x", n, r.Len(), uint64(r.Base()))
		}
		old := len(model)
		model = model[:n]
		for i := old; i < int(n); i++ {
			model[i] = byte(rng.Uint32())
		}
		check(t, s.CopyIn(base+device.Ptr(old), model[old:]))
		check(t, s.Synchronize())
		compare(t, s, base, model, make([]byte, n))
	}
	length := r.Len()
	wantKind(t, r.Grow(math.MaxInt64), device.ErrOutOfMemory)
	if r.Len() != length {
		t.Errorf("%d bytes after an error, %d before", r.Len(), length)
	}
	compare(t, s, base, model, make([]byte, most))
	check(t, s.Close())
	check(t, r.Free())
	check(t, r.Free())
	if r.Len() != 0 || r.Grow(1) == nil {
		t.Error("a range that is freed has", r.Len(), "bytes, or grows")
	}
}

// steps returns n growing sizes, the last of them about most.
func steps(rng *rand.Rand, n int, most int64) []int64 {
	sizes := make([]int64, n)
	for i := range sizes {
		sizes[i] = most*int64(i)/int64(n) + 1 + rng.Int64N(most/int64(n))
	}
	return sizes
}

func TestGrow(t *testing.T) {
	rng := seed.Rand(t)
	f, d := newFake(t, 1)
	g := open(t, d, 0)
	before := must[int64](t)(g.FreeBytes())
	testGrow(t, g, rng, steps(rng, 20, 20*fakeGranule))
	if after := must[int64](t)(g.FreeBytes()); after != before {
		t.Errorf("%d bytes were free before, %d after", before, after)
	}
	if _, live := f.state(); live != 0 {
		t.Error("left:", live)
	}
	check(t, g.Close())
}

// What the driver is asked for: granules, an eighth at least, no handle that
// is kept, and less where an eighth is too much.
func TestGrowSteps(t *testing.T) {
	f, d := newFake(t, 1)
	g := open(t, d, 0)
	const granule = fakeGranule
	f.mapper.limit = 32 * granule
	r := must[device.Range](t)(g.Reserve(40*granule - 1))
	for _, step := range []struct{ ask, length, pieces int64 }{
		{0, 0, 0}, {-1, 0, 0}, {1, 1, 1}, {granule, 1, 1}, {granule + 1, 2, 2}, {16 * granule, 16, 3},
		{16*granule + 1, 18, 4}, {24 * granule, 24, 5}, {24*granule + 1, 27, 6}, {29 * granule, 31, 7},
		{31*granule + 1, 32, 8}, // an eighth would make 35, but the GPU has only 32
	} {
		check(t, r.Grow(step.ask))
		if r.Len() != step.length*granule || int64(len(r.(*growRange).pieces)) != step.pieces {
			t.Fatalf("%d asked for: %d granules, %v", step.ask, r.Len()/granule, r.(*growRange).pieces)
		}
	}
	wantKind(t, r.Grow(33*granule), device.ErrOutOfMemory) // of what the GPU has
	wantKind(t, r.Grow(41*granule), device.ErrOutOfMemory) // of what is reserved
	if r.Len() != 32*granule || f.mapper.used != 32*granule || len(f.mapper.made) != 0 {
		t.Errorf("%d bytes there, %d used, handles %v", r.Len(), f.mapper.used, f.mapper.made)
	}
	f.mapper.limit = 40 * granule
	check(t, r.Grow(37*granule))
	check(t, r.Grow(38*granule)) // an eighth would be beyond the range
	if r.Len() != 40*granule {
		t.Errorf("%d granules", r.Len()/granule)
	}
	check(t, r.Free())
	if f.mapper.used != 0 {
		t.Error(f.mapper.used, "bytes are not freed")
	}
	check(t, g.Close())
}

// Whichever call fails while a range grows, it stays as it was, and grows the
// next time.
func TestGrowFails(t *testing.T) {
	for _, at := range []entry{cuMemCreate, cuMemMap, cuMemRelease, cuMemSetAccess} {
		f, d := newFake(t, 1)
		g := open(t, d, 0)
		r := must[device.Range](t)(g.Reserve(8 * fakeGranule))
		s := must[device.Stream](t)(g.NewStream())
		check(t, r.Grow(1))
		model := bytes.Repeat([]byte{9}, fakeGranule)
		check(t, s.CopyIn(r.Base(), model))
		f.failWith(func(e entry, _ int) result {
			if e == at {
				return 2
			}
			return 0
		})
		wantKind(t, r.Grow(4*fakeGranule), device.ErrOutOfMemory)
		f.failWith(nil)
		if r.Len() != fakeGranule || at != cuMemRelease && f.mapper.used != fakeGranule {
			t.Errorf("%v: %d bytes there, %d used", at, r.Len(), f.mapper.used)
		}
		check(t, r.Grow(4*fakeGranule))
		compare(t, s, r.Base(), model, make([]byte, len(model)))
		check(t, g.Close())
	}
}

// Without the calls, or on a GPU that cannot map, an error says so, and nothing
// else changes.
func TestNoRanges(t *testing.T) {
	for e := cuMemAddressReserve; e <= cuMemGetAllocationGranularity; e++ {
		_, d := newFake(t, 1)
		d.address[e] = 0
		g := open(t, d, 0)
		_, err := g.Reserve(1)
		wantKind(t, err, device.ErrUnsupported)
		must[device.Ptr](t)(g.Alloc(1))
		check(t, g.Close())
	}
	f, d := newFake(t, 1)
	f.mapper.able = 0
	g := open(t, d, 0)
	_, err := g.Reserve(1)
	wantKind(t, err, device.ErrUnsupported)
	f.mapper.able = 1
	for _, bytes := range []int64{0, -1, math.MinInt64} {
		if _, err := g.Reserve(bytes); err == nil {
			t.Errorf("%d bytes were reserved", bytes)
		}
	}
	for _, bytes := range []int64{math.MaxInt64, 1 << 60} {
		_, err := g.Reserve(bytes)
		wantKind(t, err, device.ErrOutOfMemory)
	}
	check(t, g.Close())
}

// A lost device frees its ranges when it is closed: they do not go with the
// context.
func TestLostRange(t *testing.T) {
	f, d := newFake(t, 1)
	g := open(t, d, 0)
	r := must[device.Range](t)(g.Reserve(8 * fakeGranule))
	check(t, r.Grow(1))
	f.failWith(func(e entry, _ int) result {
		if e == cuMemMap {
			return 214
		}
		return 0
	})
	wantKind(t, r.Grow(3*fakeGranule), device.ErrLost)
	f.failWith(nil)
	wantKind(t, r.Free(), device.ErrLost)
	check(t, g.Close())
	if _, live := f.state(); live != 0 || f.mapper.used != 0 {
		t.Errorf("%d things and %d bytes are left", live, f.mapper.used)
	}
}

// Close ends graphs before their kernels, and streams before the memory that
// their work uses, which it waits for.
func TestCloseOrder(t *testing.T) {
	for range 20 { // objects are kept in a map, so each time in another order
		f, d := newFake(t, 1)
		g := open(t, d, 0)
		var a all
		check(t, a.make(g))
		var calls []entry
		f.failWith(func(e entry, _ int) result {
			if e != cuCtxSetCurrent {
				calls = append(calls, e)
			}
			return 0
		})
		check(t, g.Close())
		at := func(e entry) int { return slices.Index(calls, e) }
		if at(cuGraphExecDestroy) < 0 || at(cuGraphExecDestroy) > at(cuModuleUnload) || at(cuMemUnmap) < at(cuStreamDestroy) ||
			calls[at(cuMemUnmap)-1] != cuCtxSynchronize || at(cuMemAddressFree) != at(cuMemUnmap)+1 {
			t.Fatal(calls)
		}
	}
}

// Ranges grow and are freed by many goroutines, and by Close.
func TestGrowAtOnce(t *testing.T) {
	f, d := newFake(t, 1)
	g := open(t, d, 0)
	shared := must[device.Range](t)(g.Reserve(8 * fakeGranule))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			r, err := g.Reserve(4 * fakeGranule)
			for n := range int64(4) {
				err = errors.Join(err, shared.Grow(2*n*fakeGranule), r.Grow(n*fakeGranule))
			}
			if i%2 == 0 {
				err = errors.Join(err, r.Free())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	check(t, g.Close())
	if _, live := f.state(); live != 0 || f.mapper.used != 0 {
		t.Errorf("%d things and %d bytes are left", live, f.mapper.used)
	}
}

// reserve returns a range of a real GPU, or skips the test.
func reserve(t testing.TB, d device.Device, bytes int64) device.Range {
	t.Helper()
	r, err := d.Reserve(bytes)
	if errors.Is(err, device.ErrUnsupported) {
		t.Skip("needs memory that can be mapped:", err)
	}
	check(t, err)
	return r
}

func TestGrowOnGPU(t *testing.T) {
	rng := seed.Rand(t)
	d := realGPU(t)
	check(t, reserve(t, d, 1<<30).Free())
	testGrow(t, d, rng, steps(rng, 20, 64<<20))
}

// Kernels use memory of several pieces, while it grows.
func TestKernelsInARange(t *testing.T) {
	b := newBench(t)
	r := reserve(t, b.d, 256<<20)
	k := b.kernel(t, "test_add")
	check(t, r.Grow(4<<20))
	check(t, b.s.Fill(r.Base(), 0, int(r.Len())))
	for range 10 {
		n := r.Len() / 4
		check(t, b.s.Launch(k, device.Grid{Blocks: int(n+127) / 128, Threads: 128},
			params(uint64(r.Base()), uint64(r.Base()), uint32(n), uint32(1))))
		check(t, r.Grow(r.Len()+1))
		check(t, b.s.Fill(r.Base()+device.Ptr(4*n), 0, int(r.Len()-4*n)))
	}
	got := b.read(t, r.Base(), int(r.Len()/4))
	if got[0] != 10 || got[(4<<20)/4-1] != 10 || got[len(got)-1] != 0 {
		t.Errorf("%d at the start, %d at the end of the first piece, %d at the end", got[0], got[(4<<20)/4-1], got[len(got)-1])
	}
	check(t, r.Free())
}

// The GPU is filled by a range: it then is as it was, and its memory is free
// again once the range is.
func TestGrowUntilFull(t *testing.T) {
	b := newBench(t)
	total := b.d.Info().TotalBytes
	r := reserve(t, b.d, 2*total)
	check(t, r.Grow(1<<20))
	check(t, b.s.Fill(r.Base(), 7, 1<<20))
	length := r.Len()
	err := r.Grow(total)
	wantKind(t, err, device.ErrOutOfMemory)
	t.Log(err)
	if r.Len() != length {
		t.Errorf("%d bytes, %d before", r.Len(), length)
	}
	if got := b.read(t, r.Base(), 1<<18); got[0] != 7 || got[1<<18-1] != 7 {
		t.Error("what was there is not any more")
	}
	free := must[int64](t)(b.d.FreeBytes())
	check(t, r.Grow(length+256<<20))
	if now := must[int64](t)(b.d.FreeBytes()); now > free-128<<20 {
		t.Errorf("%d bytes free, %d before it grew by 256 MiB", now, free)
	}
	check(t, r.Free())
	if now := must[int64](t)(b.d.FreeBytes()); now < free {
		t.Errorf("%d bytes free, %d before, with some in use", now, free)
	}
	check(t, b.add(1000, 8))
}

// BenchmarkGrow grows a range to 1 GiB by 32 MiB at a time; to compare, it
// takes blocks that are as large, and copies.
func BenchmarkGrow(b *testing.B) {
	const most, by = 1 << 30, 32 << 20
	n := newBench(b)
	b.Run("range", func(b *testing.B) {
		for b.Loop() {
			r := reserve(b, n.d, most)
			for at := int64(by); at <= most; at += by {
				check(b, r.Grow(at))
			}
			check(b, r.Free())
		}
	})
	b.Run("copy", func(b *testing.B) {
		for b.Loop() {
			p := must[device.Ptr](b)(n.d.Alloc(by))
			for at := 2 * by; at <= most; at += by {
				q := must[device.Ptr](b)(n.d.Alloc(at))
				check(b, n.s.CopyDevice(q, p, at-by))
				check(b, n.s.Synchronize())
				check(b, n.d.Free(p))
				p = q
			}
			check(b, n.d.Free(p))
		}
	})
}

package kernel_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/cuda"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
)

// primitive is a device with kernels that work on arrays, to be used with many
// seeds.
type primitive struct {
	d      device.Device
	s      device.Stream
	set    *kernel.Set
	params kernel.Params
	mem    []device.Ptr
}

func newPrimitive(t testing.TB, d device.Device, src kernel.Source) *primitive {
	t.Helper()
	p := &primitive{d: d}
	var err error
	if p.s, err = d.NewStream(); err == nil {
		p.set, err = kernel.LoadOnly(d, src)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// room returns memory for n bytes and no more, with noise in it.
func (p *primitive) room(n int) (device.Ptr, error) {
	at, err := p.d.Alloc(max(4, n))
	if err == nil {
		p.mem = append(p.mem, at)
	}
	return at, err
}

// free frees all memory.
func (p *primitive) free() (err error) {
	for _, m := range p.mem {
		err = errors.Join(err, p.d.Free(m))
	}
	p.mem = p.mem[:0]
	return err
}

func (p *primitive) close(t testing.TB) {
	t.Helper()
	if err := errors.Join(p.free(), p.set.Unload(), p.s.Close()); err != nil {
		t.Fatal(err)
	}
}

// onPrimitive runs a test under each mode of the interpreter, so many seeds in
// all, and on a GPU if there is one.
func onPrimitive(t *testing.T, src kernel.Source, modes map[string][]ptx.Option, daily int, test func(p *primitive, rng *rand.Rand) error) {
	first := seed.Of(t)
	each := (seed.Count(daily) + len(modes) - 1) / len(modes)
	for name, opts := range modes {
		t.Run(name, func(t *testing.T) {
			d := ptx.New(append([]ptx.Option{ptx.Memory(64 << 20), ptx.Steps(1 << 28)}, opts...)...)
			p := newPrimitive(t, d, src)
			for i := range uint64(each) {
				ptx.Seed(first + i)(d)
				if err := errors.Join(test(p, rand.New(rand.NewPCG(first+i, 0))), p.free()); err != nil {
					t.Fatalf("seed %d: %v", first+i, err)
				}
			}
			p.close(t)
			must(t, d.Close())
		})
	}
	d, err := cuda.Open(0)
	if err != nil {
		t.Logf("no GPU: %v", err)
		return
	}
	defer d.Close()
	p := newPrimitive(t, d, src)
	for i := range uint64(each * len(modes)) {
		if err := errors.Join(test(p, rand.New(rand.NewPCG(first+i, 0))), p.free()); err != nil {
			t.Fatalf("on a GPU, seed %d: %v", first+i, err)
		}
	}
	p.close(t)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func widthOf[C simd.Code]() int {
	var c C
	return 8 * int(unsafe.Sizeof(c))
}

// sortCase is a sort with its input.
type sortCase[C simd.Code] struct {
	job    kernel.SortJob
	keys   []C
	places []uint32 // nil: implicit
}

// run sorts on the device.
func (c *sortCase[C]) run(p *primitive) (keys []C, places []uint32, err error) {
	n, w := len(c.keys), widthOf[C]()/8
	job := c.job
	for at, bytes := range map[*device.Ptr]int{&job.Keys: w * n, &job.Keys2: w * n, &job.Places: 4 * n, &job.Places2: 4 * n, &job.Temp: job.TempBytes()} {
		if *at, err = p.room(bytes); err != nil {
			return nil, nil, err
		}
	}
	job.Implicit, job.ClearBytes = c.places == nil, 16*(n%700)
	if job.Clear, err = p.room(job.ClearBytes); err != nil {
		return nil, nil, err
	}
	cleared := make([]byte, job.ClearBytes)
	keys, places = make([]C, n), make([]uint32, n)
	keysAt, placesAt := job.Sorted()
	err = errors.Join(
		p.s.CopyIn(job.Keys, arena.Bytes(c.keys)), p.s.CopyIn(job.Places, arena.Bytes(c.places)),
		p.set.Sort(p.s, &p.params, &job))
	if err == nil && n > 0 {
		err = errors.Join(p.s.CopyOut(arena.Bytes(keys), keysAt), p.s.CopyOut(arena.Bytes(places), placesAt), p.s.CopyOut(cleared, job.Clear))
	}
	err = errors.Join(err, p.s.Synchronize())
	if err == nil && slices.ContainsFunc(cleared, func(b byte) bool { return b != 0 }) {
		err = errors.New("memory that was to be 0 is not")
	}
	return keys, places, err
}

// check sorts on the device and compares with a stable sort in Go.
func (c *sortCase[C]) check(p *primitive) error {
	keys, places, err := c.run(p)
	if err != nil {
		return fmt.Errorf("%v: %w", c, err)
	}
	want := make([]int, len(c.keys))
	for i := range want {
		want[i] = i
	}
	part := func(i int) C { return c.keys[i] >> c.job.From & (1<<(c.job.To-c.job.From) - 1) }
	slices.SortStableFunc(want, func(i, j int) int { return cmp.Compare(part(i), part(j)) })
	for i, from := range want {
		place := uint32(from)
		if c.places != nil {
			place = c.places[from]
		}
		if keys[i] != c.keys[from] || places[i] != place {
			return fmt.Errorf("%v: %d is key %#x of place %d, want %#x of %d", c, i, keys[i], places[i], c.keys[from], place)
		}
	}
	return nil
}

func (c *sortCase[C]) String() string {
	return fmt.Sprintf("%d keys of %d bits, by bits %d to %d", c.job.N, c.job.KeyBits, c.job.From, c.job.To)
}

// fill draws the keys, and mostly places.
func (c *sortCase[C]) fill(n int, rng *rand.Rand) {
	c.job.N, c.keys, c.places = n, make([]C, n), nil
	kind, digit := rng.IntN(6), 8*rng.IntN(widthOf[C]()/8)
	for i := range c.keys {
		switch kind {
		case 0:
			c.keys[i] = C(rng.Uint64())
		case 1:
			c.keys[i] = ^C(0) - 5
		case 2:
			c.keys[i] = C(i)
		case 3:
			c.keys[i] = C(n-i) * 3
		case 4: // few different digits
			c.keys[i] = C(rng.IntN(3)) * 0x55 << digit
		case 5: // the highest digits, as behind the last key
			c.keys[i] = ^(C(rng.IntN(2)) << digit)
		}
	}
	if rng.IntN(3) == 0 {
		return
	}
	c.places = make([]uint32, n)
	for i := range c.places {
		c.places[i] = rng.Uint32()
	}
}

// randomSort draws a sort of keys in up to so many tiles.
func randomSort[C simd.Code](rng *rand.Rand, large bool, tiles, passes int) *sortCase[C] {
	w := widthOf[C]()
	c := &sortCase[C]{job: kernel.SortJob{KeyBits: w}}
	c.job.From = rng.IntN(w + 1)
	c.job.To = c.job.From + rng.IntN(min(8*passes, w-c.job.From)+1)
	if rng.IntN(4) == 0 {
		c.job.From, c.job.To = 0, min(8*passes, w)
	}
	tile := c.job.UseTiles(large)
	sizes := []int{0, 1, 31, 32, 33, 255, 256, 257, tile - 1, tile, tile + 1, rng.IntN(tile), 2 * tile, tile + rng.IntN(tile)}
	n := sizes[rng.IntN(len(sizes))]
	if tiles > 2 && rng.IntN(2) == 0 {
		n = 2*tile + rng.IntN((tiles-2)*tile)
	}
	c.fill(n, rng)
	return c
}

// sortBoth draws a sort of keys of each width and runs it.
func sortBoth(p *primitive, rng *rand.Rand, large bool, tiles, passes int) error {
	return errors.Join(randomSort[uint32](rng, large, tiles, passes).check(p), randomSort[uint64](rng, large, tiles, passes).check(p))
}

// ordinary is the interpreter without a model of memory.
var ordinary = map[string][]ptx.Option{"ordinary": nil}

// hard are the modes for kernels whose blocks wait for each other.
var hard = map[string][]ptx.Option{
	"weak":           {ptx.Weak(true), ptx.Strict(true)},
	"PCT 3":          {ptx.Weak(true), ptx.Strict(true), ptx.PCT(3)},
	"holders freeze": {ptx.Weak(true), ptx.Strict(true), ptx.FreezeHolders(true)},
}

func TestSort(t *testing.T) {
	onPrimitive(t, kernel.Sorting, ordinary, 12, func(p *primitive, rng *rand.Rand) error {
		return sortBoth(p, rng, false, 3+rng.IntN(4)*rng.IntN(6), 8)
	})
}

// The fewest keys are sorted by all their bits in one launch.
func TestSortOnce(t *testing.T) {
	sizes := []int{1, 2, 3, 33, 255, 257, 701, kernel.Once - 1, kernel.Once}
	onPrimitive(t, kernel.Sorting, map[string][]ptx.Option{"ordinary": nil, "weak": hard["weak"]}, 12, func(p *primitive, rng *rand.Rand) error {
		c, e := &sortCase[uint32]{job: kernel.SortJob{KeyBits: 32, To: 32}}, &sortCase[uint64]{job: kernel.SortJob{KeyBits: 64, To: 64}}
		c.fill(sizes[rng.IntN(len(sizes))], rng)
		e.fill(sizes[rng.IntN(len(sizes))], rng)
		return errors.Join(c.check(p), e.check(p))
	})
}

func TestSortLargeTiles(t *testing.T) {
	if seed.RaceDetector {
		t.Skip("nothing here runs on several goroutines")
	}
	onPrimitive(t, kernel.Sorting, ordinary, 8, func(p *primitive, rng *rand.Rand) error { return sortBoth(p, rng, true, 4, 3) })
}

// Blocks of a pass wait for each other: so it is run in the modes that show what
// memory may do, with several tiles.
func TestSortHard(t *testing.T) {
	if seed.RaceDetector {
		t.Skip("nothing here runs on several goroutines")
	}
	onPrimitive(t, kernel.Sorting, hard, 3, func(p *primitive, rng *rand.Rand) error {
		_, long := seed.Asked()
		return sortBoth(p, rng, long && rng.IntN(4) == 0, 4, 2)
	})
}

// On a GPU, hundreds of tiles run at once.
func TestSortMany(t *testing.T) {
	d, err := cuda.Open(0)
	if err != nil {
		t.Skip("no GPU: ", err)
	}
	defer d.Close()
	rng := seed.Rand(t)
	p := newPrimitive(t, d, kernel.Sorting)
	for range seed.Count(4) {
		c, e := randomSort[uint32](rng, rng.IntN(2) == 0, 1, 4), randomSort[uint64](rng, rng.IntN(2) == 0, 1, 8)
		c.fill(rng.IntN(4<<20), rng)
		e.fill(rng.IntN(4<<20), rng)
		must(t, errors.Join(c.check(p), e.check(p), p.free()))
	}
	p.close(t)
}

func TestSortRefuses(t *testing.T) {
	p := newPrimitive(t, ptx.New(), kernel.Sorting)
	for _, job := range []kernel.SortJob{
		{KeyBits: 16, N: 1},
		{KeyBits: 32, To: 33, N: 1},
		{KeyBits: 64, From: 5, To: 4, N: 1},
		{KeyBits: 64, From: -1, N: 1},
		{KeyBits: 64, N: -1},
		{KeyBits: 32, To: 8, N: 1, Temp: 4},
	} {
		if err := p.set.Sort(p.s, &p.params, &job); !errors.Is(err, kernel.ErrBadJob) {
			t.Errorf("%+v: %v", job, err)
		}
	}
	p.close(t)
}

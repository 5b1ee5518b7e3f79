package exec

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/flow"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/seed"
)

// sides says where a caller's slices are: page-locked or not, and whether the
// values take the place of the keys.
type sides struct{ keysLocked, valsLocked, same bool }

var allSides = []sides{{}, {keysLocked: true}, {valsLocked: true}, {keysLocked: true, valsLocked: true}, {same: true}, {keysLocked: true, same: true}}

// bytesFor returns memory for a caller, known to be page-locked if that is asked.
func bytesFor(t *testing.T, d device.Device, n int, locked bool) []byte {
	t.Helper()
	if !locked {
		return aligned(n)
	}
	b, err := d.HostAlloc(n)
	if err != nil {
		t.Fatal(err)
	}
	device.Share(b)
	t.Cleanup(func() { device.Unshare(b) })
	return b
}

// The caller's memory may be page-locked, for either side or both, and values
// may take the place of their keys.
func TestCallersMemory(t *testing.T) {
	rng := seed.Rand(t)
	large := []int{smallest - 1, smallest, 3*smallest + 5}
	t.Run("uint64 pairs", func(t *testing.T) {
		callersMemory[uint64, uint64](t, rng, shape{implicit.Pairs, 8, 0, 5000}, func() device.Device { return newNative() }, large...)
	})
	t.Run("int64 pairs", func(t *testing.T) {
		callersMemory[int64, uint64](t, rng, shape{implicit.Pairs, 8, 0, 5000}, func() device.Device { return newNative() }, large...)
	})
	t.Run("uint32 column", func(t *testing.T) {
		callersMemory[uint32, uint32](t, rng, shape{implicit.Apart, 4, 0, 5000}, func() device.Device { return newNative() }, large...)
	})
	if hasty() {
		return
	}
	t.Run("uint64 pairs, interpreter", func(t *testing.T) {
		callersMemory[uint64, uint64](t, rng, shape{implicit.Pairs, 8, 0, 300}, func() device.Device {
			return ptx.New(ptx.RaceCheck(false), ptx.Seed(rng.Uint64()))
		}, smallest+33)
	})
}

func callersMemory[K order.Key, C order.Code](t *testing.T, rng *rand.Rand, s shape, open func() device.Device, sizes ...int) {
	r := newRig[K, C](t, rng, s, 2)
	depth := r.tree.Depth()
	plans := []Plan{
		{Split{0, 0, depth + 1}, MaxBucket / 4, flow.DoubleBuffered},
		{Split{1, 0.5, depth + 1}, smallest, flow.Pipelined},
		{Split{0, 0.5, depth}, smallest / 2, flow.DoubleBuffered},
		{Split{1, 0, depth - 1}, smallest, flow.Sequential},
	}
	for _, at := range allSides {
		d := open()
		g := r.openOn(t, d, whole(r.image))
		for _, n := range sizes {
			for _, p := range plans {
				if rng.IntN(len(plans)) == 0 && pick(rng, 2) {
					r.askIn(t, g, d, p, at, n, rng)
				}
			}
		}
	}
}

// askIn asks with slices in such memory.
func (r *rig[K, C]) askIn(t *testing.T, g *GPU[C], d device.Device, p Plan, at sides, n int, rng *rand.Rand) {
	t.Helper()
	what := fmt.Sprintf("%v: %+v, %+v, batch of %d", r.shape, p, at, n)
	if err := g.Use(p); err != nil {
		t.Fatal(err)
	}
	asked := r.questions(rng, n)
	raw := bytesFor(t, d, n*r.valSize, at.keysLocked)
	keys := keysIn[K](raw)
	if !at.same {
		raw = bytesFor(t, d, n*r.valSize, at.valsLocked)
	}
	want, wantFound := make([]byte, len(raw)), make([]bool, n)
	wantHits := r.values(r.cpu, asked, want, wantFound)
	for _, found := range [][]bool{make([]bool, n), nil} {
		copy(keys, asked)
		hits := r.values(g, keys, raw, found)
		if hits != wantHits || !bytes.Equal(raw, want) || found != nil && !slices.Equal(found, wantFound) {
			t.Fatalf("%s: other values; %d hits, the CPU has %d", what, hits, wantHits)
		}
		if !at.same && !slices.Equal(keys, asked) {
			t.Fatalf("%s: the caller's keys have changed", what)
		}
	}
	copy(keys, asked)
	r.sameRanks(t, g, keys, what)
	if err := g.Down(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// sameRanks asks what gives ranks.
func (r *rig[K, C]) sameRanks(t *testing.T, g *GPU[C], keys []K, what string) {
	t.Helper()
	n := len(keys)
	got, want, gotAt, wantAt := make([]int, n), make([]int, n), newPlaces(n), newPlaces(n)
	for _, ask := range []func(asker[C], []int){
		func(e asker[C], ranks []int) { e.Rank(order.KeysOf(keys), ranks) },
		func(e asker[C], ranks []int) { e.RankAfter(order.KeysOf(keys), ranks) },
	} {
		ask(g, got)
		ask(r.cpu, want)
		if !slices.Equal(got, want) {
			t.Fatalf("%s: other ranks", what)
		}
	}
	g.FindEach(order.KeysOf(keys), gotAt)
	r.cpu.FindEach(order.KeysOf(keys), wantAt)
	if !slices.Equal(gotAt.at, wantAt.at) || !slices.Equal(gotAt.times, wantAt.times) {
		t.Fatalf("%s: other places", what)
	}
}

// keysIn returns memory as keys.
func keysIn[K order.Key](b []byte) []K {
	var k K
	return unsafe.Slice((*K)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(k)))
}

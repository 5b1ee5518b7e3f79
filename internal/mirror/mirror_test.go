package mirror_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/faulty"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/mirror"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/seed"
)

// rig is a tree with a mirror, and what it should have.
type rig[C order.Code] struct {
	t    testing.TB
	tree *bplus.Tree[C]
	m    *mirror.Mirror[C]
	has  map[C]C
	rng  *rand.Rand
	span uint64 // keys are drawn from so many
	by   C      // and are multiples of this
}

func newRig[C order.Code](t testing.TB, dev device.Device, rng *rand.Rand, entries int, way mirror.Way) *rig[C] {
	t.Helper()
	r := &rig[C]{t: t, has: map[C]C{}, rng: rng, span: uint64(2*entries + 10), by: 1}
	if rng.IntN(2) == 0 {
		r.by = ^C(0) / C(r.span)
	}
	for len(r.has) < entries {
		r.has[r.key()] = C(rng.Uint64())
	}
	keys := make([]C, 0, entries)
	for k := range r.has {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	var err error
	r.tree, err = bplus.Load(len(keys), func(lo int, ks, vs []C) {
		for i := range ks {
			ks[i], vs[i] = keys[lo+i], r.has[keys[lo+i]]
		}
	}, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if r.m, err = mirror.New(r.tree, dev, mirror.Options{Workers: 2, Way: way, Bucket: 100}); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig[C]) close() {
	r.t.Helper()
	if err := r.m.Close(); err != nil {
		r.t.Fatal(err)
	}
	if err := r.tree.Check(); err != nil {
		r.t.Fatal(err)
	}
	r.tree.Close()
}

func (r *rig[C]) key() C { return C(r.rng.Uint64N(r.span)) * r.by }

// change changes some keys: near each other, or all over.
func (r *rig[C]) change(n int) {
	r.t.Helper()
	at, kind := r.rng.Uint64N(r.span), r.rng.IntN(4)
	for i := range n {
		k, v := r.key(), C(r.rng.Uint64())
		if kind < 2 { // neighbours, so that leaves are split and merged
			k = C((at+uint64(i))%r.span) * r.by
		}
		if kind%2 == 0 {
			if _, _, err := r.tree.Set(k, v); err != nil {
				r.t.Fatal(err)
			}
			r.has[k] = v
			continue
		}
		if _, _, err := r.tree.Delete(k); err != nil {
			r.t.Fatal(err)
		}
		delete(r.has, k)
	}
}

// find looks keys up and compares. It reports whether the GPU took part.
func (r *rig[C]) find(n int) bool {
	r.t.Helper()
	keys := make([]C, n)
	for i := range keys {
		keys[i] = r.key()
		if r.rng.IntN(20) == 0 {
			keys[i] = C(r.rng.Uint64())
		}
	}
	keys[0], keys[n-1] = 0, ^C(0)
	vals, found := make([]C, n), make([]bool, n)
	hits, ok := find(r.m, keys, vals, found)
	if !ok {
		return false
	}
	for i, k := range keys {
		v, had := r.has[k]
		if vals[i] != v || found[i] != had {
			r.t.Fatalf("key %d is %d, %t, want %d, %t", k, vals[i], found[i], v, had)
		}
		if had {
			hits--
		}
	}
	if hits != 0 {
		r.t.Fatalf("%d hits too many", hits)
	}
	return true
}

func find[C order.Code](m *mirror.Mirror[C], keys, vals []C, found []bool) (hits int, ok bool) {
	return m.Find(mirror.Batch[C]{
		N:      len(keys),
		Fill:   func(lo int, ks []C) { copy(ks, keys[lo:]) },
		Answer: func(lo int, vs []C, had []bool) { copy(vals[lo:], vs); copy(found[lo:], had) },
	})
}

// seeds returns the number of seeds to try: PANDO_SEEDS, or a few.
func seeds(few int) uint64 {
	if n, ok := seed.Asked(); ok {
		return uint64(n)
	}
	if !seed.Long() {
		return uint64(max(1, few/3))
	}
	return uint64(few)
}

func follows[C order.Code](t *testing.T, way mirror.Way) {
	first := seed.Of(t)
	for i := range seeds(9) {
		rng := rand.New(rand.NewPCG(first+i, 0))
		dev := ptx.New(ptx.Seed(first+i), ptx.Memory(256<<20))
		r := newRig[C](t, dev, rng, []int{0, 1, 300, 3000, 40000}[rng.IntN(5)], way)
		asked := 0
		for range 6 {
			r.change([]int{1, 20, 600, 3000}[rng.IntN(4)])
			if r.find(1 + rng.IntN(200)) {
				asked++
			}
		}
		if err := r.m.Down(); err != nil {
			t.Fatalf("seed %d: %v", first+i, err)
		}
		if way != mirror.Asynchronous && way != mirror.Measured && asked != 6 {
			t.Fatalf("seed %d: the GPU was asked %d times", first+i, asked)
		}
		if syn, asyn := r.m.Updates(); way == mirror.Never && (syn != 0 || asyn != 1) || way == mirror.Synchronous && asyn != 1 {
			t.Fatalf("seed %d: %d synchronous and %d asynchronous updates", first+i, syn, asyn)
		}
		r.close()
	}
}

// Answers are right whatever the mirror's age, and however it follows the tree.
func TestMirrorFollows(t *testing.T) {
	for name, way := range map[string]mirror.Way{"measured": mirror.Measured, "synchronous": mirror.Synchronous, "asynchronous": mirror.Asynchronous, "never": mirror.Never} {
		t.Run(name+"/64", func(t *testing.T) { follows[uint64](t, way) })
		t.Run(name+"/32", func(t *testing.T) { follows[uint32](t, way) })
	}
}

// After an update in either way, nothing has to be repeated.
func TestUpdatesAreComplete(t *testing.T) {
	first := seed.Of(t)
	for _, way := range []mirror.Way{mirror.Synchronous, mirror.Asynchronous} {
		for i := range seeds(4) {
			rng := rand.New(rand.NewPCG(first+i, 1))
			r := newRig[uint64](t, ptx.New(ptx.Seed(first+i), ptx.Memory(256<<20)), rng, 20000, mirror.Never)
			r.change(3000)
			if err := r.m.Update(way); err != nil {
				t.Fatal(err)
			}
			r.find(300)
			if s := r.m.Stale(); s != 0 {
				t.Fatalf("seed %d: %g of the answers after an update are stale", first+i, s)
			}
			r.close()
		}
	}
}

// While others change the tree, a key that is always there is always found, and
// has a value that somebody has set.
func TestMirrorBesideWriters(t *testing.T) {
	first := seed.Of(t)
	for _, way := range []mirror.Way{mirror.Measured, mirror.Synchronous, mirror.Asynchronous, mirror.Never} {
		t.Run(fmt.Sprint(way), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(first, 2))
			r := newRig[uint64](t, ptx.New(ptx.Seed(first), ptx.Memory(256<<20)), rng, 4000, way)
			var stop atomic.Bool
			var writers sync.WaitGroup
			for w := range uint64(2) {
				writers.Go(func() { write(r.tree, rand.New(rand.NewPCG(first, 3+w)), r.span, r.by, &stop) })
			}
			keys := make([]uint64, 0, 400)
			for k := range r.has {
				if k/r.by%3 == 0 && len(keys) < cap(keys) { // writers only set these, to what they have
					keys = append(keys, k)
				}
			}
			vals, found := make([]uint64, len(keys)), make([]bool, len(keys))
			for range 12 {
				if _, ok := find(r.m, keys, vals, found); !ok {
					continue
				}
				for i, k := range keys {
					if !found[i] || vals[i] != r.has[k] && vals[i] != ^k {
						t.Errorf("key %d is %d, %t, want %d or %d", k, vals[i], found[i], r.has[k], ^k)
					}
				}
			}
			stop.Store(true)
			writers.Wait()
			r.close()
		})
	}
}

// write sets and deletes keys, but of every third it sets only the value.
func write(tree *bplus.Tree[uint64], rng *rand.Rand, span, by uint64, stop *atomic.Bool) {
	for !stop.Load() {
		at, del := rng.Uint64N(span), rng.IntN(2) == 0
		for i := range uint64(300) {
			n := (at + i) % span
			k := n * by
			switch {
			case n%3 == 0:
				tree.Update(k, func(_ uint64, had bool, _ uint64) (uint64, bool) { return ^k, had })
			case del:
				tree.Delete(k)
			default:
				tree.Set(k, ^k)
			}
		}
	}
}

// Whatever operation of the device fails, answers are right.
func TestMirrorSurvivesItsGPU(t *testing.T) {
	first := seed.Of(t)
	work := func(dev device.Device, way mirror.Way) {
		rng := rand.New(rand.NewPCG(first, 5))
		r := &rig[uint64]{t: t, has: map[uint64]uint64{}, rng: rng, span: 3000, by: 7}
		r.tree, _ = bplus.New[uint64](0)
		defer r.tree.Close()
		r.change(2000)
		var err error
		if r.m, err = mirror.New(r.tree, dev, mirror.Options{Workers: 2, Way: way}); err != nil {
			return
		}
		for range 3 {
			r.find(200)
			r.change(500)
		}
		r.m.Close()
	}
	for _, way := range []mirror.Way{mirror.Synchronous, mirror.Asynchronous} {
		count := faulty.New(ptx.New(ptx.Seed(first)), faulty.Plan{})
		work(count, way)
		all := count.Count(faulty.Any)
		step := 1
		if !seed.Long() {
			step = 5
		}
		for n := 1 + int(first%uint64(step)); n <= all; n += step {
			dev := faulty.New(ptx.New(ptx.Seed(first)), faulty.Plan{At: n, Lose: n%2 == 0})
			work(dev, way)
			if live := dev.Live(); live != 0 {
				t.Errorf("operation %d failed: %d things of the device are left", n, live)
			}
		}
	}
}

// A GPU that reports success, but whose kernels do not run or whose answers are
// nonsense, from some operation on: the CPU answers instead.
func TestMirrorOfALyingGPU(t *testing.T) {
	first := seed.Of(t)
	work := func(plan faulty.Plan, way mirror.Way) (launches, copies int) {
		rng := rand.New(rand.NewPCG(first, 6))
		dev := faulty.New(ptx.New(ptx.Seed(first), ptx.Memory(64<<20)), plan)
		r := newRig[uint64](t, dev, rng, 3000, way)
		for i := range 5 {
			r.find(150)
			if i%2 == 1 { // else what the GPU has found before would do for other keys
				r.change(300)
			}
		}
		r.close()
		return dev.Count(faulty.Launch), dev.Count(faulty.CopyOut)
	}
	ways, step := []mirror.Way{mirror.Synchronous, mirror.Asynchronous, mirror.Never}, 1
	if !seed.Long() {
		ways, step = ways[:1], 3
	}
	for _, way := range ways {
		launches, copies := work(faulty.Plan{}, way)
		for op, all := range map[faulty.Op]int{faulty.Launch: launches, faulty.CopyOut: copies} {
			for at := 1 + int(first%uint64(step)); at <= all; at += step {
				work(faulty.Plan{Op: op, At: at, Lie: true}, way)
			}
		}
	}
}

package twin

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/cuart"
	"github.com/pando-index/pando/internal/cuart/cuarttest"
	"github.com/pando-index/pando/internal/device/faulty"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/packing"
	"github.com/pando-index/pando/internal/radix"
	"github.com/pando-index/pando/internal/seed"
)

// following is a tree with a twin, and what it should have.
type following struct {
	t     *testing.T
	cpu   *radix.Tree
	f     *Strings
	model map[string]uint64
}

// packed returns strings one behind the other, from some byte on.
func packed(keys []string) packing.Strings {
	b := packing.Strings{Data: []byte("in front"), Offsets: []int32{8}}
	for _, k := range keys {
		b.Data = append(b.Data, k...)
		b.Offsets = append(b.Offsets, int32(len(b.Data)))
	}
	return b
}

// find looks strings up, by the twin or else by the tree, and compares.
func (x *following) find(keys packing.Strings) {
	x.t.Helper()
	n := keys.Len()
	vals, found := make([]uint64, n), make([]bool, n)
	var mu sync.Mutex
	width := x.f.tree.ValBytes()
	cpu := func(lo, hi int) {
		mu.Lock()
		defer mu.Unlock()
		for i := lo; i < hi; i++ {
			vals[i], found[i] = x.f.Get(keys.At(i))
		}
	}
	take := func(lo int, column, bits []byte) {
		mu.Lock()
		defer mu.Unlock()
		if lo%8 != 0 {
			x.t.Errorf("answers from %d on", lo)
		}
		for i := range len(column) / width {
			vals[lo+i], found[lo+i] = arena.As[uint64](column)[i], bits[i/8]>>(i%8)&1 == 1
		}
	}
	q := cuart.Queries{Keys: keys, Take: take, CPU: cpu}
	if n%2 == 0 {
		q.Into = arena.Bytes(make([]uint64, n))
	}
	if !x.f.Find(q) {
		cpu(0, n)
	}
	for i := range n {
		k := keys.At(i)
		if want, ok := x.model[k]; vals[i] != want || found[i] != ok {
			x.t.Fatalf("string %d of %d, %.40q, has %d, %t; want %d, %t", i, n, k, vals[i], found[i], want, ok)
		}
	}
}

// someKey returns any key, now and then one that is too long for the GPU.
func someKey(rng *rand.Rand) string {
	if rng.IntN(40) == 0 {
		most := []int{packing.Longest, cuart.MaxKey}[rng.IntN(2)] // the first are there, the others in host memory alone
		return strings.Repeat("long", most/4+rng.IntN(2)) + fmt.Sprint(rng.IntN(3))
	}
	return cuarttest.RandomKey(rng, rng.IntN(7))
}

// single changes a key.
func (x *following) single(rng *rand.Rand) {
	k, v := someKey(rng), rng.Uint64()
	if rng.IntN(3) == 0 {
		x.f.Delete(k)
		delete(x.model, k)
		return
	}
	x.f.Set(k, v)
	x.model[k] = v
}

// batch does operations of some kinds, and compares what they have found.
func (x *following) batch(rng *rand.Rand, n int) {
	x.t.Helper()
	keys, vals, kinds := make([]string, n), make([]uint64, n), make([]op.Kind, n)
	for i := range keys {
		keys[i], vals[i], kinds[i] = someKey(rng), rng.Uint64(), op.Kind(rng.IntN(3))
	}
	deleted, before := 0, len(x.model)
	b := &StringBatch{Keys: keys, Vals: arena.Bytes(vals), Kinds: kinds}
	switch kind := op.Kind(rng.IntN(4)); kind {
	case op.Set, op.Delete: // all alike
		for i := range kinds {
			kinds[i] = kind
		}
		b.Kind, b.Kinds = kind, nil
		if kind == op.Delete {
			b.Vals, b.Deleted = nil, &deleted
		}
	default:
		b.Found = make([]bool, n)
		if b.Old = b.Vals; kind == 0 {
			b.Old = arena.Bytes(make([]uint64, n))
		}
	}
	set := slices.Clone(vals)
	must(x.t, x.f.Apply(b))
	for i, k := range keys {
		want, had := x.model[k]
		if b.Found != nil && (b.Found[i] != had || arena.As[uint64](b.Old)[i] != want) {
			x.t.Fatalf("operation %d of %d, on %.40q, has found %d, %t; want %d, %t", i, n, k, arena.As[uint64](b.Old)[i], b.Found[i], want, had)
		}
		switch kinds[i] {
		case op.Set:
			x.model[k] = set[i]
		case op.Delete:
			delete(x.model, k)
		}
	}
	if b.Deleted != nil && deleted != before-len(x.model) {
		x.t.Fatalf("%d were deleted, want %d", deleted, before-len(x.model))
	}
	for i := range keys { // nothing of the caller's is kept
		keys[i], vals[i], kinds[i] = "", 0, 77
	}
}

// step does something to the tree: single changes, a batch, searches.
func (x *following) step(rng *rand.Rand) {
	x.t.Helper()
	switch rng.IntN(6) {
	case 0:
		for range 1 + rng.IntN(5) {
			x.single(rng)
		}
	case 1, 2, 3:
		if x.f.opts.Changes > 0 && x.f.opts.Log == stringsLog && x.f.Down() == nil {
			defer x.holdUp()()
		}
		for range 1 + rng.IntN(3) { // so that there is something in the log
			x.batch(rng, 1+rng.IntN(80))
		}
		x.gets(rng)
	case 4:
		x.gets(rng)
	default:
		asked := make([]string, 1+rng.IntN(80))
		for i := range asked {
			asked[i] = someKey(rng)
		}
		if rng.IntN(2) == 0 {
			x.find(packed(asked))
		} else {
			x.find(packing.Strings{Keys: asked})
		}
	}
}

// blocker is a run without changes whose fold takes until it is told to end, or some
// time: where the GPU has failed a batch waits for it.
type blocker struct{ end chan struct{} }

func (b *blocker) Get(string) (uint64, bool, bool) { return 0, false, false }
func (b *blocker) Free()                           {}
func (b *blocker) Size() int                       { return 0 }
func (b *blocker) Fold() {
	select {
	case <-b.end:
	case <-time.After(100 * time.Millisecond):
	}
}

// holdUp keeps what is accepted in the log until the function that it returns is called.
func (x *following) holdUp() (goOn func()) {
	b := &blocker{make(chan struct{})}
	x.f.changing.Lock()
	x.f.Log.Begin(0)
	if err := x.f.CatchUp(); err != nil {
		x.f.fail(err)
	}
	if !x.f.Pending() {
		x.f.long = x.cpu.Len() - x.f.tree.Len()
	}
	x.f.Log.Accept(b, x.f.Len())
	x.f.changing.Unlock()
	return func() { close(b.end) }
}

// gets looks single keys up.
func (x *following) gets(rng *rand.Rand) {
	x.t.Helper()
	for range 10 {
		k := someKey(rng)
		want, had := x.model[k]
		if v, ok := x.f.Get(k); v != want || ok != had {
			x.t.Fatalf("%.40q has %d, %t; want %d, %t", k, v, ok, want, had)
		}
	}
	if n := x.f.Len(); n != len(x.model) {
		x.t.Fatalf("%d entries, want %d", n, len(x.model))
	}
}

// history lets a twin live, on a device that may fail unless it is sound.
func history(t *testing.T, dev *faulty.Device, rng *rand.Rand, sound bool) (down error) {
	t.Helper()
	x := &following{t: t, cpu: radix.New(0), model: map[string]uint64{}}
	defer x.cpu.Close()
	for range rng.IntN(50) {
		k, v := someKey(rng), rng.Uint64()
		x.cpu.Set(k, v)
		x.model[k] = v
	}
	var err error
	opts := StringsOptions{Workers: 2, ValBits: 64, Room: 64 << 20, Notes: 1 + rng.IntN(20), Changes: rng.IntN(30)}
	if rng.IntN(5) == 0 {
		opts.Log = 3 * leastLocked // of so many runs
	}
	x.f, err = NewStrings(x.cpu, dev, opts)
	if err != nil {
		return err
	}
	x.f.piece = 1 + rng.IntN(3)
	for range 8 {
		x.step(rng)
	}
	x.f.Wait()
	for k, want := range x.model {
		if v, ok := x.cpu.Get(k); v != want || !ok {
			t.Fatalf("%.40q has %d, %t in host memory; want %d", k, v, ok, want)
		}
	}
	if n := x.cpu.Len(); n != len(x.model) {
		t.Fatalf("%d entries in host memory, want %d", n, len(x.model))
	}
	if err := x.f.Check(); err != nil && sound {
		t.Error(err)
	}
	must(t, x.cpu.Check())
	down = x.f.Down()
	x.f.Close()
	return down
}

// A twin has what its tree has, at any time.
func TestStrings(t *testing.T) {
	first := seed.Of(t)
	for i := range uint64(seed.Count(20)) {
		inner := ptx.New(ptx.Seed(first + i))
		if down := history(t, faulty.New(inner, faulty.Plan{}), rand.New(rand.NewPCG(first+i, 0)), true); down != nil {
			t.Fatalf("PANDO_SEED=%d: %v", first+i, down)
		}
	}
}

// A device that fails at any operation, or is lost there, costs no answer.
// PANDO_LONG=1000 tries all of them.
func TestStringsOfFailingDevice(t *testing.T) {
	first := seed.Of(t)
	count := faulty.New(ptx.New(ptx.Seed(first)), faulty.Plan{})
	must(t, history(t, count, rand.New(rand.NewPCG(first, 0)), true))
	all := count.Count(faulty.Any)
	step := seed.Stride(all, 3, 25)
	rng := rand.New(rand.NewPCG(first, 1))
	for at := 1 + rng.IntN(step); at <= all; at += step {
		dev := faulty.New(ptx.New(ptx.Seed(first)), faulty.Plan{At: at, Lose: rng.IntN(2) == 0})
		history(t, dev, rand.New(rand.NewPCG(first, 0)), false)
		if t.Failed() {
			t.Fatalf("operation %d of %d", at, all)
		}
		if live := dev.Live(); live != 0 {
			t.Fatalf("operation %d of %d fails: %d things are left on the device", at, all, live)
		}
	}
}

// Searches, single changes and batches of several goroutines: each finds at least what
// was there when it began.
func TestStringsConcurrently(t *testing.T) {
	rng := seed.Rand(t)
	cpu := radix.New(0)
	defer cpu.Close()
	const n = 40
	key := func(i int) string { return fmt.Sprintf("key%03d", i) }
	for i := range n {
		cpu.Set(key(i), 0)
	}
	f, err := NewStrings(cpu, ptx.New(ptx.Seed(rng.Uint64())), StringsOptions{Workers: 2, ValBits: 64, Room: 64 << 20, Notes: 7, Changes: 10})
	must(t, err)
	asked := make([]string, n)
	for i := range asked {
		asked[i] = key(i)
	}
	var wg sync.WaitGroup
	rounds := seed.Count(12)
	for w := range 2 { // each has half of the keys, whose values only grow
		wg.Go(func() {
			for v := range uint64(rounds) {
				step := 2 * (1 + int(v)%3)
				if v%2 == 0 {
					var keys []string
					for i := w; i < n; i += step {
						keys = append(keys, key(i))
					}
					vals := slices.Repeat([]uint64{v + 1}, len(keys))
					if err := f.Apply(&StringBatch{Keys: keys, Vals: arena.Bytes(vals), Kind: op.Set}); err != nil {
						t.Error(err)
					}
					continue
				}
				for i := w; i < n; i += step {
					f.Set(key(i), v+1)
				}
			}
		})
	}
	for range 2 {
		wg.Go(func() {
			var mu sync.Mutex
			last := make([]uint64, n)
			for range rounds {
				least := make([]uint64, n)
				for i := range least { // what a search that begins now must find
					least[i], _ = f.Get(key(i))
				}
				s, err := cpu.Snapshot() // beside folds
				must(t, err)
				s.Close()
				f.Find(cuart.Queries{Keys: packing.Strings{Keys: asked}, CPU: func(int, int) {}, Take: func(lo int, vals, found []byte) {
					mu.Lock()
					defer mu.Unlock()
					for i, v := range arena.As[uint64](vals) {
						if v < least[lo+i] || v < last[lo+i] {
							t.Errorf("%s has %d, and had %d, %d before", key(lo+i), v, least[lo+i], last[lo+i])
						}
						last[lo+i] = v
					}
				}})
			}
		})
	}
	wg.Wait()
	must(t, f.Check())
	must(t, f.Close())
}

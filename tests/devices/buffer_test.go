package devices_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/index/indextest"
	"github.com/pando-index/pando/internal/seed"
)

func TestBatchesInBuffers(t *testing.T) {
	start := seed.Of(t)
	indextest.Interpreted(t, start)
	rng := rand.New(rand.NewPCG(start, 0))
	const n = 2000
	ask := seed.Size(17_000, 40_000) // one bucket that is worth a launch of its own, and more, or several
	keys, vals := make([]uint64, n), make([]uint64, n)
	for i := range keys {
		keys[i], vals[i] = rng.Uint64N(4*n), rng.Uint64()
	}
	f, err := pando.Freeze(keys, vals, pando.On(pando.GPU(0)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in, out := buffer[uint64](t, ask), buffer[uint64](t, ask)
	plain, found, wantFound := make([]uint64, ask), make([]bool, ask), make([]bool, ask)
	for i := range in {
		in[i] = rng.Uint64N(4 * n)
	}
	asked := slices.Clone(in)
	want := f.GetBatch(asked, plain, wantFound)
	for i, c := range []struct {
		name      string
		keys, out []uint64
	}{{"both", in, out}, {"keys", in, make([]uint64, ask)}, {"values", asked, out}, {"parts", in[5:], out[7:]}, {"one for both", in, in}} {
		m := min(len(c.keys), len(c.out))
		from := len(asked) - len(c.keys)
		for j, found := range [][]bool{found, nil} {
			if !seed.Long() && (i+j+int(start%2))%2 > 0 {
				continue
			}
			copy(in, asked)
			hits := f.GetBatch(c.keys[:m], c.out, found)
			if m == ask && hits != want || !slices.Equal(c.out[:m], plain[from:from+m]) || found != nil && !slices.Equal(found[:m], wantFound[from:from+m]) {
				t.Errorf("%s: other answers than from ordinary memory", c.name)
			}
		}
		copy(in, asked)
	}
	if s := f.Stats(); s.Device != pando.GPU(0) {
		t.Errorf("the GPU was given up: %s", s.Reason)
	}
}

// Trees take batches from buffers, whole or in part, and answer into them, as they
// do from ordinary memory.
func TestTreeBatchesInBuffers(t *testing.T) {
	start := seed.Of(t)
	indextest.Interpreted(t, start)
	indextest.PreferCPU(t, false)
	rng := rand.New(rand.NewPCG(start, 1))
	const n = 17_000 // values travel apart
	keys, vals, ops := buffer[uint64](t, n), buffer[uint64](t, n), buffer[pando.Op](t, n)
	ways := [][]pando.Option{{pando.DeviceOnly()}, nil}
	if !seed.Long() {
		ways = ways[start%2:][:1]
	}
	for _, opts := range ways {
		tree, err := pando.NewTree[uint64, uint64](append(opts, pando.On(pando.GPU(0)))...)
		succeed(t, err)
		want := map[uint64]uint64{}
		for _, from := range []int{3, n - 100} {
			for i := range keys {
				keys[i], vals[i] = rng.Uint64N(4*n), rng.Uint64()
			}
			for i, k := range keys[from:] {
				want[k] = vals[from+i]
			}
			succeed(t, tree.SetBatch(keys[from:], vals[from:]))
		}
		found, wantVals, wantFound := make([]bool, n), make([]uint64, n), make([]bool, n)
		for i := range keys {
			keys[i], vals[i], ops[i] = rng.Uint64N(4*n), rng.Uint64(), pando.Op(rng.IntN(3))
			wantVals[i], wantFound[i] = want[keys[i]]
			switch ops[i] {
			case pando.OpSet:
				want[keys[i]] = vals[i]
			case pando.OpDelete:
				delete(want, keys[i])
			}
		}
		succeed(t, tree.Apply(ops, keys, vals, found))
		if !slices.Equal(vals, wantVals) || !slices.Equal(found, wantFound) {
			t.Error("Apply: other answers than there should be")
		}
		if tree.Len() != len(want) || tree.DeleteBatch(keys, nil) != deleteAll(want, keys) || tree.Len() != len(want) {
			t.Errorf("%d entries, want %d", tree.Len(), len(want))
		}
		for k, v := range tree.All() {
			if want[k] != v {
				t.Fatalf("key %d has %d, want %d", k, v, want[k])
			}
		}
		if s := tree.Stats(); s.Device != pando.GPU(0) {
			t.Errorf("the GPU was given up: %s", s.Reason)
		}
		succeed(t, tree.Close())
	}
}

func succeed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// deleteAll deletes keys from a map, and returns how many were there.
func deleteAll(m map[uint64]uint64, keys []uint64) (n int) {
	n = len(m)
	for _, k := range keys {
		delete(m, k)
	}
	return n - len(m)
}

// buffer gives the memory of a buffer that the test closes.
func buffer[T any](t *testing.T, n int) []T {
	t.Helper()
	b, err := pando.NewBuffer[T](n)
	if err != nil {
		t.Fatal(err)
	}
	if !b.Locked() || !device.Shared(arena.Bytes(b.Slice())) {
		t.Error("the GPU does not reach the buffer")
	}
	t.Cleanup(func() {
		raw := arena.Bytes(b.Slice())
		if err := b.Close(); err != nil || b.Close() != nil || device.Shared(raw) {
			t.Errorf("Close: %v", err)
		}
	})
	return b.Slice()
}

func TestBufferWithoutGPU(t *testing.T) {
	indextest.UseGPU(t, func(int) (device.Device, error) { return nil, device.ErrNoDriver })
	b, err := pando.NewBuffer[float32](100)
	if err != nil || len(b.Slice()) != 100 || b.Locked() {
		t.Fatalf("%v, %d values, locked %v", err, len(b.Slice()), b.Locked())
	}
	if err := b.Close(); err != nil || b.Slice() != nil {
		t.Errorf("after Close: %v, %d values", err, len(b.Slice()))
	}
	for name, take := range map[string]func(){
		"pointers": func() { pando.NewBuffer[string](1) },
		"nothing":  func() { pando.NewBuffer[struct{}](1) },
		"negative": func() { pando.NewBuffer[int](-1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: taken", name)
				}
			}()
			take()
		}()
	}
}

// A buffer of more bytes than there are addresses is refused, with a GPU and
// without.
func TestBufferTooLarge(t *testing.T) {
	for _, interpreted := range []bool{false, true} {
		if interpreted {
			indextest.Interpreted(t, 1)
		}
		if b, err := pando.NewBuffer[uint64](math.MaxInt/4 + 2); !errors.Is(err, pando.ErrMemoryLimit) {
			t.Errorf("%d values, %v", len(b.Slice()), err)
		}
	}
}

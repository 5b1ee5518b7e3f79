package twin

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/faulty"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/seed"
)

// fewer makes batches of some hundred operations travel in many buckets.
var fewer = sizes{few: 32, direct: 16, together: 66, bucket: 64, piece: 32, bring: 128}

// alone is a tree on a GPU alone, and what it should have.
type alone struct {
	t   *testing.T
	s   *Solo[uint64]
	rng *rand.Rand
	has map[uint64]uint64
}

// batch does n operations. Without an error answers are right; with one nothing
// has been done, or the device is lost.
func (a *alone) batch(n int, kinds bool) error {
	keys, vals, kind := make([]uint64, n), make([]uint64, n), make([]uint8, n)
	want, there, next := make([]uint64, n), make([]bool, n), maps.Clone(a.has)
	for i := range keys {
		keys[i], vals[i], kind[i] = a.rng.Uint64N(300), a.rng.Uint64(), uint8(op.Set)
		if kinds {
			kind[i] = uint8(a.rng.IntN(3))
		}
		want[i], there[i] = next[keys[i]]
		switch op.Kind(kind[i]) {
		case op.Set:
			next[keys[i]] = vals[i]
		case op.Delete:
			delete(next, keys[i])
		}
	}
	b := &Batch[uint64]{N: n, Kinds: kinds, Old: kinds, Kind: op.Set, Fill: func(lo int, ks, vs []uint64, kd []uint8) {
		copy(ks, keys[lo:])
		copy(vs, vals[lo:])
		copy(kd, kind[lo:])
	}}
	if a.rng.IntN(2) == 0 { // as if they were page-locked
		b.Own = Columns[uint64]{keys, vals, kind}
		switch a.rng.IntN(4) { // or some of them
		case 0:
			b.Own.Keys = nil
		case 1:
			b.Own.Kinds = nil
		}
	}
	old, had := make([]uint64, n), make([]uint8, n)
	if kinds {
		b.Answer = func(lo int, o []uint64, h []uint8) {
			copy(old[lo:], o)
			copy(had[lo:], h)
		}
	}
	if err := a.s.Apply(b); err != nil {
		return err
	}
	a.has = next
	for i := range keys { // the caller's again, though the tree may still be written
		keys[i], vals[i], kind[i] = ^keys[i], ^vals[i], kind[i]^1
		if kinds && (old[i] != want[i] || had[i] != 0 != there[i]) {
			a.t.Errorf("operation %d of %d has found %d, %d, want %d, %t", i, n, old[i], had[i], want[i], there[i])
		}
	}
	return nil
}

// find looks all keys up, and some that are not there.
func (a *alone) find(n int) error {
	vals, found := make([]uint64, n), make([]bool, n)
	err := a.s.Find(n, func(lo int, keys []uint64) {
		for i := range keys {
			keys[i] = uint64(lo + i)
		}
	}, func(lo int, vs []uint64, bits []byte) {
		copy(vals[lo:], vs)
		for i := range vs {
			found[lo+i] = bits[i/8]>>(i%8)&1 == 1
		}
	})
	if err != nil {
		return err
	}
	for i := range vals {
		if want, ok := a.has[uint64(i)]; vals[i] != want || found[i] != ok {
			a.t.Errorf("key %d of %d has %d, %t, want %d, %t", i, n, vals[i], found[i], want, ok)
		}
	}
	if got := a.s.Len(); got != len(a.has) {
		a.t.Errorf("%d entries, want %d", got, len(a.has))
	}
	return nil
}

// work does batches of all sizes. Where the device is only short of memory, the
// same tree goes on.
func (a *alone) work() (errs int) {
	for i, n := range []int{1, 31, 130, 700, 65, 400, 127, 500} {
		for _, f := range []func() error{
			func() error { return a.batch(n, i%2 == 1) },
			func() error { return a.find(n + 1) },
		} {
			err := f()
			switch {
			case err == nil:
			case errors.Is(err, device.ErrOutOfMemory) || errors.Is(err, op.ErrLimit):
				errs++
			case a.s.Lost() != nil:
				return errs + 1
			default:
				a.t.Errorf("%v, and the device is not lost", err)
			}
		}
	}
	return errs
}

func newAlone(t *testing.T, first uint64, dev device.Device) (*alone, error) {
	s, err := NewSolo[uint64](dev, Options{Workers: 2})
	if err != nil {
		return nil, err
	}
	s.gpu.staging.sizes = fewer
	return &alone{t, s, rand.New(rand.NewPCG(first, 1)), map[uint64]uint64{}}, nil
}

// Batches travel in buckets, values behind keys. Whichever operation of the device
// fails, there is an error: then nothing has happened, if it was short of memory,
// or the tree is lost, and nothing of the device is left. PANDO_LONG=1000 lets
// each of them fail in turn.
func TestBuckets(t *testing.T) {
	first := seed.Of(t)
	count := faulty.New(ptx.New(ptx.Seed(first), ptx.RaceCheck(seed.Long())), faulty.Plan{})
	a, err := newAlone(t, first, count)
	must(t, err)
	if errs := a.work(); errs != 0 {
		t.Fatalf("%d errors of a device that fails nothing", errs)
	}
	must(t, a.s.Close())
	total := count.Count(faulty.Any)
	step := seed.Stride(total, 12, 40)
	for at := 1 + int(first%uint64(step)); at <= total; at += step {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			// More than there are other ways: a buffer has two sizes, or the one it had, and
			// two again where the other buffer is freed for it.
			dev := faulty.New(ptx.New(ptx.Seed(first), ptx.RaceCheck(seed.Long())), faulty.Plan{At: at, Times: 5})
			a, err := newAlone(t, first, dev)
			if err == nil {
				if errs := a.work(); errs == 0 && dev.Count(faulty.Any) >= at {
					t.Errorf("operation %d fails, and nobody says so", at)
				}
				a.s.Close()
			}
			if live := dev.Live(); live != 0 {
				t.Errorf("%d things of the device are left", live)
			}
		})
	}
}

// Batches that nobody reads between come to the GPU while those before are being
// written, and leave them alone; where there is no memory for both, they wait.
func TestBatchesInARow(t *testing.T) {
	first := seed.Of(t)
	row := func(plan faulty.Plan) (came bool) {
		dev := faulty.New(ptx.New(ptx.Seed(first), ptx.RaceCheck(seed.Long())), plan)
		a, err := newAlone(t, first, dev)
		if err != nil {
			return true // before there was a tree
		}
		refused := 0
		for i, n := range []int{300, 100, 20, 290, 80, 310, 70, 300, 10, 200} {
			if err := a.batch(n, i%3 == 2); err != nil && short(err) {
				refused++
			} else {
				must(t, err)
			}
		}
		must(t, a.find(300))
		if refused == 0 && a.s.gpu.buffers[nextBuffer].room == 0 && plan.At == 0 {
			t.Error("no batch came while another was written")
		}
		must(t, a.s.Check())
		must(t, a.s.Close())
		if live := dev.Live(); live != 0 {
			t.Errorf("%d things of the device are left", live)
		}
		return dev.Count(faulty.Alloc) >= plan.At
	}
	row(faulty.Plan{})
	step := seed.Step(2)
	for at := 1 + int(first%uint64(step)); row(faulty.Plan{Op: faulty.Alloc, At: at, Times: 2}) && !t.Failed(); at += step {
	}
}

// A batch for whose operations there is memory is not refused since the memory of two
// smaller ones is kept.
func TestMemoryOfOneForTwo(t *testing.T) {
	for latest := range 2 { // the buffer of the batch before
		dev := ptx.New(ptx.Seed(seed.Of(t)), ptx.Memory(64<<20))
		s, err := NewSolo[uint64](dev, Options{Workers: 1, Room: 1 << 20})
		must(t, err)
		free, err := dev.FreeBytes()
		must(t, err)
		large := &batch[uint64]{n: s.gpu.staging.together + 1}
		for _, s.gpu.latest = range []int{nextBuffer, opsBuffer} {
			_, err := s.gpu.opsBuffer(large, int(free*3/10))
			must(t, err)
		}
		s.gpu.latest = latest
		_, err = s.gpu.opsBuffer(large, int(free*7/10))
		must(t, err)
		must(t, s.Close())
		must(t, dev.Failed())
	}
}

package twin

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/device/faulty"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/seed"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// writer changes keys of its own, and knows what they are.
type writer struct {
	t    *testing.T
	twin *Twin[uint64]
	cpu  *bplus.Tree[uint64]
	id   uint64
	rng  *rand.Rand
	has  map[uint64]uint64
}

func (w *writer) key() uint64 { return w.rng.Uint64N(500)*16 + w.id }

// batch does operations of several kinds, on the GPU or on the CPU.
func (w *writer) batch(n int) {
	keys, vals, kinds := make([]uint64, n), make([]uint64, n), make([]uint8, n)
	for i := range keys {
		keys[i], vals[i], kinds[i] = w.key(), w.rng.Uint64(), uint8(w.rng.IntN(3))
	}
	var own Columns[uint64]
	if w.rng.IntN(2) == 0 { // as if they were page-locked
		own = Columns[uint64]{keys, vals, kinds}
	}
	err := w.twin.Apply(&Batch[uint64]{
		N: n, Kinds: true, Old: true, Own: own,
		Fill: func(lo int, ks, vs []uint64, kd []uint8) {
			copy(ks, keys[lo:])
			copy(vs, vals[lo:])
			copy(kd, kinds[lo:])
		},
		Answer: func(lo int, old []uint64, had []uint8) {
			for i := range old {
				w.done(keys[lo+i], vals[lo+i], op.Kind(kinds[lo+i]), old[i], had[i] != 0)
			}
		},
		CPU: func(lo, hi int) ([]uint64, error) {
			for i := lo; i < hi; i++ {
				w.onCPU(keys[i], vals[i], op.Kind(kinds[i]))
			}
			return keys[lo:hi], nil
		},
	})
	if err != nil {
		w.t.Error(err)
	}
}

// onCPU does one operation on the tree in host memory.
func (w *writer) onCPU(key, val uint64, kind op.Kind) (changed bool) {
	var old uint64
	var had bool
	switch kind {
	case op.Get:
		old, had = w.cpu.Get(key)
	case op.Set:
		old, had, _ = w.cpu.Set(key, val)
	case op.Delete:
		old, had, _ = w.cpu.Delete(key)
	}
	w.done(key, val, kind, old, had)
	return kind != op.Get
}

// single does one operation, in host memory.
func (w *writer) single(key, val uint64, kind op.Kind) {
	var old uint64
	var had bool
	switch kind {
	case op.Get:
		old, had = w.twin.Get(key)
	case op.Set:
		old, had, _ = w.twin.Set(key, val)
	case op.Delete:
		old, had, _ = w.twin.Delete(key)
	}
	w.done(key, val, kind, old, had)
}

// done compares what an operation has found with what it should have.
func (w *writer) done(key, val uint64, kind op.Kind, old uint64, had bool) {
	want, ok := w.has[key]
	if old != want || had != ok {
		w.t.Errorf("writer %d: key %d was %d, %t, want %d, %t", w.id, key, old, had, want, ok)
	}
	switch kind {
	case op.Set:
		w.has[key] = val
	case op.Delete:
		delete(w.has, key)
	}
}

func (w *writer) step() {
	switch w.rng.IntN(4) {
	case 0:
		w.batch(1 + w.rng.IntN(200))
	case 1:
		k := w.key()
		w.single(k, w.rng.Uint64(), op.Kind(w.rng.IntN(3)))
	case 2:
		k := w.key()
		want, ok := w.has[k]
		if got, found := w.twin.Get(k); got != want || found != ok {
			w.t.Errorf("writer %d: key %d is %d, %t, want %d, %t", w.id, k, got, found, want, ok)
		}
	case 3:
		w.find(1 + w.rng.IntN(60))
	}
}

func (w *writer) find(n int) {
	keys := make([]uint64, n)
	for i := range keys {
		keys[i] = w.key()
	}
	w.twin.Find(n, func(lo int, ks []uint64) { copy(ks, keys[lo:]) }, func(lo int, vals []uint64, found []byte) {
		for i := range vals {
			want, ok := w.has[keys[lo+i]]
			if there := found[i/8]>>(i%8)&1 != 0; vals[i] != want || there != ok {
				w.t.Errorf("writer %d: key %d is %d, %t on the GPU, want %d, %t", w.id, keys[lo+i], vals[i], there, want, ok)
			}
		}
	})
}

// Writers that own keys of their own find these as they have left them, whoever
// has done what: batches on the GPU with a log that is always full, batches on the
// CPU, single operations. In the end both trees have the same.
func TestWritersAtOnce(t *testing.T) {
	first := seed.Of(t)
	steps := 60
	if !seed.Long() {
		steps = 15
	}
	for _, fail := range []int{0, 200, 400} {
		cpu, err := bplus.New[uint64](0)
		must(t, err)
		dev := faulty.New(ptx.New(ptx.Seed(first)), faulty.Plan{At: fail, Lose: true})
		tw, err := New(cpu, dev, Options{Workers: 2, Least: 50, Changes: 100, Log: 150})
		must(t, err)
		tw.gpu.staging.sizes = sizes{few: 32, together: 100, bucket: 64, piece: 256, bring: 64}
		var wg sync.WaitGroup
		writers := make([]*writer, 4)
		for i := range writers {
			writers[i] = &writer{t, tw, cpu, uint64(i), rand.New(rand.NewPCG(first, uint64(i))), map[uint64]uint64{}}
			wg.Go(func() {
				for range steps {
					writers[i].step()
				}
			})
		}
		wg.Wait()
		tw.Wait()
		if err := tw.Down(); err != nil != (fail != 0) {
			t.Errorf("operation %d fails: the device is %v", fail, err)
		}
		total := 0
		for _, w := range writers {
			total += len(w.has)
			for k, want := range w.has {
				if got, ok := cpu.Get(k); got != want || !ok {
					t.Errorf("key %d is %d, %t, want %d", k, got, ok, want)
				}
			}
		}
		if cpu.Len() != total || tw.Len() != total {
			t.Errorf("%d entries, Len %d, want %d", cpu.Len(), tw.Len(), total)
		}
		if fail == 0 {
			for _, w := range writers {
				w.find(100)
			}
		}
		tw.Close() // of a lost device it is an error
		if live := dev.Live(); live != 0 {
			t.Errorf("%d things of the device are left", live)
		}
		cpu.Close()
	}
}

// Close amid batches waits for them; what comes later is refused or done by the
// CPU, and nothing that was accepted is missing.
func TestCloseAmidBatches(t *testing.T) {
	first := seed.Of(t)
	cpu, err := bplus.New[uint64](0)
	must(t, err)
	tw, err := New(cpu, ptx.New(ptx.Seed(first)), Options{Workers: 1, Least: 1, Changes: 1})
	must(t, err)
	var wg sync.WaitGroup
	var stop atomic.Bool
	writers := make([]*writer, 3)
	for i := range writers {
		writers[i] = &writer{t, tw, cpu, uint64(i), rand.New(rand.NewPCG(first, uint64(i))), map[uint64]uint64{}}
		wg.Go(func() {
			for !stop.Load() {
				writers[i].batch(20)
			}
		})
	}
	time.Sleep(50 * time.Millisecond)
	must(t, tw.Close())
	stop.Store(true)
	wg.Wait()
	for _, w := range writers {
		for k, want := range w.has {
			if got, ok := cpu.Get(k); got != want || !ok {
				t.Errorf("key %d is %d, %t, want %d", k, got, ok, want)
			}
		}
	}
	cpu.Close()
}

// A tree on a GPU alone that is lost says so, each time; one that is short of
// memory says so, and goes on.
func TestSoloLost(t *testing.T) {
	first := seed.Of(t)
	dev := faulty.New(ptx.New(ptx.Seed(first)), faulty.Plan{Op: faulty.Launch, At: 200, Lose: true})
	s, err := NewSolo[uint64](dev, Options{})
	must(t, err)
	n := uint64(0)
	for ; err == nil; n++ {
		_, _, err = s.Single(op.Set, n, n)
	}
	if n < 3 || errors.Is(err, op.ErrClosed) {
		t.Fatalf("after %d operations: %v", n, err)
	}
	if _, _, again := s.Get(0); again == nil || s.Lost() == nil {
		t.Error("a lost device answers")
	}
	s.Close() // of a lost device it is an error
	if _, _, err := s.Get(0); !errors.Is(err, op.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

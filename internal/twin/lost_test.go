package twin

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/device/faulty"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/seed"
)

// Whichever operation of the device fails, twice in a row or for ever, all answers
// of a twin are right, nothing that was accepted is missing, and nothing of the
// device is left. The log holds less than a batch. PANDO_LONG=1000 lets each of
// them fail in turn.
func TestTwinLosesItsGPU(t *testing.T) {
	first := seed.Of(t)
	count := faulty.New(ptx.New(ptx.Seed(first), ptx.RaceCheck(seed.Long())), faulty.Plan{})
	loseTwin(t, first, count)
	all := count.Count(faulty.Any)
	step := seed.Stride(all, 9, 30)
	for at := 1 + int(first%uint64(step)); at <= all && !t.Failed(); at += step {
		for _, lose := range []bool{false, true} {
			t.Run(fmt.Sprint(at, lose), func(t *testing.T) {
				dev := faulty.New(ptx.New(ptx.Seed(first), ptx.RaceCheck(seed.Long())), faulty.Plan{At: at, Times: 2, Lose: lose})
				loseTwin(t, first, dev)
				if live := dev.Live(); live != 0 {
					t.Errorf("%d things of the device are left", live)
				}
			})
		}
	}
}

// A batch that is larger than the log, whose GPU is lost in the midst and for whose rest
// there is no host memory at first, is done whole, or not at all.
func TestBatchIsWhole(t *testing.T) {
	first := seed.Of(t)
	const n = 400
	errShort := errors.New("no memory")
	life := func(dev *faulty.Device) (there, before int, err error) {
		cpu, err := bplus.New[uint64](0)
		must(t, err)
		defer cpu.Close()
		tw, err := New(cpu, dev, Options{Workers: 2, Least: 50, Changes: 20, Log: 100})
		must(t, err)
		before = dev.Count(faulty.Any)
		tries := 0
		fill := func(lo int, keys, vals []uint64, _ []uint8) {
			for i := range keys {
				keys[i] = uint64(lo+i) * 3
			}
			for i := range vals {
				vals[i] = uint64(lo + i)
			}
		}
		err = tw.Apply(&Batch[uint64]{N: n, Kind: op.Set, Fill: fill, CPU: func(lo, hi int) ([]uint64, error) {
			if tries++; tries < 4 {
				return nil, errShort
			}
			keys, vals := make([]uint64, hi-lo), make([]uint64, hi-lo)
			fill(lo, keys, vals, nil)
			return keys, cpu.Apply(&bplus.Ops[uint64]{Kind: op.Set, Keys: keys, Vals: vals}, 2)
		}})
		tw.Wait()
		there = cpu.Len()
		tw.Close()
		return there, before, err
	}
	count := faulty.New(ptx.New(ptx.Seed(first), ptx.RaceCheck(seed.Long())), faulty.Plan{})
	_, before, err := life(count)
	must(t, err)
	all := count.Count(faulty.Any)
	for at := before + 1; at <= all; at += seed.Stride(all-before, 4, 12) {
		there, _, err := life(faulty.New(ptx.New(ptx.Seed(first), ptx.RaceCheck(seed.Long())), faulty.Plan{At: at, Lose: true}))
		if err == nil && there != n || err != nil && (there != 0 || !errors.Is(err, errShort)) {
			t.Errorf("lost at %d of %d: %d of %d operations are done: %v", at-before, all-before, there, n, err)
		}
	}
}

// loseTwin does operations of all kinds on a twin.
func loseTwin(t *testing.T, first uint64, dev *faulty.Device) {
	cpu, err := bplus.New[uint64](0)
	must(t, err)
	defer cpu.Close()
	tw, err := New(cpu, dev, Options{Workers: 2, Least: 50, Changes: 20, Log: 150})
	if err != nil {
		return // before there was a twin
	}
	tw.gpu.staging.sizes = fewer
	tw.gpu.staging.piece = 512 // answers come in order
	w := &writer{t, tw, cpu, 1, rand.New(rand.NewPCG(first, 2)), map[uint64]uint64{}}
	for _, n := range []int{10, 30, 60, 200, 400} {
		w.batch(n)
		w.step()
	}
	tw.Wait()
	for k, want := range w.has {
		if got, ok := cpu.Get(k); got != want || !ok {
			t.Errorf("key %d is %d, %t, want %d", k, got, ok, want)
		}
	}
	if cpu.Len() != len(w.has) {
		t.Errorf("%d entries, want %d", cpu.Len(), len(w.has))
	}
	tw.Close() // of a lost device it is an error
}

// Close amid batches of a tree on a GPU alone waits for the one under way; others
// are refused.
func TestSoloCloseAmidBatches(t *testing.T) {
	first := seed.Of(t)
	dev := faulty.New(ptx.New(ptx.Seed(first), ptx.RaceCheck(seed.Long())), faulty.Plan{})
	s, err := NewSolo[uint64](dev, Options{Workers: 2})
	must(t, err)
	var wg sync.WaitGroup
	for id := range uint64(3) {
		wg.Go(func() {
			var err error
			for i := uint64(0); err == nil; i++ {
				_, _, err = s.Single(op.Set, i*3+id, i)
			}
			if !errors.Is(err, op.ErrClosed) {
				t.Error(err)
			}
		})
	}
	time.Sleep(50 * time.Millisecond)
	must(t, s.Close())
	wg.Wait()
	if live := dev.Live(); live != 0 {
		t.Errorf("%d things of the device are left", live)
	}
}

// Segments for few operations take little memory, and are used again.
func TestSegments(t *testing.T) {
	dev := ptx.New()
	g := &spareSegments[uint64]{dev: dev}
	for _, n := range []int{1, segmentOps / 64, segmentOps/64 + 1, segmentOps / 8, segmentOps/8 + 1, 5 * segmentOps} {
		s, err := g.segment(n)
		must(t, err)
		if s.room < min(n, segmentOps) || n > segmentOps/64 && s.room >= segmentStep*n {
			t.Errorf("a segment of %d operations for %d", s.room, n)
		}
		g.keep([]*segment[uint64]{s})
		if again, err := g.segment(n); again != s || err != nil {
			t.Errorf("a segment for %d operations is not used again: %v", n, err)
		}
	}
	must(t, dev.Close())
}

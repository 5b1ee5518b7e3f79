package pando_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"sync/atomic"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/seed"
)

// patience is a context that is canceled when it has been asked so often.
// Workers of a build ask at the same time.
type patience struct {
	context.Context
	left atomic.Int64
}

func newPatience(asked int) *patience {
	p := &patience{Context: context.Background()}
	p.left.Store(int64(asked))
	return p
}

func (p *patience) Err() error {
	if p.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// A build that is stopped at any of its steps says so and leaves nothing behind;
// one that is not stopped is an index.
func TestFreezeStopped(t *testing.T) {
	unsorted := make([]uint64, 3000)
	for i := range unsorted {
		unsorted[i] = uint64(i*7919) % 4001
	}
	words := make([]string, len(unsorted))
	for i, k := range unsorted {
		words[i] = fmt.Sprint(k)
	}
	t.Run("pairs", stoppedAnywhere(unsorted, unsorted))
	t.Run("rows", stoppedAnywhere(unsorted, words))
	t.Run("strings", stoppedAnywhere(words, unsorted))
	t.Run("strings to strings", stoppedAnywhere(words, words))
	t.Run("compressed", stoppedAnywhere(unsorted, unsorted, pando.Layout(pando.Compressed)))
	t.Run("limited", stoppedAnywhere(unsorted, unsorted, pando.MemoryLimit(1<<30)))
}

func stoppedAnywhere[K pando.Key, V any](keys []K, vals []V, opts ...pando.Option) func(t *testing.T) {
	return func(t *testing.T) {
		before := arena.InUse()
		steps := 0
		for ; ; steps++ {
			// Each step asks twice where it is stopped.
			ctx := newPatience(steps)
			ix, err := pando.Freeze(keys, vals, append(opts, pando.Context(ctx))...)
			if err == nil {
				ix.Close()
				break
			}
			if !errors.Is(err, context.Canceled) || ix != nil {
				t.Fatalf("stopped after %d steps: %v", steps, err)
			}
			if now := arena.InUse(); now > before { // less, where another test has forgotten an index
				t.Fatalf("stopped after %d steps: %d bytes are left", steps, now-before)
			}
		}
		if steps < 3 {
			t.Errorf("only %d steps", steps)
		}
	}
}

// A sequence without end is stopped, too.
func TestFreezeSeqStopped(t *testing.T) {
	var forever iter.Seq2[uint64, uint64] = func(yield func(uint64, uint64) bool) {
		for i := uint64(0); yield(i, i); i++ {
		}
	}
	if _, err := pando.FreezeSeq(forever, pando.Context(newPatience(10))); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	tree, err := pando.TreeOf([]uint64{1}, []uint64{1})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	done, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := tree.Freeze(pando.Context(done)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	ix := facetest.MustFreeze(t, []uint64{1}, []uint64{1}, pando.Context(context.Background()))
	ix.Close()
}

// A long build asks often enough that it stops soon, in the middle of a sort as well: no
// more than some 64K entries are worked on between two questions.
func TestFreezeAsksOften(t *testing.T) {
	n := seed.Size(1<<18, 1<<19)
	numbers, words := make([]uint64, n), make([]string, n/4)
	for i := range numbers {
		numbers[i] = uint64(i) * 0x9e3779b97f4a7c15
	}
	for i := range words {
		words[i] = fmt.Sprintf("%016x", numbers[i])
	}
	t.Run("numbers", asksOften(numbers))
	t.Run("strings", asksOften(words))
}

func asksOften[K pando.Key](keys []K) func(t *testing.T) {
	return func(t *testing.T) {
		before := arena.InUse()
		ctx := newPatience(math.MaxInt)
		ix, err := pando.Freeze(keys, make([]uint64, len(keys)), pando.Context(ctx))
		if err != nil {
			t.Fatal(err)
		}
		ix.Close()
		asked := math.MaxInt - int(ctx.left.Load())
		if asked < 2*len(keys)>>16 {
			t.Errorf("%d entries, %d questions", len(keys), asked)
		}
		for i := range 8 { // wherever it is stopped, nothing is left
			ix, err := pando.Freeze(keys, make([]uint64, len(keys)), pando.Context(newPatience(asked*i/8)))
			if ix != nil || !errors.Is(err, context.Canceled) {
				t.Errorf("stopped after %d of %d questions: %v", asked*i/8, asked, err)
			}
			if now := arena.InUse(); now != before {
				t.Fatalf("stopped after %d of %d questions: %d bytes are left", asked*i/8, asked, now-before)
			}
		}
	}
}

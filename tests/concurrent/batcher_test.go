package concurrent_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/seed"
	"go.uber.org/goleak"
)

// Many goroutines get what Get gives, whatever the wait and the size.
func TestBatcherGivesWhatGetGives(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	start := seed.Of(t)
	const n = 5000
	keys, vals := make([]uint64, n), make([]string, n)
	for i := range keys {
		keys[i], vals[i] = uint64(i)*2, fmt.Sprint("value ", i)
	}
	frozen, err := pando.Freeze(keys, vals)
	if err != nil {
		t.Fatal(err)
	}
	defer frozen.Close()
	tree, err := pando.TreeOf(keys, vals)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	t.Run("Frozen", func(t *testing.T) { batcherGives(t, start, frozen, 2*n) })
	t.Run("Tree", func(t *testing.T) { batcherGives(t, start, tree, 2*n) })
}

func batcherGives(t *testing.T, start uint64, ix interface {
	Get(uint64) (string, bool)
	Batcher(time.Duration, int) *pando.Batcher[uint64, string]
}, keys uint64) {
	for _, size := range []int{0, 1, 2, 7, 1000} {
		for _, wait := range []time.Duration{0, time.Nanosecond, 5 * time.Millisecond} {
			b := ix.Batcher(wait, size)
			var wg sync.WaitGroup
			for g := range 20 {
				wg.Go(func() {
					rng := rand.New(rand.NewPCG(start, uint64(g)))
					for range 100 {
						k := rng.Uint64N(keys)
						v, ok := b.Get(k)
						want, wantOK := ix.Get(k)
						if v != want || ok != wantOK {
							t.Errorf("Get(%d) = %q, %v; want %q, %v", k, v, ok, want, wantOK)
						}
					}
				})
			}
			wg.Wait()
			if err := b.Close(); err != nil || b.Close() != nil {
				t.Error("Close failed")
			}
		}
	}
}

// A call alone is answered at once, not after the wait; calls of a round that
// gathers are answered together.
func TestBatcherDoesNotWaitAlone(t *testing.T) {
	ix, err := pando.Freeze([]uint64{1, 2}, []uint64{10, 20})
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	b := ix.Batcher(time.Hour, 0)
	defer b.Close()
	if v, ok := b.Get(2); v != 20 || !ok {
		t.Errorf("Get(2) = %d, %v", v, ok)
	}
	if v, ok := b.Get(3); v != 0 || ok {
		t.Errorf("Get(3) = %d, %v", v, ok)
	}
}

// Closing either end panics in every caller, and leaves nobody waiting.
func TestBatcherClosed(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ix, err := pando.Freeze([]uint64{1, 2}, []uint64{10, 20})
	if err != nil {
		t.Fatal(err)
	}
	b := ix.Batcher(0, 3)
	ix.Close()
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			defer func() {
				if recover() == nil {
					t.Error("an answer from a closed index")
				}
			}()
			b.Get(1)
		})
	}
	wg.Wait()
	b.Close()
	wg.Go(func() {
		defer func() {
			if recover() == nil {
				t.Error("an answer from a closed Batcher")
			}
		}()
		b.Get(1)
	})
	wg.Wait()
}

// A value that cannot be decoded is the business of whoever asked for it, not
// of those who shared its round.
func TestBatcherKeepsFailuresApart(t *testing.T) {
	const n, bad = 1000, 77
	encode := func(dst []byte, v string) []byte { return append(dst, v...) }
	decode := func(b []byte) (string, error) {
		if string(b) == strconv.Itoa(bad) {
			return "", errors.New("spoiled")
		}
		return string(b), nil
	}
	keys, vals := make([]uint64, n), make([]string, n)
	for i := range keys {
		keys[i], vals[i] = uint64(i), strconv.Itoa(i)
	}
	path := filepath.Join(t.TempDir(), "index.pando")
	built := facetest.MustFreeze(t, keys, vals, pando.Values(encode, decode))
	if err := built.Save(path); err != nil {
		t.Fatal(err)
	}
	built.Close()
	ix, err := pando.Open[uint64, string](path, pando.Values(encode, decode))
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	b := ix.Batcher(time.Millisecond, 64)
	defer b.Close()
	var wg sync.WaitGroup
	for g := range 32 {
		wg.Go(func() {
			for i := range 200 {
				k := uint64(g*31+i*7) % n
				if g == 0 && i%4 == 0 {
					k = bad
				}
				var v string
				text := facetest.PanicOf(func() { v, _ = b.Get(k) })
				if k == bad && !strings.Contains(text, "spoiled") || k != bad && (text != "" || v != strconv.Itoa(int(k))) {
					t.Errorf("Get(%d) = %q, panic %q", k, v, text)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkBatcher(b *testing.B) {
	const n = 1 << 20
	keys := make([]uint64, n)
	for i := range keys {
		keys[i] = uint64(i)
	}
	ix, err := pando.Freeze(keys, keys)
	if err != nil {
		b.Fatal(err)
	}
	defer ix.Close()
	batcher := ix.Batcher(0, 0)
	defer batcher.Close()
	for _, c := range []struct {
		name string
		get  func(uint64) (uint64, bool)
	}{{"Get", ix.Get}, {"Batcher", batcher.Get}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(32)
			b.RunParallel(func(p *testing.PB) {
				for x := rand.Uint64(); p.Next(); x = x*6364136223846793005 + 1 {
					if _, ok := c.get(x >> 44); !ok {
						b.Error("not found")
					}
				}
			})
		})
	}
}

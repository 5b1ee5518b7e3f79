package twin

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device/faulty"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/radix"
	"github.com/pando-index/pando/internal/seed"
)

// A batch that is larger than the log is done in parts, and those that come while it is
// full wait. What is locked is not more than the log, and given back.
func TestStringsLog(t *testing.T) {
	rng := seed.Rand(t)
	cpu := radix.New(0)
	defer cpu.Close()
	dev := faulty.New(ptx.New(ptx.Seed(rng.Uint64())), faulty.Plan{})
	f, err := NewStrings(cpu, dev, StringsOptions{Workers: 2, ValBits: 32, Room: 64 << 20, Changes: 1, Log: 8 * leastLocked})
	must(t, err)
	f.piece = 64
	const n = 1500
	keys, vals := make([]string, n), make([]uint32, n)
	for round := range 3 {
		for i := range keys {
			keys[i], vals[i] = strings.Repeat("k", i%300)+fmt.Sprint(i), uint32(round+i)
		}
		must(t, f.Apply(&StringBatch{Keys: keys, Vals: arena.Bytes(vals), Kind: op.Set}))
		if f.locked.total > f.opts.Log {
			t.Errorf("%d bytes are locked", f.locked.total)
		}
		for range 100 {
			i := rng.IntN(n)
			if v, ok := f.Get(keys[i]); v != uint64(vals[i]) || !ok {
				t.Fatalf("%q has %d, %t, want %d", keys[i], v, ok, vals[i])
			}
		}
	}
	f.Wait()
	if cpu.Len() != n || f.Len() != n || f.Pending() {
		t.Errorf("%d entries, want %d", cpu.Len(), n)
	}
	must(t, f.Check())
	must(t, f.Close())
	if live := dev.Live(); live != 0 {
		t.Errorf("%d things are left on the device", live)
	}
}

// Pieces of locked memory are used again where they fit, and given back where there
// would be too many.
func TestLocked(t *testing.T) {
	dev := ptx.New()
	l := locked{dev: dev, most: 1 << 20}
	for bytes := 1; bytes < 100<<20; bytes += bytes/7 + 1 {
		if size := lockedBytes(bytes); size < bytes || size < leastLocked || size > max(leastLocked, bytes+bytes/4+1) {
			t.Fatalf("%d bytes for %d", size, bytes)
		}
	}
	a, err := l.take(100 << 10)
	must(t, err)
	b, err := l.take(200 << 10)
	must(t, err)
	l.give(b)
	l.give(a)
	again, err := l.take(90 << 10)
	must(t, err)
	if &again[0] != &a[0] {
		t.Error("a piece that fits is not used")
	}
	l.give(again)
	c, err := l.take(900 << 10)
	must(t, err)
	if l.total > l.most || len(l.spare) != 0 {
		t.Errorf("%d bytes are there", l.total)
	}
	l.give(c)
	if d, err := l.take(1); err != nil || len(d) != leastLocked {
		t.Errorf("one byte has a piece of %d: %v", len(d), err)
	} else {
		l.give(d)
	}
	must(t, l.close())
	must(t, dev.Close())
	if l.total != 0 {
		t.Errorf("%d bytes are left", l.total)
	}
}

// Close amid batches waits for them. What comes later is done by the CPU, and nothing
// that was accepted is missing.
func TestStringsCloseAmidBatches(t *testing.T) {
	first := seed.Of(t)
	cpu := radix.New(0)
	defer cpu.Close()
	dev := faulty.New(ptx.New(ptx.Seed(first)), faulty.Plan{})
	f, err := NewStrings(cpu, dev, StringsOptions{Workers: 1, ValBits: 64, Room: 64 << 20, Changes: 1})
	must(t, err)
	var wg sync.WaitGroup
	var stop atomic.Bool
	models := make([]map[string]uint64, 3)
	for w := range models {
		models[w] = map[string]uint64{}
		rng := rand.New(rand.NewPCG(first, uint64(w)))
		wg.Go(func() {
			for !stop.Load() {
				keys, vals := make([]string, 20), make([]uint64, 20)
				for i := range keys {
					keys[i], vals[i] = fmt.Sprintf("%d of %d", rng.IntN(50), w), rng.Uint64()
				}
				if err := f.Apply(&StringBatch{Keys: keys, Vals: arena.Bytes(vals), Kind: op.Set}); err != nil {
					t.Error(err)
				}
				for i, k := range keys {
					models[w][k] = vals[i]
				}
			}
		})
	}
	time.Sleep(50 * time.Millisecond)
	must(t, f.Close())
	stop.Store(true)
	wg.Wait()
	for _, m := range models {
		for k, want := range m {
			if v, ok := cpu.Get(k); v != want || !ok {
				t.Errorf("%q has %d, %t, want %d", k, v, ok, want)
			}
		}
	}
	if live := dev.Live(); live != 0 {
		t.Errorf("%d things are left on the device", live)
	}
}

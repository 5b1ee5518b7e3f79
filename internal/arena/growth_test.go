package arena

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
	"unsafe"
)

// What is left to the rest of a program is for its heap and its threads, half of all
// addresses where these are few, and less the more of them it has taken.
func TestRoomOf(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		first, taken, heap int64
		threads, procs     int
		want               int64
	}{
		{math.MaxInt64, 0, mib, 20, 2, 256*mib + 2*threadBytes},
		{math.MaxInt64, 0, mib, 5, 16, 256*mib + 15*threadBytes},
		{math.MaxInt64, 9999 * mib, 512 * mib, 20, 2, 512*mib + 2*threadBytes},
		{400 * mib, 0, mib, 0, 99999, 200 * mib},
		{400 * mib, 50 * mib, mib, 0, 99999, 150 * mib},
		{400 * mib, 390 * mib, mib, 0, 99999, 96 * mib},
		{60 * mib, 10 * mib, mib, 5, 2, 40 * mib},
		{0, 0, mib, 5, 2, 0},
	} {
		if got := roomOf(c.first, c.taken, c.heap, c.threads, c.procs); got != c.want {
			t.Errorf("%+v: %d MiB", c, got/mib)
		}
	}
}

// A pool that has no chunk left gets those of trees that nobody uses.
func TestForgottenChunksComeBack(t *testing.T) {
	if onHeap {
		t.Skip("the collector sees memory on the heap by itself")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // so that nothing else collects
	defer func(d time.Duration) { reclaimTime = d }(reclaimTime)
	reclaimTime = time.Minute
	type tree struct{ tally *Block }
	p := NewPoolOf(8*512, 512, 64)
	for i := range 40 {
		chunk, err := p.Take(false)
		if err != nil {
			t.Fatalf("chunk %d: %v", i, err)
		}
		x := &tree{NewTally()}
		x.tally.Account(megabyte)
		runtime.AddCleanup(x, func(b *Block) { b.Release(); p.Give(chunk) }, x.tally)
	}
}

// Ranges that grow lie apart, are readable as far as chunks were taken, and those in
// step as far as either.
func TestPoolsThatGrow(t *testing.T) {
	if onHeap {
		t.Skip("Go chooses addresses")
	}
	a, b := InStep(NewPool(512, 4096, 640), NewPool(64, 1408))
	for _, p := range []*Pool{a, b} {
		if !p.reserveFirst(1<<10, math.MaxInt64) {
			t.Fatal(p.err)
		}
		p.once.Do(func() {})
	}
	for i := range 40 {
		p := []*Pool{a, a, b}[i%3]
		chunk, err := p.Take(i%2 == 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range []*Pool{a, b} {
			if end := (chunk + 1) * p.slots; q.Most() < end {
				t.Fatalf("%d slots may be read, %d were taken", q.Most(), end)
			}
			for part, size := range q.parts {
				n := q.Most()*size + spareBytes
				if unsafe.Slice((*byte)(q.Base(part)), n)[n-1] != 0 {
					t.Fatal("fresh memory is not zero")
				}
			}
		}
		if i%5 == 4 {
			p.Give(chunk)
		}
	}
	for _, p := range []*Pool{a, b} {
		for part, base := range p.bases {
			unreserveAt(base, p.ends[part])
		}
	}
}

package arena

import (
	"errors"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"
	"time"
)

const megabyte = 1 << 20

// forgotten makes blocks and keeps none of them. It returns the most bytes
// that were in use.
func forgotten(t *testing.T, blocks, size int) (most int64) {
	t.Helper()
	for range blocks {
		if _, err := New([]int{size}, 0, Small, 0); err != nil {
			t.Fatal(err)
		}
		most = max(most, InUse())
	}
	return most
}

// allCollected runs the garbage collector until no block is in use.
func allCollected(t *testing.T) {
	t.Helper()
	for range 10_000 { // others may keep the machine busy
		collect(func() bool { return true })
		if InUse() == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("%d bytes are still in use", InUse())
}

// Blocks that nobody holds are a reason to collect, as objects on the heap are.
func TestForgottenBlocksAreCollected(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	allCollected(t)
	if most := forgotten(t, 500, 4*megabyte); most > 20*4*megabyte {
		t.Errorf("500 forgotten blocks of 4 MiB held %d MiB", most/megabyte)
	}
}

// With GOGC=off the memory limit is what makes the collector run, and without
// a limit nothing does.
func TestForgottenBlocksUnderALimit(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	allCollected(t)
	if most := forgotten(t, 50, 4*megabyte); most != 50*4*megabyte {
		t.Errorf("GOGC=off, no limit: 50 forgotten blocks of 4 MiB held %d MiB", most/megabyte)
	}
	allCollected(t)
	limit := readGo().total + 64*megabyte
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(limit))
	if most := forgotten(t, 200, 4*megabyte); most > 64*megabyte {
		t.Errorf("GOGC=off, room for 64 MiB: forgotten blocks held %d MiB", most/megabyte)
	}
	allCollected(t)
}

// A program that needs as much as its limit does not collect for every block.
func TestHeldBlocksAreNotCollectedInVain(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	allCollected(t)
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(readGo().total + 8*megabyte))
	var held []*Block
	before := collections()
	for range 256 { // 128 MiB
		b, err := New([]int{megabyte / 2}, 0, Small, 0)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, b)
	}
	if n := collections() - before; n > 3*40 {
		t.Errorf("%d collections for 256 blocks that are held", n)
	}
	for _, b := range held {
		b.Release()
	}
	allCollected(t)
}

func collections() uint32 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.NumGC
}

// Blocks that are released are no reason to collect.
func TestReleasedBlocksAreNoPressure(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	allCollected(t)
	before := collections()
	for range 200 {
		b, err := New([]int{8 * megabyte}, 0, Small, 0)
		if err != nil {
			t.Fatal(err)
		}
		b.Release()
	}
	if n := collections() - before; n > 20 {
		t.Errorf("%d collections for 200 blocks that were released", n)
	}
}

// A tally counts what its user says.
func TestAccount(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	allCollected(t)
	b := NewTally()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				b.Account(8192)
				b.Account(-4096)
			}
		})
	}
	wg.Wait()
	if InUse() != 4*100*4096 {
		t.Errorf("%d bytes in use, want %d", InUse(), 4*100*4096)
	}
	b.Release()
	b.Account(4096) // too late: the memory is gone
	if InUse() != 0 {
		t.Errorf("%d bytes in use after Release", InUse())
	}
	runtime.KeepAlive(b)
}

// What a forgotten block was accounted for goes with it.
func TestAccountedBlocksAreCollected(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	allCollected(t)
	most := int64(0)
	for range 300 {
		b := NewTally()
		for range 4 {
			b.Account(megabyte)
		}
		most = max(most, InUse())
	}
	if most > 20*4*megabyte {
		t.Errorf("forgotten blocks held %d MiB", most/megabyte)
	}
	allCollected(t)
}

// What the system refuses is refused by name, and nothing is left behind.
func TestRefusedBlock(t *testing.T) {
	before := InUse()
	if strconv.IntSize == 32 {
		t.Skip("a size has 32 bits")
	}
	huge := uint64(1) << 52
	if _, err := New([]int{int(huge)}, 0, Small, 0); !errors.Is(err, ErrMemory) {
		t.Errorf("4 PiB: %v", err)
	}
	if InUse() > before {
		t.Errorf("%d bytes in use, %d before", InUse(), before)
	}
}

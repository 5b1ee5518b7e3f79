package pando_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/seed"
)

// forgetMany makes indexes of some 2 MB each, asks each for a batch, since the
// pools that batches use refer to it for two more collections, and keeps none
// of them. Next to nothing of it is on the heap. It returns the most bytes that
// were in use.
func forgetMany(t *testing.T) (most int64) {
	t.Helper()
	_, sorted := descending(100_000)
	vals := make([]uint64, 10_000)
	for range seed.Size(100, 200) {
		ix := facetest.MustFreeze(t, sorted, sorted)
		ix.GetBatch(sorted[:len(vals)], vals, nil)
		most = max(most, arena.InUse())
	}
	return most
}

// Indexes that nobody holds are a reason to collect, as slices are.
func TestForgottenIndexesAreCollected(t *testing.T) {
	facetest.NoneInUse(t)
	if most := forgetMany(t); most > 50<<20 {
		t.Errorf("forgotten indexes of 2 MB held %d MB", most>>20)
	}
}

// With GOGC=off and a memory limit, that is when they are collected.
func TestForgottenIndexesUnderAMemoryLimit(t *testing.T) {
	facetest.NoneInUse(t)
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(128 << 20))
	if most := forgetMany(t); most > 128<<20 {
		t.Errorf("under a limit of 128 MB, forgotten indexes held %d MB", most>>20)
	}
}

// Files that are open are the system's memory: they are no reason to collect.
func TestOpenFilesAreNoPressure(t *testing.T) {
	facetest.NoneInUse(t)
	_, sorted := descending(300_000)
	ix := facetest.MustFreeze(t, sorted, sorted)
	path := filepath.Join(t.TempDir(), "index")
	if err := ix.Save(path); err != nil {
		t.Fatal(err)
	}
	ix.Close()
	var before, after debug.GCStats
	debug.ReadGCStats(&before)
	for range 100 {
		if _, err := pando.Open[uint64, uint64](path); err != nil {
			t.Fatal(err)
		}
	}
	debug.ReadGCStats(&after)
	if n := after.NumGC - before.NumGC; n > 10 {
		t.Errorf("%d collections while a file was opened 100 times", n)
	}
}

// An index larger than what the system has fails by name.
func TestOutOfMemory(t *testing.T) {
	if os.Getenv(limitedAddresses) == "" {
		inLimitedAddresses(t, 600<<20, "TestOutOfMemory")
		return
	}
	_, sorted := descending(8 << 20)
	room := pando.Layout(pando.Apart)
	var held []*pando.Frozen[uint64, uint64]
	for range 20 {
		ix, err := pando.Freeze(sorted, sorted, room)
		if err == nil {
			held = append(held, ix)
			continue
		}
		if !errors.Is(err, pando.ErrOutOfMemory) {
			t.Errorf("%v, want %v", err, pando.ErrOutOfMemory)
		}
		for _, ix := range held {
			if ix.Rank(5) != 5 {
				t.Error("an index that is held was taken")
			}
		}
		return
	}
	t.Errorf("%d indexes of 140 MB within 600 MB of addresses", len(held))
}

// Where addresses are few, indexes that are forgotten, closed or opened and
// forgotten give theirs back in time.
func TestForgottenIndexesInFewAddresses(t *testing.T) {
	if os.Getenv(limitedAddresses) == "" {
		inLimitedAddresses(t, 1<<30, "TestForgottenIndexesInFewAddresses")
		return
	}
	debug.SetGCPercent(-1) // so that nothing else collects
	debug.SetMemoryLimit(300 << 20)
	_, sorted := descending(1 << 20) // 17 MB each
	path := filepath.Join(t.TempDir(), "index")
	for i := range seed.Size(100, 200) {
		ix, err := pando.Freeze(sorted, sorted)
		if err != nil {
			t.Fatalf("index %d: %v", i, err)
		}
		if i%3 == 0 {
			ix.Close()
		}
		if i == 1 {
			if err := ix.Save(path); err != nil {
				t.Fatal(err)
			}
		}
		if i > 1 {
			if _, err := pando.Open[uint64, uint64](path); err != nil {
				t.Fatalf("file %d: %v", i, err)
			}
		}
	}
}

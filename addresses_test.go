package pando_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/seed"
)

// limitedKind is set in the environment to what a process with few addresses is to do.
const limitedKind = "PANDO_TEST_LIMITED_KIND"

// With few addresses trees take what they need, when they need it, and the program goes
// on: with Go memory and threads of its own, beside trees of which one is full.
func TestTreesInFewAddresses(t *testing.T) {
	if limit, err := strconv.ParseInt(os.Getenv(limitedAddresses), 10, 64); err == nil {
		inFewAddresses(t, os.Getenv(limitedKind), limit)
		return
	}
	for i, c := range []struct {
		mib   int64
		kind  string
		procs int
	}{
		{300, "strings", 2}, {300, "numbers", 2}, {600, "numbers", 16}, {20 << 10, "numbers", 2}, {20 << 10, "strings", 16},
	} {
		if i%seed.Step(2) > 0 {
			continue
		}
		t.Run(fmt.Sprintf("%d MiB, %s, %d processors", c.mib, c.kind, c.procs), func(t *testing.T) {
			inLimitedAddresses(t, c.mib<<20, "TestTreesInFewAddresses", limitedKind+"="+c.kind, fmt.Sprint("GOMAXPROCS=", c.procs))
		})
	}
}

// inFewAddresses is beside for a kind of keys.
func inFewAddresses(t *testing.T, kind string, limit int64) {
	if kind == "strings" {
		beside(t, limit, func(i int) string { return fmt.Sprintf("key%016d", i) })
	} else {
		beside(t, limit, func(i int) uint64 { return uint64(i) })
	}
}

// beside is a program that makes a tree, uses memory and threads of its own, and fills the
// tree, until it is full where that takes no more than some hundred MiB of the limit.
func beside[K pando.Key](t *testing.T, limit int64, key func(i int) K) {
	before := addressesMapped()
	tree, err := pando.NewTree[K, uint64]()
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	if err := tree.Set(key(0), 0); err != nil {
		t.Fatal("first Set:", err)
	}
	if took := addressesMapped() - before; took > 128<<20 { // some of it for threads
		t.Errorf("a tree of one entry takes %d MiB of addresses", took>>20)
	}
	own := ownMemory(t, min(limit/8, 50<<20))
	n := fill(t, tree, key, limit < 1<<30)
	own = append(own, ownMemory(t, min(limit/8, 50<<20))...)
	for i := 0; i < n; i += 997 {
		if v, ok := tree.Get(key(i)); !ok || v != uint64(i) {
			t.Fatalf("key %d of %d: %d, %v", i, n, v, ok)
		}
	}
	_, had := tree.Delete(key(1))
	if err := tree.Set(key(0), 7); !had || err != nil || tree.Len() != n-1 {
		t.Errorf("%d entries, %d before one was deleted and one changed: %v", tree.Len(), n, err)
	}
	runtime.KeepAlive(own)
}

// fill sets entries one by one and by the batch, until the tree is full if it is to be,
// and returns how many it has. A tree of strings may have no room for a batch and still
// some for single ones.
func fill[K pando.Key](t *testing.T, tree *pando.Tree[K, uint64], key func(i int) K, whole bool) (n int) {
	const batch = 5000
	keys, vals := make([]K, batch), make([]uint64, batch)
	for whole || n < 200_000 {
		for i := range keys {
			keys[i], vals[i] = key(n+i), uint64(n+i)
		}
		if full(t, tree.SetBatch(keys, vals)) {
			break
		}
		n += batch
	}
	for end := n + 200_000; n < end && !full(t, tree.Set(key(n), uint64(n))); n++ {
	}
	return n
}

// full reports whether an error says that there is no more memory. It may say nothing else.
func full(t *testing.T, err error) bool {
	t.Helper()
	if err != nil && (!errors.Is(err, pando.ErrOutOfMemory) || errors.Is(err, pando.ErrMemoryLimit)) {
		t.Fatalf("%v, want %v", err, pando.ErrOutOfMemory)
	}
	return err != nil
}

// ownMemory allocates so much on Go's heap and starts some threads more than there were
// at first, as any program may.
func ownMemory(t *testing.T, bytes int64) (all [][]byte) {
	t.Helper()
	for ; bytes > 0; bytes -= 1 << 20 {
		b := make([]byte, 1<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		all = append(all, b)
	}
	startThreads(earlyThreads() + 4)
	return all
}

// earlyThreads is how many threads a process has before addresses are taken from it: one
// for each processor, and some for those that are held up.
func earlyThreads() int { return runtime.GOMAXPROCS(0) + 8 }

// startThreads sees to it that the process has so many threads at once. They stay.
func startThreads(n int) {
	var started, done sync.WaitGroup
	started.Add(n)
	for range n {
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			started.Done()
			started.Wait() // all of them have a thread at once
		})
	}
	done.Wait()
}

package attack

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/seed"
)

// limitedCase is set in the environment of a process that has few addresses: the
// seed of its case, and how many bytes it may map beyond those of its start.
const limitedCase = "PANDO_ATTACK_ADDRESSES"

// addresses makes trees in a process that can map few addresses, as under
// ulimit -v: what there is no room for is ErrOutOfMemory, and the process has room
// for memory of its own all the while.
func addresses(c *testCase) error {
	if seed.RaceDetector {
		c.tried = 0 // it maps far more
		return nil
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	// With less than that the program's own heap and threads, of sixteen cores say, need
	// nearly all.
	more := int64(1<<30) << c.rng.IntN(5)
	more += c.rng.Int64N(more)
	c.note("%d MiB beyond the start", more>>20)
	cmd := exec.Command(exe, "-test.run=^TestFewAddresses$", "-test.v=true", "-test.timeout=3m")
	// The C library takes 64 MiB of addresses for each thread, unless it is told otherwise.
	cmd.Env = append(os.Environ(), "MALLOC_ARENA_MAX=1", fmt.Sprintf("%s=%d %d", limitedCase, c.rng.Uint64(), more))
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("with %d MiB of addresses: %w\n%s", more>>20, err, out[:min(len(out), 8<<10)])
	}
	c.compared.Add(int64(strings.Count(string(out), "entries")))
	return nil
}

// TestFewAddresses is what the attack addresses runs in processes of their own; by
// itself it does nothing.
func TestFewAddresses(t *testing.T) {
	var number, more uint64
	if _, err := fmt.Sscan(os.Getenv(limitedCase), &number, &more); err != nil {
		t.Skip("for the attack addresses alone")
	}
	if err := limitAddresses(more); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(number, 1))
	own := &ownMemory{}
	for range 1 + rng.IntN(3) {
		opts := []pando.Option{pando.On(pando.CPU), pando.Workers(1 + rng.IntN(4))}
		n := 1 << rng.IntN(21)
		switch rng.IntN(4) {
		case 0:
			fillLimited(t, rng, own, n, func(i uint64) uint64 { return i }, func(i uint64) uint64 { return i }, opts...)
		case 1:
			fillLimited(t, rng, own, n, func(i uint64) uint64 { return i }, func(i uint64) uint64 { return i }, append(opts, pando.Layout(pando.Radix))...)
		case 2:
			fillLimited(t, rng, own, n, func(i uint64) string { return fmt.Sprintf("key/%d", i) }, func(i uint64) uint64 { return i }, opts...)
		case 3:
			fillLimited(t, rng, own, n/8+1, func(i uint64) string { return fmt.Sprintf("key/%d", i) }, func(i uint64) string { return fmt.Sprint(i) }, opts...)
		}
	}
	own.use()
	runtime.KeepAlive(own)
}

// limitAddresses lets the process map so many bytes more, and no further.
func limitAddresses(more uint64) error {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return err
	}
	var pages uint64
	if _, err := fmt.Sscan(strings.Fields(string(statm))[0], &pages); err != nil {
		return err
	}
	limit := pages*uint64(os.Getpagesize()) + more
	return syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: limit, Max: limit})
}

// ownMemory is what a program needs beside trees: a heap of some 50 MiB, and
// threads.
type ownMemory struct{ heap [][]byte }

func (o *ownMemory) use() {
	if len(o.heap) >= 50 {
		return
	}
	for range 25 {
		o.heap = append(o.heap, make([]byte, 1<<20))
	}
	done := make(chan struct{})
	for range 8 {
		go func() {
			runtime.LockOSThread() // the thread ends with the goroutine
			time.Sleep(time.Millisecond)
			done <- struct{}{}
		}()
	}
	for range 8 {
		<-done
	}
}

// fillLimited fills a tree of n keys, one by one or in batches. It holds a few keys
// under any limit; of more it holds what it has not refused.
func fillLimited[K pando.Key, V comparable](t *testing.T, rng *rand.Rand, own *ownMemory, n int, key func(uint64) K, val func(uint64) V, opts ...pando.Option) {
	tree, err := pando.NewTree[K, V](opts...)
	if errors.Is(err, pando.ErrOutOfMemory) {
		t.Errorf("a tree without entries: %v", err)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	own.use()
	batch := 1 << rng.IntN(16)
	odd := rng.Uint64() | 1 // times which numbers come in any order
	held := 0
	for held < n {
		keys, vals := make([]K, 0, batch), make([]V, 0, batch)
		for i := held; i < min(held+batch, n); i++ {
			keys, vals = append(keys, key(uint64(i)*odd)), append(vals, val(uint64(i)))
		}
		if batch == 1 {
			err = tree.Set(keys[0], vals[0])
		} else {
			err = tree.SetBatch(keys, vals)
		}
		if err != nil {
			break
		}
		held += len(keys)
		own.use()
	}
	t.Logf("%d entries of %d, %v", held, n, err)
	if err != nil && !errors.Is(err, pando.ErrOutOfMemory) {
		t.Errorf("no limit was set, and a batch of %d after %d entries says %v", batch, held, err)
	}
	if err != nil && held < min(n, 1000) && batch <= 1000 {
		t.Errorf("%d entries are too many: %v", held+batch, err)
	}
	if got := tree.Len(); got != held {
		t.Errorf("%d entries, %d were set", got, held)
	}
	for i := 0; i < held; i += 1 + held/1000 {
		if v, ok := tree.Get(key(uint64(i) * odd)); !ok || v != val(uint64(i)) {
			t.Fatalf("entry %d of %d: %v, %v", i, held, v, ok)
		}
	}
	if rng.IntN(2) == 0 {
		tree.Close()
	}
}

package twin

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/device/faulty"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/seed"
)

// costs is what a small batch asks of the device once there is memory for it: of an
// H200 each launch, fill and copy takes the host 4.5 µs, each wait some 12.
var costs = []struct {
	op         faulty.Op
	solo, twin int
}{
	{faulty.CopyIn, 1, 1},      // keys and values
	{faulty.Fill, 0, 0},        // kernels clear and pad what they need
	{faulty.Launch, 6, 6},      // 1 to sort, 2 to plan, 3 to write
	{faulty.CopyOut, 1, 2},     // what is needed; what the batch comes to
	{faulty.Synchronize, 1, 1}, // for these
	{faulty.CopyDevice, 0, 0},
	{faulty.Alloc, 0, 0}, {faulty.HostAlloc, 0, 0}, {faulty.NewStream, 0, 0}, {faulty.NewEvent, 0, 0},
	{faulty.Grow, 0, 0}, {faulty.Record, 1, 1}, {faulty.Wait, 0, 0}, // that it is known what is needed
}

// A small batch of changes asks no more of the device than it must, and nothing of
// its memory.
func TestCostsOfASmallBatch(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed.Of(t), 1))
	keys := make([]uint64, 200)
	for i := range keys {
		keys[i] = rng.Uint64()
	}
	b := &Batch[uint64]{N: len(keys), Kind: op.Set, Fill: func(lo int, ks, vs []uint64, _ []uint8) {
		copy(ks, keys[lo:])
		copy(vs, keys[lo:])
	}}
	dev := faulty.New(ptx.New(), faulty.Plan{})
	s, err := NewSolo[uint64](dev, Options{Workers: 1, Flat: -1})
	must(t, err)
	solo := counted(t, dev, func() error { return s.Apply(b) })
	must(t, s.Close())

	cpu, err := bplus.New[uint64](0)
	must(t, err)
	dev = faulty.New(ptx.New(), faulty.Plan{})
	tw, err := New(cpu, dev, Options{Workers: 1, Changes: 1, Flat: -1})
	must(t, err)
	both := counted(t, dev, func() error {
		err := tw.Apply(b)
		tw.Wait()
		return err
	})
	must(t, tw.Close())
	cpu.Close()
	for _, c := range costs {
		if solo[c.op] != c.solo || both[c.op] != c.twin {
			t.Errorf("%v: %d times, and %d with a tree in host memory, want %d and %d", c.op, solo[c.op], both[c.op], c.solo, c.twin)
		}
	}
}

// counted returns what f asks of a device the fourth time.
func counted(t *testing.T, dev *faulty.Device, f func() error) map[faulty.Op]int {
	t.Helper()
	counts := map[faulty.Op]int{}
	for i := range 4 {
		for _, op := range faulty.Ops() {
			counts[op] = dev.Count(op)
		}
		if err := f(); err != nil {
			t.Fatal(fmt.Errorf("batch %d: %w", i, err))
		}
	}
	for op, before := range counts {
		counts[op] = dev.Count(op) - before
	}
	return counts
}

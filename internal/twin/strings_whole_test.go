package twin

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/cuart"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/faulty"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/radix"
	"github.com/pando-index/pando/internal/seed"
)

// lacking is a twin of a tree with little host memory left, of which ballast has the
// rest, and a batch of several runs.
type lacking struct {
	cpu  *radix.Tree
	f    *Strings
	keys []string
}

const (
	wholeKeys   = 600
	wholeLength = 400
	ballast     = "ballast"
)

func newLacking(t *testing.T, dev *faulty.Device, left int64) (*lacking, error) {
	t.Helper()
	const limit = 2 << 20
	x := &lacking{cpu: radix.New(limit)}
	for i := 0; x.cpu.Bytes() < limit-left; i++ {
		if _, _, err := x.cpu.Set(fmt.Sprint(ballast, i, strings.Repeat("b", 8<<10)), 0); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	x.f, err = NewStrings(x.cpu, dev, StringsOptions{Workers: 2, ValBits: 64, Room: 64 << 20, Changes: 1, Log: 4 * leastLocked})
	if err != nil {
		x.cpu.Close()
		return nil, err
	}
	x.f.piece = 16
	for i := range wholeKeys {
		x.keys = append(x.keys, fmt.Sprintf("%0*d", wholeLength, i))
	}
	return x, nil
}

// relieve gives the memory of the ballast back.
func (x *lacking) relieve() {
	c := x.cpu.Cursor()
	c.Move(ballast, false, false)
	for k, _, ok := c.Next(); ok; k, _, ok = c.Next() {
		x.cpu.Delete(strings.Clone(k))
	}
}

// there returns how many keys of the batch are in host memory.
func (x *lacking) there() (n int) {
	for _, k := range x.keys {
		if _, ok := x.cpu.Get(k); ok {
			n++
		}
	}
	return n
}

// A batch of several runs whose GPU is lost in the midst, and for whose rest there is no
// host memory at first, is done whole, or not at all.
func TestBatchOfStringsIsWhole(t *testing.T) {
	first := seed.Of(t)
	const room = wholeKeys * wholeLength / 2 // for half of it
	count := faulty.New(ptx.New(ptx.Seed(first), ptx.RaceCheck(false)), faulty.Plan{})
	x, err := newLacking(t, count, 1<<20)
	must(t, err)
	before := count.Count(faulty.Any)
	must(t, x.f.Apply(&StringBatch{Keys: x.keys, Vals: arena.Bytes(make([]uint64, wholeKeys)), Kind: op.Set}))
	after := count.Count(faulty.Any)
	must(t, x.f.Close())
	x.cpu.Close()
	done, tries := 0, seed.Times(4, 12)
	for i := range tries {
		at := before + 1 + i*(after-before)/tries
		dev := faulty.New(ptx.New(ptx.Seed(first), ptx.RaceCheck(false)), faulty.Plan{At: at, Lose: true})
		x, err := newLacking(t, dev, room)
		if errors.Is(err, device.ErrLost) {
			continue // what is copiedStrings before the batch depends on what the allocator has left of trees before
		}
		must(t, err)
		relief := time.AfterFunc(50*time.Millisecond, x.relieve)
		err = x.f.Apply(&StringBatch{Keys: x.keys, Vals: arena.Bytes(make([]uint64, wholeKeys)), Kind: op.Set})
		x.f.Wait()
		switch n := x.there(); {
		case err == nil && n != wholeKeys, err != nil && n != 0:
			t.Errorf("lost at %d of %d: %d of %d operations are done: %v", at-before, after-before, n, wholeKeys, err)
		case err == nil:
			done++
		case !errors.Is(err, op.ErrLimit):
			t.Error(err)
		}
		relief.Stop()
		x.f.Close()
		x.cpu.Close()
	}
	t.Logf("%d of %d batches were done", done, tries)
}

// A batch of several runs for whose long keys, which are in its last one, there is no
// host memory does nothing.
func TestLongKeysOfBatchAreFirst(t *testing.T) {
	first := seed.Of(t)
	dev := faulty.New(ptx.New(ptx.Seed(first), ptx.RaceCheck(false)), faulty.Plan{})
	x, err := newLacking(t, dev, 1<<20)
	must(t, err)
	keys := append([]string{}, x.keys...)
	for i := range 40 {
		keys = append(keys, fmt.Sprint(strings.Repeat("long", cuart.MaxKey/4+1), i))
	}
	err = x.f.Apply(&StringBatch{Keys: keys, Vals: arena.Bytes(make([]uint64, len(keys))), Kind: op.Set})
	if x.f.Wait(); !errors.Is(err, op.ErrLimit) || x.there() != 0 {
		t.Errorf("%d of %d operations are done: %v", x.there(), len(keys), err)
	}
	must(t, x.f.Down())
	must(t, x.f.Check())
	must(t, x.f.Close())
	x.cpu.Close()
}

package twin

import (
	"fmt"
	"math"
	"sync/atomic"
	"testing"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/seed"
)

// tight is a device that has no memory for a kernel when it is to be launched: a
// driver may load it only then.
type tight struct {
	device.Device
	at       int64
	launches atomic.Int64 // several goroutines launch
}

type tightStream struct {
	device.Stream
	of *tight
}

func (d *tight) NewStream() (device.Stream, error) {
	st, err := d.Device.NewStream()
	return tightStream{st, d}, err
}

func (s tightStream) Launch(k device.Kernel, g device.Grid, params []byte) error {
	if s.of.launches.Add(1) == s.of.at {
		return fmt.Errorf("%w: for a kernel", device.ErrOutOfMemory)
	}
	return s.Stream.Launch(k, g, params)
}

// Where a kernel is not launched for want of memory, nothing of its batch has been
// done, or the tree is lost. PANDO_LONG=1000 tries all of them.
func TestNoMemoryToLaunch(t *testing.T) {
	first := seed.Of(t)
	work := func(at int64) (launches int64) {
		dev := &tight{Device: ptx.New(ptx.Seed(first), ptx.RaceCheck(seed.Long())), at: at}
		a, err := newAlone(t, first, dev)
		if err != nil {
			return math.MaxInt64 // before there was a tree
		}
		for i, n := range []int{200, 40, 100} {
			a.s.gpu.tree.SetFlat(i%2*2 - 1)
			err := a.batch(n, i > 1)
			if err != nil && a.s.Lost() == nil && !short(err) {
				t.Fatal(err)
			}
		}
		if a.s.Lost() == nil {
			if err := a.find(300); err != nil && short(err) {
				must(t, a.find(300))
			} else {
				must(t, err)
			}
			must(t, a.s.Check())
		}
		a.s.Close() // of one that is lost it may be an error
		return dev.launches.Load()
	}
	step := int64(seed.Stride(32, 2, 4))
	for at := 1 + int64(first%uint64(step)); work(at) >= at && !t.Failed(); at += step {
	}
}

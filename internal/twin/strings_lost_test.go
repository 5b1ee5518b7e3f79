package twin

import (
	"fmt"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/faulty"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/packing"
	"github.com/pando-index/pando/internal/radix"
	"github.com/pando-index/pando/internal/seed"
)

// A twin whose GPU fails gives all memory back, the page-locked too, without being
// closed; but not before what was accepted is in host memory, which is where it lies.
func TestFailureGivesMemoryBack(t *testing.T) {
	first := seed.Of(t)
	const n = 200
	keys, vals := make([]string, n), make([]uint64, n)
	for i := range keys {
		keys[i], vals[i] = fmt.Sprint("key", i), uint64(i)
	}
	// life lets a twin accept a batch, which is not folded before it is told, and
	// then search.
	life := func(plan faulty.Plan) (dev *faulty.Device, x *following, goOn func(), before int) {
		dev = faulty.New(ptx.New(ptx.Seed(first), ptx.RaceCheck(false)), plan)
		x = &following{t: t, cpu: radix.New(0), model: map[string]uint64{}}
		var err error
		x.f, err = NewStrings(x.cpu, dev, StringsOptions{Workers: 2, ValBits: 64, Room: 64 << 20, Changes: 1})
		must(t, err)
		blocked := &blocker{make(chan struct{})}
		x.f.Log.Begin(0)
		x.f.Log.Accept(blocked, 0)
		must(t, x.f.Apply(&StringBatch{Keys: keys, Vals: arena.Bytes(vals), Kind: op.Set}))
		for i, k := range keys {
			x.model[k] = vals[i]
		}
		before = dev.Count(faulty.Any)
		x.find(packing.Strings{Keys: keys})
		return dev, x, func() { close(blocked.end) }, before
	}
	dev, x, goOn, before := life(faulty.Plan{})
	after := dev.Count(faulty.Any)
	goOn()
	must(t, x.f.Close())
	x.cpu.Close()
	for at := before + 1; at <= after; at += 1 + (after-before)/5 {
		for _, plan := range []faulty.Plan{{At: at, Lose: true}, {At: at, Err: device.ErrLaunchFailed}} {
			dev, x, goOn, _ := life(plan)
			if x.f.Down() == nil {
				t.Fatalf("%+v: the GPU has not failed", plan)
			}
			if dev.Live() == 0 && x.f.Pending() {
				t.Errorf("%+v: what was accepted lies in memory that was given back", plan)
			}
			for i, k := range keys {
				if v, ok := x.f.Get(k); v != vals[i] || !ok {
					t.Fatalf("%+v: %q has %d, %t", plan, k, v, ok)
				}
			}
			goOn()
			for start := time.Now(); dev.Live() > 0; time.Sleep(time.Millisecond) {
				if time.Since(start) > 20*time.Second {
					t.Fatalf("%+v: %d things are left on the device", plan, dev.Live())
				}
			}
			x.find(packing.Strings{Keys: keys})
			must(t, x.f.Apply(&StringBatch{Keys: keys[:50], Kind: op.Delete}))
			if got := x.cpu.Len(); got != n-50 || x.f.Len() != got || x.f.DeviceBytes() != 0 {
				t.Errorf("%+v: %d entries, and %d bytes on the GPU", plan, got, x.f.DeviceBytes())
			}
			x.f.Close()
			x.cpu.Close()
		}
	}
}

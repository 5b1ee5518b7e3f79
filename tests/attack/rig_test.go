package attack

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/faulty"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/index/indextest"
)

// rig is what stands for GPU 0 in a case: interpreters, each inside a device
// that can fail and that knows what it still holds.
type rig struct {
	seed   uint64
	races  bool
	memory int64
	steps  uint64 // that a launch may take; 0 is any number
	plan   faulty.Plan
	at     int // the number of the device, in the order they are opened, that fails as planned

	mu     sync.Mutex
	opened []*faulty.Device
}

// plenty is memory enough for every index.
const plenty = 1 << 30

// current is the rig of the case that runs.
var current atomic.Pointer[rig]

// prepare puts rigs in the place of GPUs until the test ends.
func prepare(t *testing.T) {
	indextest.Quiet(t)
	indextest.Hasty(t, 64)
	indextest.UseGPU(t, func(i int) (device.Device, error) {
		r := current.Load()
		if i != 0 || r == nil {
			return nil, device.ErrNoDevice
		}
		return r.open(), nil
	})
}

// use makes the case's rig that of GPU 0.
func (c *testCase) use() {
	r := &c.gpu
	r.seed, r.races = c.rng.Uint64(), oneIn(c.rng, 3)
	r.memory = plenty
	current.Store(r)
}

func (r *rig) open() device.Device {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.opened)
	plan := faulty.Plan{}
	if n == r.at {
		plan = r.plan
	}
	d := faulty.New(ptx.New(ptx.Seed(r.seed+uint64(n)), ptx.RaceCheck(r.races), ptx.Memory(r.memory), ptx.Steps(r.steps)), plan)
	r.opened = append(r.opened, d)
	return d
}

// nothingLeft returns an error if something was not given back to a device.
func (r *rig) nothingLeft() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, d := range r.opened {
		if n := d.Live(); n != 0 {
			return fmt.Errorf("device %d still holds %d things", i, n)
		}
	}
	return nil
}

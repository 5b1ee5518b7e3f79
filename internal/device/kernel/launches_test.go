package kernel_test

import (
	"testing"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/device/ptx"
)

// counter is a stream that counts what it is given, and does nothing.
type counter struct {
	device.Stream
	fills, launches int
}

func (c *counter) Fill(device.Ptr, uint32, int) error { c.fills++; return nil }

func (c *counter) Launch(device.Kernel, device.Grid, []byte) error { c.launches++; return nil }

// Each launch costs 3 to 4 µs, a small batch's sort little more.
func TestSortLaunchesFewKernels(t *testing.T) {
	d := ptx.New()
	defer d.Close()
	set, err := kernel.LoadOnly(d, kernel.Sorting)
	must(t, err)
	c := &counter{}
	var p kernel.Params
	job := kernel.SortJob{KeyBits: 32, To: 22, N: 64 << 10, Implicit: true}
	var st device.Stream = c
	if allocs := testing.AllocsPerRun(10, func() { must(t, set.Sort(st, &p, &job)) }); allocs > 0 {
		t.Errorf("a sort allocates %v times", allocs)
	}
	*c = counter{}
	must(t, set.Sort(st, &p, &job))
	if c.fills != 1 || c.launches != 4 {
		t.Errorf("a sort by 22 bits queues %d fills and %d launches, want 1 and 4", c.fills, c.launches)
	}
}

package faulty_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/faulty"
	"github.com/pando-index/pando/internal/device/ptx"
)

// copier is a device with a graph that copies its words, which are 3, to out.
type copier struct {
	d   *faulty.Device
	s   device.Stream
	g   device.Graph
	out []byte
}

func newCopier(t *testing.T, seed uint64, p faulty.Plan) copier {
	t.Helper()
	d := faulty.New(ptx.New(ptx.Seed(seed)), p)
	at, err := d.Alloc(64)
	mustNot(t, err)
	s, err := d.NewStream()
	mustNot(t, err)
	out, err := d.HostAlloc(64)
	mustNot(t, err)
	g, err := d.NewGraph(func(s device.Stream) error {
		return errors.Join(s.Fill(at, 0x03030303, 64), s.CopyOut(out, at))
	})
	mustNot(t, err)
	return copier{d, s, g, out}
}

var right = bytes.Repeat([]byte{3}, 64)

// The copies of a graph that does not start are spoiled, and so are those that
// a failed wait waited for, at whichever start.
func TestFailedGraphSpoils(t *testing.T) {
	for seed := range uint64(20) {
		for at := 1; at <= 3; at++ {
			c := newCopier(t, seed, faulty.Plan{Op: faulty.Start, At: at})
			for i := 1; i <= 3; i++ {
				err := c.s.Start(c.g)
				if (err != nil) != (i == at) || err != nil && !errors.Is(err, device.ErrLaunchFailed) {
					t.Fatalf("start %d: %v", i, err)
				}
				if err == nil {
					mustNot(t, c.s.Synchronize())
				}
				if bytes.Equal(c.out, right) != (err == nil) {
					t.Fatalf("start %d gave %v and %v", i, err, c.out)
				}
			}
			c = newCopier(t, seed, faulty.Plan{Op: faulty.Synchronize, At: at})
			for i := 1; i <= 3; i++ {
				mustNot(t, c.s.Start(c.g))
				if err := c.s.Synchronize(); (err != nil) != (i == at) || bytes.Equal(c.out, right) != (err == nil) {
					t.Fatalf("wait %d gave %v and %v", i, err, c.out)
				}
			}
		}
	}
}

// Operations of a chain count, and fail as planned, when they are recorded; a
// start is one operation whatever is in the graph.
func TestGraphCounts(t *testing.T) {
	c := newCopier(t, 1, faulty.Plan{})
	for range 3 {
		mustNot(t, c.s.Start(c.g))
	}
	for op, want := range map[faulty.Op]int{faulty.Fill: 1, faulty.CopyOut: 1, faulty.NewGraph: 1, faulty.Start: 3} {
		if got := c.d.Count(op); got != want {
			t.Errorf("%v: counted %d times, want %d", op, got, want)
		}
	}
	d := faulty.New(ptx.New(), faulty.Plan{Op: faulty.Fill, At: 1})
	_, err := d.NewGraph(func(s device.Stream) error { return s.Fill(1024, 1, 4) })
	if !errors.Is(err, device.ErrLaunchFailed) || d.Count(faulty.NewGraph) != 0 || d.Live() != 0 {
		t.Errorf("%v, %d graphs, %d live", err, d.Count(faulty.NewGraph), d.Live())
	}
	if c.s.Start(nil) == nil {
		t.Error("no graph was started")
	}
	other := newCopier(t, 1, faulty.Plan{})
	if c.s.Start(other.g) == nil {
		t.Error("a graph of another device was started")
	}
}

// A range that fails to grow is as it was, and grows the next time.
func TestFailedGrow(t *testing.T) {
	below := ptx.New()
	d := faulty.New(below, faulty.Plan{Op: faulty.Grow, At: 2})
	r, err := d.Reserve(1 << 20)
	mustNot(t, err)
	mustNot(t, r.Grow(100))
	if err := r.Grow(1000); !errors.Is(err, device.ErrOutOfMemory) || r.Len() != 100 {
		t.Errorf("%v, %d bytes", err, r.Len())
	}
	mustNot(t, r.Grow(1000))
	mustNot(t, r.Free())
	if free, err := below.FreeBytes(); err != nil || free != below.Info().TotalBytes || d.Live() != 0 {
		t.Errorf("%d bytes free, %v, %d live", free, err, d.Live())
	}
}

package twin

import (
	"errors"
	"slices"
	"sync"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/backlog"
	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
)

// run is the effects of one batch, each key once and in order, in segments.
type run[C order.Code] struct {
	t     *Twin[C]
	parts []*segment[C]
	n     int
}

// cut leaves the first n changes of a run, and returns the segments that it has no
// use for.
func (r *run[C]) cut(n int) (rest []*segment[C]) {
	r.n = n
	for i, s := range r.parts {
		if n == 0 {
			r.parts, rest = r.parts[:i], r.parts[i:]
			return rest
		}
		s.n = min(s.n, n)
		n -= s.n
	}
	return nil
}

// Get returns the run's effect on a key. known is whether there is one.
func (r *run[C]) Get(key C) (val C, ok, known bool) {
	for _, s := range r.parts {
		if s.n > 0 && key <= s.keys[s.n-1] {
			return s.get(key)
		}
	}
	return 0, false, false
}

// Fold folds all segments into the tree in host memory.
func (r *run[C]) Fold() {
	for _, s := range r.parts {
		ops := &bplus.Ops[C]{Keys: s.keys[:s.n], Vals: s.vals[:s.n], Kinds: s.kinds[:s.n]}
		backlog.Insist(func() error { return r.t.cpu.Apply(ops, r.t.workers) })
	}
}

// Free keeps the segments for later.
func (r *run[C]) Free() { r.t.spare.keep(r.parts) }

// Size returns the number of changes.
func (r *run[C]) Size() int { return r.n }

// A log keeps runs. A function of a type parameter is checked and not compiled, where a
// variable has all of a tree compiled with this package.
func _[C order.Code]() { var _ backlog.Run[C, C] = (*run[C])(nil) }

// segment is changes in page-locked memory.
type segment[C order.Code] struct {
	memory     []byte
	room       int // operations that it is made for
	keys, vals []C
	kinds      []op.Kind
	n          int
}

// newSegment returns page-locked memory for ops operations.
func newSegment[C order.Code](dev device.Device, ops int) (*segment[C], error) {
	memory, err := dev.HostAlloc(2*device.Aligned(ops*sizeOf[C]()) + ops)
	if err != nil {
		return nil, err
	}
	return &segment[C]{memory: memory, room: ops}, nil
}

// lay divides a segment into n keys, unless keys is false, n vals and n kinds, one
// behind the other, column bytes apart, and reports whether it has room for that.
func (s *segment[C]) lay(n, column int, keys bool) bool {
	at, bytes := s.memory, n*sizeOf[C]()
	if s.keys = nil; keys {
		if len(at) < column {
			return false
		}
		s.keys, at = arena.As[C](at[:bytes]), at[column:]
	}
	if len(at) < column+n {
		return false
	}
	s.vals, s.kinds = arena.As[C](at[:bytes]), arena.As[op.Kind](at[column:][:n])
	return true
}

// get returns the segment's effect on a key. known is whether there is one.
func (s *segment[C]) get(key C) (val C, ok, known bool) {
	if i, there := slices.BinarySearch(s.keys[:s.n], key); there {
		return s.vals[i], s.kinds[i] == op.Set, true
	}
	return 0, false, false
}

// Segments are of a few sizes: a small batch does not take the memory of a large
// one.
const (
	segmentOps   = 1 << 20 // operations in the largest,
	segmentStep  = 8       // times as many as in the next smaller size,
	segmentSizes = 3       // number of sizes
)

// spareSegments is segments for later runs.
type spareSegments[C order.Code] struct {
	sync.Mutex
	dev device.Device
	of  [segmentSizes][]*segment[C]
}

// segment returns memory for a run of n operations, or for a part of it.
func (g *spareSegments[C]) segment(n int) (*segment[C], error) {
	size, ops := 0, segmentOps
	for ; size+1 < segmentSizes && n <= ops/segmentStep; size++ {
		ops /= segmentStep
	}
	g.Lock()
	defer g.Unlock()
	if k := len(g.of[size]); k > 0 {
		s := g.of[size][k-1]
		g.of[size] = g.of[size][:k-1]
		return s, nil
	}
	return newSegment[C](g.dev, ops)
}

// keep takes segments that are not needed.
func (g *spareSegments[C]) keep(parts []*segment[C]) {
	g.Lock()
	defer g.Unlock()
	for _, s := range parts {
		size := 0
		for ops := segmentOps; ops > s.room; size++ {
			ops /= segmentStep
		}
		g.of[size] = append(g.of[size], s)
	}
}

// close frees all segments. The log is empty.
func (g *spareSegments[C]) close() (err error) {
	g.Lock()
	defer g.Unlock()
	for size, spare := range g.of {
		for _, s := range spare {
			err = errors.Join(err, g.dev.HostFree(s.memory))
		}
		g.of[size] = nil
	}
	return err
}

package twin

import (
	"errors"
	"runtime"
	"weak"

	"github.com/pando-index/pando/internal/chunked"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
)

// SoloSnapshot is a Solo as it was: a version of the tree in the GPU's memory,
// which keeps its leaves and chunks while the tree goes on. Its methods may be
// called from any goroutine, and wait for each other and for the tree's. It
// outlives Close of the tree, and a GPU that is lost takes it along.
type SoloSnapshot[C order.Code] struct {
	s      *Solo[C]
	at     *chunked.Snapshot[C] // nil when it was released
	n      int
	forget runtime.Cleanup
}

// Snapshot returns the tree as it is. It costs nothing now; from then on leaves
// that change are copied, until Release. A forgotten one is released when the
// garbage collector has found it.
func (s *Solo[C]) Snapshot() (*SoloSnapshot[C], error) {
	var v *SoloSnapshot[C]
	err := s.use(func() error {
		at := s.gpu.tree.Snapshot()
		v = &SoloSnapshot[C]{s: s, at: at, n: at.Len()}
		s.taken[at] = weak.Make(v)
		v.forget = runtime.AddCleanup(v, func(s *Solo[C]) { go s.sweep() }, s) // a cleanup must not wait
		return nil
	})
	return v, err
}

// sweep releases forgotten snapshots, and gives the device of a closed tree
// back with the last.
func (s *Solo[C]) sweep() {
	s.gpu.Lock()
	defer s.gpu.Unlock()
	if s.closed {
		// Errors of a GPU that is given back do not matter.
		s.releaseForgotten()
		s.giveBack()
		return
	}
	s.run(func() error { return nil }) // an error is noted: the next method returns it
}

// releaseForgotten releases the snapshots that nobody has any more, and returns
// how many.
func (s *Solo[C]) releaseForgotten() (n int, err error) {
	for at, v := range s.taken {
		if v.Value() == nil {
			n++
			delete(s.taken, at)
			err = errors.Join(err, at.Release())
		}
	}
	return n, err
}

// Kept returns the device memory that only snapshots need.
func (s *Solo[C]) Kept() int64 {
	s.gpu.Lock()
	defer s.gpu.Unlock()
	if s.closed && len(s.taken) == 0 {
		return 0
	}
	return s.gpu.tree.Kept()
}

// use runs f with the device to itself.
func (v *SoloSnapshot[C]) use(f func() error) error {
	v.s.gpu.Lock()
	defer v.s.gpu.Unlock()
	if v.at == nil {
		return op.ErrClosed
	}
	return v.s.run(f)
}

// Len returns the number of entries.
func (v *SoloSnapshot[C]) Len() int { return v.n }

// Kept returns the device memory that only snapshots of the tree need.
func (v *SoloSnapshot[C]) Kept() int64 { return v.s.Kept() }

// Find looks n keys up: see Twin.Find.
func (v *SoloSnapshot[C]) Find(n int, fill func(lo int, keys []C), answer func(lo int, vals []C, found []byte)) error {
	return v.use(func() error { return v.s.gpu.find(v.at, n, v.s.workers, fill, answer) })
}

// Rank sets ranks to the number of entries below each key, or up to it where
// after is true.
func (v *SoloSnapshot[C]) Rank(keys []C, after bool, ranks []int) error {
	return v.use(func() error { return v.s.gpu.ranks(v.at, keys, after, ranks) })
}

// Runs copies runs of entries out: run r begins with entry first[r], and goes to
// keys and vals from offsets[r] on, up to the next.
func (v *SoloSnapshot[C]) Runs(first, offsets []int, keys, vals []C) error {
	return v.use(func() error { return v.s.gpu.runs(v.at, first, offsets, keys, vals) })
}

// Release gives up memory that only the snapshot needs. A second Release does
// nothing.
func (v *SoloSnapshot[C]) Release() error {
	s := v.s
	s.gpu.Lock()
	defer s.gpu.Unlock()
	if v.at == nil {
		return nil
	}
	v.forget.Stop()
	at := v.at
	v.at = nil
	delete(s.taken, at)
	if s.closed && len(s.taken) == 0 {
		return s.giveBack() // and everything on it
	}
	return s.run(at.Release)
}

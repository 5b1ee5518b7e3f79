package twin

import (
	"runtime"

	"github.com/pando-index/pando/internal/chunked"
	"github.com/pando-index/pando/internal/order"
)

// SoloSnapshot is a Solo as it was: a version of the tree in the GPU's memory,
// which keeps what it needs while the tree goes on. Its methods may be called from
// any goroutine, and wait for each other and for the tree's. It outlives Close of
// the tree, and a GPU that is lost takes it along.
type SoloSnapshot[C order.Code] struct {
	s      *Solo[C]
	at     *chunked.Snapshot[C] // nil when it was released
	n      int
	forget runtime.Cleanup
}

// Snapshot returns the tree as it is. It costs nothing now; from then on leaves
// that change are copied, until Release. A forgotten one is released with the
// next batch after the garbage collector has found it.
func (s *Solo[C]) Snapshot() (*SoloSnapshot[C], error) {
	var v *SoloSnapshot[C]
	err := s.use(func() error {
		at := s.gpu.tree.Snapshot()
		s.taken++
		v = &SoloSnapshot[C]{s: s, at: at, n: at.Len()}
		v.forget = runtime.AddCleanup(v, s.drop, at)
		return nil
	})
	return v, err
}

// drop notes a snapshot that nobody has any more. It waits for nobody.
func (s *Solo[C]) drop(at *chunked.Snapshot[C]) {
	s.dropped.Lock()
	defer s.dropped.Unlock()
	s.dropped.all = append(s.dropped.all, at)
}

// releaseDropped releases what the garbage collector has found.
func (s *Solo[C]) releaseDropped() error {
	s.dropped.Lock()
	all := s.dropped.all
	s.dropped.all = nil
	s.dropped.Unlock()
	s.taken -= len(all)
	for _, at := range all {
		if err := at.Release(); err != nil {
			return err
		}
	}
	return nil
}

// Kept returns the device memory that only snapshots need.
func (s *Solo[C]) Kept() int64 {
	s.gpu.Lock()
	defer s.gpu.Unlock()
	if s.closed && s.taken == 0 {
		return 0
	}
	return s.gpu.tree.Kept()
}

// use runs f with the device to itself.
func (v *SoloSnapshot[C]) use(f func() error) error {
	v.s.gpu.Lock()
	defer v.s.gpu.Unlock()
	if v.at == nil {
		return ErrClosed
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

// Release gives up what only the snapshot needs. A second Release does nothing.
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
	s.taken--
	if s.closed && s.taken == 0 {
		return s.giveBack() // and everything on it
	}
	return s.run(at.Release)
}

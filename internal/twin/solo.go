package twin

import (
	"errors"
	"runtime"
	"sync/atomic"
	"weak"

	"github.com/pando-index/pando/internal/chunked"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
)

// Solo is a tree on a GPU alone, without a twin in host memory: a GPU that is
// lost takes it along. Its methods may be called from any goroutine, and wait for
// each other.
type Solo[C order.Code] struct {
	gpu     onDevice[C]
	workers int
	seq     atomic.Uint64 // number of batches that may have changed something
	entries atomic.Int64
	lost    error
	closed  bool
	taken   map[*chunked.Snapshot[C]]weak.Pointer[SoloSnapshot[C]] // snapshots that have not been released, and their users
	forget  runtime.Cleanup
}

// NewSolo returns an empty tree. The device is the tree's from then on, also if
// there is an error.
func NewSolo[C order.Code](dev device.Device, opts Options) (*Solo[C], error) {
	s := &Solo[C]{workers: max(1, opts.Workers), taken: map[*chunked.Snapshot[C]]weak.Pointer[SoloSnapshot[C]]{}}
	s.gpu.dev = dev
	tree, err := chunked.New[C](dev, chunked.Options{Room: opts.Room, Flat: opts.Flat})
	if err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	s.gpu.tree = tree
	s.gpu.staging.open(dev)
	if err := s.gpu.prepare(); err != nil {
		return nil, errors.Join(err, s.gpu.close())
	}
	s.forget = runtime.AddCleanup(s, func(d device.Device) { d.Close() }, dev)
	return s, nil
}

// use runs f with the device to itself.
func (s *Solo[C]) use(f func() error) error {
	s.gpu.Lock()
	defer s.gpu.Unlock()
	if s.closed {
		return op.ErrClosed
	}
	return s.run(f)
}

// run runs f. The caller has the device to itself. A device that has failed is
// not used again, unless it was only short of memory: then everything is as it
// was.
func (s *Solo[C]) run(f func() error) error {
	if s.lost != nil {
		return s.lost
	}
	_, err := s.releaseForgotten()
	if err == nil {
		err = f()
	}
	if err != nil && !short(err) {
		s.lost = err
	}
	return err
}

// short reports whether an error is that memory was short.
func short(err error) bool {
	return errors.Is(err, op.ErrLimit) || errors.Is(err, device.ErrOutOfMemory)
}

// change runs f, which changes the tree or leaves it as it was. Before memory is
// called short, the garbage collector looks for snapshots that keep some of it for
// nobody.
func (s *Solo[C]) change(f func() error) error {
	return s.use(func() error {
		err := f()
		for i := 0; i < collections && err != nil && short(err) && len(s.taken) > 0; i++ {
			runtime.GC()
			n, lost := s.releaseForgotten()
			if lost != nil {
				return lost
			}
			if n > 0 {
				err = f()
			}
		}
		return err
	})
}

// collections is how often the collector looks for snapshots, as in package arena.
const collections = 3

// Lost returns the error of a lost device, or nil.
func (s *Solo[C]) Lost() error {
	s.gpu.Lock()
	defer s.gpu.Unlock()
	return s.lost
}

// Seq returns a number that is the same for as long as nothing has changed.
func (s *Solo[C]) Seq() uint64 { return s.seq.Load() }

// Len returns the number of entries.
func (s *Solo[C]) Len() int { return int(s.entries.Load()) }

// Bytes returns the device memory in use.
func (s *Solo[C]) Bytes() int64 {
	s.gpu.Lock()
	defer s.gpu.Unlock()
	if s.closed {
		return 0
	}
	return s.gpu.tree.Bytes()
}

// Apply does a batch, all of it or, if there is an error and the device is not
// lost, nothing. Answers are handed out while the tree is written: some may be
// there also where the device is lost meanwhile.
func (s *Solo[C]) Apply(b *Batch[C]) error {
	if b.N == 0 {
		return nil
	}
	return s.change(func() error {
		s.seq.Add(1)
		before := s.gpu.tree.Len()
		err := s.counted(s.gpu.apply(&batch[C]{
			n: b.N, kinds: b.Kinds, kind: b.Kind, fill: b.Fill, own: b.Own, answer: b.Answer, old: b.Old, workers: s.workers,
		}))
		if err == nil {
			b.less(before, s.gpu.tree.Len())
		}
		return err
	})
}

// counted notes the number of entries after a change, unless that has failed.
func (s *Solo[C]) counted(err error) error {
	if err == nil {
		s.entries.Store(int64(s.gpu.tree.Len()))
	}
	return err
}

// Single does one operation, and returns the value before, and whether there was one.
func (s *Solo[C]) Single(kind op.Kind, key, val C) (old C, had bool, err error) {
	err = s.Apply(&Batch[C]{
		N: 1, Kinds: true, Old: true,
		Fill: func(_ int, keys, vals []C, kinds []uint8) { keys[0], vals[0], kinds[0] = key, val, uint8(kind) },
		Answer: func(_ int, o []C, h []uint8) {
			old, had = o[0], h[0] != 0
		},
	})
	return old, had, err
}

// Seen is a key as it was at some time.
type Seen[C order.Code] struct {
	Val C
	Had bool
	key C
	seq uint64
}

// Look returns a key as it is.
func (s *Solo[C]) Look(key C) (seen Seen[C], err error) {
	err = s.use(func() (err error) {
		seen, err = s.look(key)
		return err
	})
	return seen, err
}

// look is Look for a caller that has the device to itself.
func (s *Solo[C]) look(key C) (seen Seen[C], err error) {
	seen = Seen[C]{key: key, seq: s.seq.Load()}
	err = s.gpu.find(s.gpu.tree, 1, 1, func(_ int, keys []C) { keys[0] = key }, func(_ int, vals []C, found []byte) {
		seen.Val, seen.Had = vals[0], found[0]&1 != 0
	})
	return seen, err
}

// SingleIf does one operation on a key if it still is as it was seen, and reports whether it
// did. Changes of other keys do not matter, however many they are.
func (s *Solo[C]) SingleIf(seen Seen[C], kind op.Kind, val C) (done bool, err error) {
	err = s.change(func() error {
		if s.seq.Load() != seen.seq {
			now, err := s.look(seen.key)
			if err != nil || now.Had != seen.Had || now.Had && now.Val != seen.Val {
				return err
			}
		}
		err := s.one(kind, seen.key, val)
		done = err == nil
		return err
	})
	return done, err
}

// one does one operation, and returns nothing of what was there. The caller has the device to
// itself.
func (s *Solo[C]) one(kind op.Kind, key, val C) error {
	s.seq.Add(1)
	return s.counted(s.gpu.apply(&batch[C]{n: 1, kind: kind, fill: func(_ int, keys, vals []C, _ []uint8) {
		copy(keys, []C{key})
		copy(vals, []C{val})
	}}))
}

// Pop deletes the first entry, or the last, and returns it; ok is false if there is none.
func (s *Solo[C]) Pop(last bool) (key, val C, ok bool, err error) {
	err = s.change(func() error {
		n, at := s.gpu.tree.Len(), 0
		if n == 0 {
			return nil
		}
		if last {
			at = n - 1
		}
		var k, v [1]C
		if err := s.gpu.runs(s.gpu.tree, []int{at}, []int{0, 1}, k[:], v[:]); err != nil {
			return err
		}
		err := s.one(op.Delete, k[0], 0)
		key, val, ok = k[0], v[0], err == nil
		return err
	})
	return key, val, ok, err
}

// Find looks n keys up: see Twin.Find.
func (s *Solo[C]) Find(n int, fill func(lo int, keys []C), answer func(lo int, vals []C, found []byte)) error {
	return s.use(func() error { return s.gpu.find(s.gpu.tree, n, s.workers, fill, answer) })
}

// Get returns the value of key, and reports whether there is one.
func (s *Solo[C]) Get(key C) (val C, ok bool, err error) {
	seen, err := s.Look(key)
	return seen.Val, seen.Had, err
}

// Rank sets ranks to the number of entries below each key, or up to it where
// after is true.
func (s *Solo[C]) Rank(keys []C, after bool, ranks []int) error {
	return s.use(func() error { return s.gpu.ranks(s.gpu.tree, keys, after, ranks) })
}

// Ranges reads many ranges: see Twin.Ranges.
func (s *Solo[C]) Ranges(lo, hi []C, limit int, offsets []int, room func(n int) (keys, vals []C)) error {
	return s.use(func() error { return s.gpu.ranges(s.gpu.tree, lo, hi, limit, offsets, room) })
}

// Entries sets keys and vals to those of the entries from lo on, as many as there
// are and fit, and returns how many.
func (s *Solo[C]) Entries(lo int, keys, vals []C) (n int, err error) {
	err = s.use(func() error {
		n = max(0, min(len(keys), s.gpu.tree.Len()-lo))
		return s.gpu.runs(s.gpu.tree, []int{lo}, []int{0, n}, keys[:n], vals[:n])
	})
	return n, err
}

// Near sets keys and vals to those of the entries from a key on, or down to the last below it,
// as many as there are and fit, and returns how many, with the number that Seq returned.
func (s *Solo[C]) Near(key C, down bool, keys, vals []C) (n int, seq uint64, err error) {
	err = s.use(func() error {
		seq = s.seq.Load()
		if !down {
			n, err = s.gpu.from(key, keys, vals)
			return err
		}
		var end [1]int
		if err := s.gpu.ranks(s.gpu.tree, []C{key}, true, end[:]); err != nil {
			return err
		}
		n = min(len(keys), end[0])
		return s.gpu.runs(s.gpu.tree, []int{end[0] - n}, []int{0, n}, keys[:n], vals[:n])
	})
	return n, seq, err
}

// Check looks at all of the tree.
func (s *Solo[C]) Check() error { return s.use(s.gpu.tree.Check) }

// Close gives the device back, or leaves that to the last snapshot. A second Close
// does nothing.
func (s *Solo[C]) Close() error {
	s.gpu.Lock()
	defer s.gpu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.seq.Add(1)
	_, err := s.releaseForgotten()
	return errors.Join(err, s.giveBack())
}

// giveBack gives the device back when nobody needs it any more.
func (s *Solo[C]) giveBack() error {
	if !s.closed || len(s.taken) > 0 {
		return nil
	}
	s.forget.Stop()
	return s.gpu.close()
}

// Closed reports whether the tree was closed.
func (s *Solo[C]) Closed() bool {
	s.gpu.Lock()
	defer s.gpu.Unlock()
	return s.closed
}

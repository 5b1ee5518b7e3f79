package blob

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/pando-index/pando/internal/mutant"
)

// Slabs whose slots are mostly free are emptied: their values are moved to other slabs, and
// the slabs go back to the system. A slot does not know which entry of the tree has its Ref,
// which would take 8 bytes more for each value, and change whenever the tree moves an entry.
// So whoever has the tree walks over its entries and moves those that Emptying.Has names.

// freeShare is the part of what is used that may be free without slabs being emptied, beside
// freeAnyway bytes.
const freeShare = 16

var freeAnyway atomic.Int64

func init() { freeAnyway.Store(16 << 20) }

// SetFreeAnyway sets how many bytes may be free in any store without slabs being emptied, and
// returns a function that undoes it. It is for tests.
func SetFreeAnyway(bytes int64) (undo func()) {
	old := freeAnyway.Swap(bytes)
	return func() { freeAnyway.Store(old) }
}

// Emptying is slabs that are being emptied.
type Emptying struct {
	s      *Store
	marked []uint64 // a bit for each slab
	slabs  []victim
}

// victim is a slab that is being emptied.
type victim struct {
	slab uint32
	cl   int
}

// Sparse reports whether so much of the slabs is free that it is time to empty some. Where that
// has just been tried, some more must be free than then.
func (s *Store) Sparse() bool {
	st := s.Stats()
	may := freeAnyway.Load() + (st.Live+st.Kept)/freeShare
	tried := s.tried.Load()
	if st.Free < tried {
		s.tried.CompareAndSwap(tried, st.Free)
		tried = st.Free
	}
	return st.Free > max(may, tried+may/4)
}

// Reconsider makes Sparse forget what was tried: values that could not be moved can be, since a
// snapshot was closed.
func (s *Store) Reconsider() { s.tried.Store(0) }

// Empty marks slabs that are to be emptied: as many as there is room for in others for their
// values. It returns nil if there are none, or others are being emptied. From now on no slots
// are taken from them, until Done.
func (s *Store) Empty() *Emptying {
	if !s.moving.TryLock() {
		return nil
	}
	e := &Emptying{s: s}
	s.dropSpare()
	for cl := range s.shelves {
		e.mark(cl)
	}
	if !(mutant.On && mutant.Is("blob: stashes out")) {
		s.unstashAll()
	}
	if len(e.slabs) == 0 {
		s.tried.Store(s.Stats().Free)
		s.moving.Unlock()
		return nil
	}
	return e
}

// unstashAll gives the slots in all stashes back: some are of slabs that are to be emptied, and
// one slot keeps its slab.
func (s *Store) unstashAll() {
	for i := range s.count.Load() {
		x := s.shards[i].Load()
		x.mu.Lock()
		if !s.closed {
			for cl := range x.stash {
				s.unstash(&x.stash[cl], cl)
			}
		}
		x.mu.Unlock()
	}
}

// mark marks slabs of a class: the emptiest, as long as their values have room in the others.
func (e *Emptying) mark(cl int) {
	f, c := &e.s.shelves[cl], &classes[cl]
	f.mu.Lock()
	if open := f.open; open >= 0 { // it may be as empty as any
		h := headerOf(uint32(open))
		h.state.Store(stateFull)
		f.open = -1
		if h.live.Load() == 0 {
			e.s.remove(f, h)
			defer slabs.Give(int(open))
		} else {
			f.relist(h, c)
		}
	}
	type slab struct {
		number uint32
		live   int
	}
	var all []slab
	free := 0
	for _, n := range f.slabs {
		live := int(headerOf(n).live.Load())
		all = append(all, slab{n, live})
		free += c.slots - live
	}
	slices.SortFunc(all, func(a, b slab) int { return cmp.Compare(a.live, b.live) })
	move := 0
	for _, x := range all {
		free -= c.slots - x.live
		if move += x.live; move > free || x.live > c.slots-c.slots/8 {
			break
		}
		h := headerOf(x.number)
		if !(mutant.On && mutant.Is("blob: unlisted while emptied")) {
			f.unlist(h)
		}
		h.state.Store(stateEmptying)
		e.slabs = append(e.slabs, victim{x.number, cl})
		if more := int(x.number/64) + 1 - len(e.marked); more > 0 {
			e.marked = append(e.marked, make([]uint64, more)...)
		}
		e.marked[x.number/64] |= 1 << (x.number % 64)
	}
	f.mu.Unlock()
}

// Has reports whether a value lies in one of the slabs, so that it is to be moved. r may be
// any word that a tree holds.
func (e *Emptying) Has(r Ref) bool {
	if r.kind() != kindSlab {
		return false
	}
	if at, _ := r.place(); at == nil {
		return false
	}
	n := r.slab()
	if int(n/64) >= len(e.marked) || e.marked[n/64]>>(n%64)&1 == 0 {
		return false
	}
	return headerOf(n).state.Load() == stateEmptying // it may have been given back, and taken again
}

// Move returns the Ref of a copy of a value, in another slab. The caller puts it in the place
// of the old one, which it then retires, if the entry still has that and the old value cannot
// have been freed since it was found; else it drops the new one. The limit does not bind: the
// memory is soon given back.
func (e *Emptying) Move(r Ref, epoch uint64) (Ref, error) {
	to, err := e.s.put(r.bytes(), epoch)
	if err == nil && e.s.counts {
		e.s.taken.Add(roomOf(r.Len()))
	}
	return to, err
}

// Done ends it: slabs that still have values, since these are kept for snapshots or were put
// meanwhile, are used again.
func (e *Emptying) Done() {
	for _, v := range e.slabs {
		f := &e.s.shelves[v.cl]
		f.mu.Lock()
		h := headerOf(v.slab)
		gone := false
		if h.who.Load() == e.s.who(v.cl) && h.state.Load() == stateEmptying {
			h.state.Store(stateFull)
			if gone = h.live.Load() == 0; gone {
				e.s.remove(f, h)
			} else {
				f.relist(h, &classes[v.cl])
			}
		}
		f.mu.Unlock()
		if gone {
			slabs.Give(int(v.slab))
		}
	}
	e.s.tried.Store(e.s.Stats().Free)
	e.s.moving.Unlock()
}

// Left returns how many values are still in the slabs.
func (e *Emptying) Left() (n int) {
	for _, v := range e.slabs {
		if h := headerOf(v.slab); h.who.Load() == e.s.who(v.cl) && h.state.Load() == stateEmptying {
			n += int(h.live.Load())
		}
	}
	return n
}

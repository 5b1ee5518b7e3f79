package epoch

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/stall"
)

// Values is references in a tree that stand for memory of the tree's user, such as the numbers of
// boxes: they wait there from when they are no longer in the tree until no reader and no snapshot
// can have them. Any goroutine may call any method at any time. A nil Values does nothing.
type Values struct {
	clock *Clock
	free  func(refs []uint64)
	last  func() // is called when all memory is given back; nil for none

	// parts have the references that were retired, and those that the newest snapshot has.
	// Goroutines that retire references at once meet in one of them seldom.
	parts [16]part

	mu        sync.Mutex // guards snapshots, and comes before the locks of parts
	snapshots []*moment  // the oldest first; changes only while all parts are locked, too
	over      bool       // all memory was given back; guarded by the locks of parts

	newest atomic.Uint64 // epoch of the newest snapshot; 0 if there is none
}

type part struct {
	mu    sync.Mutex
	limbo Limbo
	kept  List     // references that the newest snapshot has
	_     [64]byte // of its own cache lines
}

// moment is the snapshot of an epoch, with the references that are kept for it.
type moment struct {
	epoch uint64
	refs  List
}

// NewValues returns the Values of a tree with a clock. free is called with references that are
// free, and may not keep the slice, nor use the tree.
func NewValues(c *Clock, free func(refs []uint64)) *Values { return &Values{clock: c, free: free} }

// OnOver sets the function that is called when the tree is closed, and all its snapshots: the
// user gives back all memory that references stand for. It may not use the tree.
func (v *Values) OnOver(f func()) { v.last = f }

// Newest returns the epoch of the newest snapshot, and 0 if there is none. References that were
// put in later are in no snapshot, unless one is taken meanwhile.
func (v *Values) Newest() uint64 { return v.newest.Load() }

// Retire takes references that are no longer in the tree. born has the epoch in which each was put
// in, or an earlier one. The caller has no lock of the tree.
func (v *Values) Retire(refs, born []uint64) {
	if v == nil || len(refs) == 0 {
		return
	}
	if v.retire(&v.parts[refs[0]*0x9e3779b97f4a7c15>>60], refs, born) {
		v.clock.turn()
	}
}

// retiredPerLook is the number of references that a part gets between two looks at the clock:
// sweeps alone would come too late for writers that exchange values all the time.
const retiredPerLook = 64

// retire is Retire in a part, and reports whether it is time for a look at the clock.
func (v *Values) retire(p *part, refs, born []uint64) (look bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if v.over {
		return false
	}
	p.limbo.Open(v.clock, v.free)
	m := last(v.snapshots)
	for i, ref := range refs {
		if m != nil && born[i] <= m.epoch && !(mutant.On && mutant.Is("epoch: newest snapshot")) {
			p.kept.Add(Kept{ref, born[i]})
			continue
		}
		p.limbo.Add(ref)
	}
	v.clock.SweepLater()
	if look = p.limbo.Added >= retiredPerLook; look {
		p.limbo.Added = 0
	}
	return look
}

func last(all []*moment) *moment {
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

// Begin says that a snapshot of an epoch is being taken. The epoch has not ended yet: references
// that are taken out of the tree in the next one find the snapshot here.
func (v *Values) Begin(epoch uint64) {
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lock()
	defer v.unlock()
	v.snapshots = append(v.snapshots, &moment{epoch: epoch})
	v.newest.Store(epoch)
}

// End says that the snapshot of an epoch was closed: its references go to the next older one, or
// to the limbo.
func (v *Values) End(epoch uint64) {
	if v == nil {
		return
	}
	m := v.unlist(epoch)
	for m != nil && v.pass(m) {
		stall.At("epoch: some values are handed over")
	}
}

// unlist takes a snapshot out of the list of those that there are.
func (v *Values) unlist(epoch uint64) *moment {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lock()
	defer v.unlock()
	i := slices.IndexFunc(v.snapshots, func(m *moment) bool { return m.epoch == epoch })
	if i < 0 {
		return nil
	}
	m := v.snapshots[i]
	v.snapshots = slices.Delete(v.snapshots, i, i+1)
	newest := uint64(0)
	if l := last(v.snapshots); l != nil {
		newest = l.epoch
	}
	v.newest.Store(newest)
	return m
}

// passed is the number of references that End hands over before others have their turn: some
// tens of microseconds.
const passed = 512

// pass hands over some references of a snapshot that was closed, and reports whether there were
// any. The next older snapshot is looked for each time, since it may have been closed as well.
func (v *Values) pass(m *moment) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	var older *List
	until := uint64(0)
	for _, o := range v.snapshots {
		if o.epoch < m.epoch {
			older, until = &o.refs, o.epoch
		}
	}
	p := &v.parts[0]
	p.mu.Lock()
	defer p.mu.Unlock()
	if v.over {
		return false
	}
	p.limbo.Open(v.clock, v.free)
	defer v.clock.SweepLater()
	return m.refs.Pass(passed, older, until, p.limbo.Add)
}

// lock takes the locks of all parts, and hands the references that they have for the newest
// snapshot to it.
func (v *Values) lock() {
	m := last(v.snapshots)
	for i := range v.parts {
		p := &v.parts[i]
		p.mu.Lock()
		if m != nil {
			m.refs.Take(&p.kept)
		}
	}
}

func (v *Values) unlock() {
	for i := range v.parts {
		v.parts[i].mu.Unlock()
	}
}

// Sweep frees references that have waited long enough, and reports whether others wait for the end
// of a generation.
func (v *Values) Sweep() (more bool) {
	if v == nil {
		return false
	}
	for i := range v.parts {
		p := &v.parts[i]
		for ripe := true; ripe; { // a piece at a time: others have their turn
			p.mu.Lock()
			p.limbo.Reap(v.clock, v.free)
			ripe = p.limbo.Ripe()
			more = more || !ripe && !p.limbo.Empty()
			p.mu.Unlock()
		}
	}
	return more
}

// Waiting reports whether references wait for the end of a generation.
func (v *Values) Waiting() bool {
	if v == nil {
		return false
	}
	for i := range v.parts {
		p := &v.parts[i]
		p.mu.Lock()
		empty := p.limbo.Empty()
		p.mu.Unlock()
		if !empty {
			return true
		}
	}
	return false
}

// Forget drops all references, and those that come later: the tree is closed, and all its
// snapshots, and its user gives the memory back as a whole.
func (v *Values) Forget() {
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lock()
	defer v.unlock()
	if v.over {
		return
	}
	v.over = true
	if v.last != nil {
		v.last()
	}
	for i := range v.parts {
		v.parts[i].limbo.Forget()
		v.parts[i].kept = List{}
	}
}

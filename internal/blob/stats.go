package blob

import (
	"fmt"
	"math/bits"

	"github.com/pando-index/pando/internal/mutant"
)

// Stats describes the memory of a store. Held is all of it, and the sum of the others.
type Stats struct {
	Values int64 // values that take memory here: short ones are in their Refs
	Live   int64 // bytes of these values
	Slack  int64 // bytes around them: ends of slots and pages, and what describes them
	Kept   int64 // slots and pages of values that were retired and not freed yet
	Free   int64 // free slots, and free pages that are kept for long values
	Held   int64
}

// Stats returns the memory of the store.
func (m *memory) Stats() Stats {
	all := m.lockAll()
	defer m.unlockAll(all)
	return m.stats(all)
}

func (m *memory) stats(all []*shard) Stats {
	var live, kept, inRuns amount
	for _, x := range all {
		live.add(x.live, 1)
		kept.add(x.kept, 1)
		inRuns.add(x.inRuns, 1)
	}
	st := Stats{Values: live.values, Live: live.bytes, Kept: kept.room, Held: m.held.Load()}
	for i := range m.shelves {
		f := &m.shelves[i]
		f.mu.Lock()
		st.Free += int64(len(f.slabs)) * int64(classes[i].slots) * int64(classes[i].size)
		f.mu.Unlock()
	}
	st.Free += m.runs.unused() - (live.room + kept.room - inRuns.room)
	st.Slack = st.Held - st.Live - st.Kept - st.Free
	return st
}

// sum adds up a number of each shard.
func (m *memory) sum(of func(x *shard) int64) (n int64) {
	for i := range m.count.Load() {
		x := m.shards[i].Load()
		x.mu.Lock()
		n += of(x)
		x.mu.Unlock()
	}
	return n
}

// Bytes returns the bytes of slots and pages that have values, retired ones among them.
func (m *memory) Bytes() int64 {
	return m.sum(func(x *shard) int64 { return x.live.room + x.kept.room })
}

// Count returns the number of values that take memory here, retired ones among them.
func (m *memory) Count() int64 {
	return m.sum(func(x *shard) int64 { return x.live.values + x.kept.values })
}

// Kept returns the bytes of values that were retired and not freed yet.
func (m *memory) Kept() int64 {
	return m.sum(func(x *shard) int64 { return x.kept.room })
}

// Plausible reports whether a Ref, which may be any word, does not claim to be longer than
// a value that is here: nobody has to allocate memory for a word of a late reader's.
func (m *memory) Plausible(r Ref) bool {
	if mutant.On && mutant.Is("blob: plausible") {
		return true
	}
	switch r.kind() {
	case kindShort:
		return true
	case kindSlab:
		return r.slabLen() <= mostSlot
	case kindRun:
		return m.runs.has(r.chunk(), int(r.runLen()))
	}
	return false
}

// Holds reports whether a Ref stands for a value that was put and not freed. It is for checks
// of a tree that nobody changes.
func (m *memory) Holds(r Ref) bool {
	switch r.kind() {
	case kindShort:
		return r.shortLen() >= 0 && r.shortLen() <= mostShort
	case kindSlab:
		if at, _ := r.place(); at == nil {
			return false
		}
		h := headerOf(r.slab())
		return h.who.Load() == m.who(classOf(r.slabLen())) && h.free(r.slot()/64).Load()>>(r.slot()%64)&1 == 0
	case kindRun:
		return m.runs.has(r.chunk(), int(r.runLen()))
	}
	return false
}

// Check looks whether the store is what it must be while nobody changes it.
func (m *memory) Check() error {
	all := m.lockAll()
	defer m.unlockAll(all)
	used, stashed := 0, 0
	for cl := range m.shelves {
		n, err := m.shelves[cl].check(m.who(cl), cl)
		if err != nil {
			return fmt.Errorf("blob: slots of %d bytes: %w", classes[cl].size, err)
		}
		used += n
	}
	for _, x := range all {
		for cl, st := range x.stash {
			stashed += bits.OnesCount64(st.bits)
			if st.bits != 0 && headerOf(st.slab).free(int(st.word)).Load()&st.bits != 0 {
				return fmt.Errorf("blob: slots of %d bytes are in a stash, and free", classes[cl].size)
			}
		}
	}
	n, inUse, idle, held := m.runs.sum()
	if inUse+idle != held {
		return fmt.Errorf("blob: runs have %d bytes, and %d that are free; %d were counted", inUse, idle, held)
	}
	for i := range m.shelves {
		held += int64(len(m.shelves[i].slabs)) * slabBytes
	}
	var count, inRuns int64
	for _, x := range all {
		count += x.live.values + x.kept.values
		inRuns += x.inRuns.values
	}
	if int64(used-stashed+n) != count || int64(n) != inRuns || held != m.held.Load() {
		return fmt.Errorf("blob: %d slots are in use and %d runs, %d slots are in stashes; there are %d values, %d of them in runs; %d bytes are held, %d counted",
			used, n, stashed, count, inRuns, held, m.held.Load())
	}
	if st := m.stats(all); st.Free < 0 || st.Slack < 0 || st.Live < 0 || st.Kept < 0 {
		return fmt.Errorf("blob: %+v", st)
	}
	return nil
}

// check looks at the slabs of a class, and returns how many of their slots are not free.
func (f *shelf) check(who uint64, cl int) (used int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, listed := &classes[cl], 0
	for i, slab := range f.slabs {
		h, free := headerOf(slab), 0
		for w := range (c.slots + 63) / 64 {
			free += bits.OnesCount64(h.free(w).Load())
		}
		live, state := int(h.live.Load()), h.state.Load()
		switch {
		case h.who.Load() != who || int(h.at) != i:
			return 0, fmt.Errorf("slab %d is another's: it has mark %#x and number %d, not %#x and %d", slab, h.who.Load(), h.at, who, i)
		case live+free != c.slots:
			return 0, fmt.Errorf("slab %d: %d slots are in use and %d free, of %d", slab, live, free, c.slots)
		case (state == stateOpen) != (f.open == int64(slab)):
			return 0, fmt.Errorf("slab %d is in state %d, and slab %d is open", slab, state, f.open)
		case state == stateFull && live <= c.list, state == stateListed && live > c.list, state != stateOpen && live == 0:
			return 0, fmt.Errorf("slab %d is in state %d with %d slots in use", slab, state, live)
		case (state == stateListed) != (h.listed >= 0), h.listed >= 0 && f.list[h.listed] != slab:
			return 0, fmt.Errorf("slab %d is in state %d and number %d of the list", slab, state, h.listed)
		}
		if state == stateListed {
			listed++
		}
		used += live
	}
	if listed != len(f.list) {
		return 0, fmt.Errorf("%d slabs are listed, the list has %d", listed, len(f.list))
	}
	return used, nil
}

// DenyMemory makes all requests of stores for memory fail for which f returns true; nil ends
// that. It is for tests.
func DenyMemory(f func() bool) {
	slabs.Deny(f)
	runs.Pool.Deny(f)
}

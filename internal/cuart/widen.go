package cuart

import (
	"errors"
	"unsafe"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
)

// widen makes the table larger where it is too small for the given entries. Slots of
// a wider table are parts of those of the old one, so all leaves stay where they
// are, and inner nodes are made anew: leaves are listed, level by level, and put
// into the new table, a portion at a time. Where there is no memory for that, the
// old table does.
func (t *Tree) widen(entries int) error {
	bits := bitsFor(entries)
	if entries>>t.place.bits < t.perSlot || bits <= t.place.bits {
		return nil
	}
	before := t.state()
	table, err := t.newTable(bits)
	if err == nil && t.entries > 0 {
		err = t.rebuild(table, bits)
	}
	if err == nil {
		t.rebuilds++
		old := t.table
		t.table, t.place.bits = table, bits
		return errors.Join(t.run.Stream.Synchronize(), t.dev.Free(old))
	}
	t.restore(before)
	if table != 0 {
		err = errors.Join(err, t.run.Stream.Synchronize(), t.dev.Free(table))
	}
	if isShort(err) {
		return nil
	}
	return err
}

// state is the allocation state that building a new table changes before it
// replaces the old one: fresh nodes are taken, and lists become longer.
type state struct {
	next [nodeTypes]int
	free [classes]int
}

func (t *Tree) state() (s state) {
	for kind := range t.nodes {
		s.next[kind] = t.nodes[kind].next
	}
	for c := range t.lists {
		s.free[c] = t.lists[c].N
	}
	return s
}

func (t *Tree) restore(s state) {
	for kind := range t.nodes {
		t.nodes[kind].next = s.next[kind]
	}
	for c := range t.lists {
		t.lists[c].N = s.free[c]
	}
}

// rebuild puts all leaves into a table, and gives the old nodes back.
func (t *Tree) rebuild(table device.Ptr, bits int) error {
	var old [nodeTypes]int
	inner, bytes := 0, 0
	for kind := range old {
		old[kind] = t.live(kind)
		inner += old[kind]
		bytes += device.Aligned(4 * old[kind])
	}
	portion := min(t.portion, t.entries)
	bytes += device.Aligned(4*t.entries) + 2*device.Aligned(4*inner) + device.Aligned(ToldBytes) + workBytes(portion)
	w := &t.work
	if err := w.Ensure(t.dev, t.run.Stream, bytes); err != nil {
		return err
	}
	leaves, at := w.Words(t.entries), w.Bytes(ToldBytes)
	var freed [classes]device.Ptr
	for kind := range old {
		freed[kind] = w.Words(old[kind])
	}
	if err := t.listLeaves(leaves, at, freed, w.Words(inner), w.Words(inner)); err != nil {
		return err
	}
	to := t.radix()
	to.Table, to.Shift = table, uint32(32-bits)
	for lo, used := 0, w.Used; lo < t.entries; lo += portion {
		w.Used = used
		if err := t.adopt(to, bits, leaves+device.Ptr(4*lo), min(portion, t.entries-lo)); err != nil {
			return err
		}
	}
	if err := t.run.Stream.Synchronize(); err != nil { // lists may be under way
		return err
	}
	for kind, n := range old {
		if err := t.lists[kind].Grow(t.dev, t.lists[kind].N+n, numberMax); err != nil {
			return err
		}
		if err := t.lists[kind].Give(t.run.Stream, freed[kind], n); err != nil {
			return err
		}
	}
	return nil
}

// listLeaves lists all leaves, and all inner nodes by type. inner and next have room
// for all inner nodes.
func (t *Tree) listLeaves(leaves, at device.Ptr, freed [classes]device.Ptr, inner, next device.Ptr) error {
	b := t.briefing()
	*b = briefing{}
	for c := range freed {
		b.pools[c].Freed = freed[c]
	}
	if err := t.run.Stream.CopyIn(at, t.told); err != nil {
		return err
	}
	counts := at + device.Ptr(unsafe.Offsetof(b.counts))
	links, n := t.table, 1<<t.place.bits
	for n > 0 {
		if err := t.run.Stream.Fill(counts, 0, 4); err != nil {
			return err
		}
		if err := t.run.Expand(t.radix(), links, n, inner, leaves, counts, t.poolsAt(at)); err != nil {
			return err
		}
		if err := t.copyOut(t.told, at); err != nil {
			return err
		}
		n = int(b.counts[0])
		links, inner, next = inner, next, inner
	}
	if int(b.counts[1]) != t.entries {
		return errors.New("cuart: not all leaves are below the table")
	}
	return nil
}

// adopt puts leaves into a table of a tree to be.
func (t *Tree) adopt(to *kernel.Radix, bits int, leaves device.Ptr, n int) error {
	w := &t.work
	at, slots := w.Bytes(ToldBytes), w.Words(n)
	if err := t.run.LeafSlots(to, leaves, n, slots); err != nil {
		return err
	}
	slots, places, err := t.sort(slots, n, bits)
	if err != nil {
		return err
	}
	if err := t.run.Stream.Synchronize(); err != nil { // lists may be under way
		return err
	}
	var inserts, deletes [classes]uint32
	inserts[nodeTypes] = uint32(n) // any class: leaves are there
	need := t.needOf(inserts[:], deletes[:])
	need.take[nodeTypes], need.fresh = 0, true
	if err := t.promise(&need); err != nil {
		return err
	}
	if err := t.brief(at, &need); err != nil {
		return err
	}
	if err := t.run.Adopt(to, slots, places, leaves, n, t.poolsAt(at)); err != nil {
		return err
	}
	freed := t.freedLists()
	if err := t.settle(at, &need); err != nil {
		return err
	}
	return t.giveBack(freed)
}

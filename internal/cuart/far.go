package cuart

import (
	"errors"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/op"
)

// Leaves may lie in page-locked host memory, where kernels read and write them over
// the bus:
//
//	units 0 to split-1     leaves   the device's memory; host memory once that is full
//	units from split on    far      host memory: leaves of long keys, where Long says so
//
// A link is the same wherever its leaf lies. So leaves that the device has no room for
// any more are copied as they are, all at once, and no node knows. Nodes and the table stay
// on the device, and get the memory that leaves have left.

// Long says where keys above Options.Longest are kept, the three ways of the
// CuART paper.
type Long uint8

const (
	LongLeft   Long = iota // they are left out: others have them
	LongHost               // their leaves are in host memory, but for those of a length that shares a class with short ones
	LongDevice             // their leaves are on the device, as others are
)

// LongKeys says where package twin keeps long keys: the fastest way on an H200,
// whatever their share is (experiment gpu-radix-long).
const LongKeys = LongDevice

// far is leaves of long keys, if they are in host memory.
type far struct {
	pool
	split int // the first of its units
	class int // the first class of leaves that are there
}

// mostUnits is how many units leaves may have: the places that a link can have.
const mostUnits = leafBit - 1

// ForPools returns how much of a device's memory nodes and leaves may take. The rest is
// for batches, and the table: a device that has none left for these would be of no use.
func ForPools(room int64) int64 { return room - min(room/4, 1<<30) }

// openLeaves reserves addresses for leaves: share is that of openPools.
func (t *Tree) openLeaves(opts *Options, share int64) (err error) {
	t.far = far{split: mostUnits, class: classes}
	if class := farClass(opts, t.run.Bits/8); class < classes {
		t.far.split, t.far.class = mostUnits/2, class
		if t.far.pool, err = t.openHost(mostUnits - t.far.split); err != nil {
			return err
		}
	}
	t.leaves, err = openPool(t.dev, unit, t.far.split, t.left, share)
	return err
}

// farClass returns the first class of leaves that are in host memory: the first that has
// long keys only, or classes where there is none.
func farClass(opts *Options, valBytes int) int {
	if opts.Long != LongHost || opts.Longest <= 0 || opts.Longest >= MaxKey {
		return classes
	}
	return leafClass(opts.Longest, valBytes) + 1
}

// openHost reserves host memory for at most most units.
func (t *Tree) openHost(most int) (pool, error) {
	most = int(min(int64(most), t.hostLeft/unit))
	if most <= 0 {
		return pool{}, op.ErrLimit
	}
	memory, err := t.dev.ReserveHost(int64(most) * unit)
	return pool{memory: memory, slot: unit, most: most, host: true}, err
}

// hostSpare is the memory that stays free on the host, for the tree there and for others.
const hostSpare = 1 << 30

// hostHas reports whether the host has enough free memory for a pool of the given slots.
// Page-locked memory cannot be swapped out: taking too much of it ends other processes, or
// this one.
func (t *Tree) hostHas(p *pool, slots int) bool {
	there := p.memory.Len()
	more := int64(slots)*int64(p.slot) - there
	return more <= 0 || max(more, there/8) <= t.hostFree()-hostSpare // a range grows by an eighth at least
}

// isShort reports whether an error says that there is no memory left.
func isShort(err error) bool {
	return errors.Is(err, op.ErrLimit) || errors.Is(err, device.ErrOutOfMemory)
}

// orMoved calls do, which needs device memory, and calls it again with the leaves in
// host memory if there is none left. A call that fails for want of memory must have
// changed nothing.
func (t *Tree) orMoved(do func() error) error {
	err := do()
	if t.broken != nil || !isShort(err) || t.leaves.host {
		return err
	}
	if other := t.moveLeaves(); other != nil {
		return errors.Join(err, other)
	}
	return do()
}

// moveLeaves moves leaves to host memory. An error leaves everything as it was.
func (t *Tree) moveLeaves() error {
	used := int64(t.leaves.next) * unit
	if used > t.hostLeft {
		return op.ErrLimit
	}
	to, err := t.openHost(t.far.split)
	if err != nil {
		return err
	}
	if err = t.grow(&to, t.leaves.next); err == nil { // in one piece: a copy must not cross two
		err = t.copyOut(to.bytes(t.leaves.next), t.leaves.memory.Base())
	}
	if err != nil {
		t.hostLeft += int64(to.room) * unit
		return errors.Join(err, to.memory.Free())
	}
	old := t.leaves
	to.next = old.next
	t.leaves = to
	t.left += int64(old.room) * unit
	return old.memory.Free()
}

// bytes returns the first slots of a pool in host memory.
func (p *pool) bytes(slots int) []byte {
	return p.memory.(device.HostRange).Bytes()[:slots*p.slot]
}

// writeUnits puts leaves into a pool.
func (t *Tree) writeUnits(p *pool, units []uint64) error {
	if len(units) == 0 {
		return nil
	}
	if p.host {
		copy(p.bytes(len(units)), arena.Bytes(units))
		return nil
	}
	return t.copyIn(p.memory.Base(), arena.Bytes(units))
}

// readUnits returns all leaves of a pool.
func (t *Tree) readUnits(p *pool) ([]uint64, error) {
	units := make([]uint64, p.next)
	if p.next == 0 {
		return units, nil
	}
	if !p.host {
		return units, t.copyOut(arena.Bytes(units), p.memory.Base())
	}
	err := t.run.Stream.Synchronize()
	copy(arena.Bytes(units), p.bytes(p.next))
	return units, err
}

// HostBytes returns the host memory that leaves take.
func (t *Tree) HostBytes() (n int64) {
	for _, p := range []*pool{&t.leaves, &t.far.pool} {
		if p.host {
			n += int64(p.room) * unit
		}
	}
	return n
}

package cuart

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/op"
)

// Ops is a batch of operations in device memory, in the order in which they are to be
// done.
type Ops struct {
	Keys  kernel.StringKeys
	Vals  device.Ptr // values to set; 0 where none are set
	Kinds device.Ptr // kinds (u8); 0 where all are of one kind
	Kind  op.Kind
	// Old and Had (u8) get the value just before each operation, and whether there
	// was one; 0 where the caller does not ask.
	Old, Had device.Ptr
	// Fetch, unless nil, queues copies of the batch's results in the tree's stream:
	// answers, and its order, slots and the operations that go to them (u32). All is
	// there when Apply returns.
	Fetch func(slots, places device.Ptr) error
}

// briefing tells kernels of free memory, and the host how much they took: one
// piece of memory on both sides.
type briefing struct {
	pools  [classes]kernel.RadixPool
	taken  [classes]uint32
	given  [classes]uint32
	units  [2]uint32
	counts [kernel.RadixCounts]uint32
}

// ToldBytes is the number of bytes that travel to the device with each batch beside its
// operations.
const ToldBytes = int(unsafe.Sizeof(briefing{}))

func (t *Tree) briefing() *briefing { return (*briefing)(unsafe.Pointer(unsafe.SliceData(t.told))) }

// Apply does all operations of a batch, as if one after the other, or none if there is
// an error. It returns when the answers are there.
func (t *Tree) Apply(ops *Ops) error {
	if t.broken != nil || ops.Keys.N == 0 {
		return t.broken
	}
	if ops.Keys.N >= math.MaxInt32 {
		return errTooLarge
	}
	return t.orMoved(func() error { return t.apply(ops) })
}

func (t *Tree) apply(ops *Ops) error {
	n := int(ops.Keys.N)
	if ops.Kinds != 0 || ops.Kind == op.Set {
		if err := t.widen(t.entries + n); err != nil {
			return err
		}
	}
	a, err := t.begin(ops)
	if err != nil {
		return err
	}
	a.fetch = ops.Fetch
	if err := t.promise(&a.need); err != nil {
		return err
	}
	// From here on the tree is written.
	if err := t.carryOut(a); err != nil {
		t.broken = fmt.Errorf("cuart: a batch has failed half done: %w", err)
		return err
	}
	return nil
}

// applying is a batch on its way.
type applying struct {
	changes kernel.RadixChanges
	at      device.Ptr // the briefing
	need    need
	fetch   func(slots, places device.Ptr) error
	runs    *kernel.RadixRuns // nil where no slot has many operations
}

// workBytes returns the memory that n slots take while they are sorted.
func workBytes(n int) int {
	return device.Aligned(ToldBytes) + 4*device.Aligned(4*n) + device.Aligned(kernel.SortTemp(n, 32))
}

// begin finds the slot of each operation, sorts operations by it, and computes
// the memory that they may need.
func (t *Tree) begin(ops *Ops) (*applying, error) {
	n, w := int(ops.Keys.N), &t.work
	if err := w.Ensure(t.dev, t.run.Stream, workBytes(n)); err != nil {
		return nil, err
	}
	a := &applying{at: w.Bytes(ToldBytes)}
	counts := a.at + device.Ptr(unsafe.Offsetof(briefing{}.counts))
	if err := t.run.Stream.Fill(a.at, 0, ToldBytes); err != nil {
		return nil, err
	}
	slots := w.Words(n)
	if err := t.run.Slots(t.radix(), ops.Keys, ops.Kinds, uint32(ops.Kind), slots, counts); err != nil {
		return nil, err
	}
	a.changes = kernel.RadixChanges{Keys: ops.Keys, Vals: ops.Vals, Kinds: ops.Kinds, Old: ops.Old, Had: ops.Had, Kind: uint32(ops.Kind)}
	var err error
	if a.changes.Slots, a.changes.Places, err = t.sort(slots, n, t.place.bits); err != nil {
		return nil, err
	}
	if err := t.run.Hot(a.changes.Slots, n, counts+device.Ptr(4*(kernel.RadixCounts-1))); err != nil {
		return nil, err
	}
	b := t.briefing()
	if err := t.copyOut(arena.Bytes(b.counts[:]), counts); err != nil {
		return nil, err
	}
	if long := b.counts[2*classes]; long > 0 && !t.lenient {
		return nil, fmt.Errorf("%w: %d of %d", ErrKeyTooLong, long, n)
	}
	a.need = t.needOf(b.counts[:classes], b.counts[classes:2*classes])
	if b.counts[kernel.RadixCounts-1] != 0 {
		a.runs, err = t.runsRoom(n)
	}
	return a, err
}

// runsRoom takes memory for runs of n operations.
func (t *Tree) runsRoom(n int) (*kernel.RadixRuns, error) {
	w, blocks := &t.hot, kernel.RadixRunBlocks(n)
	if err := w.Ensure(t.dev, t.run.Stream, 4*device.Aligned(4*n)+2*device.Aligned(4*blocks)); err != nil {
		return nil, err
	}
	t.runs++
	return &kernel.RadixRuns{
		Heads: w.Words(n), Changes: w.Words(n), Next: w.Words(n), Last: w.Words(n), BlockHeads: w.Words(blocks), BlockChanges: w.Words(blocks),
	}, nil
}

// sort queues a stable sort by slot, a number of the given bits.
func (t *Tree) sort(slots device.Ptr, n, bits int) (sorted, places device.Ptr, err error) {
	w := &t.work
	job := &kernel.SortJob{
		KeyBits: 32, To: bits, N: n, Implicit: true,
		Keys: slots, Keys2: w.Words(n), Places: w.Words(n), Places2: w.Words(n), Temp: w.Bytes(kernel.SortTemp(n, 32)),
	}
	err = t.run.Set.Sort(t.run.Stream, &t.params, job)
	sorted, places = job.Sorted()
	return sorted, places, err
}

// need is the number of nodes and leaves that a batch may take and free at most, by
// class.
type need struct {
	take, free [classes]int
	fresh      bool // nothing comes from lists
}

// needOf returns the need of the given numbers of inserts and deletes of each class
// of leaves.
//
// An insert takes a leaf, and puts a node 4 above something, or adds a child to one
// node, which may have to grow for it. A node of a type that was there before the
// batch may be full: then one insert is enough. One that came to it in the batch, by
// growing or by shrinking, needs as many as lie between its size then and its
// capacity: at least 2, 5 and 13 for nodes 4, 16 and 48. A delete frees a leaf, and makes one
// node shrink, or go; a node can do so that was there, or came to its type. Memory that a batch
// frees is not taken again in the same batch.
func (t *Tree) needOf(inserts, deletes []uint32) (n need) {
	in, out := 0, 0
	for c := nodeTypes; c < classes; c++ {
		n.take[c], n.free[c] = int(inserts[c]), int(deletes[c])
		in, out = in+n.take[c], out+n.free[c]
	}
	grown := [nodeTypes + 1]int{}
	for kind, least := range [nodeTypes - 1]int{2, 5, 13} {
		grown[kind+1] = min(in, t.live(kind)+in/least)
	}
	shrunk := [nodeTypes + 1]int{}
	for kind := node48; kind >= node4; kind-- {
		shrunk[kind] = min(out, t.live(kind+1)+grown[kind+1]+shrunk[kind+1])
	}
	for kind := range nodeTypes {
		n.take[kind] = grown[kind] + shrunk[kind]
		if kind == node4 {
			n.take[kind] += in
		}
		n.free[kind] = min(t.live(kind)+n.take[kind], grown[kind+1]+2*out)
	}
	return n
}

// listed returns how many of taken slots of a class come from its list.
func (n *need) listed(t *Tree, class, taken int) int {
	if n.fresh {
		return 0
	}
	return min(taken, t.lists[class].N)
}

// unlisted returns how many of a class may be needed that were never used.
func (n *need) unlisted(t *Tree, class int) int {
	return n.take[class] - n.listed(t, class, n.take[class])
}

// promise makes sure that there is memory for all that a batch needs, and tells
// kernels where. An error leaves everything as it was.
func (t *Tree) promise(n *need) error {
	for kind := range t.nodes {
		p := &t.nodes[kind]
		if err := t.grow(p, p.next+n.unlisted(t, kind)); err != nil {
			return err
		}
	}
	near, far := int64(t.leaves.next), int64(t.far.next)
	for c := nodeTypes; c < classes; c++ {
		units := int64(n.unlisted(t, c)) * int64(unitsOf(c))
		if c < t.far.class {
			near += units
		} else {
			far += units
		}
	}
	if near > int64(t.far.split) || far > int64(mostUnits-t.far.split) {
		return errTooLarge
	}
	if err := t.grow(&t.leaves, int(near)); err != nil {
		return err
	}
	if err := t.grow(&t.far.pool, int(far)); err != nil {
		return err
	}
	return t.listRoom(n)
}

// listRoom makes sure that there is room for the list of slots that a batch frees.
func (t *Tree) listRoom(n *need) error {
	bytes := 0
	for c := range t.lists {
		if err := t.lists[c].Grow(t.dev, t.lists[c].N+n.free[c], math.MaxInt); err != nil {
			return err
		}
		bytes += device.Aligned(4 * n.free[c])
	}
	return t.freed.Ensure(t.dev, t.run.Stream, bytes)
}

// brief tells kernels where there is memory.
func (t *Tree) brief(at device.Ptr, n *need) error {
	b := t.briefing()
	*b = briefing{units: [2]uint32{uint32(t.leaves.next), uint32(t.far.split + t.far.next)}}
	for c := range b.pools {
		p := &b.pools[c]
		p.Free, p.Count = t.lists[c].At, uint32(n.listed(t, c, t.lists[c].N))
		if n.free[c] > 0 {
			p.Freed = t.freed.Words(n.free[c])
		}
		if c < nodeTypes {
			p.Next = uint32(t.nodes[c].next)
		}
	}
	return t.run.Stream.CopyIn(at, t.told)
}

// poolsAt returns memory as kernels take it.
func (t *Tree) poolsAt(at device.Ptr) *kernel.RadixPools {
	var b briefing
	return &kernel.RadixPools{
		Of: at + device.Ptr(unsafe.Offsetof(b.pools)), Taken: at + device.Ptr(unsafe.Offsetof(b.taken)),
		Given: at + device.Ptr(unsafe.Offsetof(b.given)), Units: at + device.Ptr(unsafe.Offsetof(b.units)),
		FarClass: uint32(t.far.class),
	}
}

// carryOut does a batch.
func (t *Tree) carryOut(a *applying) error {
	if err := t.brief(a.at, &a.need); err != nil {
		return err
	}
	var err error
	if a.runs != nil {
		err = t.run.OwnRuns(t.radix(), &a.changes, a.runs, t.poolsAt(a.at))
	} else {
		err = t.run.Own(t.radix(), &a.changes, t.poolsAt(a.at))
	}
	if err != nil {
		return err
	}
	if a.fetch != nil {
		if err := a.fetch(a.changes.Slots, a.changes.Places); err != nil {
			return err
		}
	}
	freed := t.freedLists()
	if err := t.settle(a.at, &a.need); err != nil {
		return err
	}
	return t.giveBack(freed)
}

// freedLists returns where kernels list the slots that they free.
func (t *Tree) freedLists() (at [classes]device.Ptr) {
	for c := range at {
		at[c] = t.briefing().pools[c].Freed
	}
	return at
}

// settle reads how much memory was taken, when all is done.
func (t *Tree) settle(at device.Ptr, n *need) error {
	b := t.briefing()
	if err := t.copyOut(t.told, at); err != nil {
		return err
	}
	for c := range t.lists {
		taken, given, l := int(b.taken[c]), int(b.given[c]), &t.lists[c]
		if taken > n.take[c] || given > n.free[c] {
			return fmt.Errorf("cuart: a batch has taken %d and freed %d of class %d, where at most %d and %d were thought of", taken, given, c, n.take[c], n.free[c])
		}
		fromList := n.listed(t, c, taken)
		l.N -= fromList
		if c < nodeTypes {
			t.nodes[c].next += taken - fromList
		} else {
			t.entries += taken - given
		}
	}
	t.leaves.next, t.far.next = int(b.units[0]), int(b.units[1])-t.far.split
	return nil
}

// giveBack adds the freed slots to the lists.
func (t *Tree) giveBack(freed [classes]device.Ptr) error {
	var errs []error
	for c := range t.lists {
		errs = append(errs, t.lists[c].Give(t.run.Stream, freed[c], int(t.briefing().given[c])))
	}
	return errors.Join(errs...)
}

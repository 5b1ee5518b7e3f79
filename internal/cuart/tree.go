package cuart

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/device/room"
	"github.com/pando-index/pando/internal/hostmem"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/simd"
)

// Tree is a map from strings to values of 32 or 64 bits in a device's memory. Its
// methods must not be called at the same time.
//
// The host knows how many nodes and units of leaves were ever used, and how many are
// free; and that there is memory for a batch before anything of the tree is written. So a batch
// that does not fit leaves the tree as it was. A device that fails later leaves it
// broken, and every call says so.
type Tree struct {
	dev      device.Device
	run      kernel.RadixRun
	place    Place
	table    device.Ptr
	nodes    [nodeTypes]pool
	leaves   pool // of units
	far      far  // those of long keys
	lists    [classes]room.List
	entries  int
	perSlot  int
	longest  int   // longer keys are not there,
	lenient  bool  // and it is no error to set them
	left     int64 // bytes of the device that pools may still take,
	hostLeft int64 // and of the host, whose free bytes are hostFree()
	hostFree func() int64
	work     room.Work
	freed    room.Work // slots that a batch frees
	hot      room.Work // runs of a batch
	params   kernel.Params
	told     []byte // page-locked: the briefing of kernels
	portion  int    // leaves that are put into a new table at a time
	broken   error
	rebuilds int
	runs     int // batches that were done by runs
}

// pool is slots of one size, nodes of a type or units of leaves, in memory that grows.
type pool struct {
	memory device.Range
	slot   int // bytes
	room   int // slots that there is memory for
	most   int // slots that there may be
	next   int // the first that was never used
	host   bool
}

// Options are the settings of a tree.
type Options struct {
	// Room is the most memory that nodes and leaves may take; 0 means most of the
	// device's memory.
	Room int64
	// ValBits is the size of values, 32 or 64; 0 is 64.
	ValBits int
	// Entries is about how many there will be; 0 is not known. The table grows.
	Entries int
	// Skip is how many bytes all keys begin with in common, as far as is known.
	Skip int
	// Direct makes the next bytes behind these the number of a slot, as the paper
	// does, instead of a hash.
	Direct bool
	// Seed is that of the hash; 0 is any.
	Seed uint64
	// Longest is the length from which on keys are long; 0 is MaxKey, and an error for
	// longer ones.
	Longest int
	// Long says where long keys are kept. Those that are left out, or are above
	// MaxKey, are not there, and operations on them do nothing.
	Long Long
	// HostRoom is the most host memory that leaves may take: those of long keys where
	// Long is LongHost, and all where the device is full. 0 means as much as Room,
	// and a negative number none. In any case they take no more than the host's free
	// memory at that time.
	HostRoom int64
}

const (
	leastBits = 8  // of the number of slots
	mostBits  = 28 // a table of 1 GiB
	// entriesPerSlot is how many entries there are for each slot when the table grows,
	// to one slot an entry.
	entriesPerSlot = 2
	// buildPortion bounds the memory that is promised to nodes at a time.
	buildPortion = 4 << 20
)

// New returns an empty tree on a device. The device stays the caller's.
func New(dev device.Device, opts Options) (t *Tree, err error) {
	t = &Tree{dev: dev, left: opts.Room, perSlot: entriesPerSlot, portion: buildPortion, hostFree: hostmem.Free}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.Close())
		}
	}()
	t.place = Place{seed: opts.Seed, skip: opts.Skip, direct: opts.Direct, bits: bitsFor(opts.Entries)}
	t.longest, t.lenient = MaxKey, opts.Longest > 0
	if t.lenient && opts.Long == LongLeft {
		t.longest = min(opts.Longest, MaxKey)
	}
	for t.place.seed == 0 {
		t.place.seed = rand.Uint64()
	}
	switch t.run.Bits = opts.ValBits; t.run.Bits {
	case 0:
		t.run.Bits = 64
	case 32, 64:
	default:
		return t, fmt.Errorf("cuart: values of %d bits", opts.ValBits)
	}
	if t.run.Set, err = kernel.LoadOnly(dev, kernel.RadixSource, kernel.Sorting); err != nil {
		return t, err
	}
	if t.run.Stream, err = dev.NewStream(); err != nil {
		return t, err
	}
	if t.told, err = dev.HostAlloc(ToldBytes); err != nil {
		return t, err
	}
	if opts.Room == 0 {
		free, err := dev.FreeBytes()
		if err != nil {
			return t, err
		}
		t.left = ForPools(free)
	}
	if t.hostLeft = max(opts.HostRoom, 0); opts.HostRoom == 0 {
		t.hostLeft = t.left
	}
	if err := t.openPools(&opts); err != nil {
		return t, err
	}
	if t.table, err = t.newTable(t.place.bits); err != nil {
		return t, err
	}
	return t, t.run.Stream.Synchronize() // searches come in other streams
}

// bitsFor returns the bits of a slot's number in a table for the given entries.
func bitsFor(entries int) int {
	return min(max(bits.Len(uint(max(entries, 1)-1)), leastBits), mostBits)
}

// openPools reserves addresses for all pools. shares are the parts of all memory, in
// twentieths, that they take at once where memory cannot grow.
func (t *Tree) openPools(opts *Options) (err error) {
	shares := [nodeTypes]int64{3, 3, 1, 1}
	for kind := range t.nodes {
		if t.nodes[kind], err = openPool(t.dev, nodeSize[kind], numberMax, t.left, shares[kind]); err != nil {
			return err
		}
	}
	return t.openLeaves(opts, 9)
}

func openPool(dev device.Device, slot, most int, bytes, share int64) (p pool, err error) {
	p = pool{slot: slot, most: int(min(int64(most), bytes/int64(slot)))}
	p.memory, err = room.Reserve(dev, int64(p.most)*int64(slot), bytes*share/20)
	return p, err
}

// newTable returns a table without links.
func (t *Tree) newTable(bits int) (device.Ptr, error) {
	at, err := t.dev.Alloc(4 << bits)
	if err != nil {
		return 0, err
	}
	if err := t.run.Stream.Fill(at, 0, 4<<bits); err != nil {
		return 0, errors.Join(err, t.dev.Free(at))
	}
	return at, nil
}

// grow makes sure that a pool has memory for the given number of slots. An
// error leaves everything as it was.
func (t *Tree) grow(p *pool, slots int) error {
	if slots <= p.room {
		return nil
	}
	left := &t.left
	if p.host {
		left = &t.hostLeft
	}
	bytes := int64(slots-p.room) * int64(p.slot)
	if slots > p.most || bytes > *left || p.host && !t.hostHas(p, slots) {
		return op.ErrLimit
	}
	if err := p.memory.Grow(int64(slots) * int64(p.slot)); err != nil {
		return err
	}
	p.room = slots
	*left -= bytes
	return nil
}

// radix returns the tree as kernels take it.
func (t *Tree) radix() *kernel.Radix {
	r := &kernel.Radix{
		Leaves: t.leaves.memory.Base(), Table: t.table,
		Seed: t.place.seed, Skip: uint32(t.place.skip), Shift: uint32(32 - t.place.bits),
		Longest: uint32(t.longest), Split: uint32(t.far.split),
	}
	if t.far.memory != nil {
		r.Far = t.far.memory.Base() - device.Ptr(t.far.split*unit)
	}
	for kind := range t.nodes {
		r.Nodes[kind] = t.nodes[kind].memory.Base()
	}
	if t.place.direct {
		r.Direct = 1
	}
	return r
}

// Load sets the entries of an empty tree to keys, which ascend and are distinct, with
// their values, of which the lower 32 bits count if values have no more. The host
// lays them out.
func (t *Tree) Load(keys []string, vals []uint64) error {
	if err := t.broken; err != nil {
		return err
	}
	if t.entries != 0 || t.leaves.next != 0 {
		return errors.New("cuart: the tree is not empty")
	}
	p := t.place
	p.bits = max(p.bits, bitsFor(len(keys)))
	if n := len(keys); n > 0 && p.skip == 0 {
		p.skip = simd.CommonPrefix(keys[0], keys[n-1])
	}
	im, err := build(keys, vals, t.run.Bits/8, p, t.far.split, t.far.class)
	if err != nil {
		return err
	}
	return t.orMoved(func() error { return t.upload(im) })
}

// upload copies an image into an empty tree.
func (t *Tree) upload(im *image) error {
	if len(im.units) > t.far.split || len(im.far) > mostUnits-t.far.split {
		return errTooLarge
	}
	for kind, n := range im.nodes() {
		if err := t.grow(&t.nodes[kind], n); err != nil {
			return err
		}
	}
	if err := t.grow(&t.leaves, len(im.units)); err != nil {
		return err
	}
	if err := t.grow(&t.far.pool, len(im.far)); err != nil {
		return err
	}
	table, err := t.newTable(im.place.bits)
	if err != nil {
		return err
	}
	err = t.copyIn(table, arena.Bytes(im.table))
	for kind, b := range im.bytes() {
		err = errors.Join(err, t.copyIn(t.nodes[kind].memory.Base(), b))
	}
	err = errors.Join(err, t.writeUnits(&t.leaves, im.units), t.writeUnits(&t.far.pool, im.far), t.run.Stream.Synchronize())
	if err != nil { // nothing of the tree was there
		return errors.Join(err, t.dev.Free(table))
	}
	for kind, n := range im.nodes() {
		t.nodes[kind].next = n
	}
	t.leaves.next, t.far.next, t.entries, t.place = len(im.units), len(im.far), im.entries, im.place
	old := t.table
	t.table = table
	return t.dev.Free(old)
}

func (t *Tree) copyIn(to device.Ptr, from []byte) error {
	if len(from) == 0 {
		return nil
	}
	return t.run.Stream.CopyIn(to, from)
}

func (t *Tree) copyOut(to []byte, from device.Ptr) error {
	if len(to) == 0 {
		return nil
	}
	if err := t.run.Stream.CopyOut(to, from); err != nil {
		return err
	}
	return t.run.Stream.Synchronize()
}

// Find queues a search in a stream, of which nothing may change the tree until it is
// done: vals get the keys' values, or 0, and found a bit each. A tile of four lanes
// takes a key, or a thread.
func (t *Tree) Find(st device.Stream, keys kernel.StringKeys, tile bool, vals, found device.Ptr) error {
	if err := t.broken; err != nil || keys.N == 0 {
		return err
	}
	run := t.run
	run.Stream = st
	return run.Find(t.radix(), keys, tile, vals, found)
}

// Stream returns the stream in which all of the tree's work is done, but for Find.
func (t *Tree) Stream() device.Stream { return t.run.Stream }

// Len returns the number of entries.
func (t *Tree) Len() int { return t.entries }

// Bytes returns the device memory that table, nodes and leaves take.
func (t *Tree) Bytes() int64 {
	n := int64(4) << t.place.bits
	for kind := range t.nodes {
		n += int64(t.live(kind)) * int64(nodeSize[kind])
	}
	if t.leaves.host {
		return n
	}
	n += int64(t.leaves.next) * unit
	for class := nodeTypes; class < t.far.class; class++ {
		n -= int64(t.lists[class].N) * int64(unitsOf(class)) * unit
	}
	return n
}

// live returns how many nodes of a type are in use.
func (t *Tree) live(kind int) int { return t.nodes[kind].next - t.lists[kind].N }

// Check looks at all of the tree, and returns an error if something is not as it must
// be. It copies the tree to host memory.
func (t *Tree) Check() error {
	_, err := t.read()
	return err
}

// ValBytes returns the size of a value.
func (t *Tree) ValBytes() int { return t.run.Bits / 8 }

// Longest returns the length of the longest key that the tree holds.
func (t *Tree) Longest() int { return t.longest }

// Place returns how slots of keys are found at present.
func (t *Tree) Place() Place { return t.place }

// Entry is a key and its value.
type Entry struct {
	Key string
	Val uint64
}

// Entries returns all entries, and looks at everything on the way.
func (t *Tree) Entries() ([]Entry, error) {
	all, err := t.read()
	out := make([]Entry, len(all))
	for i, e := range all {
		out[i] = Entry{e.key, e.val}
	}
	return out, err
}

// read returns all entries, and looks at everything on the way.
func (t *Tree) read() ([]entry, error) {
	if t.broken != nil {
		return nil, t.broken
	}
	im := &image{
		place: t.place, valBytes: t.run.Bits / 8, table: make([]link, 1<<t.place.bits), split: t.far.split, farClass: t.far.class,
		n4: make([]inner4, t.nodes[node4].next), n16: make([]inner16, t.nodes[node16].next),
		n48: make([]inner48, t.nodes[node48].next), n256: make([]inner256, t.nodes[node256].next),
	}
	var errs [3]error
	errs[0] = t.copyOut(arena.Bytes(im.table), t.table)
	im.units, errs[1] = t.readUnits(&t.leaves)
	im.far, errs[2] = t.readUnits(&t.far.pool)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	for kind, b := range im.bytes() {
		if err := t.copyOut(b, t.nodes[kind].memory.Base()); err != nil {
			return nil, err
		}
	}
	var free [classes][]uint32
	for c := range free {
		free[c] = make([]uint32, t.lists[c].N)
		if err := t.copyOut(arena.Bytes(free[c]), t.lists[c].At); err != nil {
			return nil, err
		}
	}
	all, err := im.check(&free)
	if err == nil && len(all) != t.entries {
		err = fmt.Errorf("cuart: %d entries, %d are known", len(all), t.entries)
	}
	return all, err
}

// Close gives all memory back.
func (t *Tree) Close() (err error) {
	if t.run.Stream != nil {
		err = t.run.Stream.Close()
	}
	if t.told != nil {
		err = errors.Join(err, t.dev.HostFree(t.told))
	}
	if t.run.Set != nil {
		err = errors.Join(err, t.run.Set.Unload())
	}
	if t.table != 0 {
		err = errors.Join(err, t.dev.Free(t.table))
	}
	for _, p := range append(t.nodes[:], t.leaves, t.far.pool) {
		if p.memory != nil {
			err = errors.Join(err, p.memory.Free())
		}
	}
	for c := range t.lists {
		err = errors.Join(err, t.lists[c].Free(t.dev))
	}
	return errors.Join(err, t.work.Free(), t.freed.Free(), t.hot.Free())
}

var errTooLarge = fmt.Errorf("%w: strings on a GPU take at most 16 GiB, and a batch has at most %d operations", kernel.ErrTooLarge, math.MaxInt32-1)

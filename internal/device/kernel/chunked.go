package kernel

import (
	_ "embed"

	"github.com/pando-index/pando/internal/device"
)

//go:generate clang-19 -x cuda --cuda-gpu-arch=sm_70 --cuda-device-only -nocudainc -nocudalib --cuda-feature=+ptx70 -O3 -S chunked.cu -o chunked.ptx

//go:embed chunked.ptx
var chunkedPTX string

// ChunkedSource is the kernels of chunked.cu.
var ChunkedSource = Source{chunkedPTX, []string{
	"chunkedFind32", "chunkedRank32", "chunkedEntries32", "isChange32", "listChanges32", "probe32", "effects32", "plan32", "move32", "store32",
	"give32", "rechunk32", "raise32", "flatMove32", "flatStore32", "flatChunks32", "giveAll32",
	"chunkedFind64", "chunkedRank64", "chunkedEntries64", "isChange64", "listChanges64", "probe64", "effects64", "plan64", "move64", "store64",
	"give64", "rechunk64", "raise64", "flatMove64", "flatStore64", "flatChunks64", "giveAll64",
	"mark", "touch", "planChunks", "isEffect", "tell",
}}

// What the chunked layout is made of, as chunked.h has it.
const (
	LeafEntries  = 32  // entries of a leaf at most
	ChunkLeaves  = 256 // leaves of a chunk at most
	LeafFill     = 28  // entries of a leaf after a flat merge
	ChunkFill    = 224 // leaves of a chunk after a flat merge
	ChunkGroup   = 16  // separators that are looked at together
	ChunkLevels  = 7   // levels of separators above the chunks at most
	chunkLeafRef = 4 + 2 + 1
)

// LeafBytes returns the size of a leaf's slot, for keys of so many bits.
func LeafBytes(keyBits int) int { return LeafEntries * 2 * keyBits / 8 }

// ChunkBytes returns the size of a chunk's slot.
func ChunkBytes(keyBits int) int {
	return (ChunkLeaves/ChunkGroup+ChunkLeaves)*keyBits/8 + ChunkLeaves*chunkLeafRef
}

// Version is a chunked tree at one time: struct Version of chunked.h, field by
// field.
type Version struct {
	Leaves, Chunks     device.Ptr
	Seps               [ChunkLevels]device.Ptr // of each level, the root's first
	Slots, Used, First device.Ptr              // of each chunk (u32); First has one more
	Levels, Count      uint32                  // Count chunks
}

// Batch is operations in the order of their keys: struct Batch of chunked.cu.
type Batch struct {
	Keys, Places    device.Ptr // of operations in order
	Vals, Kinds     device.Ptr // of the batch; Kinds (u8) is 0 where all are of one kind
	Old, Had        device.Ptr // of the batch, what was there before; 0 where nobody asks
	Changes, Change device.Ptr // where there are several kinds: changes before each operation (n+1), and which these are
	N, Kind         uint32
}

// Owned is what a batch does, leaf by leaf: struct Owned of chunked.cu.
type Owned struct {
	Homes, Acts, Heads, Inserts         device.Ptr // of operations
	Home, Begin, Removed, Size, Need    device.Ptr // of leaves that are touched
	ChunkBegin, ChunkEnd, Grow, Changed device.Ptr // of chunks
	N, Copy                             uint32
}

// Slots is where new leaves, or chunks, go: struct Slots of chunked.cu.
type Slots struct {
	Free        device.Ptr // list of free slots
	Count, Next uint32     // their number, and the first slot that was never used
}

// Next is the version to be: struct Next of chunked.cu.
type Next struct {
	Become, Fresh             device.Ptr
	Seps, Slots, Used, Totals device.Ptr
}

// Freed is slots that the next version has no use for: struct Freed of
// chunked.cu.
type Freed struct {
	Leaves, Chunks device.Ptr
	Counts         device.Ptr // of leaves, of chunks
}

// Flat is what a flat merge knows of operations: struct Flat of chunked.cu.
type Flat struct {
	Homes, Acts, Inserts, Removes device.Ptr
	Leaves, Entries               uint32 // of the result
}

// Chunked launches the kernels of chunked.cu, for keys of so many bits.
type Chunked struct {
	Set    *Set
	Stream device.Stream
	Bits   int
}

// run starts a kernel with at least n threads.
func run[P any](c *Chunked, narrow, wide string, n int, params P) error {
	return c.Stream.Launch(c.Set.kernels[pick(c.Bits, narrow, wide)], gridOf(n), argsOf(&params))
}

// blocks starts a kernel with a block for each of n things.
func blocks[P any](c *Chunked, narrow, wide string, n int, params P) error {
	return c.Stream.Launch(c.Set.kernels[pick(c.Bits, narrow, wide)], device.Grid{Blocks: n, Threads: ChunkLeaves}, argsOf(&params))
}

// Find looks n keys up. found gets one bit per key.
func (c *Chunked) Find(v *Version, keys device.Ptr, n int, vals, found device.Ptr) error {
	return run(c, "chunkedFind32", "chunkedFind64", n, struct {
		v           Version
		keys        device.Ptr
		n           uint64
		vals, found device.Ptr
	}{*v, keys, uint64(n), vals, found})
}

// Rank sets ranks (u32) to the number of entries below each of n keys, or up to
// it where after is true.
func (c *Chunked) Rank(v *Version, keys device.Ptr, n int, after bool, ranks device.Ptr) error {
	p := struct {
		v        Version
		keys     device.Ptr
		n, after uint32
		ranks    device.Ptr
	}{v: *v, keys: keys, n: uint32(n), ranks: ranks}
	if after {
		p.after = 1
	}
	return run(c, "chunkedRank32", "chunkedRank64", n, p)
}

// Entries copies runs of entries out: see Set.Entries.
func (c *Chunked) Entries(v *Version, first, offsets device.Ptr, ranges, n int, keys, vals device.Ptr) error {
	return run(c, "chunkedEntries32", "chunkedEntries64", n, struct {
		v              Version
		first, offsets device.Ptr
		ranges, n      uint32
		keys, vals     device.Ptr
	}{*v, first, offsets, uint32(ranges), uint32(n), keys, vals})
}

// IsChange sets a flag (u32) for each operation that changes something.
func (c *Chunked) IsChange(b *Batch, flags device.Ptr) error {
	return run(c, "isChange32", "isChange64", int(b.N), struct {
		b     Batch
		flags device.Ptr
	}{*b, flags})
}

// ListChanges lists these operations, by their sums.
func (c *Chunked) ListChanges(b *Batch, list device.Ptr) error {
	return run(c, "listChanges32", "listChanges64", int(b.N), struct {
		b    Batch
		list device.Ptr
	}{*b, list})
}

// Probe answers operations, and says what each does to which leaf.
func (c *Chunked) Probe(v *Version, b *Batch, homes, acts device.Ptr) error {
	return run(c, "probe32", "probe64", int(b.N), struct {
		v           Version
		b           Batch
		homes, acts device.Ptr
	}{*v, *b, homes, acts})
}

// IsEffect sets a flag (u32) for each of n operations that does something.
func (c *Chunked) IsEffect(acts device.Ptr, n int, flags device.Ptr) error {
	return run(c, "isEffect", "isEffect", n, struct {
		acts  device.Ptr
		n     uint64
		flags device.Ptr
	}{acts, uint64(n), flags})
}

// Effects lists these operations in key order, by their sums.
func (c *Chunked) Effects(b *Batch, acts, before, keys, vals, kinds device.Ptr) error {
	return run(c, "effects32", "effects64", int(b.N), struct {
		b                               Batch
		acts, before, keys, vals, kinds device.Ptr
	}{*b, acts, before, keys, vals, kinds})
}

// Mark sets flags of operations: the first of their leaf, those that insert,
// those that remove. Heads and removes may be 0.
func (c *Chunked) Mark(homes, acts device.Ptr, n int, heads, inserts, removes device.Ptr) error {
	return run(c, "mark", "mark", n, struct {
		homes, acts             device.Ptr
		n                       uint64
		heads, inserts, removes device.Ptr
	}{homes, acts, uint64(n), heads, inserts, removes})
}

// Touch lists the leaves that operations fall on. Removed must be 0.
func (c *Chunked) Touch(o *Owned) error { return run(c, "touch", "touch", int(o.N), *o) }

// Plan says what each leaf that is touched needs. What o has of chunks must be 0.
func (c *Chunked) Plan(v *Version, o *Owned) error {
	return run(c, "plan32", "plan64", int(o.N), struct {
		v Version
		o Owned
	}{*v, *o})
}

// PlanChunks gives the number of chunks that each becomes, and of new ones that
// it takes.
func (c *Chunked) PlanChunks(v *Version, o *Owned, become, fresh device.Ptr) error {
	return run(c, "planChunks", "planChunks", int(v.Count), struct {
		v             Version
		o             Owned
		become, fresh device.Ptr
	}{*v, *o, become, fresh})
}

// Move moves the entries of so many leaves that are touched.
func (c *Chunked) Move(v *Version, o *Owned, touched int, keys device.Ptr, leaves *Slots) error {
	const warp = 32
	return run(c, "move32", "move64", touched*warp, struct {
		v      Version
		o      Owned
		keys   device.Ptr
		leaves Slots
	}{*v, *o, keys, *leaves})
}

// Store stores what operations set.
func (c *Chunked) Store(v *Version, b *Batch, o *Owned, leaves *Slots) error {
	return run(c, "store32", "store64", int(b.N), struct {
		v      Version
		b      Batch
		o      Owned
		leaves Slots
	}{*v, *b, *o, *leaves})
}

// Give lists what a batch frees. Counts begin with 0.
func (c *Chunked) Give(v *Version, o *Owned, touched int, next *Next, freed *Freed) error {
	return run(c, "give32", "give64", max(touched, int(v.Count)), struct {
		v     Version
		o     Owned
		next  Next
		freed Freed
	}{*v, *o, *next, *freed})
}

// Rechunk writes what chunks become.
func (c *Chunked) Rechunk(v *Version, o *Owned, leaves, chunks *Slots, next *Next) error {
	return blocks(c, "rechunk32", "rechunk64", int(v.Count), struct {
		v              Version
		o              Owned
		leaves, chunks Slots
		next           Next
	}{*v, *o, *leaves, *chunks, *next})
}

// Raise makes a level of separators of the one below, which has n.
func (c *Chunked) Raise(from device.Ptr, n int, to device.Ptr) error {
	return run(c, "raise32", "raise64", (n+ChunkGroup-1)/ChunkGroup, struct {
		from device.Ptr
		n    uint64
		to   device.Ptr
	}{from, uint64(n), to})
}

// FlatMove moves all entries to where a flat merge wants them.
func (c *Chunked) FlatMove(v *Version, b *Batch, f *Flat, leaves *Slots) error {
	return blocks(c, "flatMove32", "flatMove64", int(v.Count), struct {
		v      Version
		b      Batch
		f      Flat
		leaves Slots
	}{*v, *b, *f, *leaves})
}

// FlatStore stores what operations set.
func (c *Chunked) FlatStore(v *Version, b *Batch, f *Flat, leaves *Slots) error {
	return run(c, "flatStore32", "flatStore64", int(b.N), struct {
		v      Version
		b      Batch
		f      Flat
		leaves Slots
	}{*v, *b, *f, *leaves})
}

// FlatChunks writes n chunks above the leaves of a flat merge.
func (c *Chunked) FlatChunks(v *Version, n int, f *Flat, leaves, chunks *Slots, next *Next) error {
	return blocks(c, "flatChunks32", "flatChunks64", n, struct {
		v              Version
		f              Flat
		leaves, chunks Slots
		next           Next
	}{*v, *f, *leaves, *chunks, *next})
}

// GiveAll lists all slots of a version.
func (c *Chunked) GiveAll(v *Version, freed *Freed) error {
	return blocks(c, "giveAll32", "giveAll64", int(v.Count), struct {
		v     Version
		freed Freed
	}{*v, *freed})
}

// Tell puts a few numbers (u32), at most 8, side by side.
func (c *Chunked) Tell(from []device.Ptr, to device.Ptr) error {
	p := struct {
		from [8]device.Ptr
		n    uint64
		to   device.Ptr
	}{n: uint64(len(from)), to: to}
	copy(p.from[:], from)
	return c.Stream.Launch(c.Set.kernels["tell"], device.Grid{Blocks: 1, Threads: 32}, argsOf(&p))
}

// SepLevels returns the number of separators on each level above n chunks, the
// root's first. Each level has room for a multiple of ChunkGroup.
func SepLevels(n int) (sizes []int) {
	for {
		sizes = append([]int{n}, sizes...)
		if n <= ChunkGroup {
			return sizes
		}
		n = (n + ChunkGroup - 1) / ChunkGroup
	}
}

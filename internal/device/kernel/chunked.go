package kernel

import (
	_ "embed"

	"github.com/pando-index/pando/internal/device"
)

//go:generate clang-19 -x cuda --cuda-gpu-arch=sm_70 --cuda-device-only -nocudainc -nocudalib --cuda-feature=+ptx70 -O3 -S chunked.cu -o chunked.ptx

//go:embed chunked.ptx
var chunkedPTX string

// ChunkedSource is the kernels of chunked.cu.
var ChunkedSource = Source{&chunkedPTX, []string{
	"chunkedFind32", "chunkedRank32", "chunkedEntries32", "probe32", "effects32", "plan32", "planFew32", "move32", "moveFew32", "store32", "give32", "rechunk32", "finish32", "finishOwn32",
	"cut32", "weigh32", "flatWrite32", "flatChunks32", "giveAll32",
	"chunkedFind64", "chunkedRank64", "chunkedEntries64", "probe64", "effects64", "plan64", "planFew64", "move64", "moveFew64", "store64", "give64", "rechunk64", "finish64", "finishOwn64",
	"cut64", "weigh64", "flatWrite64", "flatChunks64", "giveAll64",
	"changes", "owns", "sums", "deltas",
}}

// The constants of the chunked layout, as chunked.h has them.
const (
	LeafEntries = 32  // entries of a leaf at most
	ChunkLeaves = 256 // leaves of a chunk at most
	LeafFill    = 28  // entries of a leaf after a flat merge
	ChunkFill   = 224 // leaves of a chunk after a flat merge
	ChunkLevels = 8   // levels of separators above the chunks at most
	HeadKeys    = 4   // keys that the table has of a chunk for searches: where three quarters end, and its slot
	chunkItem   = 8   // bytes that a chunk has of a leaf, beside its separator
)

// LeafBytes returns the size of a leaf's slot, for keys of keyBits bits.
func LeafBytes(keyBits int) int { return LeafEntries * 2 * keyBits / 8 }

// ChunkGroup returns the number of separators that are looked at together: a line.
func ChunkGroup(keyBits int) int { return 512 / keyBits }

// SepRoom returns the room that a level of n separators takes, in separators: whole
// groups.
func SepRoom(n, keyBits int) int {
	group := ChunkGroup(keyBits)
	return (n + group - 1) / group * group
}

// ChunkBytes returns the size of a chunk's slot, whole lines of 128 bytes.
func ChunkBytes(keyBits int) int {
	seps := ChunkLeaves + ChunkLeaves/ChunkGroup(keyBits)
	return (seps*keyBits/8 + ChunkLeaves*chunkItem + 127) &^ 127
}

// Version is a chunked tree at one time: struct Version of chunked.h, field by
// field.
type Version struct {
	Leaves, Chunks     device.Ptr
	Seps               [ChunkLevels]device.Ptr // of each level, the root's first
	Heads              device.Ptr              // of each chunk, HeadKeys
	Slots, Used, First device.Ptr              // of each chunk (u32); First has one more
	Levels, Count      uint32                  // Count chunks
}

// Batch is operations in the order of their keys: struct Batch of chunked.cu.
type Batch struct {
	Keys, Places    device.Ptr // of operations in order
	Vals, Kinds     device.Ptr // of the batch; Kinds (u8) is 0 where all are of one kind
	Old, Had        device.Ptr // of the batch, the state before; 0 where the caller does not ask
	Changes, Change device.Ptr // where there are several kinds: changes before each operation (n+1), and which these are
	N, Kind         uint32
}

// Owned is the plan of a batch, leaf by leaf: struct Owned of chunked.cu.
type Owned struct {
	Homes, Acts, Heads, Inserts         device.Ptr // of operations
	Home, Begin, Refs, Counts, Base     device.Ptr // of leaves that are touched
	Removed, Size, Need                 device.Ptr
	ChunkBegin, ChunkEnd, Grow, Changed device.Ptr // of chunks
	Told                                device.Ptr // OwnedTold numbers
	N, Copy                             uint32
	// Kernels that write do so if Certain is 1, or if there is room for what is needed:
	// new leaves and chunks, and chunks in the next table, and nothing is freed.
	Leaves, Chunks, Room, Certain uint32
}

// Goes reports whether kernels that were told so write.
func (o *Owned) Goes(told []int) bool {
	return told[ToldLeaves] <= int(o.Leaves) && told[ToldNewChunks] <= int(o.Chunks) && told[ToldChunks] <= int(o.Room) &&
		told[ToldFreed] == 0 && told[ToldFailed] == 0
}

// Numbers (u32) that kernels tell of a batch that is done leaf by leaf, before
// anything is written, at Owned.Told. Told of chunked.cu.
const (
	ToldTouched   = iota // leaves that are touched
	ToldLeaves           // new leaves that are needed
	ToldChunks           // chunks that there will be
	ToldNewChunks        // new ones that are needed
	ToldFreed            // whether there is something for Give
	ToldGrowth           // entries that there will be more, as a signed number
	ToldFailed           // whether keys are not in order: nothing is written then
	OwnedTold            // their number
)

// Slots is where new leaves, or chunks, go: struct Slots of chunked.cu.
type Slots struct {
	Free        device.Ptr // list of free slots
	Count, Next uint32     // their number, and the first slot that was never used
}

// Next is the version to be: struct Next of chunked.cu.
type Next struct {
	Become, Fresh                    device.Ptr
	Seps, Heads, Slots, Used, Totals device.Ptr
}

// Freed is slots that the next version has no use for: struct Freed of
// chunked.cu.
type Freed struct {
	Leaves, Chunks device.Ptr
	Counts         device.Ptr // of leaves, of chunks
}

// Flat is the state of a flat merge: struct Flat of chunked.cu.
type Flat struct {
	Cuts, Ends      device.Ptr // operations up to those of each chunk; of each leaf, 256 a chunk
	Acts, Shifts    device.Ptr // of operations
	Leaves, Entries uint32     // of the result
	Blocks          uint32     // that do the operations on a chunk
}

// Scan is temporary memory for sums: SumTemp bytes, which are 0.
type Scan device.Ptr

func (s Scan) ticket() device.Ptr  { return device.Ptr(s) }
func (s Scan) reports() device.Ptr { return device.Ptr(s) + sumHead }

// Chunked launches the kernels of chunked.cu, for keys of one width.
type Chunked Runner

// manyBlocks is the most blocks of a kernel whose blocks go on to further work when
// they are done: twelve for each multiprocessor of an H200, of which three or more
// run at a time.
const manyBlocks = 1584

// run starts a kernel with at least n threads.
func run[P any](c *Chunked, narrow, wide string, n int, params P) error {
	return start((*Runner)(c), narrow, wide, GridOf(n), params)
}

// descend starts a kernel that looks n keys up. Each of its blocks copies the upper
// levels of the tree first, so it has to have many keys.
func descend[P any](c *Chunked, narrow, wide string, n int, params P) error {
	grid := GridOf(n)
	grid.Blocks = min(grid.Blocks, manyBlocks)
	return start((*Runner)(c), narrow, wide, grid, params)
}

// scan starts a kernel that adds up n numbers.
func scan[P any](c *Chunked, narrow, wide string, n int, params P) error {
	return start((*Runner)(c), narrow, wide, device.Grid{Blocks: sumTiles(n), Threads: blockThreads}, params)
}

// blocks starts a kernel with a block for each of n things.
func blocks[P any](c *Chunked, narrow, wide string, n int, params P) error {
	return start((*Runner)(c), narrow, wide, device.Grid{Blocks: n, Threads: ChunkLeaves}, params)
}

// Find looks n keys up. found gets one bit per key.
func (c *Chunked) Find(v *Version, keys device.Ptr, n int, vals, found device.Ptr) error {
	return descend(c, "chunkedFind32", "chunkedFind64", n, struct {
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
	return descend(c, "chunkedRank32", "chunkedRank64", n, p)
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

// Changes lists the operations that change something, and counts them before each.
func (c *Chunked) Changes(b *Batch, at Scan) error {
	return scan(c, "changes", "changes", int(b.N), struct {
		places, kinds, sums, list, ticket, reports device.Ptr
		n                                          uint32
	}{b.Places, b.Kinds, b.Changes, b.Change, at.ticket(), at.reports(), b.N})
}

// Probe answers operations, and computes the effect of each on its leaf.
func (c *Chunked) Probe(v *Version, b *Batch, homes, acts device.Ptr) error {
	return descend(c, "probe32", "probe64", int(b.N), struct {
		v           Version
		b           Batch
		homes, acts device.Ptr
	}{*v, *b, homes, acts})
}

// Effects lists the operations that do something in key order, and tells how many
// there are.
func (c *Chunked) Effects(b *Batch, acts, keys, vals, kinds, told device.Ptr, at Scan) error {
	return scan(c, "effects32", "effects64", int(b.N), struct {
		b                                              Batch
		acts, keys, vals, kinds, told, ticket, reports device.Ptr
	}{*b, acts, keys, vals, kinds, told, at.ticket(), at.reports()})
}

// Owns lists the leaves that operations fall on. Removed must be 0.
func (c *Chunked) Owns(o *Owned, at Scan) error {
	return scan(c, "owns", "owns", int(o.N), struct {
		o               Owned
		ticket, reports device.Ptr
	}{*o, at.ticket(), at.reports()})
}

// Plan computes what each touched leaf needs. The words of o for chunks, and
// Told, must be 0.
func (c *Chunked) Plan(v *Version, o *Owned) error {
	return run(c, "plan32", "plan64", int(o.N), struct {
		v Version
		o Owned
	}{*v, *o})
}

// Sums adds up the results of Plan: new leaves that those before each take,
// chunks that those before each become, and the new ones among them.
func (c *Chunked) Sums(v *Version, o *Owned, next *Next, leaves, chunks Scan) error {
	p := struct {
		v                                                 Version
		o                                                 Owned
		become, fresh, ticket, reports, ticket2, reports2 device.Ptr
		tiles                                             uint32
	}{*v, *o, next.Become, next.Fresh, leaves.ticket(), leaves.reports(), chunks.ticket(), chunks.reports(), uint32(sumTiles(int(o.N)))}
	blocks := int(p.tiles) + sumTiles(int(v.Count))
	return c.Stream.Launch(c.Set.kernels["sums"], device.Grid{Blocks: blocks, Threads: blockThreads}, argsOf(&p))
}

// Move moves the entries of at most touched leaves.
func (c *Chunked) Move(v *Version, b *Batch, o *Owned, touched int, leaves *Slots) error {
	return c.moveBy("move32", "move64", v, b, o, touched, leaves)
}

func (c *Chunked) moveBy(narrow, wide string, v *Version, b *Batch, o *Owned, touched int, leaves *Slots) error {
	const warp = 32
	each := min(max(touched/movers, 1), warp)
	return run(c, narrow, wide, (touched+each-1)/each*warp, struct {
		v      Version
		b      Batch
		o      Owned
		leaves Slots
		each   uint32
	}{*v, *b, *o, *leaves, uint32(each)})
}

// movers is the number of warps that move at once: 32 for each multiprocessor of
// an H200.
const movers = 132 * 32

// Store stores the values that operations set.
func (c *Chunked) Store(v *Version, b *Batch, o *Owned, leaves *Slots) error {
	return run(c, "store32", "store64", int(b.N), struct {
		v      Version
		b      Batch
		o      Owned
		leaves Slots
	}{*v, *b, *o, *leaves})
}

// Give lists the slots that a batch frees. Counts begin with 0.
func (c *Chunked) Give(v *Version, o *Owned, touched int, next *Next, freed *Freed) error {
	return run(c, "give32", "give64", max(touched, int(v.Count)), struct {
		v     Version
		o     Owned
		next  Next
		freed Freed
	}{*v, *o, *next, *freed})
}

// Rechunk writes the new chunks.
func (c *Chunked) Rechunk(v *Version, o *Owned, leaves, chunks *Slots, next *Next) error {
	return blocks(c, "rechunk32", "rechunk64", min(int(v.Count), manyBlocks), struct {
		v              Version
		o              Owned
		leaves, chunks Slots
		next           Next
	}{*v, *o, *leaves, *chunks, *next})
}

// Finish completes a version whose chunks are there, with totals (entries of
// each), and tells the number of entries, and of freed slots.
func (c *Chunked) Finish(v *Version, totals, freed, told device.Ptr, at Scan) error {
	return scan(c, "finish32", "finish64", int(v.Count), struct {
		v                                    Version
		totals, freed, told, ticket, reports device.Ptr
	}{*v, totals, freed, told, at.ticket(), at.reports()})
}

// FinishOwn is Finish after Rechunk: the number of chunks is the one that kernels
// have told, at most those that v has.
func (c *Chunked) FinishOwn(v *Version, o *Owned, totals, freed, told device.Ptr, at Scan) error {
	return scan(c, "finishOwn32", "finishOwn64", int(v.Count), struct {
		v                                    Version
		o                                    Owned
		totals, freed, told, ticket, reports device.Ptr
	}{*v, *o, totals, freed, told, at.ticket(), at.reports()})
}

// Cut gives the operations up to those on each chunk, and adds to over, which is
// 0, the chunks with more than most.
func (c *Chunked) Cut(v *Version, b *Batch, cuts, over device.Ptr, most int) error {
	return run(c, "cut32", "cut64", int(v.Count), struct {
		v                Version
		keys, cuts, over device.Ptr
		n, most          uint32
	}{*v, b.Keys, cuts, over, b.N, uint32(most)})
}

// Weigh answers operations, and computes the effect of each, where most leaves
// have some. It does nothing if one of two words, wrong, is not 0.
func (c *Chunked) Weigh(v *Version, b *Batch, f *Flat, wrong device.Ptr) error {
	return blocks(c, "weigh32", "weigh64", int(v.Count)*int(f.Blocks), struct {
		v     Version
		b     Batch
		f     Flat
		wrong device.Ptr
	}{*v, *b, *f, wrong})
}

// Deltas adds up how much longer operations make the tree, and tells the sum.
func (c *Chunked) Deltas(f *Flat, n int, told device.Ptr, at Scan) error {
	return scan(c, "deltas", "deltas", n, struct {
		acts, shifts, told, ticket, reports device.Ptr
		n                                   uint32
	}{f.Acts, f.Shifts, told, at.ticket(), at.reports(), uint32(n)})
}

// FlatWrite writes all leaves anew: what there was, and over it what the batch has set.
func (c *Chunked) FlatWrite(v *Version, b *Batch, f *Flat, leaves *Slots) error {
	const entries, operations = 1, 2
	write := func(what uint32) error {
		return blocks(c, "flatWrite32", "flatWrite64", int(v.Count)*int(f.Blocks), struct {
			v      Version
			b      Batch
			f      Flat
			leaves Slots
			what   uint32
		}{*v, *b, *f, *leaves, what})
	}
	if f.Blocks == 1 { // a leaf is one warp's, which does one after the other
		return write(entries | operations)
	}
	if err := write(entries); err != nil {
		return err
	}
	return write(operations)
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

// SepLevels returns the number of separators on each level above n chunks, the
// root's first. SepRoom says how much room each takes.
func SepLevels(n, keyBits int) (sizes []int) {
	for group := ChunkGroup(keyBits); ; n = (n + group - 1) / group {
		sizes = append([]int{n}, sizes...)
		if n <= group {
			return sizes
		}
	}
}

// Kernels of the chunked layout: searches, and batches of changes.
//
// A batch is sorted by key, stably, so that the operations on a leaf, and on a
// key, lie side by side. From then on a thread knows by prefix sums alone where
// what it has goes. Nothing of the tree is written before the host has seen how
// much memory that takes.
#include "chunkedfew.h"
#include "chunkedflat.h"

// find looks keys up.
template <typename K> inline_device void find(const Version &v, const K *keys, u32 n, K *vals, u32 *found) {
	eachPlace<Four<K>, true>(v, keys, n, [&](u64 q, u32, u32 ref, u32 pos, u32 hit) {
		bool yes = hit && q < n;
		K val = yes ? leafAt<K>(v, ref)->vals[pos] : 0;
		if (q < n) vals[q] = val;
		u32 word = ballot(yes);
		if (q % WARP == 0 && q < n) found[q / WARP] = word;
	});
}

// rank gives the number of entries below each key, or, where after is 1, up to
// it.
template <typename K> inline_device void rank(const Version &v, const K *keys, u32 n, u32 after, u32 *ranks) {
	eachPlace<Four<K>, true>(v, keys, n, [&](u64 q, u32 home, u32, u32 pos, u32 hit) {
		if (q >= n) return;
		ranks[q] = v.first[chunkOf(home)] + chunkOfHome<K>(v, home)->items[home % CHUNK].first + pos + (hit && after);
	});
}

// entries copies runs of entries out: see search.cu. A thread an entry finds its
// range, then the chunk and the leaf of its rank.
inline_device u32 lastUpTo(const u32 *first, u32 n, u32 x) {
	u32 r = 0;
	for (u32 span = n; span > 1;) {
		u32 half = span / 2;
		if (first[r + half] <= x) r += half;
		span -= half;
	}
	return r;
}

template <typename K> inline_device void entries(const Version &v, const u32 *first, const u32 *offsets, u32 ranges, u32 n, K *keys, K *vals) {
	u32 i = thread();
	if (i >= n) return;
	u32 r = lastUpTo(offsets, ranges, i), rank = first[r] + (i - offsets[r]);
	u32 c = lastUpTo(v.first, v.count, rank);
	const Chunk<K> *chunk = chunkAt<K>(v, v.slots[c]);
	u32 left = rank - v.first[c], e = 0;
	for (u32 span = v.used[c]; span > 1;) {
		u32 half = span / 2;
		if (chunk->items[e + half].first <= left) e += half;
		span -= half;
	}
	Item item = chunk->at(e);
	const Leaf<K> *leaf = leafAt<K>(v, item.ref);
	keys[i] = leaf->keys[left - item.first];
	if (vals) vals[i] = leaf->vals[left - item.first];
}

// Searches wait for memory, so several blocks are to fit on a multiprocessor, as
// many as leave registers enough: three where a leaf is read block by block, four
// where it is read at once (measured on an H200).
#define SEARCH extern "C" __global__ launch_bounds(256, 3) void
#define PROBE extern "C" __global__ launch_bounds(256, 4) void

#define CHUNKED(BITS) \
	typedef u##BITS K##BITS; \
	SEARCH chunkedFind##BITS(Version v, const K##BITS *keys, u32 n, K##BITS *vals, u32 *found) { find(v, keys, n, vals, found); } \
	SEARCH chunkedRank##BITS(Version v, const K##BITS *keys, u32 n, u32 after, u32 *ranks) { rank(v, keys, n, after, ranks); } \
	KERNEL chunkedEntries##BITS(Version v, const u32 *first, const u32 *offsets, u32 ranges, u32 n, K##BITS *keys, K##BITS *vals) { entries(v, first, offsets, ranges, n, keys, vals); } \
	PROBE probe##BITS(Version v, Batch<K##BITS> b, u32 *homes, u32 *acts) { probe(v, b, homes, acts); } \
	KERNEL effects##BITS(Batch<K##BITS> b, const u32 *acts, K##BITS *keys, K##BITS *vals, u8 *kinds, u32 *told, u32 *ticket, u64 *reports) { scan<u32>(Effects<K##BITS>{b, acts, keys, vals, kinds, told}, ticket, reports); } \
	KERNEL plan##BITS(Version v, Owned o) { plan<K##BITS>(v, o); } \
	KERNEL move##BITS(Version v, Batch<K##BITS> b, Owned o, Slots leaves, u32 each) { move<K##BITS, false>(v, b, o, leaves, each); } \
	KERNEL moveFew##BITS(Version v, Batch<K##BITS> b, Owned o, Slots leaves, u32 each) { move<K##BITS, true>(v, b, o, leaves, each); } \
	KERNEL planFew##BITS(Version v, Batch<K##BITS> b, Owned o, u32 *become, u32 *fresh, K##BITS *keys, K##BITS *vals, u8 *kinds, u32 *effects, u32 *begun, u32 *told, u32 *ticket, u64 *reports) { \
		planFew(v, o, Effects<K##BITS>{b, o.acts, keys, vals, kinds, effects}, PlanChunks{v, o, become, fresh}, begun, told, ticket, reports); \
	} \
	KERNEL store##BITS(Version v, Batch<K##BITS> b, Owned o, Slots leaves) { store(v, b, o, leaves); } \
	KERNEL give##BITS(Version v, Owned o, Next next, Freed freed) { give<K##BITS>(v, o, next, freed); } \
	KERNEL rechunk##BITS(Version v, Owned o, Slots leaves, Slots chunks, Next next) { rechunk<K##BITS>(v, o, leaves, chunks, next); } \
	KERNEL finish##BITS(Version v, const u32 *totals, const u32 *freed, u32 *told, u32 *ticket, u64 *reports) { \
		raise<K##BITS>(v); \
		scan<u32>(Finish{totals, freed, (u32 *)v.first, told, v.count}, ticket, reports); \
	} \
	KERNEL finishOwn##BITS(Version v, Owned o, const u32 *totals, const u32 *freed, u32 *told, u32 *ticket, u64 *reports) { \
		if (!o.goes()) return; \
		v.count = o.told[CHUNKS]; \
		raise<K##BITS>(v); \
		scan<u32>(Finish{totals, freed, (u32 *)v.first, told, v.count}, ticket, reports); \
	} \
	KERNEL cut##BITS(Version v, const K##BITS *keys, u32 *cuts, u32 *over, u32 n, u32 most) { cut(v, keys, n, cuts, most, over); } \
	KERNEL weigh##BITS(Version v, Batch<K##BITS> b, Flat f, const u32 *wrong) { weigh(v, b, f, wrong); } \
	KERNEL flatWrite##BITS(Version v, Batch<K##BITS> b, Flat f, Slots leaves, u32 what) { flatWrite(v, b, f, leaves, what); } \
	KERNEL flatChunks##BITS(Version v, Flat f, Slots leaves, Slots chunks, Next next) { flatChunks<K##BITS>(v, f, leaves, chunks, next); } \
	KERNEL giveAll##BITS(Version v, Freed freed) { giveAll<K##BITS>(v, freed); }

CHUNKED(32)
CHUNKED(64)

KERNEL changes(const u32 *places, const u8 *kinds, u32 *sums, u32 *list, u32 *ticket, u64 *reports, u32 n) { scan<u32>(Changes{places, kinds, sums, list, n}, ticket, reports); }
KERNEL owns(Owned o, u32 *ticket, u64 *reports) { scan<u64>(Owns{o}, ticket, reports); }

// sums adds up what plan found: the first tiles blocks for leaves, the others for
// chunks.
KERNEL sums(Version v, Owned o, u32 *become, u32 *fresh, u32 *ticket, u64 *reports, u32 *ticket2, u64 *reports2, u32 tiles) {
	if (blockIndex() < tiles) scan<u32>(Needs{o, o.touched()}, ticket, reports, tiles);
	else scan<u64>(PlanChunks{v, o, become, fresh}, ticket2, reports2, gridBlocks() - tiles);
}

KERNEL deltas(const u32 *acts, u32 *shifts, u32 *told, u32 *ticket, u64 *reports, u32 n) { scan<u32>(Deltas{acts, shifts, told, n}, ticket, reports); }

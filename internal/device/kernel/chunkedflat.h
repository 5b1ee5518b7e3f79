// Batches that are done by a flat merge.
#pragma once
#include "chunkedbatch.h"

// A flat merge writes all of the tree anew: entry i of the result is in leaf
// i / LEAF_FILL.

// above gives the number of keys among [first, first+span) that are up to a key.
template <typename K> inline_device u32 above(const K *keys, u32 first, u32 span, K key) {
	while (span > 0) {
		u32 half = span / 2;
		if (keys[first + half] <= key) {
			first += half + 1;
			span -= half + 1;
		} else {
			span = half;
		}
	}
	return first;
}

// cut gives, for each chunk, the operations up to those that fall on it, and
// counts the chunks with more than most.
template <typename K> inline_device void cut(const Version &v, const K *keys, u32 n, u32 *cuts, u32 most, u32 *over) {
	u32 c = thread();
	if (c >= v.count) return;
	const K *seps = (const K *)v.seps[v.levels - 1];
	u32 end = c == v.count - 1 ? n : above(keys, 0, n, seps[c]), begin = c == 0 ? 0 : above(keys, 0, n, seps[c - 1]);
	cuts[c] = end;
	if (end - begin > most) reduceRelaxed(over, (u32)1);
}

// Flat is kernel.Flat in Go: what a flat merge knows of operations.
struct Flat {
	const u32 *cuts; // of chunks
	u32 *ends;       // of leaves, 256 a chunk: the operations up to those on it
	u32 *acts;       // of operations
	u32 *shifts;     // entries inserted before each, less those removed
	u32 leaves, entries; // of the result
	u32 blocks;          // that do a chunk

	inlined u32 cutBefore(u32 c) const { return c == 0 ? 0 : cuts[c - 1]; }
	inlined u32 chunk() const { return blockIndex() / blocks; }
	inlined u32 block() const { return blockIndex() % blocks; }
};

// Parts is how the warps of all blocks that do a chunk share its leaves: in turns, and where
// several blocks have more warps than there are leaves, the operations on a leaf in parts.
struct Parts {
	u32 first, step, all; // numbers of parts: a warp's first, how far its next is, how many there are
	u32 each;             // parts of a leaf

	inlined Parts(const Flat &f, u32 used) {
		first = f.block() * WARPS + warpIndex(), step = f.blocks * WARPS;
		each = f.blocks > 1 && used < step ? step / used : 1, all = used * each;
	}
};

// find gives the number of the leaf's count keys below q, of which lane s has
// number s, and whether q is there. The lanes of a warp call it together.
template <typename K> inline_device u32 findIn(K key, u32 count, K q, bool *hit) {
	u32 pos = 0;
	unrolled for (u32 by = LEAF / 2; by > 0; by /= 2) {
		K k = shuffle(key, pos + by - 1);
		if (pos + by <= count && k < q) pos += by;
	}
	K k = shuffle(key, pos); // at most the last
	if (pos < count && k < q) pos++;
	k = shuffle(key, least(pos, LEAF - 1));
	*hit = pos < count && k == q;
	return pos;
}

// weigh is probe where most leaves have operations: a chunk is f.blocks blocks', a part of a
// leaf's operations a warp's. It does nothing where keys are not in order, or a chunk has too many, of
// which wrong tells: the host sees that later, too.
template <typename K> inline_device void weigh(const Version &v, const Batch<K> &b, const Flat &f, const u32 *wrong) {
	static __shared__ u32 ends[CHUNK];
	if (wrong[0] || wrong[1]) return;
	u32 c = f.chunk(), mine = threadIndex(), s = laneIndex(), used = v.used[c], from = f.cutBefore(c), to = f.cuts[c];
	const Chunk<K> *chunk = chunkAt<K>(v, v.slots[c]);
	if (mine < used) {
		ends[mine] = mine == used - 1 ? to : above(b.keys, from, to - from, chunk->seps[mine]);
		if (f.block() == 0) f.ends[c * CHUNK + mine] = ends[mine];
	}
	__syncthreads();
	Parts parts(f, used);
	for (u32 p = parts.first; p < parts.all; p += parts.step) {
		u32 e = p / parts.each, begin = e ? ends[e - 1] : from, end = ends[e];
		if (begin == end) continue;
		Item item = chunk->at(e);
		u32 count = item.count;
		const Leaf<K> *leaf = leafAt<K>(v, item.ref);
		K key = s < count ? leaf->keys[s] : 0;
		for (u32 i = begin + p % parts.each * WARP; i < end; i += parts.each * WARP) {
			bool there = i + s < end, hit;
			u32 pos = findIn(key, count, there ? b.keys[i + s] : 0, &hit);
			if (there) f.acts[i + s] = pos * 4 + answer(b, i + s, leaf, pos, hit);
		}
	}
}

// Deltas adds up how much longer operations make the tree.
struct Deltas {
	const u32 *acts;
	u32 *shifts, *told;
	u32 n;

	inlined void take(u32 at, u32 (&v)[PART]) const {
		quad act = quadAt(acts, at, n);
		unrolled for (u32 i = 0; i < PART; i++) v[i] = at + i < n ? (act[i] % 4 == INSERT) - (act[i] % 4 == REMOVE) : 0;
	}

	inlined void give(u32 at, u32 sum, const u32 (&v)[PART]) const { put(shifts, at, n, sum, sum + v[0], sum + v[0] + v[1], sum + v[0] + v[1] + v[2]); }

	inlined void end(u32 all) const { *told = shifts[n] = all; }
};

// flatEntries writes the entries of a leaf that stay, of which the first would be entry first
// of the result without the batch. The lanes of a warp call it together. Operations
// [begin, end) fall on the leaf: a few are counted, and many searched.
template <typename K> inline_device void flatEntries(const Version &v, const Batch<K> &b, const Flat &f, const Slots &leaves, Shifts &shift, Item item, u32 first, u32 begin, u32 end) {
	const u32 few = 16 * WARP;
	const Leaf<K> *leaf = leafAt<K>(v, item.ref);
	u32 s = laneIndex(), at = first + s;
	bool stays = s < item.count;
	K key = stays ? leaf->keys[s] : 0, val = stays ? leaf->vals[s] : 0;
	if (end - begin > few) {
		u32 below = key > 0 ? above(b.keys, begin, end - begin, (K)(key - 1)) : begin;
		at += f.shifts[below];
		stays = stays && f.shifts[above(b.keys, below, end - below, key)] == f.shifts[below];
	} else {
		u32 removed = 0;
		shift.clear(s);
		for (u32 i = begin; i < end; i += WARP) {
			u32 act = i + s < end ? f.acts[i + s] : NOTHING, pos = act / 4;
			if (act % 4 == INSERT) shift.add(pos, 1);
			if (act % 4 == REMOVE) shift.add(pos + 1, ~(u32)0);
			removed |= act % 4 == REMOVE ? 1u << pos : 0;
		}
		at += f.shifts[begin] + shift.at(s);
		if (begin < end) unrolled for (u32 x = 1; x < WARP; x *= 2) removed |= shuffleXor(removed, x);
		stays = stays && !(removed >> s & 1);
	}
	if (stays) {
		Leaf<K> *to = leafAt<K>(v, leaves.take(at / LEAF_FILL));
		to->keys[at % LEAF_FILL] = key;
		to->vals[at % LEAF_FILL] = val;
	}
	syncWarp(ALL);
}

// flatWrite writes what the entries and operations of a chunk come to. Blocks and warps share
// them as in weigh; the entries of a leaf are its first warp's. Values that are replaced are
// written with the entries, and again: so entries come first, in a launch of their own where
// several warps do a leaf.
enum { ENTRIES = 1, OPERATIONS = 2 };

template <typename K> inline_device void flatWrite(const Version &v, const Batch<K> &b, const Flat &f, const Slots &leaves, u32 what) {
	static __shared__ Shifts shifts[WARPS];
	u32 c = f.chunk(), s = laneIndex(), used = v.used[c];
	const Chunk<K> *chunk = chunkAt<K>(v, v.slots[c]);
	const u32 *ends = f.ends + c * CHUNK;
	Parts parts(f, used);
	for (u32 p = parts.first; p < parts.all; p += parts.step) {
		u32 e = p / parts.each, part = p % parts.each;
		Item item = chunk->at(e);
		u32 begin = e ? ends[e - 1] : f.cutBefore(c), end = ends[e], first = v.first[c] + item.first;
		if (part == 0 && what & ENTRIES) flatEntries(v, b, f, leaves, shifts[warpIndex()], item, first, begin, end);
		if (what & OPERATIONS) for (u32 i = begin + part * WARP + s; i < end; i += parts.each * WARP) {
			u32 act = f.acts[i] % 4;
			if (act != INSERT && act != REPLACE) continue;
			u32 at = first + f.acts[i] / 4 + f.shifts[i];
			Leaf<K> *to = leafAt<K>(v, leaves.take(at / LEAF_FILL));
			if (act == INSERT) to->keys[at % LEAF_FILL] = b.keys[i];
			to->vals[at % LEAF_FILL] = b.vals[b.places[i]];
		}
	}
}

// flatChunks writes the chunks above, a block a chunk.
template <typename K> inline_device void flatChunks(const Version &v, const Flat &f, const Slots &leaves, const Slots &chunks, const Next &next) {
	u32 c = blockIndex(), e = threadIndex(), x = c * CHUNK_FILL + e, size = least(f.leaves - c * CHUNK_FILL, CHUNK_FILL);
	Entry<K> entry = {most<K>(), 0, 0};
	if (e < size) {
		bool last = x == f.leaves - 1;
		entry.ref = leaves.take(x);
		entry.count = last ? f.entries - x * LEAF_FILL : LEAF_FILL;
		if (!last) entry.sep = leafAt<K>(v, entry.ref)->keys[LEAF_FILL - 1];
	}
	writeChunk(v, chunks.take(c), entry, size, next, c);
}

// giveAll lists all leaves and chunks of a version, a block a chunk.
template <typename K> inline_device void giveAll(const Version &v, const Freed &freed) {
	static __shared__ u32 first;
	u32 c = blockIndex(), e = threadIndex(), used = v.used[c];
	if (e == 0) {
		first = addRelaxed(freed.counts, used);
		freed.chunks[addRelaxed(freed.counts + 1, (u32)1)] = v.slots[c];
	}
	__syncthreads();
	if (e < used) freed.leaves[first + e] = chunkAt<K>(v, v.slots[c])->items[e].ref;
}

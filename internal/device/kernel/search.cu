// Searches in the implicit tree by its inner nodes, and what leads to copies of its entries.
#include "search.h"

// down gives the node that each query has come to behind the last level: for
// a search that goes on elsewhere.
template <typename W, typename K> inline_device void down(const Tree &t, const K *keys, u32 n, u32 *nodes) {
	W w;
	for (Rounds<W> r; r.first < n; r.next()) {
		K key[W::TURNS];
		u32 node[W::TURNS], mine[W::OWN];
		w.take(keys, r.first, n, key);
		descend(w, t, w.begin(t, r.first, n, node), key, node);
		w.collect(node, mine);
		w.give(mine, r.first, n, nodes);
	}
}

// rangeOf gives the range that entry e of a result belongs to: the last that
// begins at e or before.
inline_device u32 rangeOf(const u32 *offsets, u32 ranges, u32 e) {
	u32 r = 0;
	for (u32 span = ranges; span > 1;) {
		u32 half = span / 2;
		if (offsets[r + half] <= e) r += half;
		span -= half;
	}
	return r;
}

// entries copies runs of entries out of the leaves, a thread for each: run r
// begins with entry first[r] of the tree, and with entry offsets[r] of the
// result, which has n in all. Runs end within the tree whatever is in it: they
// are from rank to rank, and no rank is above entries.
template <typename K, typename V> inline_device void entries(const Tree &t, const u32 *first, const u32 *offsets, u32 ranges, u32 n, K *keys, V *vals) {
	u32 e = blockIndex() * blockThreads() + threadIndex();
	if (e >= n) return;
	u32 r = rangeOf(offsets, ranges, e);
	u32 rank = first[r] + (e - offsets[r]);
	const K *leaf = (const K *)(t.base + (u64)(t.leaves + rank / t.leafKeys) * LINE) + rank % t.leafKeys;
	keys[e] = *leaf;
	if (!vals) return;
	vals[e] = t.vals ? ((const V *)t.vals)[rank] : (V)leaf[LINE / sizeof(K) / 2];
}

#define SEARCHES(BITS) \
	typedef Warp<u##BITS, 4, 32> Warp##BITS; \
	KERNEL rank##BITS(Tree t, const u##BITS *keys, u32 n, u32 *ranks) { rank<Warp##BITS>(Inner{t}, keys, n, ranks); } \
	KERNEL pairs##BITS(Tree t, const u##BITS *keys, u32 n, u##BITS *vals, u32 *found) { pairs<Warp##BITS>(Inner{t}, keys, n, vals, found); } \
	KERNEL down##BITS(Tree t, const u##BITS *keys, u32 n, u32 *nodes) { down<Warp##BITS>(t, keys, n, nodes); } \
	KERNEL entries##BITS##x32(Tree t, const u32 *first, const u32 *offsets, u32 ranges, u32 n, u##BITS *keys, u32 *vals) { entries(t, first, offsets, ranges, n, keys, vals); } \
	KERNEL entries##BITS##x64(Tree t, const u32 *first, const u32 *offsets, u32 ranges, u32 n, u##BITS *keys, u64 *vals) { entries(t, first, offsets, ranges, n, keys, vals); } \
	KERNEL find##BITS(Tree t, const u##BITS *keys, u32 n, u32 *ranks) { find<Warp##BITS>(Inner{t}, keys, n, ranks); } \
	KERNEL apart##BITS##x32(Tree t, const u##BITS *keys, u32 n, u32 *vals, u32 *found) { apart<Warp##BITS>(Inner{t}, keys, n, vals, found); } \
	KERNEL apart##BITS##x64(Tree t, const u##BITS *keys, u32 n, u64 *vals, u32 *found) { apart<Warp##BITS>(Inner{t}, keys, n, vals, found); }

// Four lanes a query, 32 queries a warp: the best of 1, 2, 4 and 8 lanes and of
// 32 and 64 queries, docs/gpu.md.
SEARCHES(32)
SEARCHES(64)

// Searches in the implicit tree, as package implicit lays it out and package
// simd defines them: one step counts the separators below a key, and the
// count is the child to go on to.
#include "warp.h"

// Tree is kernel.Tree in Go. Nodes are numbered in lines of 64 bytes from base,
// which is 32-bit arithmetic: a tree on a device has fewer than 2^32 of them.
//
// A search may begin in the middle: then query q has come to node start[q] of
// level from, or, where q is below deep (a multiple of 32), one level further.
// The levels above may be missing then, and so may those from levels on.
struct Tree {
	const u8 *base;
	const u8 *vals; // column of values, where they are apart
	u32 next[16];   // child j of node x on level l is fanout·x + j + next[l]
	u32 last[16];   // the last node of each level; behind the inner levels, the last leaf
	u32 leaves, entries;
	u32 levels, fanout, leafKeys;
	const u32 *start; // null: all queries begin at the root
	u32 from, deep;
};

// descend takes a tile's queries from a level to that behind the last. Each node
// is cut to those that its level has: in a damaged tree a count leads past them,
// and what is behind may be on the host. The count comes last because Hopper has
// an instruction that adds and takes the lesser of the sum and a bound.
template <typename W, typename K> inline_device void descend(const W &w, const Tree &t, u32 from, const K (&keys)[W::TURNS], u32 (&node)[W::TURNS]) {
	for (int s = 0; s < W::TURNS; s++) node[s] = least(node[s], t.last[from]);
	for (u32 l = from; l < t.levels; l++) {
		K v[W::TURNS][W::PART];
		u32 counts[W::TURNS];
		for (int s = 0; s < W::TURNS; s++) w.fetch(t, node[s], v[s]);
		w.below(v, keys, counts);
		for (int s = 0; s < W::TURNS; s++) node[s] = least(t.fanout * node[s] + t.next[l] + counts[s], t.last[l + 1]);
	}
}

// leafOf looks at a tile's leaves: the slot of each key's lower bound, a bit
// for each query whose key is there, and this lane's part of each leaf.
template <typename W, typename K> inline_device u32 leafOf(const W &w, const Tree &t, const K (&keys)[W::TURNS], const u32 (&node)[W::TURNS], u32 (&slot)[W::TURNS], K (&v)[W::TURNS][W::PART]) {
	u32 hits = 0;
	for (int s = 0; s < W::TURNS; s++) w.fetch(t, node[s], v[s]);
	for (int s = 0; s < W::TURNS; s++) {
		bool same = false;
		slot[s] = 0;
		for (int i = 0; i < W::PART; i++) {
			bool isKey = w.part * W::PART + i < t.leafKeys;
			slot[s] += isKey && v[s][i] < keys[s];
			same |= isKey && v[s][i] == keys[s];
		}
		hits |= (u32)w.any(same) << s;
	}
	w.total(slot);
	return hits;
}

// pick gives v[i] without an array in local memory.
template <typename K, int N> inline_device K pick(const K (&v)[N], u32 i) {
	K x = v[0];
	for (int j = 1; j < N; j++)
		if (i == j) x = v[j];
	return x;
}

// walk runs over all queries, and calls at for each round with the queries'
// keys and the numbers of their leaves.
template <typename W, typename K, typename F> inline_device void walk(const Tree &t, const K *keys, u32 n, F at) {
	W w;
	for (Rounds<W> r; r.first < n; r.next()) {
		K key[W::TURNS];
		u32 node[W::TURNS];
		w.take(keys, r.first, n, key);
		descend(w, t, w.begin(t, r.first, n, node), key, node);
		at(w, r.first, key, node);
	}
}

template <typename W, typename K> inline_device void rank(const Tree &t, const K *keys, u32 n, u32 *ranks) {
	walk<W>(t, keys, n, [&](const W &w, u64 first, const K(&key)[W::TURNS], const u32(&node)[W::TURNS]) {
		u32 r[W::TURNS], mine[W::OWN];
		K v[W::TURNS][W::PART];
		leafOf(w, t, key, node, r, v);
		for (int s = 0; s < W::TURNS; s++) r[s] = least(r[s] + (node[s] - t.leaves) * t.leafKeys, t.entries);
		w.collect(r, mine);
		w.give(mine, first, n, ranks);
	});
}

// pairs looks keys up in leaves of pairs: values are the second half of a leaf.
template <typename W, typename K> inline_device void pairs(const Tree &t, const K *keys, u32 n, K *vals, u32 *found) {
	walk<W>(t, keys, n, [&](const W &w, u64 first, const K(&key)[W::TURNS], const u32(&node)[W::TURNS]) {
		enum { LANES = WARP / W::TILES, HALF = LINE / sizeof(K) / 2 };
		u32 slot[W::TURNS], hit[W::TURNS], mineHit[W::OWN];
		K v[W::TURNS][W::PART], val[W::TURNS], mine[W::OWN];
		u32 hits = leafOf(w, t, key, node, slot, v);
		for (int s = 0; s < W::TURNS; s++) {
			hit[s] = hits >> s & 1;
			u32 at = (HALF + slot[s]) % (2 * HALF);
			val[s] = shuffle(pick(v[s], at % W::PART), w.tile * LANES + at / W::PART);
		}
		w.collect(val, mine);
		w.collect(hit, mineHit);
		store(w, first, n, mine, mineHit, vals, found);
	});
}

// findEach gives the place of each query's first equal entry, or ALL.
template <typename W, typename K, typename F> inline_device void findEach(const Tree &t, const K *keys, u32 n, F give) {
	walk<W>(t, keys, n, [&](const W &w, u64 first, const K(&key)[W::TURNS], const u32(&node)[W::TURNS]) {
		u32 r[W::TURNS], mine[W::OWN];
		K v[W::TURNS][W::PART];
		u32 hits = leafOf(w, t, key, node, r, v);
		for (int s = 0; s < W::TURNS; s++) r[s] = hits >> s & 1 ? r[s] + (node[s] - t.leaves) * t.leafKeys : ALL;
		w.collect(r, mine);
		give(w, first, mine);
	});
}

template <typename W, typename K> inline_device void find(const Tree &t, const K *keys, u32 n, u32 *ranks) {
	findEach<W>(t, keys, n, [&](const W &w, u64 first, const u32(&r)[W::OWN]) {
		w.give(r, first, n, ranks);
	});
}

// apart looks keys up where values are in a column of their own. Behind the last
// entry a damaged leaf may hold a key, but the column has no value.
template <typename W, typename K, typename V> inline_device void apart(const Tree &t, const K *keys, u32 n, V *vals, u32 *found) {
	findEach<W>(t, keys, n, [&](const W &w, u64 first, const u32(&r)[W::OWN]) {
		V v[W::OWN];
		u32 hit[W::OWN];
		for (int i = 0; i < W::OWN; i++) {
			hit[i] = r[i] < t.entries;
			v[i] = hit[i] ? ((const V *)t.vals)[r[i]] : 0;
		}
		store(w, first, n, v, hit, vals, found);
	});
}

// down gives the node that each query has come to behind the last level: for
// a search that goes on elsewhere.
template <typename W, typename K> inline_device void down(const Tree &t, const K *keys, u32 n, u32 *nodes) {
	walk<W>(t, keys, n, [&](const W &w, u64 first, const K(&)[W::TURNS], const u32(&node)[W::TURNS]) {
		u32 mine[W::OWN];
		w.collect(node, mine);
		w.give(mine, first, n, nodes);
	});
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
	KERNEL rank##BITS(Tree t, const u##BITS *keys, u32 n, u32 *ranks) { rank<Warp##BITS>(t, keys, n, ranks); } \
	KERNEL pairs##BITS(Tree t, const u##BITS *keys, u32 n, u##BITS *vals, u32 *found) { pairs<Warp##BITS>(t, keys, n, vals, found); } \
	KERNEL down##BITS(Tree t, const u##BITS *keys, u32 n, u32 *nodes) { down<Warp##BITS>(t, keys, n, nodes); } \
	KERNEL entries##BITS##x32(Tree t, const u32 *first, const u32 *offsets, u32 ranges, u32 n, u##BITS *keys, u32 *vals) { entries(t, first, offsets, ranges, n, keys, vals); } \
	KERNEL entries##BITS##x64(Tree t, const u32 *first, const u32 *offsets, u32 ranges, u32 n, u##BITS *keys, u64 *vals) { entries(t, first, offsets, ranges, n, keys, vals); } \
	KERNEL find##BITS(Tree t, const u##BITS *keys, u32 n, u32 *ranks) { find<Warp##BITS>(t, keys, n, ranks); } \
	KERNEL apart##BITS##x32(Tree t, const u##BITS *keys, u32 n, u32 *vals, u32 *found) { apart<Warp##BITS>(t, keys, n, vals, found); } \
	KERNEL apart##BITS##x64(Tree t, const u##BITS *keys, u32 n, u64 *vals, u32 *found) { apart<Warp##BITS>(t, keys, n, vals, found); }

// Four lanes a query, 32 queries a warp: the best of 1, 2, 4 and 8 lanes and of
// 32 and 64 queries, docs/gpu.md.
SEARCHES(32)
SEARCHES(64)

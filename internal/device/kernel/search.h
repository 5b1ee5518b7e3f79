// Searches in the implicit tree, as package implicit lays it out and package
// simd defines them: one step counts the separators below a key, and the
// count is the child to go on to.
#pragma once
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

// pick gives v[i] without an array in local memory: all of v is read first, or clang
// makes of the comparisons a choice among addresses.
template <typename K, int N> inline_device K pick(const K (&v)[N], u32 i) {
	K all[N], x;
	for (int j = 0; j < N; j++) all[j] = v[j];
	x = all[0];
	for (int j = 1; j < N; j++) x = i == j ? all[j] : x;
	return x;
}

// Inner is the way to a tree's leaves through its inner nodes.
struct Inner {
	const Tree &tree;

	// leaves takes a tile's queries to their leaves, and looks at them.
	template <typename W, typename K> inlined u32 leaves(const W &w, u64 first, u32 n, const K (&keys)[W::TURNS], u32 (&node)[W::TURNS], u32 (&slot)[W::TURNS], K (&v)[W::TURNS][W::PART]) const {
		descend(w, tree, w.begin(tree, first, n, node), keys, node);
		return leafOf(w, tree, keys, node, slot, v);
	}
};

// walk runs over all queries, and calls at for each round with the result of leafOf,
// and that of its last arguments.
template <typename W, typename K, typename Way, typename F> inline_device void walk(const Way &way, const K *keys, u32 n, F at) {
	W w;
	for (Rounds<W> r; r.first < n; r.next()) {
		K key[W::TURNS], v[W::TURNS][W::PART];
		u32 node[W::TURNS], slot[W::TURNS];
		w.take(keys, r.first, n, key);
		u32 hits = way.leaves(w, r.first, n, key, node, slot, v);
		at(w, r.first, hits, node, slot, v);
	}
}

template <typename W, typename K, typename Way> inline_device void rank(const Way &way, const K *keys, u32 n, u32 *ranks) {
	const Tree &t = way.tree;
	walk<W>(way, keys, n, [&](const W &w, u64 first, u32, const u32(&node)[W::TURNS], const u32(&slot)[W::TURNS], const K(&)[W::TURNS][W::PART]) {
		u32 r[W::TURNS], mine[W::OWN];
		for (int s = 0; s < W::TURNS; s++) r[s] = least(slot[s] + (node[s] - t.leaves) * t.leafKeys, t.entries);
		w.collect(r, mine);
		w.give(mine, first, n, ranks);
	});
}

// pairs looks keys up in leaves of pairs: values are the second half of a leaf.
template <typename W, typename K, typename Way> inline_device void pairs(const Way &way, const K *keys, u32 n, K *vals, u32 *found) {
	walk<W>(way, keys, n, [&](const W &w, u64 first, u32 hits, const u32(&)[W::TURNS], const u32(&slot)[W::TURNS], const K(&v)[W::TURNS][W::PART]) {
		enum { LANES = WARP / W::TILES, HALF = LINE / sizeof(K) / 2 };
		u32 hit[W::TURNS], mineHit[W::OWN];
		K val[W::TURNS], mine[W::OWN];
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
template <typename W, typename K, typename Way, typename F> inline_device void findEach(const Way &way, const K *keys, u32 n, F give) {
	const Tree &t = way.tree;
	walk<W>(way, keys, n, [&](const W &w, u64 first, u32 hits, const u32(&node)[W::TURNS], const u32(&slot)[W::TURNS], const K(&)[W::TURNS][W::PART]) {
		u32 r[W::TURNS], mine[W::OWN];
		for (int s = 0; s < W::TURNS; s++) r[s] = hits >> s & 1 ? slot[s] + (node[s] - t.leaves) * t.leafKeys : ALL;
		w.collect(r, mine);
		give(w, first, mine);
	});
}

template <typename W, typename K, typename Way> inline_device void find(const Way &way, const K *keys, u32 n, u32 *ranks) {
	findEach<W>(way, keys, n, [&](const W &w, u64 first, const u32(&r)[W::OWN]) {
		w.give(r, first, n, ranks);
	});
}

// apart looks keys up where values are in a column of their own. Behind the last
// entry a damaged leaf may hold a key, but the column has no value.
template <typename W, typename K, typename V, typename Way> inline_device void apart(const Way &way, const K *keys, u32 n, V *vals, u32 *found) {
	const Tree &t = way.tree;
	findEach<W>(way, keys, n, [&](const W &w, u64 first, const u32(&r)[W::OWN]) {
		V v[W::OWN];
		u32 hit[W::OWN];
		for (int i = 0; i < W::OWN; i++) {
			hit[i] = r[i] < t.entries;
			v[i] = hit[i] ? ((const V *)t.vals)[r[i]] : 0;
		}
		store(w, first, n, v, hit, vals, found);
	});
}

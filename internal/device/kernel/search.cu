// Searches in the implicit tree, as package implicit lays it out and package
// simd defines them: one step counts the separators below a key, and the
// count is the child to go on to.
//
// A warp takes 32 queries that stand side by side: lane i loads query i and
// stores its result, so both run at full width. In between, LANES lanes share
// a query, each with its part of the 64-byte node, and every tile of lanes has
// LANES queries on their way at once, so that loads overlap.
#include "builtins.h"

// Tree is kernel.Tree in Go. Nodes are numbered in lines of 64 bytes from base,
// which is 32-bit arithmetic: a tree on a device has fewer than 2^32 of them.
struct Tree {
	const u8 *base;
	const u8 *vals; // column of values, where they are apart
	u32 next[16];   // child j of node x on level l is fanout·x + j + next[l]
	u32 leaves, last, entries;
	u32 levels, fanout, leafKeys;
};

enum { LINE = 64 };

template <typename K, int LANES> struct Warp {
	enum { TILES = WARP / LANES, PART = LINE / sizeof(K) / LANES };
	u32 lane, tile, part; // tile in the warp, lane in the tile

	inline_device Warp at() {
		Warp w;
		w.lane = threadIndex() % WARP;
		w.tile = w.lane / LANES;
		w.part = w.lane % LANES;
		return w;
	}

	// fetch loads this lane's part of a node.
	inline_device void fetch(const Tree &t, u32 node, u32 part, K (&v)[PART]) {
		load((const K *)(t.base + (u64)node * LINE) + part * PART, v);
	}

	// sum adds up over the lanes of a tile; all of them get it.
	inline_device u32 sum(u32 v) {
		for (int by = 1; by < LANES; by *= 2) v += shuffleXor(v, by);
		return v;
	}

	inline_device u32 below(const K (&v)[PART], K key) {
		u32 n = 0;
		for (int i = 0; i < PART; i++) n += v[i] < key;
		return n;
	}

	// descend takes the tile's queries from the root to their leaves.
	inline_device void descend(const Tree &t, const K (&keys)[LANES], u32 (&node)[LANES], u32 part) {
		for (int s = 0; s < LANES; s++) node[s] = 0;
		for (u32 l = 0; l < t.levels; l++) {
			K v[LANES][PART];
			for (int s = 0; s < LANES; s++) fetch(t, node[s], part, v[s]);
			for (int s = 0; s < LANES; s++)
				node[s] = t.fanout * node[s] + sum(below(v[s], keys[s])) + t.next[l];
		}
		for (int s = 0; s < LANES; s++) node[s] = node[s] < t.last ? node[s] : t.last;
	}

	// own gives each lane the value that belongs to its query.
	template <typename T> inline_device T own(const Warp &w, const T (&of)[LANES]) {
		T mine = of[0];
		for (int s = 0; s < LANES; s++) {
			T v = LANES == 1 ? of[s] : shuffle(of[s], w.lane % TILES * LANES);
			if (w.lane / TILES == s) mine = v;
		}
		return mine;
	}
};

// pick gives v[i] without an array in local memory.
template <typename K, int N> inline_device K pick(const K (&v)[N], u32 i) {
	K x = v[0];
	for (int j = 1; j < N; j++)
		if (i == j) x = v[j];
	return x;
}

// walk runs over all queries, 32 a warp, and calls leaf for each round with
// the queries' keys and the numbers of their leaves.
template <typename K, int LANES, typename F> inline_device void walk(const Tree &t, const K *keys, u32 n, F leaf) {
	typedef Warp<K, LANES> W;
	W w = W::at();
	u32 warp = (blockIndex() * blockThreads() + threadIndex()) / WARP, warps = gridBlocks() * blockThreads() / WARP;
	for (u64 first = (u64)warp * WARP; first < n; first += (u64)warps * WARP) {
		u64 q = first + w.lane;
		K mine = keys[q < n ? q : n - 1];
		K key[LANES];
		for (int s = 0; s < LANES; s++) key[s] = LANES == 1 ? mine : shuffle(mine, s * W::TILES + w.tile);
		u32 node[LANES];
		W::descend(t, key, node, w.part);
		leaf(w, q, key, node);
	}
}

template <typename K, int LANES> inline_device void rank(const Tree &t, const K *keys, u32 n, u32 *ranks) {
	walk<K, LANES>(t, keys, n, [&](const Warp<K, LANES> &w, u64 q, const K(&key)[LANES], const u32(&node)[LANES]) {
		typedef Warp<K, LANES> W;
		u32 r[LANES];
		K v[LANES][W::PART];
		for (int s = 0; s < LANES; s++) W::fetch(t, node[s], w.part, v[s]);
		for (int s = 0; s < LANES; s++) {
			u32 c = 0;
			for (int i = 0; i < W::PART; i++) c += w.part * W::PART + i < t.leafKeys && v[s][i] < key[s];
			u32 e = (node[s] - t.leaves) * t.leafKeys + W::sum(c);
			r[s] = e < t.entries ? e : t.entries;
		}
		u32 mine = W::own(w, r);
		if (q < n) ranks[q] = mine;
	});
}

// found says for each query of a tile whether a lane of it saw the key.
template <int LANES> inline_device bool inTile(u32 votes, u32 tile) {
	u32 mask = LANES == 32 ? ALL : (1u << LANES) - 1;
	return (votes >> (tile * LANES) & mask) != 0;
}

// pairs looks keys up in leaves of pairs: values are the second half of a leaf.
template <typename K, int LANES> inline_device void pairs(const Tree &t, const K *keys, u32 n, K *vals, u32 *found) {
	walk<K, LANES>(t, keys, n, [&](const Warp<K, LANES> &w, u64 q, const K(&key)[LANES], const u32(&node)[LANES]) {
		typedef Warp<K, LANES> W;
		enum { HALF = LINE / sizeof(K) / 2 };
		K val[LANES], v[LANES][W::PART];
		u32 hit[LANES];
		for (int s = 0; s < LANES; s++) W::fetch(t, node[s], w.part, v[s]);
		for (int s = 0; s < LANES; s++) {
			u32 c = 0;
			bool same = false;
			for (int i = 0; i < W::PART; i++) {
				bool isKey = w.part * W::PART + i < t.leafKeys;
				c += isKey && v[s][i] < key[s];
				same |= isKey && v[s][i] == key[s];
			}
			hit[s] = inTile<LANES>(ballot(same), w.tile);
			u32 slot = (HALF + W::sum(c)) % (2 * HALF);
			K mine = pick(v[s], slot % W::PART);
			val[s] = LANES == 1 ? mine : shuffle(mine, w.tile * LANES + slot / W::PART);
		}
		K mine = W::own(w, val);
		bool yes = W::own(w, hit) && q < n;
		if (q < n) vals[q] = yes ? mine : 0;
		u32 bits = ballot(yes);
		if (w.lane == 0) found[q / WARP] = bits;
	});
}

// find gives the place of the first equal entry, or the greatest u32.
template <typename K, int LANES, typename F> inline_device void findEach(const Tree &t, const K *keys, u32 n, F give) {
	walk<K, LANES>(t, keys, n, [&](const Warp<K, LANES> &w, u64 q, const K(&key)[LANES], const u32(&node)[LANES]) {
		typedef Warp<K, LANES> W;
		u32 r[LANES];
		K v[LANES][W::PART];
		for (int s = 0; s < LANES; s++) W::fetch(t, node[s], w.part, v[s]);
		for (int s = 0; s < LANES; s++) {
			u32 c = 0;
			bool same = false;
			for (int i = 0; i < W::PART; i++) {
				bool isKey = w.part * W::PART + i < t.leafKeys;
				c += isKey && v[s][i] < key[s];
				same |= isKey && v[s][i] == key[s];
			}
			c = W::sum(c);
			bool hit = inTile<LANES>(ballot(same), w.tile);
			r[s] = hit ? (node[s] - t.leaves) * t.leafKeys + c : ALL;
		}
		give(w, q, W::own(w, r));
	});
}

template <typename K, int LANES> inline_device void find(const Tree &t, const K *keys, u32 n, u32 *ranks) {
	findEach<K, LANES>(t, keys, n, [&](const Warp<K, LANES> &, u64 q, u32 r) {
		if (q < n) ranks[q] = r;
	});
}

// apart looks keys up where values are in a column of their own.
template <typename K, int LANES, typename V> inline_device void apart(const Tree &t, const K *keys, u32 n, V *vals, u32 *found) {
	findEach<K, LANES>(t, keys, n, [&](const Warp<K, LANES> &w, u64 q, u32 r) {
		bool yes = r != ALL && q < n;
		V v = yes ? ((const V *)t.vals)[r] : 0;
		if (q < n) vals[q] = v;
		u32 bits = ballot(yes);
		if (w.lane == 0) found[q / WARP] = bits;
	});
}

#define KERNEL extern "C" __global__ launch_bounds(256) void
#define SEARCHES(BITS, LANES, NAME) \
	KERNEL rank##BITS##NAME(Tree t, const u##BITS *keys, u32 n, u32 *ranks) { rank<u##BITS, LANES>(t, keys, n, ranks); } \
	KERNEL pairs##BITS##NAME(Tree t, const u##BITS *keys, u32 n, u##BITS *vals, u32 *found) { pairs<u##BITS, LANES>(t, keys, n, vals, found); } \
	KERNEL find##BITS##NAME(Tree t, const u##BITS *keys, u32 n, u32 *ranks) { find<u##BITS, LANES>(t, keys, n, ranks); } \
	KERNEL apart##BITS##x32##NAME(Tree t, const u##BITS *keys, u32 n, u32 *vals, u32 *found) { apart<u##BITS, LANES>(t, keys, n, vals, found); } \
	KERNEL apart##BITS##x64##NAME(Tree t, const u##BITS *keys, u32 n, u64 *vals, u32 *found) { apart<u##BITS, LANES>(t, keys, n, vals, found); }

SEARCHES(32, 1, _1)
SEARCHES(64, 1, _1)
SEARCHES(32, 2, _2)
SEARCHES(64, 2, _2)
SEARCHES(32, 4, _4)
SEARCHES(64, 4, _4)
SEARCHES(32, 8, _8)
SEARCHES(64, 8, _8)

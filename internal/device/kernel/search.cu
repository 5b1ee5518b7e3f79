// Searches in the implicit tree, as package implicit lays it out and package
// simd defines them: one step counts the separators below a key, and the
// count is the child to go on to.
//
// A warp takes queries that stand side by side: lane i loads query i and stores
// its result, so both run at full width. In between, a tile of LANES lanes
// shares a query, each lane with its part of the 64-byte node, and has several
// queries on their way at once, so that loads overlap.
#include "builtins.h"

// Tree is kernel.Tree in Go. Nodes are numbered in lines of 64 bytes from base,
// which is 32-bit arithmetic: a tree on a device has fewer than 2^32 of them.
//
// A search may begin in the middle: then query q has come to node start[q] of
// level from, or, where q is below deep (a multiple of 32), one level further.
struct Tree {
	const u8 *base;
	const u8 *vals; // column of values, where they are apart
	u32 next[16];   // child j of node x on level l is fanout·x + j + next[l]
	u32 leaves, last, entries;
	u32 levels, fanout, leafKeys;
	const u32 *start; // null: all queries begin at the root
	u32 from, deep;
};

enum { LINE = 64 };

// Warp is 32 lanes that work on QUERIES queries, LANES lanes to each at a time.
template <typename K, int LANES, int QUERIES> struct Warp {
	enum {
		TILES = WARP / LANES,           // groups of lanes that share a query
		PART = LINE / sizeof(K) / LANES, // keys of a node that a lane holds
		TURNS = QUERIES / TILES,         // queries that a tile has on their way at once
		OWN = QUERIES / WARP,            // queries whose input and output a lane moves
	};
	u32 lane, tile, part; // lane in the warp, its tile, its part of a node

	inlined Warp() {
		lane = threadIndex() % WARP;
		tile = lane / LANES;
		part = lane % LANES;
	}

	// fetch loads this lane's part of a node.
	inlined void fetch(const Tree &t, u32 node, K (&v)[PART]) const {
		load((const K *)(t.base + (u64)node * LINE) + part * PART, v);
	}

	// total adds up counts over the lanes of a tile. Counts are at most 16, so
	// four of them go into a word and cost one shuffle together.
	inlined void total(u32 (&counts)[TURNS]) const {
		for (int s = 0; s < TURNS; s += 4) {
			u32 word = 0;
			for (int i = 0; i < 4 && s + i < TURNS; i++) word |= counts[s + i] << 8 * i;
			for (int by = 1; by < LANES; by *= 2) word += shuffleXor(word, by);
			for (int i = 0; i < 4 && s + i < TURNS; i++) counts[s + i] = word >> 8 * i & 0xff;
		}
	}

	// begin sets the nodes at which the tile's queries begin, and gives their
	// level: one for the whole warp.
	inlined u32 begin(const Tree &t, u64 first, u32 n, u32 (&node)[TURNS]) const {
		if (!t.start) {
			for (int s = 0; s < TURNS; s++) node[s] = 0;
			return 0;
		}
		u32 mine[OWN];
		for (int i = 0; i < OWN; i++) {
			u64 q = first + i * WARP + lane;
			mine[i] = t.start[q < n ? q : n - 1];
		}
		deal(mine, node);
		return t.from + (first < t.deep);
	}

	// descend takes the tile's queries from a level to that behind the last.
	inlined void descend(const Tree &t, u32 from, const K (&keys)[TURNS], u32 (&node)[TURNS]) const {
		for (u32 l = from; l < t.levels; l++) {
			K v[TURNS][PART];
			u32 counts[TURNS];
			for (int s = 0; s < TURNS; s++) fetch(t, node[s], v[s]);
			for (int s = 0; s < TURNS; s++) {
				counts[s] = 0;
				for (int i = 0; i < PART; i++) counts[s] += v[s][i] < keys[s];
			}
			total(counts);
			for (int s = 0; s < TURNS; s++) node[s] = t.fanout * node[s] + counts[s] + t.next[l];
		}
		for (int s = 0; s < TURNS; s++) node[s] = node[s] < t.last ? node[s] : t.last;
	}

	// leaf looks at the tile's leaves: the slot of each key's lower bound, a bit
	// for each query whose key is there, and this lane's part of each leaf.
	inlined u32 leaf(const Tree &t, const K (&keys)[TURNS], const u32 (&node)[TURNS], u32 (&slot)[TURNS], K (&v)[TURNS][PART]) const {
		u32 hits = 0;
		for (int s = 0; s < TURNS; s++) fetch(t, node[s], v[s]);
		for (int s = 0; s < TURNS; s++) {
			bool same = false;
			slot[s] = 0;
			for (int i = 0; i < PART; i++) {
				bool isKey = part * PART + i < t.leafKeys;
				slot[s] += isKey && v[s][i] < keys[s];
				same |= isKey && v[s][i] == keys[s];
			}
			u32 votes = ballot(same) >> (tile * LANES) & ((1u << LANES) - 1);
			hits |= (u32)(votes != 0) << s;
		}
		total(slot);
		return hits;
	}

	// deal gives each tile the keys it works on; lane i of the warp has loaded
	// those of queries i, i+32, ...
	template <typename T> inlined void deal(const T (&mine)[OWN], T (&keys)[TURNS]) const {
		for (int s = 0; s < TURNS; s++) {
			u32 q = s * TILES; // the query is q + tile
			keys[s] = shuffle(mine[q / WARP], q % WARP + tile);
		}
	}

	// collect is the way back: each lane gets what belongs to its own queries.
	template <typename T> inlined void collect(const T (&of)[TURNS], T (&mine)[OWN]) const {
		for (int s = 0; s < TURNS; s++) {
			T v = shuffle(of[s], lane % TILES * LANES);
			if (lane / TILES == s % LANES) mine[s / LANES] = v;
		}
	}
};

// pick gives v[i] without an array in local memory.
template <typename K, int N> inline_device K pick(const K (&v)[N], u32 i) {
	K x = v[0];
	for (int j = 1; j < N; j++)
		if (i == j) x = v[j];
	return x;
}

// walk runs over all queries, QUERIES a warp, and calls at for each round with
// the queries' keys and the numbers of their leaves.
template <typename W, typename K, typename F> inline_device void walk(const Tree &t, const K *keys, u32 n, F at) {
	W w;
	enum { QUERIES = W::OWN * WARP };
	u32 warp = (blockIndex() * blockThreads() + threadIndex()) / WARP, warps = gridBlocks() * blockThreads() / WARP;
	for (u64 first = (u64)warp * QUERIES; first < n; first += (u64)warps * QUERIES) {
		K mine[W::OWN], key[W::TURNS];
		u32 node[W::TURNS];
		for (int i = 0; i < W::OWN; i++) {
			u64 q = first + i * WARP + w.lane;
			mine[i] = keys[q < n ? q : n - 1];
		}
		w.deal(mine, key);
		w.descend(t, w.begin(t, first, n, node), key, node);
		at(w, first, key, node);
	}
}

template <typename W, typename K> inline_device void rank(const Tree &t, const K *keys, u32 n, u32 *ranks) {
	walk<W>(t, keys, n, [&](const W &w, u64 first, const K(&key)[W::TURNS], const u32(&node)[W::TURNS]) {
		u32 r[W::TURNS], mine[W::OWN];
		K v[W::TURNS][W::PART];
		w.leaf(t, key, node, r, v);
		for (int s = 0; s < W::TURNS; s++) {
			r[s] += (node[s] - t.leaves) * t.leafKeys;
			r[s] = r[s] < t.entries ? r[s] : t.entries;
		}
		w.collect(r, mine);
		for (int i = 0; i < W::OWN; i++) {
			u64 q = first + i * WARP + w.lane;
			if (q < n) ranks[q] = mine[i];
		}
	});
}

// store writes a value for each query, and a bit for whether it was found.
template <typename W, typename V> inline_device void store(const W &w, u64 first, u32 n, const V (&val)[W::OWN], const u32 (&hit)[W::OWN], V *vals, u32 *found) {
	for (int i = 0; i < W::OWN; i++) {
		u64 q = first + i * WARP + w.lane;
		bool yes = hit[i] && q < n;
		if (q < n) vals[q] = yes ? val[i] : 0;
		u32 bits = ballot(yes);
		if (w.lane == 0 && q < n) found[q / WARP] = bits;
	}
}

// pairs looks keys up in leaves of pairs: values are the second half of a leaf.
template <typename W, typename K> inline_device void pairs(const Tree &t, const K *keys, u32 n, K *vals, u32 *found) {
	walk<W>(t, keys, n, [&](const W &w, u64 first, const K(&key)[W::TURNS], const u32(&node)[W::TURNS]) {
		enum { LANES = WARP / W::TILES, HALF = LINE / sizeof(K) / 2 };
		u32 slot[W::TURNS], hit[W::TURNS], mineHit[W::OWN];
		K v[W::TURNS][W::PART], val[W::TURNS], mine[W::OWN];
		u32 hits = w.leaf(t, key, node, slot, v);
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
		u32 hits = w.leaf(t, key, node, r, v);
		for (int s = 0; s < W::TURNS; s++) r[s] = hits >> s & 1 ? r[s] + (node[s] - t.leaves) * t.leafKeys : ALL;
		w.collect(r, mine);
		give(w, first, mine);
	});
}

template <typename W, typename K> inline_device void find(const Tree &t, const K *keys, u32 n, u32 *ranks) {
	findEach<W>(t, keys, n, [&](const W &w, u64 first, const u32(&r)[W::OWN]) {
		for (int i = 0; i < W::OWN; i++) {
			u64 q = first + i * WARP + w.lane;
			if (q < n) ranks[q] = r[i];
		}
	});
}

// apart looks keys up where values are in a column of their own.
template <typename W, typename K, typename V> inline_device void apart(const Tree &t, const K *keys, u32 n, V *vals, u32 *found) {
	findEach<W>(t, keys, n, [&](const W &w, u64 first, const u32(&r)[W::OWN]) {
		V v[W::OWN];
		u32 hit[W::OWN];
		for (int i = 0; i < W::OWN; i++) {
			hit[i] = r[i] != ALL;
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
		for (int i = 0; i < W::OWN; i++) {
			u64 q = first + i * WARP + w.lane;
			if (q < n) nodes[q] = mine[i];
		}
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
// result, which has n in all.
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

#define KERNEL extern "C" __global__ launch_bounds(256) void
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

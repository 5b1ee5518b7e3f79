// What kernels that search trees have in common: how a warp shares queries.
//
// A warp takes queries that stand side by side: lane i loads query i and stores
// its result, so both run at full width. In between, a tile of LANES lanes
// shares a query, each lane with its part of a 64-byte line, and has several
// queries on their way at once, so that loads overlap.
#pragma once
#include "builtins.h"

enum { LINE = 64 };

// Warp is 32 lanes that work on QUERIES queries, LANES lanes to each at a time. A
// line has KEYS keys. Trees are numbered in lines of 64 bytes from t.base.
template <typename K, int LANES, int QUERIES, int KEYS = LINE / sizeof(K)> struct Warp {
	enum {
		TILES = WARP / LANES,            // groups of lanes that share a query
		PART = KEYS / LANES,             // keys of a line that a lane holds
		TURNS = QUERIES / TILES,         // queries that a tile has on their way at once
		OWN = QUERIES / WARP,            // queries whose input and output a lane moves
	};
	u32 lane, tile, part; // lane in the warp, its tile, its part of a line

	inlined Warp() {
		lane = threadIndex() % WARP;
		tile = lane / LANES;
		part = lane % LANES;
	}

	// fetch loads this lane's part of a line.
	template <typename T> inlined void fetch(const T &t, u32 line, K (&v)[PART]) const {
		load((const K *)(t.base + (u64)line * LINE) + part * PART, v);
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

	// below counts the keys of each line that are below the tile's queries.
	inlined void below(const K (&v)[TURNS][PART], const K (&keys)[TURNS], u32 (&counts)[TURNS]) const {
		for (int s = 0; s < TURNS; s++) {
			counts[s] = 0;
			for (int i = 0; i < PART; i++) counts[s] += v[s][i] < keys[s];
		}
		total(counts);
	}

	// any says whether a lane of the tile says so.
	inlined bool any(bool v) const { return (ballot(v) >> (tile * LANES) & ((1u << LANES) - 1)) != 0; }

	// begin sets the nodes at which the tile's queries begin, and gives their
	// level: one for the whole warp.
	template <typename T> inlined u32 begin(const T &t, u64 first, u32 n, u32 (&node)[TURNS]) const {
		if (!t.start) {
			for (int s = 0; s < TURNS; s++) node[s] = 0;
			return 0;
		}
		take(t.start, first, n, node);
		return t.from + (first < t.deep);
	}

	// take gives each tile what the queries it works on have in an array.
	template <typename T> inlined void take(const T *of, u64 first, u32 n, T (&v)[TURNS]) const {
		T mine[OWN];
		for (int i = 0; i < OWN; i++) {
			u64 q = first + i * WARP + lane;
			mine[i] = of[q < n ? q : n - 1];
		}
		deal(mine, v);
	}

	// give stores what each lane has of its own queries.
	template <typename T> inlined void give(const T (&mine)[OWN], u64 first, u32 n, T *to) const {
		for (int i = 0; i < OWN; i++) {
			u64 q = first + i * WARP + lane;
			if (q < n) to[q] = mine[i];
		}
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

// Rounds runs over all queries, as many a warp as W says.
template <typename W> struct Rounds {
	u64 first; // the round's first query
	u32 step;

	inlined Rounds() {
		enum { QUERIES = W::OWN * WARP };
		u32 warp = (blockIndex() * blockThreads() + threadIndex()) / WARP, warps = gridBlocks() * blockThreads() / WARP;
		first = (u64)warp * QUERIES;
		step = warps * QUERIES;
	}
	inlined void next() { first += step; }
};

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

#define KERNEL extern "C" __global__ launch_bounds(256) void

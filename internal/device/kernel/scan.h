// Prefix sums in one launch, after Merrill and Garland's "Single-pass Parallel
// Prefix Scan with Decoupled Look-back" (2016): each block adds up a tile, learns
// the sum of the tiles before it from their reports, and goes on from there.
#pragma once
#include "block.h"

enum {
	PART = 4, // numbers that a thread has side by side
	ROWS = 4, // times that it has so many
	ROW = PART * WARP,
	TILE = ROWS * PART * THREADS,
};

typedef u32 quad __attribute__((ext_vector_type(4)));

// put stores four numbers, of n.
inline_device void put(u32 *to, u32 at, u32 n, u32 a, u32 b, u32 c, u32 d) {
	if (at + PART <= n) {
		*(quad *)(to + at) = quad{a, b, c, d};
		return;
	}
	u32 v[PART] = {a, b, c, d};
	unrolled for (u32 i = 0; i < PART; i++)
		if (at + i < n) to[at + i] = v[i];
}

// lookBack gives the sum of all tiles before this one. A warp does it, with 32
// reports at a time.
inline_device u64 lookBack(const u64 *reports, u32 tile) {
	typedef Report<u64> R;
	u64 sum = 0;
	for (u32 t = tile;;) { // tiles from t on are in sum
		u32 lane = laneIndex();
		u64 word = lane < t ? loadRelaxed(reports + (t - 1 - lane)) : R::upTo(0);
		u32 unknown = ballot(word == 0), ends = ballot(R::isUpTo(word));
		u32 useful = ends ? 2 * (ends & -ends) - 1 : ALL; // lanes up to the first that ends it
		if (unknown & useful) continue;
		sum += total(useful >> lane & 1 ? R::countOf(word) : 0);
		if (ends) return sum;
		t -= WARP;
	}
}

// scan adds up n numbers. f.take(at, v) gives four of them, which may be behind
// the last, where they are 0; f.give(at, sum, v) gets the sum of all before each
// four; f.end(sum) gets the sum of all, once. T is u32, or u64 with sums below
// 2^63. Sums of u32 are modulo 2^32: those of a tile, too, which are what it
// reports then. tiles blocks call it. Ticket and reports must be 0; where a single
// block does all, there may be none.
template <typename T, typename F> inline_device void scan(F f, u32 *ticket, u64 *reports, u32 tiles) {
	typedef Report<u64> R;
	__shared__ T sums[WARPS];
	__shared__ T start; // sum of the tiles before
	__shared__ u32 number;
	if (tiles > 1) takeTicket(ticket, number);
	syncBlock();
	u32 tile = tiles > 1 ? number : 0, first = tile * TILE + warpIndex() * ROWS * ROW + laneIndex() * PART;
	T v[ROWS][PART];
	unrolled for (u32 r = 0; r < ROWS; r++) f.take(first + r * ROW, v[r]);
	T sum[ROWS], warp = 0, own = 0, mine = 0;
	unrolled for (u32 r = 0; r < ROWS; r++) {
		T four = v[r][0] + v[r][1] + v[r][2] + v[r][3], to = upTo(four);
		sum[r] = warp + to - four;
		warp += shuffle(to, WARP - 1);
	}
	if (laneIndex() == 0) sums[warpIndex()] = warp;
	syncBlock();
	unrolled for (u32 w = 0; w < WARPS; w++) {
		if (w == warpIndex()) mine = own;
		own += sums[w];
	}
	if (warpIndex() == 0) {
		if (tile && laneIndex() == 0) storeRelaxed(reports + tile, R::own(own));
		T all = tile ? (T)lookBack(reports, tile) : 0;
		if (laneIndex() == 0) {
			if (tiles > 1) storeRelaxed(reports + tile, R::upTo((T)(all + own)));
			start = all;
			if (tile == tiles - 1) f.end(all + own);
		}
	}
	syncBlock();
	unrolled for (u32 r = 0; r < ROWS; r++) f.give(first + r * ROW, start + mine + sum[r], v[r]);
}

template <typename T, typename F> inline_device void scan(F f, u32 *ticket, u64 *reports) { scan<T>(f, ticket, reports, gridBlocks()); }

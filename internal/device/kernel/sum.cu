// Prefix sums in one launch, after Merrill and Garland's "Single-pass Parallel
// Prefix Scan with Decoupled Look-back" (2016): each block adds up a tile, learns
// the sum of the tiles before it from their reports, and writes.
#include "block.h"

enum {
	PART = 4, // numbers that a thread loads at once: 16 bytes
	ROWS = 4, // times that a thread does so
	ROW = PART * WARP,
	TILE = ROWS * PART * THREADS,
};

typedef u32 quad __attribute__((ext_vector_type(4)));
typedef u64 pair __attribute__((ext_vector_type(2)));

inline_device void put(u32 *to, const u32 (&v)[PART]) { *(quad *)to = quad{v[0], v[1], v[2], v[3]}; }
inline_device void put(u64 *to, const u64 (&v)[PART]) {
	((pair *)to)[0] = pair{v[0], v[1]};
	((pair *)to)[1] = pair{v[2], v[3]};
}

// take loads numbers from place at on, zeros behind the last.
inline_device quad take(const u32 *in, u32 at, u32 n) {
	if (at + PART <= n) return *(const quad *)(in + at);
	quad v = 0;
	unrolled for (u32 i = 0; i < PART; i++)
		if (at + i < n) v[i] = in[at + i];
	return v;
}

// give stores the sums before each of the numbers v, the first of which is sum.
template <typename T> inline_device void give(T *out, u32 at, u32 n, T sum, quad v) {
	T sums[PART] = {sum, sum + v[0], sum + v[0] + v[1], sum + v[0] + v[1] + v[2]};
	if (at + PART <= n) {
		put(out + at, sums);
		return;
	}
	unrolled for (u32 i = 0; i < PART; i++)
		if (at + i < n) out[at + i] = sums[i];
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

// prefixes sets out[i] to the sum of in[0..i), for i from 0 to n. Sums of u32 are
// modulo 2^32: those of a tile, too, which are what it reports then.
template <typename T> inline_device void prefixes(const u32 *in, T *out, u32 *ticket, u64 *reports, u32 n) {
	typedef Report<u64> R;
	__shared__ T sums[WARPS];
	__shared__ T start; // sum of the tiles before
	__shared__ u32 number;
	takeTicket(ticket, number);
	syncBlock();
	u32 tile = number, first = tile * TILE + warpIndex() * ROWS * ROW + laneIndex() * PART;
	quad v[ROWS];
	unrolled for (u32 r = 0; r < ROWS; r++) v[r] = take(in, first + r * ROW, n);
	T sum[ROWS], warp = 0, own = 0, mine = 0;
	unrolled for (u32 r = 0; r < ROWS; r++) {
		T four = (T)v[r][0] + v[r][1] + v[r][2] + v[r][3], to = upTo(four);
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
			storeRelaxed(reports + tile, R::upTo((T)(all + own)));
			start = all;
			if (tile == gridBlocks() - 1) out[n] = all + own;
		}
	}
	syncBlock();
	unrolled for (u32 r = 0; r < ROWS; r++) give<T>(out, first + r * ROW, n, start + mine + sum[r], v[r]);
}

#define KERNEL extern "C" __global__ launch_bounds(256) void

KERNEL sum32(const u32 *in, u32 *out, u32 *ticket, u64 *reports, u32 n) { prefixes(in, out, ticket, reports, n); }
KERNEL sum64(const u32 *in, u64 *out, u32 *ticket, u64 *reports, u32 n) { prefixes(in, out, ticket, reports, n); }

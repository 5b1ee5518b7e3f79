// What the threads of a block of 256 do together, and how blocks that work on
// one array side by side tell each other how much is in front of them.
#pragma once
#include "ordered.h"

enum { THREADS = 256, WARPS = THREADS / WARP };

inline_device u32 laneIndex() { return threadIndex() % WARP; }
inline_device u32 warpIndex() { return threadIndex() / WARP; }

inline_device void syncBlock() { __syncthreads(); }

inline_device u32 shuffleUp(u32 v, u32 by) { return __nvvm_shfl_sync_up_i32(ALL, v, by, 0); }
inline_device u64 shuffleUp(u64 v, u32 by) {
	u32 lo = shuffleUp((u32)v, by), hi = shuffleUp((u32)(v >> 32), by);
	return (u64)hi << 32 | lo;
}
inline_device u64 shuffleXor(u64 v, u32 mask) {
	u32 lo = shuffleXor((u32)v, mask), hi = shuffleXor((u32)(v >> 32), mask);
	return (u64)hi << 32 | lo;
}

// upTo adds up the values of the lanes up to this one.
template <typename T> inline_device T upTo(T v) {
	u32 lane = laneIndex();
	unrolled for (u32 by = 1; by < WARP; by *= 2) {
		T from = shuffleUp(v, by);
		if (lane >= by) v += from;
	}
	return v;
}

// total adds up the values of all lanes.
template <typename T> inline_device T total(T v) {
	unrolled for (u32 by = 1; by < WARP; by *= 2) v += shuffleXor(v, by);
	return v;
}

// before adds up the values of the threads before this one in the block. sums
// is room in shared memory that nothing else uses until the next barrier.
template <typename T> inline_device T before(T v, T (&sums)[WARPS]) {
	T in = upTo(v), sum = 0;
	if (laneIndex() == WARP - 1) sums[warpIndex()] = in;
	syncBlock();
	unrolled for (u32 w = 0; w < WARPS; w++) sum += w < warpIndex() ? sums[w] : 0;
	return sum + in - v;
}

// takeTicket gives each block a number in the order in which blocks begin, so
// that a block that waits for lower numbers waits only for blocks that run. The
// number is in room after the next barrier.
inline_device void takeTicket(u32 *counter, u32 &room) {
	if (threadIndex() == 0) room = addRelaxed(counter, 1u);
}

// Report is what a tile, the part of an array that a block works on, says of its
// count in a word of global memory: nothing yet (0), how much it has itself, or
// how much it and all tiles before it have. Count and kind are one word, and the
// word stands for nothing else in memory: so relaxed accesses are enough.
template <typename T> struct Report {
	static const T ALL_BEFORE = (T)1 << (8 * sizeof(T) - 1); // the top bit: counts are below it

	static inlined T own(T count) { return count + 1; }
	static inlined T upTo(T count) { return count | ALL_BEFORE; }
	static inlined bool isUpTo(T word) { return (word & ALL_BEFORE) != 0; }
	static inlined T countOf(T word) { return isUpTo(word) ? word & ~ALL_BEFORE : word - 1; }
};

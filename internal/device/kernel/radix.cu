// Kernels of the radix tree of package cuart, for values of 32 and 64 bits.
#include "radixhot.h"
#include "radixwiden.h"

#define KERNEL extern "C" __global__ launch_bounds(256) void

#define RADIX(BITS)                                                                                                                       \
	KERNEL radixFind##BITS(Radix t, Keys k, u##BITS *vals, u32 *found) { find<u##BITS, 1>(t, k, vals, found); }                        \
	KERNEL radixTile##BITS(Radix t, Keys k, u##BITS *vals, u32 *found) { find<u##BITS, 4>(t, k, vals, found); }                        \
	KERNEL radixSlots##BITS(Radix t, Keys k, const u8 *kinds, u32 *slots, u32 *counts, u32 kind) {                                     \
		findSlots<u##BITS>(t, k, kinds, slots, counts, kind);                                                                         \
	}                                                                                                                                  \
	KERNEL radixOwn##BITS(Radix t, Changes c, Pools p) { own<u##BITS>(t, c, p); }                                                      \
	KERNEL radixOwnRuns##BITS(Radix t, Changes c, Runs r, Pools p) { ownRuns<u##BITS>(t, c, r, p); }                                   \
	KERNEL radixAnswerRuns##BITS(Changes c, Runs r) { answerRuns<u##BITS>(c, r); }                                                     \
	KERNEL radixLeafSlots##BITS(Radix t, const u32 *leaves, u32 *slots, u32 n) { leafSlots<u##BITS>(t, leaves, slots, n); }            \
	KERNEL radixAdopt##BITS(Radix t, const u32 *slots, const u32 *places, const u32 *leaves, Pools p, u32 n) {                         \
		adopt<u##BITS>(t, slots, places, leaves, p, n);                                                                            \
	}

RADIX(32)
RADIX(64)

KERNEL radixExpand(Radix t, const u32 *links, u32 *inner, u32 *leaves, u32 *counts, Pools p, u32 n) { expand(t, links, inner, leaves, counts, p, n); }
KERNEL radixHot(const u32 *slots, u32 *hot, u32 n) { findHot(slots, hot, n); }
KERNEL radixRuns(Changes c, Runs r, u32 longest) { findRuns(c, r, longest); }
KERNEL radixEndRuns(Runs r, u32 n) { endRuns(r, n); }

// Histograms: values counted by the number of bounds that are not above them.
#pragma once
#include "vector.h"

enum { MAX_BOUNDS = 1023 };

// Histogram is kernel.Bins in Go: bounds ascend, as ordered has them, but with -0
// as 0. Counts, of which there is one more, are added to.
struct Histogram {
	const i64 *bounds;
	u64 *counts;
	u64 count; // of bounds
};

// Bins is a histogram in shared memory, of one block.
template <Kind KIND> struct Bins {
	typedef typename Type<KIND>::Raw Raw;
	typedef typename Type<KIND>::Code Code;
	enum { LANES = 0 }; // any lane counts
	const Code *bounds;
	u32 *counts;
	u32 count;

	// code gives a value as bounds are: NaN below all.
	static inlined Code code(Raw v) {
		const Raw SIGN = (Raw)1 << (8 * sizeof(Raw) - 1), INFINITE = KIND == FLOAT32 ? (Raw)0x7f800000 : (Raw)0x7ff0000000000000;
		if (isFloat(KIND) && (v & ~SIGN) > INFINITE) return (Code)SIGN;
		return ordered<KIND>(isFloat(KIND) && v == SIGN ? 0 : v);
	}

	inlined void add(bool there, Raw v) {
		if (!there) return;
		Code c = code(v);
		u32 bin = 0;
		for (u32 span = count; span > 0;) { // the first bin bounds are not above c, those from bin + span on are
			u32 half = (span + 1) / 2;
			bool beyond = bounds[bin + half - 1] <= c;
			bin += beyond ? half : 0;
			span = beyond ? span - half : half - 1;
		}
		__atomic_fetch_add(counts + bin, 1u, __ATOMIC_RELAXED);
	}
};

// countAll counts the values of units, one to each warp.
template <Kind KIND, typename S> inline_device void countAll(const S &from, const Units &units, const Histogram &to) {
	typedef typename Type<KIND>::Code Code;
	__shared__ Code bounds[MAX_BOUNDS];
	__shared__ u32 counts[MAX_BOUNDS + 1];
	for (u32 i = threadIndex(); i <= to.count; i += THREADS) {
		counts[i] = 0;
		if (i < to.count) bounds[i] = (Code)to.bounds[i];
	}
	syncBlock();
	u32 u = unitOf();
	if (u < units.units) {
		u32 begin, n;
		Bins<KIND> bins{bounds, counts, (u32)to.count};
		units.of(u, begin, n);
		read(from, begin, n, bins);
	}
	syncBlock();
	for (u32 i = threadIndex(); i <= to.count; i += THREADS)
		if (counts[i]) reduceRelaxed(to.counts + i, (u64)counts[i]);
}

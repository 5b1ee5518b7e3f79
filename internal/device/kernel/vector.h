// What kernels of vector operations have in common.
//
// A warp takes a unit, which is values one behind the other in key order. How they
// lie is what vectorflat.h and vectorchunked.h know; what becomes of them, tally.h
// and bins.h: read hands them over, lane by lane.
#pragma once
#include "block.h"

// Kinds of numbers, as package simd has them.
enum Kind { INT32, UINT32, FLOAT32, INT64, UINT64, FLOAT64 };

inline_device constexpr bool isFloat(Kind k) { return k == FLOAT32 || k == FLOAT64; }

// Units is kernel.Units in Go: unit u has count[u] values from entry first[u] on.
// Where first is null, units are one range of n entries, so many in each.
struct Units {
	const u32 *first, *count;
	u32 from, n, size, units;

	// of sets the entries of a unit.
	inlined void of(u32 u, u32 &begin, u32 &values) const {
		if (first) {
			begin = first[u];
			values = count[u];
			return;
		}
		begin = from + u * size;
		values = least(size, n - u * size);
	}
};

// Type is how values of a kind are computed with: Raw as they lie, Code in an
// order of signed integers, Sum as they are added up.
template <Kind KIND> struct Type {
	typedef u64 Raw, Sum;
	typedef i64 Code;
};
template <> struct Type<INT32> {
	typedef u32 Raw;
	typedef u64 Sum;
	typedef int Code;
};
template <> struct Type<UINT32> : Type<INT32> {};
template <> struct Type<FLOAT32> {
	typedef u32 Raw;
	typedef double Sum;
	typedef int Code;
};
template <> struct Type<FLOAT64> {
	typedef u64 Raw;
	typedef double Sum;
	typedef i64 Code;
};

// ordered is simd.Ordered in Go: a value as a signed integer in the same order.
template <Kind KIND> inline_device typename Type<KIND>::Code ordered(typename Type<KIND>::Raw v) {
	typedef typename Type<KIND>::Raw Raw;
	typedef typename Type<KIND>::Code Code;
	Code c = (Code)v;
	if (KIND == UINT32 || KIND == UINT64) return (Code)(v ^ (Raw)1 << (8 * sizeof(Raw) - 1));
	if (isFloat(KIND)) return c ^ (Code)((Raw)(c >> (8 * sizeof(Raw) - 1)) >> 1);
	return c;
}

// Loads of values, those on their way at once being 64 bytes a lane.
enum { FLIGHT = 64 };

// unitOf gives the unit of this warp, units and more if there is none.
inline_device u32 unitOf() { return (blockIndex() * blockThreads() + threadIndex()) / WARP; }

// Four blocks of 256 threads at a time: enough loads are on their way then.
#define VECTORS extern "C" __global__ launch_bounds(256, 4) void

// What kernels of vector operations have in common: sums, least and greatest of
// values, where they lie. Package vector says in which order floats are added;
// here a warp is a block's 32 lanes.
//
// A warp takes a unit, which is values one behind the other in key order, and
// writes what they come to, a part. Parts of one range are joined the same way.
#pragma once
#include "block.h"

// Kinds of numbers, as package simd has them.
enum Kind { INT32, UINT32, FLOAT32, INT64, UINT64, FLOAT64 };

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

// Parts is kernel.Parts in Go: four arrays, one behind the other.
struct Parts {
	u64 *base;
	u64 room; // numbers in each

	inlined u64 *sums() const { return base; }
	inlined u64 *highs() const { return base + room; } // of the upper halves of integers of 64 bits, counted from the least
	inlined i64 *leasts() const { return (i64 *)base + 2 * room; }
	inlined i64 *greatests() const { return (i64 *)base + 3 * room; }
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

inline_device u64 bitsOf(u64 v) { return v; }
inline_device u64 bitsOf(double v) { return __builtin_bit_cast(u64, v); }
inline_device void setBits(u64 &v, u64 bits) { v = bits; }
inline_device void setBits(double &v, u64 bits) { v = __builtin_bit_cast(double, bits); }

inline_device int shuffleXor(int v, u32 mask) { return (int)shuffleXor((u32)v, mask); }
inline_device i64 shuffleXor(i64 v, u32 mask) { return (i64)shuffleXor((u64)v, mask); }
inline_device double shuffleXor(double v, u32 mask) { return __builtin_bit_cast(double, shuffleXor(bitsOf(v), mask)); }

// Extremes is the least and the greatest of codes, of none at first.
template <typename C> struct Extremes {
	static const C GREATEST = (C)(((u64)1 << (8 * sizeof(C) - 1)) - 1);
	C least = GREATEST, greatest = -GREATEST - 1;

	inlined void add(bool there, C code) {
		least = there && code < least ? code : least;
		greatest = there && code > greatest ? code : greatest;
	}
};

// Tally is what a lane has of values of a kind.
template <Kind KIND> struct Tally {
	typedef typename Type<KIND>::Raw Raw;
	typedef typename Type<KIND>::Sum Sum;
	typedef typename Type<KIND>::Code Code;
	enum {
		FLOATS = KIND == FLOAT32 || KIND == FLOAT64, // lanes matter
		WIDE = KIND == INT64 || KIND == UINT64,      // the sum has more than 64 bits
	};
	Sum sum = 0;
	u64 high = 0;
	Extremes<Code> ends;

	// numberOf gives a value as it is added up.
	static inlined Sum numberOf(Raw v) {
		if (KIND == INT32) return (Sum)(i64)(int)v;
		if (KIND == FLOAT32) return (Sum)__builtin_bit_cast(float, (u32)v);
		Sum s;
		setBits(s, v);
		if (KIND == UINT32) s = (Sum)v;
		return s;
	}
	// ordered is simd.Ordered in Go.
	static inlined Code ordered(Raw v) {
		Code c = (Code)v;
		if (KIND == UINT32 || KIND == UINT64) return (Code)(v ^ (Raw)1 << (8 * sizeof(Raw) - 1));
		if (FLOATS) return c ^ (Code)((Raw)(c >> (8 * sizeof(Raw) - 1)) >> 1);
		return c;
	}

	// add takes a value into account, if it is there; else it is 0. The sum of no
	// values is 0 and not -0, so that nothing is lost if 0 is added.
	inlined void add(bool there, Raw v) {
		sum += numberOf(v);
		if (WIDE) high += there ? (v ^ (KIND == INT64 ? (u64)1 << 63 : 0)) >> 32 : 0;
		ends.add(there, ordered(v));
	}

	// give adds up the lanes and writes them as part u.
	inlined void give(const Parts &to, u32 u) {
		unrolled for (u32 by = WARP / 2; by > 0; by /= 2) {
			sum += shuffleXor(sum, by);
			if (WIDE) high += shuffleXor(high, by);
			Code least = shuffleXor(ends.least, by), greatest = shuffleXor(ends.greatest, by);
			ends.least = least < ends.least ? least : ends.least;
			ends.greatest = greatest > ends.greatest ? greatest : ends.greatest;
		}
		if (laneIndex() != 0) return;
		to.sums()[u] = bitsOf(sum);
		to.highs()[u] = high;
		to.leasts()[u] = ends.least;
		to.greatests()[u] = ends.greatest;
	}
};

// Loads of values, those on their way at once being 64 bytes a lane.
enum { FLIGHT = 64 };

// sum sums up a unit.
template <Kind KIND, typename S> inline_device void sum(const S &from, const Units &units, const Parts &to) {
	u32 u = (blockIndex() * blockThreads() + threadIndex()) / WARP, begin, n;
	if (u >= units.units) return;
	Tally<KIND> tally;
	units.of(u, begin, n);
	read(from, begin, n, tally);
	tally.give(to, u);
}

// join sums up units of parts: sums of floats as the values they are, of
// integers both words.
template <Kind KIND> inline_device void join(const Parts &from, const Units &units, const Parts &to) {
	u32 u = (blockIndex() * blockThreads() + threadIndex()) / WARP, begin, n;
	if (u >= units.units) return;
	Tally<KIND> tally;
	units.of(u, begin, n);
	enum { TURNS = 4 };
	for (u32 i = laneIndex(); i - laneIndex() < n; i += TURNS * WARP) {
		u64 sum[TURNS], high[TURNS], low[TURNS], top[TURNS];
		unrolled for (u32 s = 0; s < TURNS; s++) {
			bool there = i + s * WARP < n;
			u32 p = begin + i + s * WARP;
			sum[s] = loadIf(from.sums() + p, there);
			high[s] = loadIf(from.highs() + p, there);
			low[s] = loadIf((const u64 *)from.leasts() + p, there);
			top[s] = loadIf((const u64 *)from.greatests() + p, there);
		}
		unrolled for (u32 s = 0; s < TURNS; s++) {
			bool there = i + s * WARP < n;
			tally.sum += Tally<KIND>::numberOf(sum[s]);
			tally.high += high[s];
			tally.ends.add(there, (i64)low[s]);
			tally.ends.add(there, (i64)top[s]);
		}
	}
	tally.give(to, u);
}

// Four blocks of 256 threads at a time: enough loads are on their way then.
#define SUMS extern "C" __global__ launch_bounds(256, 4) void

SUMS joinIntegers(Parts from, Units units, Parts to) { join<UINT64>(from, units, to); }
SUMS joinFloats(Parts from, Units units, Parts to) { join<FLOAT64>(from, units, to); }

// Sums, least and greatest of values. Package vector says in which order floats are
// added; here a warp is a block's 32 lanes. What a unit comes to is a part, and
// parts of one range are joined the same way.
#pragma once
#include "vector.h"

// Parts is kernel.Parts in Go: four arrays, one behind the other.
struct Parts {
	u64 *base;
	u64 room; // numbers in each

	inlined u64 *sums() const { return base; }
	inlined u64 *highs() const { return base + room; } // of the upper halves of integers of 64 bits, counted from the least
	inlined i64 *leasts() const { return (i64 *)base + 2 * room; }
	inlined i64 *greatests() const { return (i64 *)base + 3 * room; }
};

inline_device u64 bitsOf(u64 v) { return v; }
inline_device u64 bitsOf(double v) { return __builtin_bit_cast(u64, v); }
inline_device void setBits(u64 &v, u64 bits) { v = bits; }
inline_device void setBits(double &v, u64 bits) { v = __builtin_bit_cast(double, bits); }

// plus adds. PTX without a rounding may be fused with a multiplication, so that floats
// have one.
inline_device u64 plus(u64 a, u64 b) { return a + b; }
inline_device double plus(double a, double b) { return __nvvm_add_rn_d(a, b); }

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
		LANES = isFloat(KIND),                  // which lane adds a value matters
		WIDE = KIND == INT64 || KIND == UINT64, // the sum has more than 64 bits
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

	// add takes a value into account, if it is there; else it is 0. The sum of no
	// values is 0 and not -0, so that nothing is lost if 0 is added.
	inlined void add(bool there, Raw v) {
		sum = plus(sum, numberOf(v));
		if (WIDE) high += there ? (v ^ (KIND == INT64 ? (u64)1 << 63 : 0)) >> 32 : 0;
		ends.add(there, ordered<KIND>(v));
	}

	// give adds up the lanes and writes them as part u.
	inlined void give(const Parts &to, u32 u) {
		unrolled for (u32 by = WARP / 2; by > 0; by /= 2) {
			sum = plus(sum, shuffleXor(sum, by));
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

// sum sums up a unit.
template <Kind KIND, typename S> inline_device void sum(const S &from, const Units &units, const Parts &to) {
	u32 u = unitOf(), begin, n;
	if (u >= units.units) return;
	Tally<KIND> tally;
	units.of(u, begin, n);
	read(from, begin, n, tally);
	tally.give(to, u);
}

// join sums up units of parts: sums of floats as the values they are, of
// integers both words.
template <Kind KIND> inline_device void join(const Parts &from, const Units &units, const Parts &to) {
	u32 u = unitOf(), begin, n;
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
			tally.sum = plus(tally.sum, Tally<KIND>::numberOf(sum[s]));
			tally.high += high[s];
			tally.ends.add(there, (i64)low[s]);
			tally.ends.add(there, (i64)top[s]);
		}
	}
	tally.give(to, u);
}

VECTORS joinIntegers(Parts from, Units units, Parts to) { join<UINT64>(from, units, to); }
VECTORS joinFloats(Parts from, Units units, Parts to) { join<FLOAT64>(from, units, to); }

// Values in a column, and in leaves of pairs.
#pragma once
#include "vector.h"
#include "warp.h"

// Column is values one behind the other.
template <typename V> struct Column {
	typedef V Place;
	const V *at;
	inlined const V *of(u32 entry) const { return at + entry; }
};

// Pairs is leaves of keys and as many values of the same width.
template <typename V> struct Pairs {
	typedef V Place;
	enum { HALF = LINE / sizeof(V) / 2 };
	const u8 *leaves;
	inlined const V *of(u32 entry) const { return (const V *)(leaves + (u64)(entry / HALF) * LINE) + HALF + entry % HALF; }
};

// read hands the values of a unit over, value i to lane i mod 32.
template <typename S, typename T> inline_device void read(const S &from, u32 begin, u32 n, T &to) {
	enum { TURNS = FLIGHT / sizeof(typename S::Place) };
	for (u32 i = laneIndex(); i - laneIndex() < n; i += TURNS * WARP) {
		typename S::Place v[TURNS];
		unrolled for (u32 s = 0; s < TURNS; s++) v[s] = loadIf(from.of(begin + i + s * WARP), i + s * WARP < n);
		unrolled for (u32 s = 0; s < TURNS; s++) to.add(i + s * WARP < n, v[s]);
	}
}

// FLAT_KINDS calls a macro for all kinds of values.
#define FLAT_KINDS(OF_KIND) \
	OF_KIND(I32, INT32, u32) \
	OF_KIND(U32, UINT32, u32) \
	OF_KIND(F32, FLOAT32, u32) \
	OF_KIND(I64, INT64, u64) \
	OF_KIND(U64, UINT64, u64) \
	OF_KIND(F64, FLOAT64, u64)

// Values in the leaves of a chunked tree.
#pragma once
#include "vector.h"
#include "chunked.h"

// lastNotAbove gives the last of n numbers, which ascend, that is not above x; the
// first is not. of gives a number. The lanes of a warp look together.
template <typename F> inline_device u32 lastNotAbove(u32 n, u32 x, F of) {
	u32 at = 0;
	while (n > 1) {
		u32 step = (n + WARP - 1) / WARP, i = laneIndex() * step;
		bool below = i < n;
		if (below) below = of(at + i) <= x;
		u32 skip = (ones(ballot(below)) - 1) * step;
		at += skip;
		n = least(step, n - skip);
	}
	return at;
}

// Chunks is the leaves of a chunked tree with places of type K.
template <typename K> struct Chunks {
	const Version &v;
	u32 chunk; // the number of the chunk that is looked at
	const Chunk<K> *at;
	u32 used; // leaves of it
	u32 leaf; // the next

	inlined void open(u32 c) {
		chunk = c;
		at = chunkAt<K>(v, v.slots[c]);
		used = v.used[c];
		leaf = 0;
	}

	// find goes to the leaf that has an entry, and gives the number of entries of
	// the leaf before it.
	inlined u32 find(u32 entry) {
		open(lastNotAbove(v.count, entry, [&](u32 c) { return v.first[c]; }));
		u32 left = entry - v.first[chunk];
		leaf = lastNotAbove(used, left, [&](u32 e) { return at->items[e].first; });
		return left - at->items[leaf].first;
	}
};

// read hands the values of a unit over. Lanes first load what is known of 32
// leaves, one each; then a leaf is one load of the warp. A leaf's values go to
// lanes one behind the other, so that none gets two.
template <typename K, typename T> inline_device void read(Chunks<K> from, u32 begin, u32 n, T &to) {
	enum { TURNS = FLIGHT / sizeof(K) };
	u32 lane = laneIndex();
	int pos = -(int)from.find(begin); // of the next leaf's first value in the unit
	while (pos < (int)n) {
		if (from.leaf >= from.used) {
			if (from.chunk + 1 >= from.v.count) return;
			from.open(from.chunk + 1);
			continue;
		}
		u32 some = least(WARP, from.used - from.leaf), e = from.leaf + least(lane, some - 1);
		Item item = from.at->at(e);
		u32 ref = item.ref, first = item.first, count = lane < some ? item.count : 0;
		int start = pos + (int)(first - shuffle(first, 0)); // in the unit
		u32 mask = start < (int)n ? bits(least(count, n - start)) : 0; // of entries in the unit
		if (start < 0) mask &= ~bits(-start);
		for (u32 g = 0; g < some && (int)shuffle((u32)start, g) < (int)n; g += TURNS) {
			K val[TURNS];
			bool there[TURNS];
			unrolled for (u32 s = 0; s < TURNS; s++) {
				u32 j = T::LANES ? (lane - shuffle((u32)start, g + s)) % WARP : lane;
				there[s] = shuffle(mask, g + s) >> j & 1;
				val[s] = loadIf(leafAt<K>(from.v, shuffle(ref, g + s))->vals + j, there[s]);
			}
			unrolled for (u32 s = 0; s < TURNS; s++) to.add(there[s], (typename T::Raw)val[s]);
		}
		pos = (int)shuffle((u32)start + count, some - 1);
		from.leaf += some;
	}
}

// CHUNKED_KINDS calls a macro for all kinds of values that trees of 32 and 64 bits
// have. A tree of 64 bits has values of 32 in places of 64, with 0 in the rest.
#define CHUNKED_KINDS(OF_KIND) \
	OF_KIND(32, I32, INT32) \
	OF_KIND(32, U32, UINT32) \
	OF_KIND(32, F32, FLOAT32) \
	OF_KIND(64, I32, INT32) \
	OF_KIND(64, U32, UINT32) \
	OF_KIND(64, F32, FLOAT32) \
	OF_KIND(64, I64, INT64) \
	OF_KIND(64, U64, UINT64) \
	OF_KIND(64, F64, FLOAT64)

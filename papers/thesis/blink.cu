// The kernels of blink.h. Each of n operations has a key, a value that it sets,
// which is replaced by the one that it found, and an outcome.
#include "blink.h"
#include "warp.h"

enum { TILE = 16, MIXED = 3 };

// batch runs operations of one kind, or of the kinds that an array has.
template <typename K, int LANES, int PER, int KIND> inline_device void batch(const Blink &tree, const u8 *kinds, const K *keys, K *vals, u32 n, u8 *outcomes) {
	Tile<K, LANES, PER, Whole> tile(tree, Whole());
	__shared__ Top<K, LANES * PER> top;
	if (tree.how & TOPS) {
		if (threadIndex() < LANES) tile.keep(top);
		__syncthreads();
	}
	tile.each(n, [&](u32 mine, u32 count) {
		bool there = mine < n;
		K key = there ? keys[mine] : 0, val = there && KIND != GET && KIND != DELETE ? vals[mine] : 0;
		u32 kind = KIND != MIXED ? KIND : there ? kinds[mine] : 0, outcome = 0;
		for (u32 i = 0; i < count; i++) {
			K k = tile.from(key, i), v = tile.from(val, i);
			u32 level, at = tile.start(top, k, level);
			Outcome o = tile.run((Kind)(KIND != MIXED ? KIND : tile.from(kind, i)), k, v, at, level);
			if (tile.lane == i) val = v, outcome = o;
		}
		if (!there) return;
		vals[mine] = val;
		outcomes[mine] = outcome;
	});
}

// ranges sets, for each of n pairs of bounds, both inclusive, counts to the number of
// entries between them, at most limit, and copies these. Each leaf is read at
// one moment, all of them together are not.
template <typename K, int PER> inline_device void ranges(const Blink &tree, const K *lows, const K *highs, u32 n, u32 limit, K *keys, K *vals, u32 *counts) {
	typedef Tile<K, TILE, PER, Whole> T;
	T tile(tree, Whole());
	tile.each(n, [&](u32 mine, u32 count) {
		bool there = mine < n;
		K low = there ? lows[mine] : 0, high = there ? highs[mine] : 0;
		u32 total = 0;
		for (u32 i = 0; i < count; i++) {
			u64 to = (u64)(mine - tile.lane + i) * limit;
			u32 c = tile.range(tile.from(low, i), tile.from(high, i), limit, keys + to, vals + to);
			if (tile.lane == i) total = c;
		}
		if (there) counts[mine] = total;
	});
}

// build makes the nodes of one level of a tree of n sorted pairs, fill of them a
// node. Above the leaves, the pairs are the nodes below, which begin at below.
// A tile makes a node.
template <typename K, int PER> inline_device void build(const Blink &tree, const K *keys, const K *vals, u32 n, u32 fill, u32 level, u32 first, u32 below) {
	typedef Tile<K, TILE, PER, Whole> T;
	T tile(tree, Whole());
	u64 id = ((u64)blockIndex() * blockThreads() + threadIndex()) / TILE, from = id * fill;
	u32 nodes = n == 0 ? 1 : (n - 1) / fill + 1;
	if (id >= nodes) return;
	u32 at = first + (u32)id, count = least(fill, n - (u32)from);
	K high = 0;
	for (int j = 0; j < PER; j++) {
		u32 s = tile.slot(j);
		if (s >= count) {
			*tile.val(at, s) = ROOT;
			continue;
		}
		u32 child = below + (u32)from + s;
		K key = level ? *tile.high(child) : keys[from + s];
		*tile.key(at, s) = key;
		*tile.val(at, s) = level ? child : vals[from + s];
		if (s == count - 1) high = key;
	}
	bool last = id == nodes - 1;
	if (count) high = tile.from(high, (count - 1) % TILE);
	if (!tile.leads()) return;
	// The least key of the first child, or one more than the last key before.
	*tile.low(at) = !id ? 0 : level ? *tile.low(below + (u32)from) : keys[from - 1] + 1;
	*tile.high(at) = last ? ~(K)0 : high;
	*tile.next(at) = last ? 0 : at + 1;
	*tile.word(at) = wordOf(level, count);
}

#define BATCH(OP, KIND, K, LANES, PER, NAME)                                                                                          \
	KERNEL blink##OP##NAME(Blink t, const u8 *kinds, const K *keys, K *vals, u32 n, u8 *outcomes) { batch<K, LANES, PER, KIND>(t, kinds, keys, vals, n, outcomes); }
#define BATCHES(K, LANES, PER, NAME)        \
	BATCH(Get, GET, K, LANES, PER, NAME) \
	BATCH(Set, SET, K, LANES, PER, NAME) \
	BATCH(Mixed, MIXED, K, LANES, PER, NAME)
#define TREE(K, PER, NAME)           \
	BATCHES(K, TILE, PER, NAME)   \
	KERNEL blinkRange##NAME(Blink t, const K *lows, const K *highs, u32 n, u32 limit, K *keys, K *vals, u32 *counts) { ranges<K, PER>(t, lows, highs, n, limit, keys, vals, counts); } \
	KERNEL blinkBuild##NAME(Blink t, const K *keys, const K *vals, u32 n, u32 fill, u32 level, u32 first, u32 below) { build<K, PER>(t, keys, vals, n, fill, level, first, below); }

TREE(u32, 1, 32x16)
TREE(u32, 2, 32x32)
TREE(u64, 1, 64x16)
TREE(u64, 2, 64x32)

// Tiles of 8 lanes have twice as many operations under way.
BATCHES(u32, 8, 2, 32x16by8)
BATCHES(u64, 8, 2, 64x16by8)

// Searches by signs: a second way to the leaves of an implicit tree that is whole on a device, with
// less to read. Package implicit says when a tree has them; docs/gpu.md, what they bring.
//
// Sixteen children have a node: fifteen separators, cut, and how they were cut. A separator is the
// last key under a child, less the least key of the tree; its bits from cut on stay, 32 of them in a
// node of 64 bytes on the upper levels, 16 in one of 32 bytes below. Above these are those that all keys
// have in common that belong under the node, so a search needs nothing but its key and the node.
//
// A search need not begin at the root: a table has, for the uppermost bits of a key, the first node of a
// lower level whose keys are not all below, and the last keys of this node and the next two.
//
// A search that finds two numbers equal that were cut from different keys goes on to the left of where
// it belongs, and never to the right. So it looks whether the key is above its leaf, and goes to the next
// leaf then; where that is not enough, it begins again and takes the tree's own way.
#include "ordered.h"
#include "search.h"

// Signs is kernel.Signs in Go. Children of node x are 16x and up, on each level.
struct Signs {
	const u8 *base;
	u64 low, high;     // the least and the greatest key of the tree
	u32 at[8];         // where levels begin, in lines of 32 bytes
	u32 last[9];       // the last node of each level, and the last leaf
	u32 levels, upper; // as many levels have nodes of 64 bytes
	u32 from;          // the level of the nodes in the table
	u32 buckets;       // of the table; 0: searches begin at the root
	u32 table;         // where it begins, in lines of 32 bytes
	u32 shift, rest;   // a key's bucket is what is left of it after shift bits, and rest bits of it are not compared
};

enum { CHILDREN = 16 };

// lastKey returns how far the last key of a leaf is from the tree's least; behind the last leaf there is the greatest.
template <typename K> inline_device u64 lastKey(const Tree &t, const Signs &g, u64 leaf) {
	u32 x = leaf < g.last[g.levels] ? (u32)leaf : g.last[g.levels];
	return ((const K *)(t.base + (u64)(t.leaves + x) * LINE))[t.leafKeys - 1] - g.low;
}

// lastUnder returns the last key under a node.
template <typename K> inline_device u64 lastUnder(const Tree &t, const Signs &g, u32 level, u64 x) {
	return lastKey<K>(t, g, ((x + 1) << 4 * (g.levels - level)) - 1);
}

// sign makes a level, a thread for each of a node's separators and the last for how they are cut.
template <typename K> inline_device void sign(const Tree &t, const Signs &g, u32 level) {
	u64 i = (u64)blockIndex() * blockThreads() + threadIndex();
	u64 x = i / CHILDREN;
	u32 child = i % CHILDREN;
	if (x > g.last[level]) return;
	bool upper = level < g.upper;
	u64 least = x ? lastUnder<K>(t, g, level, x - 1) + 1 : 0;
	u64 differ = least ^ lastUnder<K>(t, g, level, x);
	u32 bits = differ ? 64 - __builtin_clzll(differ) : 0, keep = upper ? 32 : 16;
	u32 cut = bits > keep ? bits - keep : 0, v = cut;
	if (child + 1 < CHILDREN) v = i < g.last[level + 1] ? (u32)(lastUnder<K>(t, g, level + 1, i) >> cut) : ALL; // no key is above the last child's
	u8 *node = (u8 *)g.base + ((u64)g.at[level] + (x << upper)) * (LINE / 2);
	if (upper)
		((u32 *)node)[child] = v;
	else
		((unsigned short *)node)[child] = v;
}

// bucket makes the table, a thread for each bucket.
template <typename K> inline_device void bucket(const Tree &t, const Signs &g) {
	u32 b = blockIndex() * blockThreads() + threadIndex();
	if (b >= g.buckets) return;
	u32 first = 0, last = g.last[g.from];
	for (u32 end = last; first < end;) {
		u32 middle = first + (end - first) / 2;
		if (lastUnder<K>(t, g, g.from, middle) < (u64)b << g.shift)
			first = middle + 1;
		else
			end = middle;
	}
	u32 *entry = (u32 *)(g.base + (u64)g.table * (LINE / 2)) + 4 * (u64)b;
	entry[0] = first;
	for (u32 i = 0; i < 3; i++) {
		u64 key = first + i < last ? lastUnder<K>(t, g, g.from, first + i) : 0;
		entry[1 + i] = first + i < last && key >> g.shift == b ? (u32)(key >> g.rest) : ALL;
	}
}

// BySigns is the way to the leaves by signs. Queries begin at the root.
struct BySigns {
	const Tree &tree;
	const Signs &signs;

	// guess takes a tile's queries to the leaf where they belong, or to its left.
	template <typename W, typename K> inlined void guess(const W &w, const K (&keys)[W::TURNS], u32 (&node)[W::TURNS]) const {
		static_assert(W::TURNS == 4 && WARP / W::TILES == 4, "how a node is cut is packed for four queries, and a node is shared by four lanes");
		const Signs &g = signs;
		K key[W::TURNS];
		for (int s = 0; s < W::TURNS; s++) {
			node[s] = 0;
			K low = g.low, high = g.high;
			key[s] = (keys[s] < low ? low : keys[s] > high ? high : keys[s]) - low;
		}
		u32 l = 0;
		if (g.buckets) {
			// Each lane of a tile looks up one of its four queries.
			u64 k = pick(key, w.part);
			u32 entry[4];
			u64 b = k >> g.shift; // only in a damaged tree it can be none of the table's
			load((const u32 *)(g.base + (u64)g.table * (LINE / 2)) + 4 * (b < g.buckets ? b : 0), entry);
			u32 x = (u32)(k >> g.rest);
			x = least(entry[0] + (entry[1] < x) + (entry[2] < x) + (entry[3] < x), g.last[g.from]);
			for (int s = 0; s < W::TURNS; s++) node[s] = shuffle(x, w.tile * 4 + s);
			l = g.from;
		}
		bool last = w.part == 3; // this lane has the word that says how a node is cut
		for (; l < g.levels; l++) {
			u32 counts[W::TURNS], cuts = 0;
			const u8 *level = g.base + (u64)g.at[l] * (LINE / 2);
			if (l < g.upper) {
				u32 v[W::TURNS][4];
				for (int s = 0; s < W::TURNS; s++) {
					load((const u32 *)(level + (u64)node[s] * LINE) + w.part * 4, v[s]);
				}
				for (int s = 0; s < W::TURNS; s++) {
					cuts |= v[s][3] << 8 * s;
					if (last) v[s][3] = ALL;
				}
				cuts = shuffle(cuts, w.lane | 3);
				for (int s = 0; s < W::TURNS; s++) {
					u32 k = (u32)((u64)key[s] >> (cuts >> 8 * s & 63));
					counts[s] = 0;
					for (int i = 0; i < 4; i++) counts[s] += v[s][i] < k;
				}
			} else {
				u32 v[W::TURNS][2];
				for (int s = 0; s < W::TURNS; s++) {
					load((const u32 *)(level + (u64)node[s] * (LINE / 2)) + w.part * 2, v[s]);
				}
				for (int s = 0; s < W::TURNS; s++) {
					cuts |= v[s][1] >> 16 << 8 * s;
					if (last) v[s][1] |= 0xffff0000;
				}
				cuts = shuffle(cuts, w.lane | 3);
				for (int s = 0; s < W::TURNS; s++) {
					// Numbers of 16 bits are compared in the upper half of a word: in the lower half of the
					// key's there is nothing, so that of the other number does not matter.
					u32 k = (u32)((u64)key[s] >> (cuts >> 8 * s & 63)) << 16;
					counts[s] = 0;
					for (int i = 0; i < 2; i++) counts[s] += (v[s][i] < k) + (v[s][i] << 16 < k);
				}
			}
			w.total(counts);
			for (int s = 0; s < W::TURNS; s++) node[s] = least(CHILDREN * node[s] + counts[s], g.last[l + 1]);
		}
		for (int s = 0; s < W::TURNS; s++) node[s] += tree.leaves;
	}

	// past says for each of a tile's queries whether it belongs behind its leaf.
	template <typename W> inlined u32 past(const W &w, const u32 (&node)[W::TURNS], const u32 (&slot)[W::TURNS]) const {
		u32 set = 0;
		for (int s = 0; s < W::TURNS; s++) set |= (u32)(slot[s] == tree.leafKeys && node[s] < tree.leaves + signs.last[signs.levels]) << s;
		return set;
	}

	template <typename W, typename K> inlined u32 leaves(const W &w, u64, u32, const K (&keys)[W::TURNS], u32 (&node)[W::TURNS], u32 (&slot)[W::TURNS], K (&v)[W::TURNS][W::PART]) const {
		guess(w, keys, node);
		for (int tries = 0;; tries++) {
			u32 hits = leafOf(w, tree, keys, node, slot, v);
			u32 set = past(w, node, slot);
			if (tries == 2 || !ballot(set != 0)) return hits;
			if (tries == 0) {
				for (int s = 0; s < W::TURNS; s++) node[s] += set >> s & 1;
			} else {
				for (int s = 0; s < W::TURNS; s++) node[s] = 0;
				descend(w, tree, 0, keys, node);
			}
		}
	}
};

// astray counts leaves whose first key signs lead to more than one leaf to the left.
template <typename W, typename K> inline_device void astray(const Tree &t, const Signs &g, u32 *count) {
	W w;
	BySigns way{t, g};
	u32 n = g.last[g.levels] + 1, mine = 0;
	for (Rounds<W> r; r.first < n; r.next()) {
		K key[W::TURNS], own[W::OWN], v[W::TURNS][W::PART];
		u32 node[W::TURNS], slot[W::TURNS];
		for (int i = 0; i < W::OWN; i++) {
			u64 q = r.first + i * WARP + w.lane;
			own[i] = *(const K *)(t.base + (u64)(t.leaves + least(q, n - 1)) * LINE);
		}
		w.deal(own, key);
		way.guess(w, key, node);
		leafOf(w, t, key, node, slot, v);
		u32 set = way.past(w, node, slot);
		for (int s = 0; s < W::TURNS; s++) node[s] += set >> s & 1;
		leafOf(w, t, key, node, slot, v);
		set = way.past(w, node, slot);
		for (int s = 0; s < W::TURNS; s++) mine += w.part == 0 && (set >> s & 1);
	}
	if (mine) reduceRelaxed(count, mine);
}

#define SIGNS(BITS) \
	typedef Warp<u##BITS, 4, 32> Warp##BITS; \
	KERNEL sign##BITS(Tree t, Signs g, u32 level) { sign<u##BITS>(t, g, level); } \
	KERNEL bucket##BITS(Tree t, Signs g) { bucket<u##BITS>(t, g); } \
	KERNEL astray##BITS(Tree t, Signs g, u32 *count) { astray<Warp##BITS, u##BITS>(t, g, count); } \
	KERNEL signRank##BITS(Tree t, Signs g, const u##BITS *keys, u32 n, u32 *ranks) { rank<Warp##BITS>(BySigns{t, g}, keys, n, ranks); } \
	KERNEL signFind##BITS(Tree t, Signs g, const u##BITS *keys, u32 n, u32 *ranks) { find<Warp##BITS>(BySigns{t, g}, keys, n, ranks); } \
	KERNEL signPairs##BITS(Tree t, Signs g, const u##BITS *keys, u32 n, u##BITS *vals, u32 *found) { pairs<Warp##BITS>(BySigns{t, g}, keys, n, vals, found); } \
	KERNEL signApart##BITS##x32(Tree t, Signs g, const u##BITS *keys, u32 n, u32 *vals, u32 *found) { apart<Warp##BITS>(BySigns{t, g}, keys, n, vals, found); } \
	KERNEL signApart##BITS##x64(Tree t, Signs g, const u##BITS *keys, u32 n, u64 *vals, u32 *found) { apart<Warp##BITS>(BySigns{t, g}, keys, n, vals, found); }

SIGNS(32)
SIGNS(64)

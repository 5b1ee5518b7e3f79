// The radix tree of package cuart: its bytes, as cuart/layout.go draws them, how
// keys are spread over the slots of its table, and the way down to a leaf.
#pragma once
#include "block.h"

enum { NODE4 = 1, NODE16, NODE48, NODE256 }; // types, in the upper bits of a link
enum {
	TYPE_SHIFT = 28,
	NODE_TYPES = 4,
	UNIT = 8,         // bytes that places of leaves are counted in
	MOST_EXACT = 32,  // units up to which a leaf has as many as it needs
	CLASSES = NODE_TYPES + MOST_EXACT + 1 + 8,
	MAX_KEY = 65536 - 12,
	HASHED = 64,      // bytes of a key that are hashed at most
};
typedef u32 quad __attribute__((ext_vector_type(4)));

static const u32 LEAF = 1u << 31, NUMBER = (1u << TYPE_SHIFT) - 1;

// Node4 to Node256 are inner nodes. All begin as Node does.
struct Node {
	u32 depth, own, count;
};
struct __attribute__((aligned(32))) Node4 : Node {
	u32 keys;
	u32 links[4];
};
struct __attribute__((aligned(32))) Node16 : Node {
	u32 unused, keys[4];
	u32 links[16];
};
struct __attribute__((aligned(32))) Node48 : Node {
	u32 unused[5], bits[8];
	u32 links[48];
};
struct __attribute__((aligned(32))) Node256 : Node {
	u32 unused[5];
	u32 links[256];
};
static_assert(sizeof(Node4) == 32 && sizeof(Node16) == 96 && sizeof(Node48) == 256 && sizeof(Node256) == 1056, "as cuart has them");

// Radix is kernel.Radix in Go. Pools have pointers of their own: an index into an
// array of parameters would be a copy of it in local memory.
struct Radix {
	Node4 *n4;
	Node16 *n16;
	Node48 *n48;
	Node256 *n256;
	u8 *leaves, *far; // units from split on are in far, which is where unit 0 would be
	u32 *table;
	u64 seed;
	u32 skip, direct, shift; // slot = upper half of the place >> shift
	u32 longest;             // keys above are not there, whatever is done to them
	u32 split, unused;
};

// Query is a string.
struct Query {
	const u8 *key;
	u32 length;
};

// Keys are strings one behind the other: key i from offsets[i] up to offsets[i+1],
// or all of one width. Memory must be readable from and to a multiple of 4 bytes.
struct Keys {
	const u8 *bytes;
	const u32 *offsets; // null where all are of one width
	u32 width, n;

	inlined Query at(u32 i) const {
		if (!offsets) return Query{bytes + (u64)i * width, width};
		u32 from = offsets[i];
		return Query{bytes + from, offsets[i + 1] - from};
	}
};

// word gives bytes 4i to 4i+3 of a string that is longer than 4i, and zeros behind
// its end. It reads no word of memory that has none of its bytes.
inline_device u32 word(const Query &q, u32 i) {
	u32 off = (u32)(u64)q.key & 3, left = q.length - 4 * i;
	const u32 *p = (const u32 *)(q.key - off) + i;
	u32 w = p[0] >> 8 * off;
	if (off && left > 4 - off) w |= p[1] << (32 - 8 * off);
	return left < 4 ? w & ((1u << 8 * left) - 1) : w;
}

// eight gives bytes 8i to 8i+7, the first the lowest.
inline_device u64 eight(const Query &q, u32 i) {
	if ((u64)q.key % 8 == 0 && 8 * i + 8 <= q.length) return ((const u64 *)q.key)[i];
	u64 w = word(q, 2 * i);
	if (8 * i + 4 < q.length) w |= (u64)word(q, 2 * i + 1) << 32;
	return w;
}

// Tile is LANES lanes that have a query in common: all go the same way down, and
// each looks at its part of a key.
template <int LANES> struct Tile {
	u32 part, number, mask;

	inlined Tile() {
		u32 lane = threadIndex() % WARP;
		part = lane % LANES;
		number = lane / LANES;
		mask = (LANES == WARP ? ALL : (1u << LANES % WARP) - 1) << (lane - part);
	}
	inlined u64 sum(u64 v) const {
		unrolled for (u32 by = 1; by < LANES; by *= 2) {
			u32 lo = __nvvm_shfl_sync_bfly_i32(mask, (u32)v, by, 31), hi = __nvvm_shfl_sync_bfly_i32(mask, (u32)(v >> 32), by, 31);
			v += (u64)hi << 32 | lo;
		}
		return v;
	}
	inlined bool any(bool v) const { return LANES == 1 ? v : (__nvvm_vote_ballot_sync(mask, v) & mask) != 0; }
};

// slotOf gives the slot of a key: place.slot in Go.
template <int LANES> inline_device u32 slotOf(const Radix &t, const Tile<LANES> &tile, const Query &q) {
	const u64 ODD1 = 0x9e3779b97f4a7c15, ODD2 = 0xff51afd7ed558ccd, ODD3 = 0xc4ceb9fe1a85ec53;
	u32 from = least(t.skip, q.length);
	Query w = {q.key + from, least(q.length - from, HASHED)};
	u64 h = 0;
	if (t.direct) {
		if (w.length) h = __builtin_bswap64(eight(w, 0));
	} else {
		for (u32 i = tile.part; 8 * i < w.length; i += LANES) {
			u64 x = eight(w, i) + (u64)(i + 1) * ODD1;
			x = (x ^ x >> 31) * ODD2;
			h += (x ^ x >> 29) * ODD3;
		}
		h = tile.sum(h) + t.seed + w.length * ODD1;
		h = (h ^ h >> 32) * ODD2;
	}
	return (u32)(h >> 32) >> t.shift;
}

inline_device bool isInner(u32 link) { return link - 1 < LEAF - 1; }

// equalByte gives the place of the first of four bytes that equals b, 4 for none.
inline_device u32 equalByte(u32 four, u32 b) {
	const u32 LOW = 0x01010101, HIGH = 0x80808080;
	u32 x = four ^ b * LOW, y = (x - LOW) & ~x & HIGH;
	return y ? __builtin_ctz(y) >> 3 : 4;
}

// equalByte does so for sixteen bytes, 16 for none. They are read at once.
inline_device u32 equalByte(const u32 (&keys)[4], u32 b) {
	quad k = *(const quad *)keys;
	u32 at = 16;
	unrolled for (int i = 3; i >= 0; i--) {
		u32 j = equalByte(k[i], b);
		if (j < 4) at = 4 * i + j;
	}
	return at;
}

// rank gives how many bytes below b a node 48 has.
inline_device u32 rank(const Node48 *x, u32 b) {
	quad bits[2] = {((const quad *)x->bits)[0], ((const quad *)x->bits)[1]};
	u32 n = 0, at = b >> 5;
	unrolled for (u32 w = 0; w < 8; w++) {
		u32 m = bits[w / 4][w % 4];
		n += __builtin_popcount(w < at ? m : w == at ? m & ((1u << (b & 31)) - 1) : 0);
	}
	return n;
}

// nodeOf gives where an inner node lies.
inline_device Node *nodeOf(const Radix &t, u32 link) {
	u32 i = link & NUMBER;
	switch (link >> TYPE_SHIFT) {
	case NODE4: return t.n4 + i;
	case NODE16: return t.n16 + i;
	case NODE48: return t.n48 + i;
	default: return t.n256 + i;
	}
}

// childAt gives where an inner node has the link for a byte, null where it has none.
inline_device u32 *childAt(const Radix &t, u32 link, u32 b) {
	u32 n = link & NUMBER;
	switch (link >> TYPE_SHIFT) {
	case NODE4: {
		Node4 *x = t.n4 + n;
		u32 i = equalByte(x->keys, b);
		return i < x->count ? x->links + i : 0;
	}
	case NODE16: {
		Node16 *x = t.n16 + n;
		u32 i = equalByte(x->keys, b);
		return i < x->count ? x->links + i : 0;
	}
	case NODE48: {
		Node48 *x = t.n48 + n;
		return x->bits[b >> 5] >> (b & 31) & 1 ? x->links + rank(x, b) : 0;
	}
	default: {
		Node256 *x = t.n256 + n;
		return x->links[b] ? x->links + b : 0;
	}
	}
}

// next gives the link that the way to a key goes on with, 0 for none. Of a node 4 it
// reads all at once, which is as much as a GPU reads anyway.
inline_device u32 next(const Radix &t, u32 link, const Query &q) {
	if (link >> TYPE_SHIFT == NODE4) {
		const quad *x = (const quad *)(t.n4 + (link & NUMBER));
		quad head = x[0], links = x[1]; // depth, own, count, keys
		if (head[0] >= q.length) return head[0] == q.length ? head[1] : 0;
		u32 i = equalByte(head[3], q.key[head[0]]);
		if (i >= head[2]) return 0;
		return i < 2 ? (i ? links[1] : links[0]) : i == 2 ? links[2] : links[3];
	}
	const Node *x = nodeOf(t, link);
	u32 depth = x->depth;
	if (depth >= q.length) return depth == q.length ? x->own : 0;
	const u32 *at = childAt(t, link, q.key[depth]);
	return at ? *at : 0;
}

// Leaf is where a leaf lies whose value is a V.
template <typename V> struct Leaf {
	u8 *at;

	inlined Leaf(const Radix &t, u32 link) {
		u32 place = link & ~LEAF;
		at = (place < t.split ? t.leaves : t.far) + (u64)place * UNIT;
	}
	inlined V &value() const { return *(V *)at; }
	inlined u32 &length() const { return *(u32 *)(at + sizeof(V)); }
	inlined u32 *words() const { return (u32 *)(at + sizeof(V) + 4); }
	inlined Query key() const { return Query{(const u8 *)words(), length()}; }

	template <int LANES> inlined bool equals(const Tile<LANES> &tile, const Query &q) const {
		if (length() != q.length) return false;
		u32 differs = 0;
		for (u32 i = tile.part; 4 * i < q.length; i += LANES) differs |= words()[i] ^ word(q, i);
		return !tile.any(differs != 0);
	}
};

// look finds a key's value.
template <typename V, int LANES> inline_device bool look(const Radix &t, const Tile<LANES> &tile, const Query &q, V &val) {
	u32 link = t.table[slotOf(t, tile, q)];
	while (isInner(link)) link = next(t, link, q);
	if (!link) return false;
	Leaf<V> leaf(t, link);
	V v = leaf.value();
	if (!leaf.equals(tile, q)) return false;
	val = v;
	return true;
}

// find looks keys up, LANES lanes each. A warp takes 32 of them, so that it stores
// whole words of bits.
template <typename V, int LANES> inline_device void find(const Radix &t, const Keys &k, V *vals, u32 *found) {
	Tile<LANES> tile;
	u32 first = (blockIndex() * blockThreads() + threadIndex()) / WARP * WARP, bits = 0;
	if (first >= k.n) return;
	for (u32 turn = 0; turn < LANES; turn++) {
		u32 i = first + turn * (WARP / LANES) + tile.number;
		V val = 0;
		bool hit = i < k.n && look(t, tile, k.at(i), val);
		if (i < k.n && tile.part == 0) vals[i] = val;
		u32 b = ballot(hit);
		if (LANES == 4) { // a bit of each tile
			b &= 0x11111111;
			b = (b | b >> 3) & 0x03030303;
			b = (b | b >> 6) & 0x000f000f;
			b = (b | b >> 12) & 0xff;
		}
		bits |= b << turn * (WARP / LANES);
	}
	if (threadIndex() % WARP == 0) found[first / WARP] = bits;
}

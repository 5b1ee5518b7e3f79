// Searches among strings by partial keys, as blocked.Words lays them out: a
// thread takes a query through the directory to its page, through the page to
// the first entry that is not below, and compares full keys where they are on
// the device. What it cannot settle it leaves to the CPU.
#include "builtins.h"

enum {
	LINE = 64,
	WINDOWS = 4,
	LINE_KEYS = 16,
	KEY_LINES = 4,
	PAGE_KEYS = KEY_LINES * LINE_KEYS,
	MAX_DEPTH = 8, // nodes on a way
	MAX_RUN = 8,   // entries with equal partial keys that are compared
};

// What a result says beside the entry.
static const u32 EQUAL = 1u << 31;  // the full keys are equal
static const u32 UNSURE = 1u << 30; // the CPU is to look at it
static const u32 LINK_NODE = 1u << 31;

// Program is simd.Program: windows of 8 bytes, and a mask for each.
struct Program {
	u64 mask[WINDOWS];
	unsigned short at[WINDOWS];
};

// Node is a node of the directory.
struct Node {
	Program program;
	u32 words, count, first, pages;
	u32 unused[2];
};

// Page is 64 entries.
struct Page {
	Program program;
	u64 base;
	u32 end, seps[KEY_LINES - 1];
	u32 partials[PAGE_KEYS];
	u32 offsets[PAGE_KEYS];
};

// Words is kernel.Words in Go. The root's words are the leaves of an implicit
// tree whose nodes are numbered in lines of 64 bytes from root.
struct Words {
	const u8 *root;
	const Node *nodes;
	const u64 *words;
	const u32 *links; // of the root's words, then of words
	const Page *pages;
	const u8 *bytes; // full keys; null where they are not on the device
	u32 next[16];    // child j of node x on level l is fanout·x + j + next[l]
	u32 last[16];    // the last node of each level, then the last leaf
	u32 levels, fanout, leaves;
	u32 distinct, lastPage, entries, plain;
	u32 longest; // keys above are left to the CPU
};

// Query is a string.
struct Query {
	const u8 *key;
	u32 length;
};

// word gives 8 bytes of a string, the first the highest, zeros behind its end.
inline_device u64 word(const Query &q, u32 at) {
	u64 w = 0;
	unrolled for (u32 i = 0; i < 8; i++) {
		w <<= 8;
		if (at + i < q.length) w |= q.key[at + i];
	}
	return w;
}

// compress adds the bits of w under mask to those taken before.
inline_device u64 compress(u64 taken, u64 w, u64 mask) {
	while (mask) {
		u32 bit = 63 - (u32)__builtin_clzll(mask);
		taken = taken << 1 | (w >> bit & 1);
		mask &= ~(1ull << bit);
	}
	return taken;
}

inline_device u64 partial(const Program &p, const Query &q) {
	u64 taken = 0;
	for (u32 w = 0; w < WINDOWS; w++) {
		u64 mask = p.mask[w];
		if (!mask) break;
		taken = compress(taken, word(q, p.at[w]), mask);
	}
	return taken;
}

// below counts the numbers of a line that are below v.
template <typename K> inline_device u32 below(const K *line, K v) {
	u32 n = 0;
	unrolled for (u32 i = 0; i < LINE / sizeof(K); i++) n += line[i] < v;
	return n;
}

// rootPlace gives the number of the root's words that are below w.
inline_device u32 rootPlace(const Words &t, u64 w) {
	u32 node = 0;
	for (u32 l = 0; l < t.levels; l++)
		node = least(t.fanout * node + t.next[l] + below((const u64 *)(t.root + (u64)node * LINE), w), t.last[l + 1]);
	u32 place = (node - t.leaves) * (LINE / 8) + below((const u64 *)(t.root + (u64)node * LINE), w);
	return place < t.distinct ? place : t.distinct;
}

// inNode gives the number of a node's words that are below w.
inline_device u32 inNode(const u64 *words, u32 count, u64 w) {
	u32 lo = 0;
	while (count > 0) {
		u32 half = count / 2;
		if (words[lo + half] < w) {
			lo += half + 1;
			count -= half + 1;
		} else
			count = half;
	}
	return lo;
}

// pageOf gives the page that a query belongs to.
inline_device u32 pageOf(const Words &t, const Query &q) {
	u64 w = partial(t.nodes[0].program, q);
	u32 place = rootPlace(t, w);
	if (t.plain) return least(place, t.lastPage);
	if (place == t.distinct) return t.lastPage;
	u32 link = t.links[place];
	u64 there = ((const u64 *)(t.root + (u64)t.leaves * LINE))[place];
	for (u32 depth = 0; link & LINK_NODE; depth++) {
		const Node &n = t.nodes[link & ~LINK_NODE];
		if (there != w || depth > MAX_DEPTH) return least(n.first, t.lastPage);
		w = partial(n.program, q);
		u32 at = inNode(t.words + n.words, n.count, w);
		if (at == n.count) return least(n.first + n.pages, t.lastPage);
		link = t.links[t.distinct + n.words + at];
		there = t.words[n.words + at];
	}
	return least(link, t.lastPage);
}

// compare gives whether full key e is below the query, equal to it or above:
// -1, 0 or 1.
inline_device int compare(const Words &t, u32 e, const Query &q) {
	const Page &p = t.pages[e / PAGE_KEYS];
	u32 slot = e % PAGE_KEYS;
	u32 from = p.offsets[slot], to = slot + 1 < PAGE_KEYS ? p.offsets[slot + 1] : p.end;
	const u8 *key = t.bytes + p.base + from;
	u32 length = to - from, n = least(length, q.length);
	for (u32 i = 0; i < n; i++) {
		u8 a = key[i], b = q.key[i];
		if (a != b) return a < b ? -1 : 1;
	}
	return length == q.length ? 0 : length < q.length ? -1 : 1;
}

// settle looks at full keys from entry e on, as long as partial keys are equal.
inline_device u32 settle(const Words &t, const Query &q, u32 page, u32 part, u32 e) {
	if (!t.bytes || q.length > t.longest) return e | UNSURE;
	u32 end = least((page + 1) * PAGE_KEYS, t.entries);
	for (u32 i = 0; i < MAX_RUN; i++, e++) {
		if (e >= end) return e;
		int c = compare(t, e, q);
		if (c == 0) return e | EQUAL;
		if (c > 0) return e;
		if (e + 1 < end && t.pages[page].partials[(e + 1) % PAGE_KEYS] != part) return e + 1;
	}
	return e | UNSURE;
}

// wordsFind gives for each of n strings the first entry that is not below it, as
// far as partial keys tell, and what is known of it. String i has the bytes
// from offsets[i] to offsets[i+1].
extern "C" __global__ launch_bounds(256) void wordsFind(Words t, const u8 *keys, const u32 *offsets, u32 n, u32 *out) {
	u32 i = blockIndex() * blockThreads() + threadIndex();
	if (i >= n) return;
	if (!t.entries) { // there is no page to look at
		out[i] = 0;
		return;
	}
	Query q = {keys + offsets[i], offsets[i + 1] - offsets[i]};
	u32 page = pageOf(t, q);
	const Page &p = t.pages[page];
	u32 part = (u32)partial(p.program, q);
	u32 line = 0;
	unrolled for (u32 j = 0; j < KEY_LINES - 1; j++) line += p.seps[j] < part;
	u32 e = page * PAGE_KEYS + line * LINE_KEYS + below(p.partials + line * LINE_KEYS, part);
	if (e >= t.entries) {
		out[i] = t.entries;
		return;
	}
	// An entry of the next page is not in the run of this one.
	out[i] = settle(t, q, e / PAGE_KEYS, part, e);
}

// Kaczmarek's tree ("Experimental B+-tree for GPU"): large pages, one insert at a
// time, by a whole block in one launch, and all values visited at once. Nothing
// runs beside an insert, so there are no latches: threads meet at barriers.
//
// A page, of as many pairs as the tree says:
//
//	 0  count, level, next  u32   next: the leaf of greater keys, 0 for none
//	16  keys                      ascending, count of them in use
//	    vals                      values, or numbers of pages
//
// In an inner page a key is the greatest that its child may have. The root is
// page 0; pages that are full are split on the way down, so that no way back is
// needed.
#include "ordered.h"
#include "warp.h"

// Pages is a tree in memory: struct Pages of pages.go, field by field.
struct Pages {
	u8 *pages;
	u32 *state;           // pages in use, then whether one was missing
	u32 capacity, order;  // pages, pairs of a page
};

enum { PAGE_HEAD = 16, AT_ONCE = 8 };
enum Outcome { ABSENT, FOUND, NO_ROOM };

// meet is a barrier of the block that returns how many threads say yes.
inline_device u32 meet(bool yes) { return __nvvm_bar0_popc(yes); }

template <typename K> struct Block {
	Pages t;
	u32 me, threads;

	inlined Block(const Pages &tree) : t(tree), me(threadIndex()), threads(blockThreads()) {}

	inlined u32 *head(u32 p) const { return (u32 *)(t.pages + p * (PAGE_HEAD + 2 * (u64)t.order * sizeof(K))); }
	inlined u32 &count(u32 p) const { return head(p)[0]; }
	inlined u32 &level(u32 p) const { return head(p)[1]; }
	inlined u32 &next(u32 p) const { return head(p)[2]; }
	inlined K *keys(u32 p) const { return (K *)((u8 *)head(p) + PAGE_HEAD); }
	inlined K *vals(u32 p) const { return keys(p) + t.order; }
	inlined bool first() const { return me == 0; }

	// below counts the keys of a page that are below one: every thread looks at
	// one of so many keys that stand the same distance apart, until none is
	// between two of them.
	inlined u32 below(u32 p, K k) const {
		u32 low = 0, n = count(p);
		const K *of = keys(p);
		while (n) {
			u32 step = (n - 1) / threads + 1, at = (me + 1) * step - 1;
			u32 c = meet(at < n && of[low + at] < k) * step;
			low += least(c, n);
			n = c < n ? least(step - 1, n - c) : 0;
		}
		return low;
	}

	// shift makes room at a place, from the end on, AT_ONCE for each thread at a
	// time: what takes the time is to wait for loads and for the others.
	inlined void shift(K *of, u32 place, u32 n) const {
		for (u32 end = n; end > place;) {
			u32 begin = end - least(end - place, AT_ONCE * threads);
			K v[AT_ONCE];
			for (u32 i = 0, at = begin + me; i < AT_ONCE; i++, at += threads) v[i] = at < end ? of[at] : 0;
			__syncthreads();
			for (u32 i = 0, at = begin + me; i < AT_ONCE; i++, at += threads)
				if (at < end) of[at + 1] = v[i];
			end = begin;
		}
		__syncthreads();
	}
	// put adds a key and a value, each at its place.
	inlined void put(u32 p, u32 keyAt, K k, u32 valAt, K v) const {
		u32 n = count(p);
		shift(keys(p), keyAt, n);
		shift(vals(p), valAt, n);
		if (first()) {
			keys(p)[keyAt] = k;
			vals(p)[valAt] = v;
			count(p) = n + 1;
		}
		__syncthreads();
	}

	// fresh returns the first of some pages that nobody uses, 0 if there are none.
	inlined u32 fresh(u32 n) const {
		u32 at = t.state[0];
		__syncthreads();
		if (at + n > t.capacity) return 0;
		if (first()) t.state[0] = at + n;
		return at;
	}
	// move writes a page with the pairs of another one from a place on.
	inlined void move(u32 to, u32 from, u32 place, u32 n, u32 right) const {
		for (u32 i = me; i < n; i += threads) {
			keys(to)[i] = keys(from)[place + i];
			vals(to)[i] = vals(from)[place + i];
		}
		if (first()) {
			count(to) = n;
			level(to) = level(from);
			next(to) = right;
		}
	}

	// grow gives the root, which is full, two children, and reports whether there
	// was memory.
	inlined bool grow() const {
		u32 left = fresh(2), half = t.order / 2;
		if (!left) return false;
		K middle = keys(0)[half - 1];
		move(left, 0, 0, half, left + 1);
		move(left + 1, 0, half, t.order - half, 0);
		__syncthreads();
		if (first()) {
			keys(0)[0] = middle;
			keys(0)[1] = ~(K)0;
			vals(0)[0] = left;
			vals(0)[1] = left + 1;
			count(0) = 2;
			level(0)++;
		}
		__syncthreads();
		return true;
	}
	// split moves the upper half of a full child to a new page.
	inlined bool split(u32 parent, u32 slot, u32 child) const {
		u32 right = fresh(1), half = t.order / 2;
		if (!right) return false;
		K middle = keys(child)[half - 1];
		move(right, child, half, t.order - half, next(child));
		__syncthreads();
		if (first()) {
			count(child) = half;
			next(child) = right;
		}
		put(parent, slot, middle, slot + 1, right);
		return true;
	}

	// find returns the leaf of a key, without a change.
	inlined u32 find(K k) const {
		u32 at = 0;
		while (level(at)) at = (u32)vals(at)[below(at, k)];
		return at;
	}

	// insert adds a pair, or sets v to the value that was there.
	inlined Outcome insert(K k, K &v) const {
		if (count(0) == t.order) grow();
		u32 at = 0;
		while (level(at)) {
			u32 slot = below(at, k), child = (u32)vals(at)[slot];
			if (count(child) == t.order && count(at) < t.order && split(at, slot, child) && k > keys(at)[slot])
				child = (u32)vals(at)[slot + 1];
			at = child;
		}
		u32 slot = below(at, k), n = count(at);
		bool there = slot < n && keys(at)[slot] == k;
		if (there) {
			K was = vals(at)[slot];
			__syncthreads();
			if (first()) vals(at)[slot] = v;
			v = was;
		} else if (n < t.order) {
			put(at, slot, k, slot, v);
		} else {
			if (first()) t.state[1] = 1;
		}
		__syncthreads();
		return there ? FOUND : n < t.order ? ABSENT : NO_ROOM;
	}
};

// insertAll inserts n pairs one after the other. It takes one block.
template <typename K> inline_device void insertAll(const Pages &t, const K *keys, K *vals, u32 n, u8 *outcomes) {
	Block<K> b(t);
	for (u32 i = 0; i < n; i++) {
		K v = vals[i];
		Outcome o = b.insert(keys[i], v);
		if (!b.first()) continue;
		vals[i] = v;
		outcomes[i] = o;
	}
}

// getAll looks n keys up, a block for each.
template <typename K> inline_device void getAll(const Pages &t, const K *keys, K *vals, u32 n, u8 *outcomes) {
	Block<K> b(t);
	for (u32 i = blockIndex(); i < n; i += gridBlocks()) {
		u32 at = b.find(keys[i]), slot = b.below(at, keys[i]);
		if (!b.first()) continue;
		bool there = slot < b.count(at) && b.keys(at)[slot] == keys[i];
		vals[i] = there ? b.vals(at)[slot] : 0;
		outcomes[i] = there ? FOUND : ABSENT;
	}
}

// each calls f for the values of all leaves, a block for each page in turn. They
// need no list of leaves: pages lie side by side, and say what they are.
template <typename K, typename F> inline_device void each(const Pages &t, F f) {
	Block<K> b(t);
	u32 used = least(t.state[0], t.capacity);
	for (u32 p = blockIndex(); p < used; p += gridBlocks()) {
		if (b.level(p)) continue;
		for (u32 i = b.me; i < b.count(p); i += b.threads) f(b.vals(p)[i]);
	}
}

// sumAll adds up all values, as u64 that wraps.
template <typename K> inline_device void sumAll(const Pages &t, u64 *sum) {
	u64 mine = 0;
	each<K>(t, [&](K &v) { mine += v; });
	for (u32 by = 1; by < WARP; by *= 2) {
		u32 high = shuffleXor((u32)(mine >> 32), by), low = shuffleXor((u32)mine, by);
		mine += (u64)high << 32 | low;
	}
	if (threadIndex() % WARP == 0) reduceRelaxed(sum, mine);
}

// addAll adds a number to every value.
template <typename K> inline_device void addAll(const Pages &t, K x) {
	each<K>(t, [&](K &v) { v += x; });
}

// build makes the pages of one level of a tree of n sorted pairs, fill of them a
// page, a block for each in turn. Above the leaves the pairs are the pages below,
// which begin at below, and have span of the n pairs each.
template <typename K> inline_device void build(const Pages &t, const K *keys, const K *vals, u32 n, u32 fill, u32 level, u32 first, u32 below, u64 span) {
	Block<K> b(t);
	u32 children = level ? (u32)((n - 1) / span + 1) : n, pages = children ? (children - 1) / fill + 1 : 1;
	for (u32 i = blockIndex(); i < pages; i += gridBlocks()) {
		u32 at = first + i, from = i * fill, count = least(fill, children - from);
		for (u32 j = b.me; j < count; j += b.threads) {
			u32 child = from + j;
			b.keys(at)[j] = !level ? keys[child] : child == children - 1 ? ~(K)0 : keys[(child + 1) * span - 1];
			b.vals(at)[j] = level ? below + child : vals[child];
		}
		if (!b.first()) continue;
		b.count(at) = count;
		b.level(at) = level;
		b.next(at) = level || i == pages - 1 ? 0 : at + 1;
	}
}

#define PAGE_KERNEL extern "C" __global__ launch_bounds(1024) void
#define PAGES(K, BITS)                                                                                                              \
	PAGE_KERNEL pagesInsert##BITS(Pages t, const K *keys, K *vals, u32 n, u8 *outcomes) { insertAll<K>(t, keys, vals, n, outcomes); } \
	PAGE_KERNEL pagesGet##BITS(Pages t, const K *keys, K *vals, u32 n, u8 *outcomes) { getAll<K>(t, keys, vals, n, outcomes); }      \
	PAGE_KERNEL pagesSum##BITS(Pages t, u64 *sum) { sumAll<K>(t, sum); }                                                            \
	PAGE_KERNEL pagesAdd##BITS(Pages t, K x) { addAll<K>(t, x); }                                                                   \
	PAGE_KERNEL pagesBuild##BITS(Pages t, const K *keys, const K *vals, u32 n, u32 fill, u32 level, u32 first, u32 below, u64 span) { \
		build<K>(t, keys, vals, n, fill, level, first, below, span);                                                            \
	}

PAGES(u32, 32)
PAGES(u64, 64)

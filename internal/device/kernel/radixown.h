// Changes of the radix tree of package cuart. Operations are sorted by slot, stably;
// a thread owns each slot, does its operations one after the other, and nobody else
// touches what is below. So there is no latch, and answers are those of batch order.
//
// What is freed goes to lists for the next batch, and memory comes from lists of
// batches before, or has never been used: the host has seen to it that there is enough.
#pragma once
#include "radix.h"

enum { GET, SET, DELETE }; // kinds of operations

// Pool is memory of a class: nodes of a type, or leaves of a size.
struct Pool {
	const u32 *free; // those that may be taken, the last first,
	u32 *freed;      // and room for those that become free
	u32 count, next; // how many may, and the first node that was never used
};

// Pools is all memory. What kernels count is 0 at first, but for units.
struct Pools {
	const Pool *of;
	u32 *taken, *given; // of each class
	u32 *units;         // the first unit that was never used of leaves, and of those that are far
	u32 farClass;       // the first class of leaves that are far
	u32 unused;

	inlined u32 take(u32 c, u32 size) const {
		u32 i = addRelaxed(taken + c, 1u);
		const Pool &x = of[c];
		if (i < x.count) return x.free[x.count - 1 - i];
		return c < NODE_TYPES ? x.next + (i - x.count) : addRelaxed(units + (c >= farClass), size);
	}
	inlined void give(u32 c, u32 number) const { of[c].freed[addRelaxed(given + c, 1u)] = number; }
	inlined u32 takeNode(u32 type) const { return type << TYPE_SHIFT | take(type - 1, 0); }
	inlined void giveNode(u32 link) const { give((link >> TYPE_SHIFT) - 1, link & NUMBER); }
};

// classOf gives the class of a leaf, and its units: leafClass in Go.
template <typename V> inline_device u32 classOf(u32 length, u32 &units) {
	u32 n = (sizeof(V) + 4 + length + UNIT - 1) / UNIT;
	units = n;
	if (n <= MOST_EXACT) return NODE_TYPES + n;
	u32 log = 32 - __builtin_clz(n - 1);
	units = 1u << log;
	return NODE_TYPES + MOST_EXACT + log - 5;
}

// findSlots gives the slot of each key, and adds up by class how many leaves operations
// may need, and how many they may free; and how many keys to be set are too long.
template <typename V> inline_device void findSlots(const Radix &t, const Keys &k, const u8 *kinds, u32 *slots, u32 *counts, u32 kind) {
	enum { ALL_COUNTS = 2 * CLASSES + 1 };
	__shared__ u32 sums[ALL_COUNTS];
	for (u32 i = threadIndex(); i < ALL_COUNTS; i += blockThreads()) sums[i] = 0;
	syncBlock();
	u32 i = blockIndex() * blockThreads() + threadIndex();
	if (i < k.n) {
		Query q = k.at(i);
		slots[i] = slotOf(t, Tile<1>(), q);
		u32 what = kinds ? kinds[i] : kind, units;
		if (q.length > t.longest) {
			if (what == SET) __atomic_fetch_add(sums + 2 * CLASSES, 1u, __ATOMIC_RELAXED);
		} else if (what != GET)
			__atomic_fetch_add(sums + (what == SET ? 0 : CLASSES) + classOf<V>(q.length, units), 1u, __ATOMIC_RELAXED);
	}
	syncBlock();
	for (u32 c = threadIndex(); c < ALL_COUNTS; c += blockThreads())
		if (sums[c]) addRelaxed(counts + c, sums[c]);
}

// common gives how many bytes two strings begin with in common.
inline_device u32 common(const Query &a, const Query &b) {
	u32 n = least(a.length, b.length);
	for (u32 i = 0; 4 * i < n; i++) {
		u32 x = word(a, i) ^ word(b, i);
		if (x) return least(n, 4 * i + (__builtin_ctz(x) >> 3));
	}
	return n;
}

// insert adds a link for a byte to a node that has room for it.
inline_device void insert(const Radix &t, u32 node, u32 b, u32 link) {
	u32 n = node & NUMBER;
	switch (node >> TYPE_SHIFT) {
	case NODE4: {
		Node4 *x = t.n4 + n;
		u32 i = x->count++;
		((u8 *)&x->keys)[i] = b;
		x->links[i] = link;
		return;
	}
	case NODE16: {
		Node16 *x = t.n16 + n;
		u32 i = x->count++;
		((u8 *)x->keys)[i] = b;
		x->links[i] = link;
		return;
	}
	case NODE48: {
		Node48 *x = t.n48 + n;
		u32 to = rank(x, b);
		for (u32 i = x->count++; i > to; i--) x->links[i] = x->links[i - 1];
		x->links[to] = link;
		x->bits[b >> 5] |= 1u << (b & 31);
		return;
	}
	default: {
		Node256 *x = t.n256 + n;
		x->links[b] = link;
		x->count++;
	}
	}
}

// remove takes the link for a byte out of a node.
inline_device void remove(const Radix &t, u32 node, u32 b, u32 *at) {
	u32 n = node & NUMBER;
	switch (node >> TYPE_SHIFT) {
	case NODE4: { // the last comes to its place
		Node4 *x = t.n4 + n;
		u32 i = at - x->links, last = --x->count;
		((u8 *)&x->keys)[i] = ((u8 *)&x->keys)[last];
		x->links[i] = x->links[last];
		return;
	}
	case NODE16: {
		Node16 *x = t.n16 + n;
		u32 i = at - x->links, last = --x->count;
		((u8 *)x->keys)[i] = ((u8 *)x->keys)[last];
		x->links[i] = x->links[last];
		return;
	}
	case NODE48: {
		Node48 *x = t.n48 + n;
		u32 last = --x->count;
		for (u32 i = at - x->links; i < last; i++) x->links[i] = x->links[i + 1];
		x->bits[b >> 5] &= ~(1u << (b & 31));
		return;
	}
	default: {
		Node256 *x = t.n256 + n;
		x->links[b] = 0;
		x->count--;
	}
	}
}

// Children runs over the children of a node: those of nodes 48 and 256 by their
// bytes, others in no order.
struct Children {
	const Node *x;
	u32 type, at, i; // at is the byte, or the place, and i the number of a child of a node 48
	u32 byte, link;

	inlined Children(const Radix &t, u32 node) : x(nodeOf(t, node)), type(node >> TYPE_SHIFT), at(0), i(0) {}

	inlined bool next() {
		if (type == NODE4 || type == NODE16) {
			if (at == x->count) return false;
			const u8 *keys = type == NODE4 ? (const u8 *)&((const Node4 *)x)->keys : (const u8 *)((const Node16 *)x)->keys;
			const u32 *links = type == NODE4 ? ((const Node4 *)x)->links : ((const Node16 *)x)->links;
			byte = keys[at];
			link = links[at++];
			return true;
		}
		for (; at < 256; at++) {
			if (type == NODE48) {
				const Node48 *n = (const Node48 *)x;
				if (!(n->bits[at >> 5] >> (at & 31) & 1)) continue;
				link = n->links[i++];
			} else {
				link = ((const Node256 *)x)->links[at];
				if (!link) continue;
			}
			byte = at++;
			return true;
		}
		return false;
	}
};

// blank takes a node without children.
inline_device u32 blank(const Radix &t, const Pools &p, u32 type, u32 depth, u32 own) {
	u32 link = p.takeNode(type), n = link & NUMBER;
	if (type == NODE48) unrolled for (u32 i = 0; i < 8; i++) t.n48[n].bits[i] = 0;
	if (type == NODE256) for (u32 i = 0; i < 256; i++) t.n256[n].links[i] = 0;
	Node *x = nodeOf(t, link);
	x->depth = depth;
	x->own = own;
	x->count = 0;
	return link;
}

// resized gives a copy of a node as another type, and gives the node back.
inline_device u32 resized(const Radix &t, const Pools &p, u32 node, u32 type) {
	const Node *x = nodeOf(t, node);
	u32 to = blank(t, p, type, x->depth, x->own);
	for (Children c(t, node); c.next();) insert(t, to, c.byte, c.link);
	p.giveNode(node);
	return to;
}

inline_device u32 capacity(u32 type) { return type == NODE4 ? 4 : type == NODE16 ? 16 : type == NODE48 ? 48 : 256; }
inline_device u32 few(u32 type) { return type == NODE16 ? 3 : type == NODE48 ? 12 : 36; }

// Way is where the way to a key ends: in a link, which is null if there is none for
// the next byte; the node that has it, 0 where that is the table, and the link to it.
struct Way {
	u32 *at, *above;
	u32 node;
};

// Owner is what the owner of a slot does.
template <typename V> struct Owner {
	const Radix &t;
	const Pools &p;
	u32 *root; // the slot

	// walk goes down through nodes up to a depth, and gives the link that the way ends
	// with.
	inlined u32 walk(const Query &q, u32 deepest, Way &w) const {
		w = Way{root, 0, 0};
		u32 link = *root;
		while (isInner(link)) {
			Node *x = nodeOf(t, link);
			u32 depth = x->depth;
			if (depth > deepest) break;
			w.node = link;
			w.above = w.at;
			w.at = depth == q.length ? &x->own : childAt(t, link, q.key[depth]);
			link = w.at ? *w.at : 0;
		}
		return link;
	}

	// anyLeaf gives a leaf below a link.
	inlined u32 anyLeaf(u32 link) const {
		while (isInner(link)) {
			const Node *x = nodeOf(t, link);
			if (x->own) return x->own;
			Children c(t, link);
			c.next();
			link = c.link;
		}
		return link;
	}

	inlined u32 newLeaf(const Query &q, V val) const {
		u32 units, c = classOf<V>(q.length, units);
		u32 link = LEAF | p.take(c, units);
		Leaf<V> x(t, link);
		x.value() = val;
		x.length() = q.length;
		for (u32 i = 0; 4 * i < q.length; i++) x.words()[i] = word(q, i);
		return link;
	}

	// add adds a leaf to the node that the way ends in, which has no link for it.
	inlined void add(const Query &q, Way &w, u32 leaf) const {
		Node *x = nodeOf(t, w.node);
		u32 depth = x->depth, type = w.node >> TYPE_SHIFT;
		if (depth == q.length) {
			x->own = leaf;
			return;
		}
		if (x->count == capacity(type)) *w.above = w.node = resized(t, p, w.node, type + 1);
		insert(t, w.node, q.key[depth], leaf);
	}

	// branch puts a node above what is deeper than the bytes that a key has in common
	// with it, and a leaf beside that.
	inlined void branch(const Query &q, u32 depth, const Query &other, u32 leaf) const {
		Way w;
		u32 below = walk(q, depth, w), node = blank(t, p, NODE4, depth, 0);
		Node *x = nodeOf(t, node);
		if (depth == other.length) x->own = below;
		else insert(t, node, other.key[depth], below);
		if (depth == q.length) x->own = leaf;
		else insert(t, node, q.key[depth], leaf);
		*w.at = node;
	}

	// put adds a leaf whose key is not there; link is what the way to it ends with.
	inlined void put(const Query &q, Way &w, u32 link, u32 leaf) const {
		if (!link && !w.node) {
			*root = leaf;
			return;
		}
		// Bytes that the way has skipped are in any leaf below.
		Query other = Leaf<V>(t, anyLeaf(link ? link : w.node)).key();
		u32 same = common(q, other);
		if (!link && same >= nodeOf(t, w.node)->depth) add(q, w, leaf);
		else branch(q, same, other, leaf);
	}

	// cut takes a leaf out that the way ends with.
	inlined void cut(const Query &q, Way &w, u32 leaf) const {
		u32 units, c = classOf<V>(q.length, units);
		p.give(c, leaf & ~LEAF);
		if (!w.node) {
			*root = 0;
			return;
		}
		Node *x = nodeOf(t, w.node);
		u32 type = w.node >> TYPE_SHIFT;
		if (x->depth == q.length) x->own = 0;
		else remove(t, w.node, q.key[x->depth], w.at);
		u32 n = x->count;
		if (n + (x->own != 0) == 1) { // the node gives way to what is left
			u32 rest = x->own;
			if (!rest) {
				Children left(t, w.node);
				left.next();
				rest = left.link;
			}
			*w.above = rest;
			p.giveNode(w.node);
		} else if (type != NODE4 && n <= few(type))
			*w.above = resized(t, p, w.node, type - 1);
	}

	// apply does an operation, and gives what was there before it.
	inlined bool apply(const Query &q, u32 kind, V val, V &old) const {
		Way w;
		u32 link = walk(q, q.length, w);
		bool had = link && !isInner(link) && Leaf<V>(t, link).equals(Tile<1>(), q);
		if (had) {
			Leaf<V> x(t, link);
			old = x.value();
			if (kind == SET) x.value() = val;
			if (kind == DELETE) cut(q, w, link);
		} else if (kind == SET)
			put(q, w, link, newLeaf(q, val));
		return had;
	}
};

// Changes is operations in the order of their slots.
struct Changes {
	Keys keys;
	const u32 *slots, *places; // in order
	const void *vals;          // of the batch, as the following
	const u8 *kinds;           // null where all are of one kind
	void *old;                 // what was there; null where nobody asks
	u8 *had;
	u32 kind, unused;
};

// own does the operations of a slot, a thread each.
template <typename V> inline_device void own(const Radix &t, const Changes &c, const Pools &p) {
	u32 i = blockIndex() * blockThreads() + threadIndex(), n = c.keys.n;
	if (i >= n) return;
	u32 slot = c.slots[i];
	if (i && c.slots[i - 1] == slot) return; // another's
	Owner<V> owner = {t, p, t.table + slot};
	do {
		u32 at = c.places[i], kind = c.kinds ? c.kinds[at] : c.kind;
		V old = 0;
		Query q = c.keys.at(at);
		bool had = q.length <= t.longest && owner.apply(q, kind, kind == SET ? ((const V *)c.vals)[at] : 0, old);
		if (c.old) {
			((V *)c.old)[at] = old;
			c.had[at] = had;
		}
	} while (++i < n && c.slots[i] == slot);
}

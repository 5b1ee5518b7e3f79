// How the radix tree of package cuart comes to a wider table: leaves are listed, and
// put into it by the owners of its slots.
#pragma once
#include "radixown.h"

// leafSlots gives the slots of leaves.
template <typename V> inline_device void leafSlots(const Radix &t, const u32 *leaves, u32 *slots, u32 n) {
	u32 i = blockIndex() * blockThreads() + threadIndex();
	if (i < n) slots[i] = slotOf(t, Tile<1>(), Leaf<V>(t, leaves[i]).key());
}

// adopt puts leaves that are there into a table that has none of them.
template <typename V> inline_device void adopt(const Radix &t, const u32 *slots, const u32 *places, const u32 *leaves, const Pools &p, u32 n) {
	u32 i = blockIndex() * blockThreads() + threadIndex();
	if (i >= n) return;
	u32 slot = slots[i];
	if (i && slots[i - 1] == slot) return;
	Owner<V> owner = {t, p, t.table + slot};
	do {
		u32 leaf = leaves[places[i]];
		Query q = Leaf<V>(t, leaf).key();
		Way w;
		u32 link = owner.walk(q, q.length, w);
		owner.put(q, w, link, leaf);
	} while (++i < n && slots[i] == slot);
}

// expand lists what links lead to: inner nodes and leaves that are below them, each
// for itself; leaves that they are. The nodes themselves are given back. counts has
// how many of each there are.
inline_device void expand(const Radix &t, const u32 *links, u32 *inner, u32 *leaves, u32 *counts, const Pools &p, u32 n) {
	u32 i = blockIndex() * blockThreads() + threadIndex();
	if (i >= n) return;
	u32 link = links[i];
	if (!link) return;
	if (!isInner(link)) {
		leaves[addRelaxed(counts + 1, 1u)] = link;
		return;
	}
	u32 below = nodeOf(t, link)->own;
	if (below) leaves[addRelaxed(counts + 1, 1u)] = below;
	for (Children c(t, link); c.next();) {
		if (isInner(c.link)) inner[addRelaxed(counts, 1u)] = c.link;
		else leaves[addRelaxed(counts + 1, 1u)] = c.link;
	}
	p.giveNode(link);
}

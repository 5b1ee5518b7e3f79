// Kernels with latches, right and wrong, that show what the modes of the
// interpreter find. Compile to latch.ptx as TestLatchesAreFresh says.
#include "../../kernel/ordered.h"

// What a variant leaves out, or does wrong.
enum { RIGHT, NO_ACQUIRE, NO_RELEASE, NO_CHECK, NO_LATCH, PLAIN_READ };

template <int V> inline_device void take(u32 *latch) {
	while ((V == NO_ACQUIRE ? casRelaxed(latch, 0, 1) : casAcquire(latch, 0, 1)) != 0) {}
}

template <int V> inline_device void give(u32 *latch) {
	if (V == NO_RELEASE) storeRelaxed(latch, 0);
	else storeRelease(latch, 0);
}

// count adds 1 to a counter under a latch.
template <int V> inline_device void count(u32 *latch, u32 *counter) {
	take<V>(latch);
	*counter += 1;
	give<V>(latch);
}

// Node is a leaf of a B-link tree: keys up to high, in any order, and a link to
// the leaf of greater ones. high and next are also read without the latch.
enum { ROOM = 4 };
struct Node {
	u32 latch, count, high, next;
	u32 keys[ROOM];
};

// walk follows side links, without latches, to where a key belongs.
template <int V> inline_device u32 walk(const Node *nodes, u32 at, u32 key) {
	for (;;) {
		u32 high = V == PLAIN_READ ? nodes[at].high : loadAcquire(&nodes[at].high);
		if (key <= high) return at;
		at = loadAcquire(&nodes[at].next);
	}
}

// split moves the greater half of a node to a new one behind it, which it
// returns, latched. The link is there before anyone can need it.
inline_device u32 split(Node *nodes, u32 *used, u32 at) {
	Node *n = &nodes[at];
	u32 fresh = addRelaxed(used, 1);
	Node *m = &nodes[fresh];
	for (u32 i = 0; i < ROOM; i++) // ascending
		for (u32 j = i + 1; j < ROOM; j++)
			if (n->keys[j] < n->keys[i]) {
				u32 k = n->keys[i];
				n->keys[i] = n->keys[j];
				n->keys[j] = k;
			}
	for (u32 i = 0; i < ROOM / 2; i++) m->keys[i] = n->keys[ROOM / 2 + i];
	m->count = n->count = ROOM / 2;
	storeRelaxed(&m->latch, 1);
	storeRelaxed(&m->high, loadRelaxed(&n->high));
	storeRelaxed(&m->next, loadRelaxed(&n->next));
	storeRelease(&n->next, fresh);
	storeRelease(&n->high, n->keys[ROOM / 2 - 1]);
	return fresh;
}

// insert adds a key to the list of nodes that begins at 0. NO_CHECK does not look
// again whether the key belongs there once it has the latch. NO_LATCH gives the
// latch of a full node back, as one does who has to latch the parent first,
// finds the node again by side links, and splits what it found, which may be
// another node, as if it held the latch: it writes the latch word with the node,
// and gives back the latch that it once took.
template <int V> inline_device void insert(Node *nodes, u32 *used, u32 key) {
	u32 at = walk<V>(nodes, 0, key);
	take<V>(&nodes[at].latch);
	while (V != NO_CHECK && key > loadRelaxed(&nodes[at].high)) {
		u32 next = loadRelaxed(&nodes[at].next);
		give<V>(&nodes[at].latch);
		at = next;
		take<V>(&nodes[at].latch);
	}
	u32 first = at;
	if (nodes[at].count == ROOM) {
		if (V == NO_LATCH) {
			give<V>(&nodes[at].latch);
			at = walk<V>(nodes, at, key);
			storeRelaxed(&nodes[at].latch, 1);
		}
		u32 fresh = split(nodes, used, at);
		if (key > loadRelaxed(&nodes[at].high)) {
			give<V>(&nodes[first].latch);
			at = first = fresh;
		} else {
			give<V>(&nodes[fresh].latch);
		}
	}
	Node *n = &nodes[at];
	n->keys[n->count & (ROOM - 1)] = key;
	n->count++;
	give<V>(&nodes[first].latch);
}

// inserts lets each thread insert a few keys.
template <int V> inline_device void inserts(Node *nodes, u32 *used, const u32 *keys, u32 each) {
	u32 me = blockIndex() * blockThreads() + threadIndex();
	for (u32 i = 0; i < each; i++) insert<V>(nodes, used, keys[me * each + i]);
}

#define VARIANTS(V, NAME)                                                                                         \
	extern "C" __global__ void count_##NAME(u32 *latch, u32 *counter) { count<V>(latch, counter); }           \
	extern "C" __global__ void inserts_##NAME(Node *nodes, u32 *used, const u32 *keys, u32 each) { inserts<V>(nodes, used, keys, each); }

VARIANTS(RIGHT, right)
VARIANTS(NO_ACQUIRE, no_acquire)
VARIANTS(NO_RELEASE, no_release)
VARIANTS(NO_CHECK, no_check)
VARIANTS(NO_LATCH, no_latch)
VARIANTS(PLAIN_READ, plain_read)

// tile is count by tiles of 8 lanes: one takes the latch, each adds to its own
// counter. SYNC says whether they wait for each other by more than a shuffle,
// GIVE whether the latch is given back.
template <bool SYNC, bool GIVE> inline_device void tile(u32 *latch, u32 *counters) {
	u32 lane = threadIndex() & 31, base = lane & 24, mask = 255u << base;
	u32 was;
	do {
		was = 1;
		if (lane == base) was = casAcquire(latch, 0, 1);
		was = __nvvm_shfl_sync_idx_i32(mask, was, base, 31);
	} while (was != 0);
	if (SYNC) syncWarp(mask);
	counters[lane & 7] += 1;
	if (SYNC) syncWarp(mask);
	else __nvvm_shfl_sync_idx_i32(mask, was, base, 31);
	if (GIVE && lane == base) storeRelease(latch, 0);
}

extern "C" __global__ void tile_right(u32 *latch, u32 *counters) { tile<true, true>(latch, counters); }
extern "C" __global__ void tile_no_sync(u32 *latch, u32 *counters) { tile<false, true>(latch, counters); }
extern "C" __global__ void tile_kept(u32 *latch, u32 *counters) { tile<true, false>(latch, counters); }

// crossed takes two latches, in an order that depends on the thread.
extern "C" __global__ void crossed(u32 *latches) {
	u32 first = threadIndex() & 1;
	take<RIGHT>(&latches[first]);
	take<RIGHT>(&latches[1 - first]);
	give<RIGHT>(&latches[1 - first]);
	give<RIGHT>(&latches[first]);
}

// ordered has each of the ordered atomics once, for the test of their text.
template <typename T> inline_device void orderedOnce(T *p) {
	T v = loadRelaxed(p);
	v += loadAcquire(p);
	storeRelaxed(p, v);
	storeRelease(p, v);
	v += casRelaxed(p, v, v + 1);
	v += casAcquire(p, v, v + 1);
	v += casRelease(p, v, v + 1);
	v += casAcqRel(p, v, v + 1);
	v += exchAcquire(p, v);
	v += exchRelease(p, v);
	v += exchAcqRel(p, v);
	v += addRelaxed(p, v);
	v += addAcquire(p, v);
	v += addRelease(p, v);
	v += addAcqRel(p, v);
	reduceRelaxed(p, v);
	reduceRelease(p, v);
}

extern "C" __global__ void ordered(u32 *p, u64 *q) {
	orderedOnce(p);
	orderedOnce(q);
	fence();
	fenceSC();
	syncWarp(ALL);
}

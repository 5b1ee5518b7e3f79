// Batches of the chunked layout: what is the same whether a batch is done leaf by
// leaf or by a flat merge.
#pragma once
#include "chunked.h"
#include "scan.h"

enum { GET, SET, DELETE };            // kinds of operations, as package bplus has them
enum { NOTHING, REPLACE, INSERT, REMOVE }; // what an operation does to the tree

inline_device u32 thread() { return blockIndex() * blockThreads() + threadIndex(); }

// Batch is kernel.Batch in Go: operations in the order of their keys. Operation
// i is number places[i] of the batch.
template <typename K> struct Batch {
	const K *keys;
	const u32 *places;
	const K *vals;   // of the batch, what is to be set; null where nothing is
	const u8 *kinds; // of the batch; null where all are of one kind
	K *old;          // of the batch, what was there before; null where nobody asks
	u8 *had;
	// Where there are several kinds: the number of changes before each operation,
	// and their numbers.
	const u32 *changes, *change;
	u32 n, kind;

	inlined u32 kindOf(u32 i) const { return kinds ? kinds[places[i]] : kind; }

	// before gives the operation that decides what operation i finds: the last
	// change of the same key before it; or NONE.
	inlined u32 before(u32 i) const {
		u32 j = NONE;
		if (!kinds) {
			if (i > 0) j = i - 1;
		} else if (changes[i] > 0) {
			j = change[changes[i] - 1];
		}
		return j != NONE && keys[j] == keys[i] ? j : NONE;
	}

	// last says whether no later operation changes the same key.
	inlined bool last(u32 i) const {
		u32 j = n;
		if (!kinds) {
			j = i + 1;
		} else if (changes[i] + 1 < changes[n]) {
			j = change[changes[i] + 1];
		}
		return j >= n || keys[j] != keys[i];
	}
};

// Changes lists the operations that change something.
struct Changes {
	const u32 *places;
	const u8 *kinds;
	u32 *changes, *change;
	u32 n;

	inlined void take(u32 at, u32 (&v)[PART]) const {
		unrolled for (u32 i = 0; i < PART; i++) v[i] = at + i < n && kinds[places[at + i]] != GET;
	}

	inlined void give(u32 at, u32 sum, const u32 (&v)[PART]) const {
		unrolled for (u32 i = 0; i < PART; i++) {
			if (at + i < n) changes[at + i] = sum;
			if (v[i]) change[sum] = at + i;
			sum += v[i];
		}
	}

	inlined void end(u32 all) const { changes[n] = all; }
};

// answer answers an operation as if those before it had been done, and gives what
// it does to the tree: NOTHING, unless it is the key's last change. pos entries of
// its leaf are below its key; hit says whether the next one has it.
template <typename K> inline_device u32 answer(const Batch<K> &b, u32 i, const Leaf<K> *leaf, u32 pos, bool hit) {
	u32 kind = b.kindOf(i);
	if (b.old) {
		u32 j = b.before(i);
		bool had = j == NONE ? hit : b.kindOf(j) == SET;
		K old = 0;
		if (had) old = j == NONE ? leaf->vals[pos] : b.vals[b.places[j]];
		b.old[b.places[i]] = old;
		b.had[b.places[i]] = had;
	}
	if (kind == GET || !b.last(i)) return NOTHING;
	if (kind == SET) return hit ? REPLACE : INSERT;
	return hit ? REMOVE : NOTHING;
}

// probe answers all operations, and gives the home of each, and what it does
// there. Acts have the place in the leaf, times 4.
template <typename K> inline_device void probe(const Version &v, const Batch<K> &b, u32 *homes, u32 *acts) {
	eachPlace<Four<K>, false>(v, b.keys, b.n, [&](u64 q, u32 home, u32 ref, u32 pos, u32 hit) {
		if (q >= b.n) return;
		homes[q] = home;
		acts[q] = pos * 4 + answer(b, q, leafAt<K>(v, ref), pos, hit);
	});
}

// Effects lists the operations that do something, in key order: what the batch
// comes to.
template <typename K> struct Effects {
	const Batch<K> &b;
	const u32 *acts;
	K *keys, *vals;
	u8 *kinds;
	u32 *told;

	inlined void take(u32 at, u32 (&v)[PART]) const {
		unrolled for (u32 i = 0; i < PART; i++) v[i] = at + i < b.n && acts[at + i] % 4 != NOTHING;
	}

	inlined void give(u32 at, u32 sum, const u32 (&v)[PART]) const {
		unrolled for (u32 i = 0; i < PART; i++) {
			if (!v[i]) continue;
			bool set = acts[at + i] % 4 != REMOVE;
			keys[sum] = b.keys[at + i];
			vals[sum] = set ? b.vals[b.places[at + i]] : 0;
			kinds[sum++] = set ? SET : DELETE;
		}
	}

	inlined void end(u32 all) const { *told = all; }
};

// quadAt loads four numbers, of n; behind the last there are zeros.
inline_device quad quadAt(const u32 *of, u32 at, u32 n) {
	if (at + PART <= n) return *(const quad *)(of + at);
	quad v = 0;
	unrolled for (u32 i = 0; i < PART; i++)
		if (at + i < n) v[i] = of[at + i];
	return v;
}

// Slots is kernel.Slots in Go: where new leaves, or chunks, go. The free ones
// are taken from the end of the list; then those that were never used.
struct Slots {
	u32 *free;
	u32 count, next;

	inlined u32 take(u32 i) const { return i < count ? free[count - 1 - i] : next + (i - count); }
};

// Shifts is how far the entries of a leaf move up, as a warp counts it.
struct Shifts {
	u32 by[LEAF + 1]; // entries from there on; then the sum of these

	inlined void clear(u32 s) {
		by[s] = 0;
		syncWarp(ALL);
	}

	// add counts so many for the entries from pos on. Any lane may call it.
	inlined void add(u32 pos, u32 n) { __atomic_fetch_add(&by[pos], n, __ATOMIC_RELAXED); }

	// at gives what was counted for entry s, lane s's own.
	inlined u32 at(u32 s) {
		syncWarp(ALL);
		u32 sum = upTo(by[s]);
		syncWarp(ALL);
		return sum;
	}
};

// Next is kernel.Next in Go: the version to be, as far as rechunk writes it.
struct Next {
	const u32 *become; // chunks before those that each chunk becomes
	const u32 *fresh;  // new chunks before those that it takes
	u8 *seps, *heads;
	u32 *slots, *used, *totals;
};

// sumBlock gives each of 256 threads the sum of what those before it have, and
// the sum of all. All have to have read what they have before.
inline_device u32 sumBlock(u32 mine, u32 *all) {
	static __shared__ u32 sums[WARPS];
	__syncthreads();
	u32 sum = before(mine, sums);
	*all = 0;
	unrolled for (u32 w = 0; w < WARPS; w++) *all += sums[w];
	return sum;
}

// Entry is a leaf in a chunk.
template <typename K> struct Entry {
	K sep;
	u32 ref, count;
};

// writeChunk writes a chunk of size leaves to a slot, each thread one, and its
// entry in the table.
template <typename K> inline_device void writeChunk(const Version &v, u32 slot, const Entry<K> &x, u32 size, const Next &next, u32 place) {
	u32 e = threadIndex(), total, before = sumBlock(x.count, &total);
	Chunk<K> *to = chunkAt<K>(v, slot);
	K *head = (K *)((Head<K> *)next.heads + place);
	to->put(e, {x.ref, (u16)before, (u16)x.count});
	to->seps[e] = x.sep;
	if (e % GROUP<K> == GROUP<K> - 1) to->pivots[e / GROUP<K>] = x.sep;
	enum { QUARTER = CHUNK / QUARTERS };
	if (e % QUARTER == QUARTER - 1) head[e / QUARTER] = e < CHUNK - 1 ? x.sep : (K)slot;
	if (e == size - 1) {
		((K *)next.seps)[place] = x.sep;
		next.slots[place] = slot;
		next.used[place] = size;
		next.totals[place] = total;
	}
}

// Finish completes a version whose chunks are there: it adds up their entries,
// totals, and tells how many entries there are, and how much was freed.
struct Finish {
	const u32 *totals, *freed;
	u32 *first, *told;
	u32 n;

	inlined void take(u32 at, u32 (&v)[PART]) const {
		quad t = quadAt(totals, at, n);
		unrolled for (u32 i = 0; i < PART; i++) v[i] = t[i];
	}

	inlined void give(u32 at, u32 sum, const u32 (&v)[PART]) const { put(first, at, n, sum, sum + v[0], sum + v[0] + v[1], sum + v[0] + v[1] + v[2]); }

	inlined void end(u32 all) const {
		told[0] = first[n] = all;
		told[1] = freed[0];
		told[2] = freed[1];
	}
};

// raise makes the upper levels of separators of the lowest. Behind the last of a
// level, up to the end of its group, there is the greatest key.
template <typename K> inline_device void raise(const Version &v) {
	K *last = (K *)v.seps[v.levels - 1];
	u32 each = 1, n = v.count;
	for (u32 l = v.levels - 1;; l--) {
		u32 room = (n + GROUP<K> - 1) / GROUP<K> * GROUP<K>;
		for (u32 i = l < v.levels - 1 ? thread() : n + thread(); i < room; i += gridBlocks() * THREADS)
			((K *)v.seps[l])[i] = i < n ? last[least(i * each + each - 1, v.count - 1)] : most<K>();
		if (l == 0) return;
		each *= GROUP<K>;
		n = (v.count + each - 1) / each;
	}
}

// push gives each lane that says so a place in a list, whose length is counted
// for the whole warp at once.
inline_device u32 push(u32 *count, bool yes) {
	u32 lane = threadIndex() % WARP, mask = ballot(yes), first = 0;
	if (lane == 0 && mask) first = addRelaxed(count, ones(mask));
	return shuffle(first, 0) + ones(mask & bits(lane));
}

// Freed is kernel.Freed in Go: slots that the next version has no use for.
struct Freed {
	u32 *leaves, *chunks;
	u32 *counts; // of leaves, of chunks
};

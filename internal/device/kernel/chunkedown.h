// Batches that are done leaf by leaf: each leaf that operations fall on belongs to
// a warp, each chunk to a block.
#pragma once
#include "chunkedbatch.h"

// Owned is kernel.Owned in Go: what a batch does, leaf by leaf. Leaf t of those
// that it touches, in order, is home[t], and has operations from begin[t] on.
struct Owned {
	const u32 *homes, *acts; // of operations
	u32 *heads, *inserts;    // leaves, and entries inserted, before each operation
	u32 *home, *begin;
	u32 *refs, *counts; // its slot, and the entries that it has
	u32 *base;          // entries inserted before it
	u32 *removed; // a bit for each entry of the leaf that goes
	u32 *size;    // entries that it will have
	u32 *need;    // new leaves that those before it take
	u32 *chunkBegin, *chunkEnd; // of each chunk, its leaves among those touched; both 0 where there are none
	u32 *grow;                  // leaves that each chunk gets more, as a signed number
	u32 *changed;               // whether a chunk's list of leaves changes
	u32 *told;                  // what the host is told, see Told
	u32 n;                      // operations
	u32 copy;                   // 1: what is there must stay as it is, since a snapshot has it
	u32 leaves, chunks, room;   // new leaves and chunks that there is room for, and chunks in the next table
	u32 certain;                // 1: the host has seen that there is room

	inlined u32 leafOf(u32 i) const { return heads[i + 1] - 1; }
	inlined u32 touched() const { return heads[n]; }

	// goes says whether the batch is to be written: kernels that write may be queued
	// before the host knows what is needed.
	inlined bool goes() const;

	// at gives the place of something in a leaf that is touched, among what the
	// leaf will have: pos entries are before it now, and so many of the batch's
	// inserts.
	inlined u32 at(u32 t, u32 pos, u32 insertsBefore) const {
		return pos - ones(removed[t] & bits(pos)) + insertsBefore - base[t];
	}
};

// What the host is told before anything is written, and behind it what counts.
enum Told { TOUCHED, LEAVES, CHUNKS, NEW_CHUNKS, FREED, GROWTH, FAILED };

inlined bool Owned::goes() const {
	return certain || (told[LEAVES] <= leaves && told[NEW_CHUNKS] <= chunks && told[CHUNKS] <= room && !told[FREED] && !told[FAILED]);
}

// In a leaf with more operations than MANY it is searched for what comes before an
// entry, where else it is counted.
enum { MANY = 256 };

// pieces gives the number of leaves that so many entries take.
inline_device u32 pieces(u32 size) { return size <= LEAF ? (size > 0) : (size + LEAF_FILL - 1) / LEAF_FILL; }

// The last leaf of the tree stays, so that every key belongs to one.
inline_device u32 piecesOf(u32 size, bool last) { return size == 0 && last ? 1 : pieces(size); }

inline_device u32 piecesOf(const Version &v, const Owned &o, u32 t) {
	u32 home = o.home[t], c = chunkOf(home);
	return piecesOf(o.size[t], c == v.count - 1 && home % CHUNK == v.used[c] - 1);
}

// Owns adds up leaves and inserts before each operation, and lists the leaves
// that operations fall on, and what they lose.
struct Owns {
	const Owned &o;

	inlined void take(u32 at, u64 (&v)[PART]) const {
		quad home = quadAt(o.homes, at, o.n), act = quadAt(o.acts, at, o.n);
		u32 left = at > 0 && at < o.n ? o.homes[at - 1] : NONE;
		unrolled for (u32 i = 0; i < PART; i++) {
			bool head = home[i] != (i ? home[i - 1] : left), insert = act[i] % 4 == INSERT;
			v[i] = at + i < o.n ? (u64)head << 32 | insert : 0;
		}
	}

	inlined void give(u32 at, u64 sum, const u64 (&v)[PART]) const {
		if (at >= o.n) return;
		u64 a = sum + v[0], b = a + v[1], c = b + v[2];
		put(o.heads, at, o.n, sum >> 32, a >> 32, b >> 32, c >> 32);
		put(o.inserts, at, o.n, sum, a, b, c);
		quad home = quadAt(o.homes, at, o.n), act = quadAt(o.acts, at, o.n);
		unrolled for (u32 i = 0; i < PART; i++) {
			u32 before = sum >> 32;
			if (v[i] >> 32) {
				o.home[before] = home[i];
				o.begin[before] = at + i;
			}
			sum += v[i];
			if (act[i] % 4 == REMOVE) asm volatile("red.relaxed.gpu.global.or.b32 [%0], %1;" ::"l"(o.removed + ((sum >> 32) - 1)), "r"(1u << act[i] / 4) : "memory");
		}
	}

	inlined void end(u64 all) const {
		o.heads[o.n] = all >> 32;
		o.inserts[o.n] = all;
		o.begin[all >> 32] = o.n;
	}
};

// Planned is a leaf that is touched, on its way to what it needs. What it loads comes
// in two steps, so that several of them may wait for memory together.
template <typename K> struct Planned {
	const Version &v;
	const Owned &o;
	u32 t, touched;
	u32 home, begin, end, removed, left, right;

	inlined Planned(const Version &v, const Owned &o, u32 t, u32 touched) : v(v), o(o), t(t), touched(touched) {
		if (t >= touched) return;
		home = o.home[t], begin = o.begin[t], end = o.begin[t + 1], removed = o.removed[t];
		left = t > 0 ? o.home[t - 1] : NONE, right = t < touched - 1 ? o.home[t + 1] : NONE;
	}

	// item loads what the chunk has of the leaf.
	inlined Item item() const { return t < touched ? chunkOfHome<K>(v, home)->at(home % CHUNK) : Item{0, 0, 0}; }

	// plan says what the leaf and its chunk need, and gives the entries that there
	// are more, as a signed number.
	inlined u32 plan(Item item) const {
		if (t >= touched) return 0;
		u32 c = chunkOf(home), base = o.inserts[begin], added = o.inserts[end] - base, count = item.count, size = count - ones(removed) + added;
		bool last = c == v.count - 1 && home % CHUNK == v.used[c] - 1;
		u32 p = piecesOf(size, last);
		o.refs[t] = item.ref;
		o.counts[t] = count;
		o.base[t] = base;
		o.size[t] = size;
		o.need[t] = o.copy ? p : p > 0 ? p - 1 : 0;
		// In a batch whose sort has failed, of which nothing will be written, several
		// threads may come here for one chunk.
		if (left == NONE || chunkOf(left) != c) storeRelaxed(o.chunkBegin + c, t);
		if (right == NONE || chunkOf(right) != c) storeRelaxed(o.chunkEnd + c, t + 1);
		if (p != 1) reduceRelaxed(o.grow + c, p - 1);
		if (p != 1 || o.copy) storeRelaxed(o.changed + c, (u32)1);
		if (p == 0 || o.copy) storeRelaxed(o.told + FREED, (u32)1);
		return size - count;
	}
};

// plan says what each leaf that is touched, and each chunk, needs, and how many
// entries there will be more.
template <typename K> inline_device void plan(const Version &v, const Owned &o) {
	Planned<K> leaf(v, o, thread(), o.touched());
	u32 all;
	sumBlock(leaf.plan(leaf.item()), &all);
	if (threadIndex() == 0 && all) reduceRelaxed(o.told + GROWTH, all);
}

// Needs adds up the new leaves that those before each take.
struct Needs {
	const Owned &o;
	u32 touched;

	inlined void take(u32 at, u32 (&n)[PART]) const {
		quad need = quadAt(o.need, at, touched);
		unrolled for (u32 i = 0; i < PART; i++) n[i] = need[i];
	}

	inlined void give(u32 at, u32 sum, const u32 (&n)[PART]) const {
		put(o.need, at, touched, sum, sum + n[0], sum + n[0] + n[1], sum + n[0] + n[1] + n[2]);
	}

	inlined void end(u32 all) const {
		o.told[TOUCHED] = touched;
		o.told[LEAVES] = all;
	}
};

inline_device u32 chunkPieces(u32 used) { return used <= CHUNK ? (used > 0) : (used + CHUNK_FILL - 1) / CHUNK_FILL; }

// PlanChunks adds up the chunks that those before each become, and the new ones
// among them.
struct PlanChunks {
	const Version &v;
	const Owned &o;
	u32 *become, *fresh;

	inlined void take(u32 at, u64 (&n)[PART]) const {
		unrolled for (u32 i = 0; i < PART; i++) {
			u32 c = at + i;
			n[i] = 0;
			if (c >= v.count) continue;
			bool changed = o.changed[c];
			u32 q = changed ? chunkPieces(v.used[c] + o.grow[c]) : 1;
			n[i] = (u64)q << 32 | (!changed ? 0 : o.copy ? q : q > 0 ? q - 1 : 0);
			if (changed && (q == 0 || o.copy)) storeRelaxed(o.told + FREED, (u32)1);
		}
	}

	inlined void give(u32 at, u64 sum, const u64 (&n)[PART]) const {
		unrolled for (u32 i = 0; i < PART; i++) {
			if (at + i >= v.count) return;
			become[at + i] = sum >> 32;
			fresh[at + i] = sum;
			sum += n[i];
		}
	}

	inlined void end(u64 all) const {
		o.told[CHUNKS] = become[v.count] = all >> 32;
		o.told[NEW_CHUNKS] = fresh[v.count] = all;
	}
};

// slotOf gives the slot of a piece of a leaf that is touched. Unless it must
// stay, the leaf itself is the first.
inline_device u32 slotOf(const Owned &o, const Slots &leaves, u32 t, u32 ref, u32 piece) {
	if (o.copy) return leaves.take(o.need[t] + piece);
	return piece == 0 ? ref : leaves.take(o.need[t] + piece - 1);
}

// place gives where entry number at of leaf t will be.
template <typename K> inline_device Leaf<K> *place(const Version &v, const Owned &o, const Slots &leaves, u32 t, u32 ref, u32 &at) {
	u32 n = o.size[t], p = pieces(n), piece = p == 1 ? 0 : partOf(at, n, p);
	if (piece) at -= firstOf(piece, n, p);
	return leafAt<K>(v, slotOf(o, leaves, t, ref, piece));
}

// below gives the first of the operations from first on that is not below a key.
template <typename K> inline_device u32 below(const K *keys, u32 first, u32 end, K key) {
	for (u32 span = end - first; span > 0;) {
		u32 half = span / 2;
		if (keys[first + half] < key) {
			first += half + 1;
			span -= half + 1;
		} else {
			span = half;
		}
	}
	return first;
}

// storeOne stores what operation i sets in leaf t. The operations are in key order:
// so those before it that insert are those whose entries come before.
template <typename K> inline_device void storeOne(const Version &v, const Batch<K> &b, const Owned &o, const Slots &leaves, u32 i, u32 t) {
	u32 act = o.acts[i] % 4;
	if (act != INSERT && act != REPLACE) return;
	u32 at = o.at(t, o.acts[i] / 4, o.inserts[i]);
	Leaf<K> *to = place<K>(v, o, leaves, t, o.refs[t], at);
	if (act == INSERT) to->keys[at] = b.keys[i];
	to->vals[at] = b.vals[b.places[i]];
}

// move moves the entries of the leaves that are touched to where they will be. A
// warp does each leaves, one after the other, and has all that it needs of the
// next one on its way. It has read a leaf before it writes to it. Where STORES says
// so, it also stores what the leaves' operations set.
template <typename K, bool STORES> inline_device void move(const Version &v, const Batch<K> &b, const Owned &o, const Slots &leaves, u32 each) {
	static __shared__ Shifts shifts[WARPS];
	Shifts &shift = shifts[warpIndex()];
	u32 first = thread() / WARP * each, s = laneIndex(), touched = o.touched();
	if (first >= touched || !o.goes()) return;
	u32 n = least(each, touched - first), mine = first + least(s, n - 1); // each lane has the numbers of a leaf
	u32 myBegin = o.begin[mine], myEnd = o.begin[mine + 1], myRemoved = o.removed[mine], myRef = o.refs[mine], myCount = o.counts[mine];
	u32 myAdded = o.size[mine] + ones(myRemoved) - myCount;
	u32 moves = ballot(s < n && (myAdded || myRemoved || o.copy)); // a bit for each leaf whose entries move
	K nextKey = 0, nextVal = 0;
	u32 nextAct = NOTHING;
	auto fetch = [&](u32 j) {
		u32 count = shuffle(myCount, j), ref = shuffle(myRef, j), i = shuffle(myBegin, j) + s, end = shuffle(myEnd, j);
		nextAct = i < end ? o.acts[i] : NOTHING;
		if (s >= count) return;
		nextKey = leafAt<K>(v, ref)->keys[s];
		nextVal = leafAt<K>(v, ref)->vals[s];
	};
	if (moves) fetch(__builtin_ctz(moves));
	while (moves) {
		u32 j = __builtin_ctz(moves), t = first + j, begin = shuffle(myBegin, j), end = shuffle(myEnd, j), removed = shuffle(myRemoved, j);
		u32 ref = shuffle(myRef, j), count = shuffle(myCount, j), added = shuffle(myAdded, j), by = 0, act = nextAct;
		K key = nextKey, val = nextVal;
		bool stays = s < count && !(removed >> s & 1);
		moves &= moves - 1;
		if (moves) fetch(__builtin_ctz(moves));
		if (added && end - begin > MANY) {
			if (stays) by = o.inserts[below(b.keys, begin, end, key)] - o.inserts[begin];
		} else if (added) {
			shift.clear(s);
			for (u32 i = begin + s; i < end; i += WARP) {
				if (i >= begin + WARP) act = o.acts[i];
				if (act % 4 == INSERT) shift.add(act / 4, 1);
			}
			by = shift.at(s);
		}
		syncWarp(ALL); // all have read
		if (!stays) continue;
		u32 at = s - ones(removed & bits(s)) + by;
		Leaf<K> *to = place<K>(v, o, leaves, t, ref, at);
		if (to == leafAt<K>(v, ref) && at == s) continue;
		to->keys[at] = key;
		to->vals[at] = val;
	}
	if constexpr (STORES) {
		syncWarp(ALL); // all have moved what operations replace
		for (u32 j = 0; j < n; j++) {
			u32 end = shuffle(myEnd, j);
			for (u32 i = shuffle(myBegin, j) + s; i < end; i += WARP) storeOne(v, b, o, leaves, i, first + j);
		}
	}
}

// store stores what operations set, a thread each.
template <typename K> inline_device void store(const Version &v, const Batch<K> &b, const Owned &o, const Slots &leaves) {
	u32 i = thread();
	if (i < o.n && o.goes()) storeOne(v, b, o, leaves, i, o.leafOf(i));
}

// List is a chunk on its way to what it becomes.
template <typename K> struct List {
	K seps[CHUNK];
	u32 refs[CHUNK], touched[CHUNK], start[CHUNK];
	u8 counts[CHUNK];
};

// entryAt gives leaf x of those that a chunk will have. Its entries have been
// moved and stored.
template <typename K> inline_device Entry<K> entryAt(const Version &v, const Owned &o, const Slots &leaves, const List<K> &list, u32 x) {
	u32 e = 0; // the last that begins at x or before
	for (u32 span = CHUNK; span > 1;) {
		u32 half = span / 2;
		if (list.start[e + half] <= x) e += half;
		span -= half;
	}
	u32 t = list.touched[e];
	Entry<K> out = {list.seps[e], list.refs[e], list.counts[e]};
	if (t == NONE) return out;
	u32 n = o.size[t], p = piecesOf(v, o, t), piece = x - list.start[e];
	u32 first = firstOf(piece, n, p);
	out.ref = slotOf(o, leaves, t, list.refs[e], piece);
	out.count = firstOf(piece + 1, n, p) - first;
	if (piece < p - 1) out.sep = leafAt<K>(v, out.ref)->keys[out.count - 1];
	return out;
}

// keepChunk lists a chunk whose leaves stay the same, with so many entries.
template <typename K> inline_device void keepChunk(const Version &v, const Next &next, u32 c, u32 total) {
	u32 place = next.become[c];
	((K *)next.seps)[place] = ((const K *)v.seps[v.levels - 1])[c];
	((Head<K> *)next.heads)[place] = ((const Head<K> *)v.heads)[c];
	next.slots[place] = v.slots[c];
	next.used[place] = v.used[c];
	next.totals[place] = total;
}

// recount writes the counts of a chunk whose leaves stay the same, a warp a chunk,
// with room for them in shared memory.
template <typename K> inline_device void recount(const Version &v, const Owned &o, u16 (&counts)[CHUNK], const Next &next, u32 c) {
	enum { EACH = CHUNK / WARP };
	u32 s = laneIndex(), total = 0;
	Chunk<K> *chunk = chunkAt<K>(v, v.slots[c]);
	Item items[EACH];
	unrolled for (u32 i = 0; i < EACH; i++) items[i] = chunk->at(i * WARP + s);
	unrolled for (u32 i = 0; i < EACH; i++) counts[i * WARP + s] = items[i].count;
	syncWarp(ALL);
	for (u32 t = o.chunkBegin[c] + s; t < o.chunkEnd[c]; t += WARP) counts[o.home[t] % CHUNK] = o.size[t];
	syncWarp(ALL);
	unrolled for (u32 i = 0; i < EACH; i++) {
		u32 n = counts[i * WARP + s], to = upTo(n);
		chunk->put(i * WARP + s, {items[i].ref, (u16)(total + to - n), (u16)n});
		total += shuffle(to, WARP - 1);
	}
	syncWarp(ALL); // all have read their counts
	if (s == 0) keepChunk<K>(v, next, c, total);
}

// relist writes what a chunk becomes whose leaves change, a block a chunk.
template <typename K> inline_device void relist(const Version &v, const Owned &o, const Slots &leaves, const Slots &chunks, List<K> &list, const Next &next, u32 c) {
	u32 e = threadIndex(), place = next.become[c], slot = v.slots[c];
	Chunk<K> *chunk = chunkAt<K>(v, slot);
	u32 used = v.used[c], begin = o.chunkBegin[c], end = o.chunkEnd[c];
	list.seps[e] = chunk->seps[e];
	Item item = chunk->at(e);
	list.refs[e] = item.ref;
	list.counts[e] = item.count;
	list.touched[e] = NONE;
	__syncthreads();
	for (u32 t = begin + e; t < end; t += CHUNK) list.touched[o.home[t] % CHUNK] = t;
	__syncthreads();
	u32 t = list.touched[e], all;
	u32 mine = e >= used ? 0 : t == NONE ? 1 : piecesOf(v, o, t);
	list.start[e] = sumBlock(mine, &all);
	__syncthreads();
	u32 q = chunkPieces(all), fresh = next.fresh[c];
	for (u32 i = 0; i < q; i++) {
		u32 to = slot;
		if (o.copy) to = chunks.take(fresh + i);
		else if (i > 0) to = chunks.take(fresh + i - 1);
		u32 first = firstOf(i, all, q), size = firstOf(i + 1, all, q) - first;
		Entry<K> x = {most<K>(), 0, 0};
		if (e < size) x = entryAt(v, o, leaves, list, first + e);
		writeChunk(v, to, x, size, next, place + i);
	}
}

// rechunk writes what all chunks become: those that nothing falls on a thread
// each, those whose leaves stay the same a warp each, the others a block each.
template <typename K> inline_device void rechunk(const Version &v, const Owned &o, const Slots &leaves, const Slots &chunks, const Next &next) {
	static __shared__ List<K> list;
	static __shared__ u16 counts[WARPS][CHUNK];
	if (!o.goes()) return;
	for (u32 c = thread(); c < v.count; c += gridBlocks() * THREADS)
		if (o.chunkBegin[c] == o.chunkEnd[c]) keepChunk<K>(v, next, c, v.first[c + 1] - v.first[c]);
	for (u32 c = thread() / WARP; c < v.count; c += gridBlocks() * WARPS)
		if (o.chunkBegin[c] != o.chunkEnd[c] && !o.changed[c]) recount<K>(v, o, counts[warpIndex()], next, c);
	for (u32 c = blockIndex(); c < v.count; c += gridBlocks()) {
		if (!o.changed[c]) continue;
		__syncthreads(); // all are done with the one before
		relist(v, o, leaves, chunks, list, next, c);
	}
}

// give lists what a batch frees, before chunks are written over.
template <typename K> inline_device void give(const Version &v, const Owned &o, const Next &next, const Freed &freed) {
	u32 i = thread();
	bool leaf = i < o.n && i < o.touched() && (o.copy || piecesOf(v, o, i) == 0);
	u32 at = push(freed.counts, leaf);
	if (leaf) freed.leaves[at] = chunkOfHome<K>(v, o.home[i])->items[o.home[i] % CHUNK].ref;
	bool chunk = i < v.count && o.changed[i] && (o.copy || next.become[i + 1] == next.become[i]);
	at = push(freed.counts + 1, chunk);
	if (chunk) freed.chunks[at] = v.slots[i];
}

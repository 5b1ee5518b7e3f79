// Kernels of the chunked layout: searches, and batches of changes.
//
// A batch is sorted by key, stably, so that the operations on a leaf, and on a
// key, lie side by side. From then on a thread knows by prefix sums alone where
// what it has goes: see store. Nothing of the tree is written before the host
// has seen how much memory that takes.
#include "chunked.h"

enum { GET, SET, DELETE };            // kinds of operations, as package bplus has them
enum { NOTHING, REPLACE, INSERT, REMOVE }; // what an operation does to the tree

inline_device u32 thread() { return blockIndex() * blockThreads() + threadIndex(); }

// find looks keys up.
template <typename K> inline_device void find(const Version &v, const K *keys, u32 n, K *vals, u32 *found) {
	eachPlace<Four<K>>(v, keys, n, [&](u64 q, u32, u32 ref, u32 pos, u32 hit) {
		bool yes = hit && q < n;
		K val = yes ? leafAt<K>(v, ref)->vals[pos] : 0;
		if (q < n) vals[q] = val;
		u32 word = ballot(yes);
		if (q % WARP == 0 && q < n) found[q / WARP] = word;
	});
}

// rank gives the number of entries below each key, or, where after is 1, up to
// it.
template <typename K> inline_device void rank(const Version &v, const K *keys, u32 n, u32 after, u32 *ranks) {
	eachPlace<Four<K>>(v, keys, n, [&](u64 q, u32 home, u32, u32 pos, u32 hit) {
		if (q >= n) return;
		ranks[q] = v.first[chunkOf(home)] + chunkOfHome<K>(v, home)->first[home % CHUNK] + pos + (hit && after);
	});
}

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

// isChange sets a flag for each operation that changes something.
template <typename K> inline_device void isChange(const Batch<K> &b, u32 *flags) {
	u32 i = thread();
	if (i < b.n) flags[i] = b.kindOf(i) != GET;
}

// listChanges lists them.
template <typename K> inline_device void listChanges(const Batch<K> &b, u32 *change) {
	u32 i = thread();
	if (i < b.n && b.changes[i + 1] > b.changes[i]) change[b.changes[i]] = i;
}

// probe answers each operation as if those before it had been done, and gives
// its home, and what it does there: NOTHING, unless it is the key's last change.
// Acts have the place in the leaf, times 4.
template <typename K> inline_device void probe(const Version &v, const Batch<K> &b, u32 *homes, u32 *acts) {
	eachPlace<Four<K>>(v, b.keys, b.n, [&](u64 q, u32 home, u32 ref, u32 pos, u32 hit) {
		if (q >= b.n) return;
		u32 i = q, kind = b.kindOf(i), act = NOTHING;
		if (b.old) {
			u32 j = b.before(i);
			bool had = j == NONE ? hit : b.kindOf(j) == SET;
			K old = 0;
			if (had) old = j == NONE ? leafAt<K>(v, ref)->vals[pos] : b.vals[b.places[j]];
			b.old[b.places[i]] = old;
			b.had[b.places[i]] = had;
		}
		if (kind != GET && b.last(i)) {
			if (kind == SET) act = hit ? REPLACE : INSERT;
			if (kind == DELETE && hit) act = REMOVE;
		}
		homes[i] = home;
		acts[i] = pos * 4 + act;
	});
}

// markAll sets flags: of operations that are the first of their leaf, that insert,
// and that remove.
inline_device void markAll(const u32 *homes, const u32 *acts, u32 n, u32 *heads, u32 *inserts, u32 *removes) {
	u32 i = thread();
	if (i >= n) return;
	if (heads) heads[i] = i == 0 || homes[i] != homes[i - 1];
	inserts[i] = acts[i] % 4 == INSERT;
	if (removes) removes[i] = acts[i] % 4 == REMOVE;
}

// isEffect sets a flag for each operation that does something.
inline_device void isEffectOf(const u32 *acts, u32 n, u32 *flags) {
	u32 i = thread();
	if (i < n) flags[i] = acts[i] % 4 != NOTHING;
}

// effects lists these operations, in key order: what the batch comes to.
template <typename K> inline_device void effects(const Batch<K> &b, const u32 *acts, const u32 *before, K *keys, K *vals, u8 *kinds) {
	u32 i = thread();
	if (i >= b.n || acts[i] % 4 == NOTHING) return;
	u32 at = before[i];
	bool set = acts[i] % 4 != REMOVE;
	keys[at] = b.keys[i];
	vals[at] = set ? b.vals[b.places[i]] : 0;
	kinds[at] = set ? SET : DELETE;
}

// Owned is kernel.Owned in Go: what a batch does, leaf by leaf. Leaf t of those
// that it touches, in order, is home[t], and has operations from begin[t] on.
struct Owned {
	const u32 *homes, *acts;   // of operations
	const u32 *heads, *inserts; // leaves, and entries inserted, before each operation
	u32 *home, *begin;
	u32 *removed; // a bit for each entry of the leaf that goes
	u32 *size;    // entries that it will have
	u32 *need;    // new leaves that it takes; then those that others before it take
	u32 *chunkBegin, *chunkEnd; // of each chunk, its leaves among those touched; both 0 where there are none
	u32 *grow;                  // leaves that each chunk gets more, as a signed number
	u32 *changed;               // whether a chunk's list of leaves changes
	u32 n;                      // operations
	u32 copy;                   // 1: what is there must stay as it is, since a snapshot has it

	inlined u32 leafOf(u32 i) const { return heads[i + 1] - 1; }
	inlined u32 touched() const { return heads[n]; }

	// at gives the place of something in a leaf that is touched, among what the
	// leaf will have: pos entries are before it now, and so many of the batch's
	// inserts.
	inlined u32 at(u32 t, u32 pos, u32 insertsBefore) const {
		return pos - ones(removed[t] & bits(pos)) + insertsBefore - inserts[begin[t]];
	}
};

// pieces gives the number of leaves that so many entries take.
inline_device u32 pieces(u32 size) { return size <= LEAF ? (size > 0) : (size + LEAF_FILL - 1) / LEAF_FILL; }

// piecesOf is pieces for a leaf that is touched. The last leaf of the tree stays,
// so that every key belongs to one.
inline_device u32 piecesOf(const Version &v, const Owned &o, u32 t) {
	u32 home = o.home[t], c = chunkOf(home);
	bool last = c == v.count - 1 && home % CHUNK == v.used[c] - 1;
	u32 p = pieces(o.size[t]);
	return p == 0 && last ? 1 : p;
}

// touchAll lists the leaves that operations fall on, and what they lose.
inline_device void touchAll(const Owned &o) {
	u32 i = thread();
	if (i >= o.n) return;
	u32 t = o.leafOf(i);
	if (o.heads[i] == t) {
		o.home[t] = o.homes[i];
		o.begin[t] = i;
	}
	if (i == o.n - 1) o.begin[t + 1] = o.n;
	if (o.acts[i] % 4 == REMOVE) asm volatile("red.relaxed.gpu.global.or.b32 [%0], %1;" ::"l"(o.removed + t), "r"(1u << o.acts[i] / 4) : "memory");
}

// plan says what each leaf that is touched, and each chunk, needs.
template <typename K> inline_device void plan(const Version &v, const Owned &o) {
	u32 t = thread();
	if (t >= o.n) return;
	u32 m = o.touched();
	if (t >= m) {
		o.need[t] = 0;
		return;
	}
	u32 home = o.home[t], c = chunkOf(home);
	u32 count = chunkOfHome<K>(v, home)->counts[home % CHUNK];
	o.size[t] = count - ones(o.removed[t]) + o.inserts[o.begin[t + 1]] - o.inserts[o.begin[t]];
	u32 p = piecesOf(v, o, t);
	o.need[t] = o.copy ? p : p > 0 ? p - 1 : 0;
	if (p != 1) reduceRelaxed(o.grow + c, p - 1);
	if (p != 1 || o.copy) storeRelaxed(o.changed + c, (u32)1);
	if (t == 0 || chunkOf(o.home[t - 1]) != c) o.chunkBegin[c] = t;
	if (t == m - 1 || chunkOf(o.home[t + 1]) != c) o.chunkEnd[c] = t + 1;
}

inline_device u32 chunkPieces(u32 used) { return used <= CHUNK ? (used > 0) : (used + CHUNK_FILL - 1) / CHUNK_FILL; }

// planAll gives the number of chunks that each becomes, and how many of them
// are new.
inline_device void planAll(const Version &v, const Owned &o, u32 *become, u32 *fresh) {
	u32 c = thread();
	if (c >= v.count) return;
	u32 q = o.changed[c] ? chunkPieces(v.used[c] + o.grow[c]) : 1;
	become[c] = q;
	fresh[c] = !o.changed[c] ? 0 : o.copy ? q : q > 0 ? q - 1 : 0;
}

// Slots is kernel.Slots in Go: where new leaves, or chunks, go. The free ones
// are taken from the end of the list; then those that were never used.
struct Slots {
	u32 *free;
	u32 count, next;

	inlined u32 take(u32 i) const { return i < count ? free[count - 1 - i] : next + (i - count); }
};

// slotOf gives the slot of a piece of a leaf that is touched. Unless it must
// stay, the leaf itself is the first.
inline_device u32 slotOf(const Owned &o, const Slots &leaves, u32 t, u32 ref, u32 piece) {
	if (o.copy) return leaves.take(o.need[t] + piece);
	return piece == 0 ? ref : leaves.take(o.need[t] + piece - 1);
}

// move moves entries of the leaves that are touched to where they will be, a
// warp a leaf. A warp has read its leaf before it writes to it.
template <typename K> inline_device void move(const Version &v, const Owned &o, const K *keys, const Slots &leaves) {
	u32 t = thread() / WARP, s = thread() % WARP;
	if (t >= o.touched()) return;
	u32 home = o.home[t], begin = o.begin[t], end = o.begin[t + 1];
	bool same = o.inserts[end] == o.inserts[begin] && o.removed[t] == 0;
	if (same && !o.copy) return;
	const Chunk<K> *chunk = chunkOfHome<K>(v, home);
	u32 ref = chunk->refs[home % CHUNK], count = chunk->counts[home % CHUNK];
	const Leaf<K> *leaf = leafAt<K>(v, ref);
	bool stays = s < count && !(o.removed[t] >> s & 1);
	K key = stays ? leaf->keys[s] : 0, val = stays ? leaf->vals[s] : 0;
	syncWarp(ALL);
	if (!stays) return;
	u32 first = begin; // the first operation that is not below the key
	for (u32 span = end - begin; span > 0;) {
		u32 half = span / 2;
		if (keys[first + half] < key) {
			first += half + 1;
			span -= half + 1;
		} else {
			span = half;
		}
	}
	u32 at = o.at(t, s, o.inserts[first]), n = o.size[t], p = pieces(n), piece = partOf(at, n, p);
	Leaf<K> *to = leafAt<K>(v, slotOf(o, leaves, t, ref, piece));
	at -= firstOf(piece, n, p);
	to->keys[at] = key;
	to->vals[at] = val;
}

// store stores what operations set, a thread each. The operations are in key
// order: so those before it that insert are those whose entries come before.
template <typename K> inline_device void store(const Version &v, const Batch<K> &b, const Owned &o, const Slots &leaves) {
	u32 i = thread();
	if (i >= o.n) return;
	u32 act = o.acts[i] % 4, t = o.leafOf(i);
	if (act != INSERT && act != REPLACE) return;
	u32 home = o.home[t], n = o.size[t], p = pieces(n);
	u32 at = o.at(t, o.acts[i] / 4, o.inserts[i]), piece = partOf(at, n, p);
	Leaf<K> *to = leafAt<K>(v, slotOf(o, leaves, t, chunkOfHome<K>(v, home)->refs[home % CHUNK], piece));
	at -= firstOf(piece, n, p);
	if (act == INSERT) to->keys[at] = b.keys[i];
	to->vals[at] = b.vals[b.places[i]];
}

// Next is kernel.Next in Go: the version to be, as far as rechunk writes it.
struct Next {
	const u32 *become; // chunks before those that each chunk becomes
	const u32 *fresh;  // new chunks before those that it takes
	u8 *seps;
	u32 *slots, *used, *totals;
};

// sumBlock gives each of 256 threads the sum of what those before it have, and
// the sum of all. All have to have read what they have before.
inline_device u32 sumBlock(u32 mine, u32 *all) {
	static __shared__ u32 warps[CHUNK / WARP];
	u32 lane = threadIndex() % WARP, sum = mine;
	for (u32 by = 1; by < WARP; by *= 2) {
		u32 left = shuffle(sum, lane - by);
		if (lane >= by) sum += left;
	}
	__syncthreads();
	if (lane == WARP - 1) warps[threadIndex() / WARP] = sum;
	__syncthreads();
	u32 before = 0;
	*all = 0;
	for (u32 i = 0; i < CHUNK / WARP; i++) {
		if (i == threadIndex() / WARP) before = *all;
		*all += warps[i];
	}
	return before + sum - mine;
}

// List is a chunk on its way to what it becomes.
template <typename K> struct List {
	K seps[CHUNK];
	u32 refs[CHUNK], touched[CHUNK], start[CHUNK];
	u8 counts[CHUNK];
};

// Entry is a leaf in a chunk.
template <typename K> struct Entry {
	K sep;
	u32 ref, count;
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

// writeChunk writes a chunk of size leaves, each thread one, and its entry in the
// table.
template <typename K> inline_device void writeChunk(Chunk<K> *to, const Entry<K> &x, u32 size, bool counts, const Next &next, u32 place) {
	u32 e = threadIndex(), total, before = sumBlock(x.count, &total);
	to->counts[e] = x.count;
	to->first[e] = before;
	if (!counts) {
		to->seps[e] = x.sep;
		to->refs[e] = x.ref;
		if (e % GROUP == GROUP - 1) to->pivots[e / GROUP] = x.sep;
	}
	if (e == size - 1) {
		((K *)next.seps)[place] = x.sep;
		next.used[place] = size;
		next.totals[place] = total;
	}
}

// rechunk writes what a chunk becomes, a block a chunk.
template <typename K> inline_device void rechunk(const Version &v, const Owned &o, const Slots &leaves, const Slots &chunks, const Next &next) {
	static __shared__ List<K> list;
	u32 c = blockIndex(), e = threadIndex(), place = next.become[c], slot = v.slots[c];
	Chunk<K> *chunk = chunkAt<K>(v, slot);
	u32 used = v.used[c], begin = o.chunkBegin[c], end = o.chunkEnd[c];
	if (begin == end) { // as it was
		if (e == 0) {
			((K *)next.seps)[place] = chunk->seps[used - 1];
			next.slots[place] = slot;
			next.used[place] = used;
			next.totals[place] = v.first[c + 1] - v.first[c];
		}
		return;
	}
	list.seps[e] = chunk->seps[e];
	list.refs[e] = chunk->refs[e];
	list.counts[e] = chunk->counts[e];
	list.touched[e] = NONE;
	__syncthreads();
	for (u32 t = begin + e; t < end; t += CHUNK) list.touched[o.home[t] % CHUNK] = t;
	__syncthreads();
	u32 t = list.touched[e], all;
	u32 mine = e >= used ? 0 : t == NONE ? 1 : piecesOf(v, o, t);
	list.start[e] = sumBlock(mine, &all);
	__syncthreads();
	u32 q = o.changed[c] ? chunkPieces(all) : 1, fresh = next.fresh[c];
	for (u32 i = 0; i < q; i++) {
		u32 to = slot;
		if (o.copy && o.changed[c]) to = chunks.take(fresh + i);
		else if (i > 0) to = chunks.take(fresh + i - 1);
		if (e == 0) next.slots[place + i] = to;
		u32 first = firstOf(i, all, q), size = firstOf(i + 1, all, q) - first;
		Entry<K> x = {most<K>(), 0, 0};
		if (e < size) x = entryAt(v, o, leaves, list, first + e);
		writeChunk(chunkAt<K>(v, to), x, size, !o.changed[c], next, place + i);
	}
}

// raise makes a level of separators of the one below, which has n.
template <typename K> inline_device void raise(const K *from, u32 n, K *to) {
	u32 i = thread();
	if (i < (n + GROUP - 1) / GROUP) to[i] = from[least(i * GROUP + GROUP - 1, n - 1)];
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

// give lists what a batch frees, before chunks are written over.
template <typename K> inline_device void give(const Version &v, const Owned &o, const Next &next, const Freed &freed) {
	u32 i = thread();
	bool leaf = i < o.n && i < o.touched() && (o.copy || piecesOf(v, o, i) == 0);
	u32 at = push(freed.counts, leaf);
	if (leaf) freed.leaves[at] = chunkOfHome<K>(v, o.home[i])->refs[o.home[i] % CHUNK];
	bool chunk = i < v.count && o.changed[i] && (o.copy || next.become[i + 1] == next.become[i]);
	at = push(freed.counts + 1, chunk);
	if (chunk) freed.chunks[at] = v.slots[i];
}

// A flat merge writes all of the tree anew: entry i of the result is in leaf
// i / LEAF_FILL.

// above gives the number of keys among [first, first+span) that are up to a key.
template <typename K> inline_device u32 above(const K *keys, u32 first, u32 span, K key) {
	while (span > 0) {
		u32 half = span / 2;
		if (keys[first + half] <= key) {
			first += half + 1;
			span -= half + 1;
		} else {
			span = half;
		}
	}
	return first;
}

// Flat is kernel.Flat in Go: entries that operations insert and remove, before
// each.
struct Flat {
	const u32 *homes, *acts, *inserts, *removes;
	u32 leaves, entries; // of the result
};

// flatMove moves the entries of a chunk, a block a chunk.
template <typename K> inline_device void flatMove(const Version &v, const Batch<K> &b, const Flat &f, const Slots &leaves) {
	static __shared__ u32 ops[CHUNK + 1]; // operations up to those of each leaf
	u32 c = blockIndex(), e = threadIndex(), used = v.used[c];
	const Chunk<K> *chunk = chunkAt<K>(v, v.slots[c]);
	if (e < used) ops[e + 1] = above(b.keys, 0, b.n, chunk->seps[e]);
	if (e == 0) ops[0] = c == 0 ? 0 : above(b.keys, 0, b.n, ((const K *)v.seps[v.levels - 1])[c - 1]);
	__syncthreads();
	u32 s = e % WARP;
	for (e /= WARP; e < used; e += CHUNK / WARP) {
		if (s >= chunk->counts[e]) continue;
		const Leaf<K> *leaf = leafAt<K>(v, chunk->refs[e]);
		K key = leaf->keys[s];
		u32 end = above(b.keys, ops[e], ops[e + 1] - ops[e], key), begin = end;
		if (end > ops[e] && b.keys[end - 1] == key) begin = key == 0 ? 0 : above(b.keys, ops[e], end - ops[e], (K)(key - 1));
		if (f.removes[end] != f.removes[begin]) continue;
		u32 at = v.first[c] + chunk->first[e] + s + f.inserts[begin] - f.removes[begin];
		Leaf<K> *to = leafAt<K>(v, leaves.take(at / LEAF_FILL));
		to->keys[at % LEAF_FILL] = key;
		to->vals[at % LEAF_FILL] = leaf->vals[s];
	}
}

// flatStore stores what operations set.
template <typename K> inline_device void flatStore(const Version &v, const Batch<K> &b, const Flat &f, const Slots &leaves) {
	u32 i = thread();
	if (i >= b.n) return;
	u32 act = f.acts[i] % 4, home = f.homes[i];
	if (act != INSERT && act != REPLACE) return;
	u32 at = v.first[chunkOf(home)] + chunkOfHome<K>(v, home)->first[home % CHUNK] + f.acts[i] / 4 + f.inserts[i] - f.removes[i];
	Leaf<K> *to = leafAt<K>(v, leaves.take(at / LEAF_FILL));
	if (act == INSERT) to->keys[at % LEAF_FILL] = b.keys[i];
	to->vals[at % LEAF_FILL] = b.vals[b.places[i]];
}

// flatChunks writes the chunks above, a block a chunk.
template <typename K> inline_device void flatChunks(const Version &v, const Flat &f, const Slots &leaves, const Slots &chunks, const Next &next) {
	u32 c = blockIndex(), e = threadIndex(), x = c * CHUNK_FILL + e, size = least(f.leaves - c * CHUNK_FILL, CHUNK_FILL);
	Entry<K> entry = {most<K>(), 0, 0};
	if (e < size) {
		bool last = x == f.leaves - 1;
		entry.ref = leaves.take(x);
		entry.count = last ? f.entries - x * LEAF_FILL : LEAF_FILL;
		if (!last) entry.sep = leafAt<K>(v, entry.ref)->keys[LEAF_FILL - 1];
	}
	u32 slot = chunks.take(c);
	if (e == 0) next.slots[c] = slot;
	writeChunk(chunkAt<K>(v, slot), entry, size, false, next, c);
}

// giveAll lists all leaves and chunks of a version, a block a chunk.
template <typename K> inline_device void giveAll(const Version &v, const Freed &freed) {
	u32 c = blockIndex(), e = threadIndex();
	bool leaf = e < v.used[c];
	u32 at = push(freed.counts, leaf);
	if (leaf) freed.leaves[at] = chunkAt<K>(v, v.slots[c])->refs[e];
	at = push(freed.counts + 1, e == 0);
	if (e == 0) freed.chunks[at] = v.slots[c];
}

// entries copies runs of entries out: see search.cu. A thread an entry finds its
// range, then the chunk and the leaf of its rank.
inline_device u32 lastUpTo(const u32 *first, u32 n, u32 x) {
	u32 r = 0;
	for (u32 span = n; span > 1;) {
		u32 half = span / 2;
		if (first[r + half] <= x) r += half;
		span -= half;
	}
	return r;
}

template <typename K> inline_device void entries(const Version &v, const u32 *first, const u32 *offsets, u32 ranges, u32 n, K *keys, K *vals) {
	u32 i = thread();
	if (i >= n) return;
	u32 r = lastUpTo(offsets, ranges, i), rank = first[r] + (i - offsets[r]);
	u32 c = lastUpTo(v.first, v.count, rank);
	const Chunk<K> *chunk = chunkAt<K>(v, v.slots[c]);
	u32 left = rank - v.first[c], e = 0;
	for (u32 span = v.used[c]; span > 1;) {
		u32 half = span / 2;
		if (chunk->first[e + half] <= left) e += half;
		span -= half;
	}
	const Leaf<K> *leaf = leafAt<K>(v, chunk->refs[e]);
	keys[i] = leaf->keys[left - chunk->first[e]];
	if (vals) vals[i] = leaf->vals[left - chunk->first[e]];
}

// Numbers is kernel.Numbers in Go: where numbers are that the host wants to know.
struct Numbers {
	const u32 *at[8];
};

#define CHUNKED(BITS) \
	typedef u##BITS K##BITS; \
	KERNEL chunkedFind##BITS(Version v, const K##BITS *keys, u32 n, K##BITS *vals, u32 *found) { find(v, keys, n, vals, found); } \
	KERNEL chunkedRank##BITS(Version v, const K##BITS *keys, u32 n, u32 after, u32 *ranks) { rank(v, keys, n, after, ranks); } \
	KERNEL chunkedEntries##BITS(Version v, const u32 *first, const u32 *offsets, u32 ranges, u32 n, K##BITS *keys, K##BITS *vals) { entries(v, first, offsets, ranges, n, keys, vals); } \
	KERNEL isChange##BITS(Batch<K##BITS> b, u32 *flags) { isChange(b, flags); } \
	KERNEL listChanges##BITS(Batch<K##BITS> b, u32 *change) { listChanges(b, change); } \
	KERNEL probe##BITS(Version v, Batch<K##BITS> b, u32 *homes, u32 *acts) { probe(v, b, homes, acts); } \
	KERNEL effects##BITS(Batch<K##BITS> b, const u32 *acts, const u32 *before, K##BITS *keys, K##BITS *vals, u8 *kinds) { effects(b, acts, before, keys, vals, kinds); } \
	KERNEL plan##BITS(Version v, Owned o) { plan<K##BITS>(v, o); } \
	KERNEL move##BITS(Version v, Owned o, const K##BITS *keys, Slots leaves) { move(v, o, keys, leaves); } \
	KERNEL store##BITS(Version v, Batch<K##BITS> b, Owned o, Slots leaves) { store(v, b, o, leaves); } \
	KERNEL give##BITS(Version v, Owned o, Next next, Freed freed) { give<K##BITS>(v, o, next, freed); } \
	KERNEL rechunk##BITS(Version v, Owned o, Slots leaves, Slots chunks, Next next) { rechunk<K##BITS>(v, o, leaves, chunks, next); } \
	KERNEL raise##BITS(const K##BITS *from, u32 n, K##BITS *to) { raise(from, n, to); } \
	KERNEL flatMove##BITS(Version v, Batch<K##BITS> b, Flat f, Slots leaves) { flatMove(v, b, f, leaves); } \
	KERNEL flatStore##BITS(Version v, Batch<K##BITS> b, Flat f, Slots leaves) { flatStore(v, b, f, leaves); } \
	KERNEL flatChunks##BITS(Version v, Flat f, Slots leaves, Slots chunks, Next next) { flatChunks<K##BITS>(v, f, leaves, chunks, next); } \
	KERNEL giveAll##BITS(Version v, Freed freed) { giveAll<K##BITS>(v, freed); }

CHUNKED(32)
CHUNKED(64)

KERNEL mark(const u32 *homes, const u32 *acts, u32 n, u32 *heads, u32 *inserts, u32 *removes) { markAll(homes, acts, n, heads, inserts, removes); }
KERNEL isEffect(const u32 *acts, u32 n, u32 *flags) { isEffectOf(acts, n, flags); }
KERNEL touch(Owned o) { touchAll(o); }
KERNEL planChunks(Version v, Owned o, u32 *become, u32 *fresh) { planAll(v, o, become, fresh); }

// tell puts n numbers, of 8 at most, side by side.
KERNEL tell(Numbers from, u32 n, u32 *to) {
	u32 i = threadIndex();
	unrolled for (int j = 0; j < 8; j++) {
		if (i == j && i < n) to[i] = *from.at[j];
	}
}

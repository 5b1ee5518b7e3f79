// Kernels of the chunked layout: searches, and batches of changes.
//
// A batch is sorted by key, stably, so that the operations on a leaf, and on a
// key, lie side by side. From then on a thread knows by prefix sums alone where
// what it has goes: see store. Nothing of the tree is written before the host
// has seen how much memory that takes.
#include "chunked.h"
#include "scan.h"

enum { GET, SET, DELETE };            // kinds of operations, as package bplus has them
enum { NOTHING, REPLACE, INSERT, REMOVE }; // what an operation does to the tree

inline_device u32 thread() { return blockIndex() * blockThreads() + threadIndex(); }

// find looks keys up.
template <typename K> inline_device void find(const Version &v, const K *keys, u32 n, K *vals, u32 *found) {
	eachPlace<Four<K>, true>(v, keys, n, [&](u64 q, u32, u32 ref, u32 pos, u32 hit) {
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
	eachPlace<Four<K>, true>(v, keys, n, [&](u64 q, u32 home, u32, u32 pos, u32 hit) {
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

	inlined u32 leafOf(u32 i) const { return heads[i + 1] - 1; }
	inlined u32 touched() const { return heads[n]; }

	// at gives the place of something in a leaf that is touched, among what the
	// leaf will have: pos entries are before it now, and so many of the batch's
	// inserts.
	inlined u32 at(u32 t, u32 pos, u32 insertsBefore) const {
		return pos - ones(removed[t] & bits(pos)) + insertsBefore - base[t];
	}
};

// What the host is told before anything is written, and behind it what counts.
enum Told { TOUCHED, LEAVES, CHUNKS, NEW_CHUNKS, FREED };

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

// quadAt loads four numbers, of n; behind the last there are zeros.
inline_device quad quadAt(const u32 *of, u32 at, u32 n) {
	if (at + PART <= n) return *(const quad *)(of + at);
	quad v = 0;
	unrolled for (u32 i = 0; i < PART; i++)
		if (at + i < n) v[i] = of[at + i];
	return v;
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

// plan says what each leaf that is touched, and each chunk, needs.
template <typename K> inline_device void plan(const Version &v, const Owned &o) {
	u32 t = thread(), touched = o.touched();
	if (t >= touched) return;
	u32 home = o.home[t], c = chunkOf(home), begin = o.begin[t], end = o.begin[t + 1], removed = o.removed[t];
	u32 left = t > 0 ? chunkOf(o.home[t - 1]) : NONE, right = t < touched - 1 ? chunkOf(o.home[t + 1]) : NONE;
	const Chunk<K> *chunk = chunkOfHome<K>(v, home);
	u32 base = o.inserts[begin], added = o.inserts[end] - base, count = chunk->counts[home % CHUNK], size = count - ones(removed) + added;
	bool last = c == v.count - 1 && home % CHUNK == v.used[c] - 1;
	u32 p = piecesOf(size, last);
	o.refs[t] = chunk->refs[home % CHUNK];
	o.counts[t] = count;
	o.base[t] = base;
	o.size[t] = size;
	o.need[t] = o.copy ? p : p > 0 ? p - 1 : 0;
	if (left != c) o.chunkBegin[c] = t;
	if (right != c) o.chunkEnd[c] = t + 1;
	if (p != 1) reduceRelaxed(o.grow + c, p - 1);
	if (p != 1 || o.copy) storeRelaxed(o.changed + c, (u32)1);
	if (p == 0 || o.copy) storeRelaxed(o.told + FREED, (u32)1);
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

// move moves the entries of the leaves that are touched to where they will be. A
// warp does each leaves, one after the other, and has all that it needs of the
// next one on its way. It has read a leaf before it writes to it.
template <typename K> inline_device void move(const Version &v, const Batch<K> &b, const Owned &o, const Slots &leaves, u32 each) {
	static __shared__ Shifts shifts[WARPS];
	Shifts &shift = shifts[warpIndex()];
	u32 first = thread() / WARP * each, s = laneIndex(), touched = o.touched();
	if (first >= touched) return;
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
}

// store stores what operations set, a thread each. The operations are in key
// order: so those before it that insert are those whose entries come before.
template <typename K> inline_device void store(const Version &v, const Batch<K> &b, const Owned &o, const Slots &leaves) {
	u32 i = thread();
	if (i >= o.n) return;
	u32 act = o.acts[i] % 4, t = o.leafOf(i);
	if (act != INSERT && act != REPLACE) return;
	u32 at = o.at(t, o.acts[i] / 4, o.inserts[i]);
	Leaf<K> *to = place<K>(v, o, leaves, t, o.refs[t], at);
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
	static __shared__ u32 sums[WARPS];
	__syncthreads();
	u32 sum = before(mine, sums);
	*all = 0;
	unrolled for (u32 w = 0; w < WARPS; w++) *all += sums[w];
	return sum;
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
template <typename K> inline_device void writeChunk(Chunk<K> *to, const Entry<K> &x, u32 size, const Next &next, u32 place) {
	u32 e = threadIndex(), total, before = sumBlock(x.count, &total);
	to->counts[e] = x.count;
	to->first[e] = before;
	to->seps[e] = x.sep;
	to->refs[e] = x.ref;
	if (e % GROUP == GROUP - 1) to->pivots[e / GROUP] = x.sep;
	if (e == size - 1) {
		((K *)next.seps)[place] = x.sep;
		next.used[place] = size;
		next.totals[place] = total;
	}
}

// recount writes the counts of a chunk whose leaves stay the same, a block a chunk.
template <typename K> inline_device void recount(const Version &v, const Owned &o, List<K> &list, const Next &next, u32 c) {
	u32 e = threadIndex(), place = next.become[c], used = v.used[c], total;
	Chunk<K> *chunk = chunkAt<K>(v, v.slots[c]);
	list.start[e] = chunk->counts[e];
	__syncthreads();
	for (u32 t = o.chunkBegin[c] + e; t < o.chunkEnd[c]; t += CHUNK) list.start[o.home[t] % CHUNK] = o.size[t];
	__syncthreads();
	u32 count = list.start[e], before = sumBlock(count, &total);
	chunk->counts[e] = count;
	chunk->first[e] = before;
	if (e > 0) return;
	((K *)next.seps)[place] = chunk->seps[used - 1];
	next.slots[place] = v.slots[c];
	next.used[place] = used;
	next.totals[place] = total;
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
	if (!o.changed[c]) {
		recount(v, o, list, next, c);
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
	u32 q = chunkPieces(all), fresh = next.fresh[c];
	for (u32 i = 0; i < q; i++) {
		u32 to = slot;
		if (o.copy) to = chunks.take(fresh + i);
		else if (i > 0) to = chunks.take(fresh + i - 1);
		if (e == 0) next.slots[place + i] = to;
		u32 first = firstOf(i, all, q), size = firstOf(i + 1, all, q) - first;
		Entry<K> x = {most<K>(), 0, 0};
		if (e < size) x = entryAt(v, o, leaves, list, first + e);
		writeChunk(chunkAt<K>(v, to), x, size, next, place + i);
	}
}

// Finish completes a version whose chunks are there: it adds up their entries,
// totals, and tells how many entries there are, and how much was freed.
struct Finish {
	const u32 *totals, *freed;
	u32 *first, *told;
	u32 n;

	inlined void take(u32 at, u32 (&v)[PART]) const {
		unrolled for (u32 i = 0; i < PART; i++) v[i] = at + i < n ? totals[at + i] : 0;
	}

	inlined void give(u32 at, u32 sum, const u32 (&v)[PART]) const {
		unrolled for (u32 i = 0; i < PART; i++) {
			if (at + i < n) first[at + i] = sum;
			sum += v[i];
		}
	}

	inlined void end(u32 all) const {
		told[0] = first[n] = all;
		told[1] = freed[0];
		told[2] = freed[1];
	}
};

// raise makes the upper levels of separators of the lowest.
template <typename K> inline_device void raise(const Version &v) {
	const K *from = (const K *)v.seps[v.levels - 1];
	u32 each = 1;
	for (u32 l = v.levels - 1; l > 0; l--) {
		each *= GROUP;
		u32 n = (v.count + each - 1) / each;
		for (u32 i = thread(); i < n; i += gridBlocks() * THREADS) ((K *)v.seps[l - 1])[i] = from[least(i * each + each - 1, v.count - 1)];
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

// cut gives, for each chunk, the operations up to those that fall on it, and
// counts the chunks with more than most.
template <typename K> inline_device void cut(const Version &v, const K *keys, u32 n, u32 *cuts, u32 most, u32 *over) {
	u32 c = thread();
	if (c >= v.count) return;
	const K *seps = (const K *)v.seps[v.levels - 1];
	u32 end = c == v.count - 1 ? n : above(keys, 0, n, seps[c]), begin = c == 0 ? 0 : above(keys, 0, n, seps[c - 1]);
	cuts[c] = end;
	if (end - begin > most) reduceRelaxed(over, (u32)1);
}

// Flat is kernel.Flat in Go: what a flat merge knows of operations.
struct Flat {
	const u32 *cuts; // of chunks
	u32 *ends;       // of leaves, 256 a chunk: the operations up to those on it
	u32 *acts;       // of operations
	u32 *shifts;     // entries inserted before each, less those removed
	u32 leaves, entries; // of the result

	inlined u32 cutBefore(u32 c) const { return c == 0 ? 0 : cuts[c - 1]; }
};

// find gives the number of the leaf's count keys below q, of which lane s has
// number s, and whether q is there. The lanes of a warp call it together.
template <typename K> inline_device u32 findIn(K key, u32 count, K q, bool *hit) {
	u32 pos = 0;
	unrolled for (u32 by = LEAF / 2; by > 0; by /= 2) {
		K k = shuffle(key, pos + by - 1);
		if (pos + by <= count && k < q) pos += by;
	}
	K k = shuffle(key, pos); // at most the last
	if (pos < count && k < q) pos++;
	k = shuffle(key, least(pos, LEAF - 1));
	*hit = pos < count && k == q;
	return pos;
}

// weigh is probe where most leaves have operations: a block a chunk, a warp a
// leaf.
template <typename K> inline_device void weigh(const Version &v, const Batch<K> &b, const Flat &f) {
	static __shared__ u32 ends[CHUNK];
	u32 c = blockIndex(), e = threadIndex(), s = laneIndex(), used = v.used[c], from = f.cutBefore(c), to = f.cuts[c];
	const Chunk<K> *chunk = chunkAt<K>(v, v.slots[c]);
	if (e < used) f.ends[c * CHUNK + e] = ends[e] = e == used - 1 ? to : above(b.keys, from, to - from, chunk->seps[e]);
	__syncthreads();
	for (e = warpIndex(); e < used; e += WARPS) {
		u32 begin = e ? ends[e - 1] : from, end = ends[e], count = chunk->counts[e];
		if (begin == end) continue;
		const Leaf<K> *leaf = leafAt<K>(v, chunk->refs[e]);
		K key = s < count ? leaf->keys[s] : 0;
		for (u32 i = begin; i < end; i += WARP) {
			bool there = i + s < end, hit;
			u32 pos = findIn(key, count, there ? b.keys[i + s] : 0, &hit);
			if (there) f.acts[i + s] = pos * 4 + answer(b, i + s, leaf, pos, hit);
		}
	}
}

// Deltas adds up how much longer operations make the tree.
struct Deltas {
	const u32 *acts;
	u32 *shifts, *told;
	u32 n;

	inlined void take(u32 at, u32 (&v)[PART]) const {
		quad act = quadAt(acts, at, n);
		unrolled for (u32 i = 0; i < PART; i++) v[i] = at + i < n ? (act[i] % 4 == INSERT) - (act[i] % 4 == REMOVE) : 0;
	}

	inlined void give(u32 at, u32 sum, const u32 (&v)[PART]) const {
		if (at + PART <= n) {
			*(quad *)(shifts + at) = quad{sum, sum + v[0], sum + v[0] + v[1], sum + v[0] + v[1] + v[2]};
			return;
		}
		unrolled for (u32 i = 0; i < PART; i++) {
			if (at + i < n) shifts[at + i] = sum;
			sum += v[i];
		}
	}

	inlined void end(u32 all) const { *told = shifts[n] = all; }
};

// flatWrite writes what the entries and operations of a chunk come to, a block a
// chunk, a warp a leaf.
template <typename K> inline_device void flatWrite(const Version &v, const Batch<K> &b, const Flat &f, const Slots &leaves) {
	static __shared__ Shifts shifts[WARPS];
	u32 c = blockIndex(), s = laneIndex(), used = v.used[c];
	const Chunk<K> *chunk = chunkAt<K>(v, v.slots[c]);
	const u32 *ends = f.ends + c * CHUNK;
	Shifts &shift = shifts[warpIndex()];
	for (u32 e = warpIndex(); e < used; e += WARPS) {
		u32 begin = e ? ends[e - 1] : f.cutBefore(c), end = ends[e], count = chunk->counts[e];
		u32 first = v.first[c] + chunk->first[e];
		const Leaf<K> *leaf = leafAt<K>(v, chunk->refs[e]);
		K key = s < count ? leaf->keys[s] : 0, val = s < count ? leaf->vals[s] : 0;
		u32 removed = 0;
		shift.clear(s);
		for (u32 i = begin; i < end; i += WARP) {
			u32 act = i + s < end ? f.acts[i + s] : NOTHING, pos = act / 4;
			if (act % 4 == INSERT) shift.add(pos, 1);
			if (act % 4 == REMOVE) shift.add(pos + 1, ~(u32)0);
			removed |= act % 4 == REMOVE ? 1u << pos : 0;
		}
		u32 by = shift.at(s);
		if (begin < end) unrolled for (u32 x = 1; x < WARP; x *= 2) removed |= shuffleXor(removed, x);
		if (s < count && !(removed >> s & 1)) {
			u32 at = first + f.shifts[begin] + s + by;
			Leaf<K> *to = leafAt<K>(v, leaves.take(at / LEAF_FILL));
			to->keys[at % LEAF_FILL] = key;
			to->vals[at % LEAF_FILL] = val;
		}
		syncWarp(ALL);
		for (u32 i = begin + s; i < end; i += WARP) {
			u32 act = f.acts[i] % 4;
			if (act != INSERT && act != REPLACE) continue;
			u32 at = first + f.acts[i] / 4 + f.shifts[i];
			Leaf<K> *to = leafAt<K>(v, leaves.take(at / LEAF_FILL));
			if (act == INSERT) to->keys[at % LEAF_FILL] = b.keys[i];
			to->vals[at % LEAF_FILL] = b.vals[b.places[i]];
		}
	}
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
	writeChunk(chunkAt<K>(v, slot), entry, size, next, c);
}

// giveAll lists all leaves and chunks of a version, a block a chunk.
template <typename K> inline_device void giveAll(const Version &v, const Freed &freed) {
	static __shared__ u32 first;
	u32 c = blockIndex(), e = threadIndex(), used = v.used[c];
	if (e == 0) {
		first = addRelaxed(freed.counts, used);
		freed.chunks[addRelaxed(freed.counts + 1, (u32)1)] = v.slots[c];
	}
	__syncthreads();
	if (e < used) freed.leaves[first + e] = chunkAt<K>(v, v.slots[c])->refs[e];
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

// Searches wait for memory: four blocks fit on a multiprocessor, with at most 64
// registers a thread.
#define SEARCH extern "C" __global__ launch_bounds(256, 4) void

#define CHUNKED(BITS) \
	typedef u##BITS K##BITS; \
	SEARCH chunkedFind##BITS(Version v, const K##BITS *keys, u32 n, K##BITS *vals, u32 *found) { find(v, keys, n, vals, found); } \
	SEARCH chunkedRank##BITS(Version v, const K##BITS *keys, u32 n, u32 after, u32 *ranks) { rank(v, keys, n, after, ranks); } \
	KERNEL chunkedEntries##BITS(Version v, const u32 *first, const u32 *offsets, u32 ranges, u32 n, K##BITS *keys, K##BITS *vals) { entries(v, first, offsets, ranges, n, keys, vals); } \
	SEARCH probe##BITS(Version v, Batch<K##BITS> b, u32 *homes, u32 *acts) { probe(v, b, homes, acts); } \
	KERNEL effects##BITS(Batch<K##BITS> b, const u32 *acts, K##BITS *keys, K##BITS *vals, u8 *kinds, u32 *told, u32 *ticket, u64 *reports) { scan<u32>(Effects<K##BITS>{b, acts, keys, vals, kinds, told}, ticket, reports); } \
	KERNEL plan##BITS(Version v, Owned o) { plan<K##BITS>(v, o); } \
	KERNEL move##BITS(Version v, Batch<K##BITS> b, Owned o, Slots leaves, u32 each) { move(v, b, o, leaves, each); } \
	KERNEL store##BITS(Version v, Batch<K##BITS> b, Owned o, Slots leaves) { store(v, b, o, leaves); } \
	KERNEL give##BITS(Version v, Owned o, Next next, Freed freed) { give<K##BITS>(v, o, next, freed); } \
	KERNEL rechunk##BITS(Version v, Owned o, Slots leaves, Slots chunks, Next next) { rechunk<K##BITS>(v, o, leaves, chunks, next); } \
	KERNEL finish##BITS(Version v, const u32 *totals, const u32 *freed, u32 *told, u32 *ticket, u64 *reports) { \
		raise<K##BITS>(v); \
		scan<u32>(Finish{totals, freed, (u32 *)v.first, told, v.count}, ticket, reports); \
	} \
	KERNEL cut##BITS(Version v, const K##BITS *keys, u32 *cuts, u32 *over, u32 n, u32 most) { cut(v, keys, n, cuts, most, over); } \
	KERNEL weigh##BITS(Version v, Batch<K##BITS> b, Flat f) { weigh(v, b, f); } \
	KERNEL flatWrite##BITS(Version v, Batch<K##BITS> b, Flat f, Slots leaves) { flatWrite(v, b, f, leaves); } \
	KERNEL flatChunks##BITS(Version v, Flat f, Slots leaves, Slots chunks, Next next) { flatChunks<K##BITS>(v, f, leaves, chunks, next); } \
	KERNEL giveAll##BITS(Version v, Freed freed) { giveAll<K##BITS>(v, freed); }

CHUNKED(32)
CHUNKED(64)

KERNEL changes(const u32 *places, const u8 *kinds, u32 *sums, u32 *list, u32 *ticket, u64 *reports, u32 n) { scan<u32>(Changes{places, kinds, sums, list, n}, ticket, reports); }
KERNEL owns(Owned o, u32 *ticket, u64 *reports) { scan<u64>(Owns{o}, ticket, reports); }

// sums adds up what plan found: the first tiles blocks for leaves, the others for
// chunks.
KERNEL sums(Version v, Owned o, u32 *become, u32 *fresh, u32 *ticket, u64 *reports, u32 *ticket2, u64 *reports2, u32 tiles) {
	if (blockIndex() < tiles) scan<u32>(Needs{o, o.touched()}, ticket, reports, tiles);
	else scan<u64>(PlanChunks{v, o, become, fresh}, ticket2, reports2, gridBlocks() - tiles);
}

KERNEL deltas(const u32 *acts, u32 *shifts, u32 *told, u32 *ticket, u64 *reports, u32 n) { scan<u32>(Deltas{acts, shifts, told, n}, ticket, reports); }

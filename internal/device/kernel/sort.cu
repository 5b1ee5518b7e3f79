// A stable radix sort of keys with their places, after Adinets and Merrill's
// "Onesweep" (2022): one kernel counts the digits of all passes, then each pass
// reads and writes everything once. A pass is cut into tiles, one a block. A tile
// learns how many keys of each digit are in the tiles before it by looking back
// at their reports while they are still at work. A few keys are sorted by one block.
#include "block.h"

enum {
	DIGITS = THREADS, // a digit has up to 8 bits; thread d is responsible for digit d
	MAX_PASSES = 8,
	COUNT_EACH = 8, // keys that a thread has on their way at once while it counts
};

typedef u32 quad __attribute__((ext_vector_type(4)));

template <typename K> inline_device u32 digitOf(K key, u32 at, u32 mask) { return (u32)(key >> at) & mask; }

inline_device void increment(u32 *shared) { __atomic_fetch_add(shared, 1u, __ATOMIC_RELAXED); }

// count adds how often each digit occurs, in each pass, to counts, and clears the
// reports of the first pass: quads of 4 words. Where keys differ in bits from to
// on, it sets failed, if there is one.
template <typename K> inline_device void count(const K *keys, u32 *counts, quad *reports, u32 *failed, u32 n, u32 quads, u32 from, u32 to, u32 width, u32 passes) {
	__shared__ u32 found[MAX_PASSES * DIGITS];
	for (u32 i = threadIndex(); i < passes * DIGITS; i += THREADS) found[i] = 0;
	for (u32 i = blockIndex() * THREADS + threadIndex(); i < quads; i += gridBlocks() * THREADS) reports[i] = 0;
	syncBlock();
	K above = to < 8 * sizeof(K) ? keys[0] >> to : 0;
	bool same = true;
	for (u32 first = blockIndex() * THREADS * COUNT_EACH; first < n; first += gridBlocks() * THREADS * COUNT_EACH) {
		K key[COUNT_EACH];
		u32 mine = first + threadIndex();
		unrolled for (u32 i = 0; i < COUNT_EACH; i++) key[i] = keys[least(mine + i * THREADS, n - 1)];
		if (to < 8 * sizeof(K)) unrolled for (u32 i = 0; i < COUNT_EACH; i++) same &= key[i] >> to == above;
		for (u32 p = 0, at = from; p < passes; p++, at += width) {
			u32 mask = (1u << least(width, to - at)) - 1;
			unrolled for (u32 i = 0; i < COUNT_EACH; i++)
				if (mine + i * THREADS < n) increment(&found[p * DIGITS + digitOf(key[i], at, mask)]);
		}
	}
	syncBlock();
	if (failed && !same) storeRelaxed(failed, (u32)1);
	for (u32 i = threadIndex(); i < passes * DIGITS; i += THREADS)
		if (found[i]) reduceRelaxed(counts + i, found[i]);
}

// like gives the lanes whose digit has the same bit as this lane's.
template <u32 BIT> inline_device u32 like(u32 digit) {
	u32 lanes;
	asm volatile("{ .reg .pred p; and.b32 %0, %1, %2; setp.ne.u32 p, %0, 0; vote.sync.ballot.b32 %0, p, 0xffffffff; @!p not.b32 %0, %0; }"
		     : "=&r"(lanes) : "r"(digit), "n"(BIT));
	return lanes;
}

// matching gives the lanes with the same digit. Votes on its bits take the same
// time whatever the digits are; match.any takes longer the more there are.
inline_device u32 matching(u32 d) {
	return like<1>(d) & like<2>(d) & like<4>(d) & like<8>(d) & like<16>(d) & like<32>(d) & like<64>(d) & like<128>(d);
}

// Pass is what a pass reads and writes.
template <typename K> struct Pass {
	const K *keys;
	const u32 *places; // null: the place of key i is i
	K *keysTo;
	u32 *placesTo;
	const u32 *counts; // of each digit
	u32 *reports;      // DIGITS words a tile
	u32 *clear;        // the reports of the next pass; null: there is none
	u32 n;
	u32 at, mask; // the digit: key >> at & mask

	inlined u32 digit(K key) const { return digitOf(key, at, mask); }
};

// Room is a block's shared memory.
template <typename K, u32 ITEMS> struct Room {
	enum { TILE = ITEMS * THREADS };
	K keys[TILE]; // in the order of their digits, as are places
	u32 places[TILE];
	u32 counts[WARPS][DIGITS]; // of each warp; then where its next key of a digit goes
	u32 shift[DIGITS];         // from a place in the tile to one in the output
	u32 sums[2][WARPS];
	u32 tile;
};

// Tile is a block's part of a pass, as a thread sees it: each warp has keys that
// stand side by side, item i of its lanes those 32 from i·32 on.
template <typename K, u32 ITEMS, u32 LOOK> struct Tile {
	enum { TILE = ITEMS * THREADS };
	typedef Report<u32> R;
	const Pass<K> &p;
	Room<K, ITEMS> &room;
	u32 tile, first; // its number, and its first key
	u32 rank[ITEMS]; // the places of the items in the sorted tile

	inlined Tile(const Pass<K> &p, Room<K, ITEMS> &room) : p(p), room(room), tile(room.tile), first(room.tile * TILE) {}

	// full says whether there is a key for every item. Then nothing is compared
	// on the way, so that loads and stores overlap.
	inlined bool full() const { return p.n - first >= TILE; }

	inlined u32 item(u32 i) const { return first + (warpIndex() * ITEMS + i) * WARP + laneIndex(); }

	// take loads the keys. Behind the last there are ones: as they are the last
	// of the last tile and have the highest digit, they come behind all others.
	inlined void take(K (&key)[ITEMS]) const {
		if (full()) {
			unrolled for (u32 i = 0; i < ITEMS; i++) key[i] = p.keys[item(i)];
			return;
		}
		unrolled for (u32 i = 0; i < ITEMS; i++) key[i] = item(i) < p.n ? p.keys[item(i)] : ~(K)0;
	}

	inlined void takePlaces(u32 (&place)[ITEMS]) const {
		if (!p.places) {
			unrolled for (u32 i = 0; i < ITEMS; i++) place[i] = item(i);
		} else if (full()) {
			unrolled for (u32 i = 0; i < ITEMS; i++) place[i] = p.places[item(i)];
		} else {
			unrolled for (u32 i = 0; i < ITEMS; i++) place[i] = item(i) < p.n ? p.places[item(i)] : 0;
		}
	}

	// countDigits gives how many keys of the tile have this thread's digit, and
	// lets counts have those of the warps before each.
	inlined u32 countDigits(const K (&key)[ITEMS]) const {
		unrolled for (u32 i = 0; i < ITEMS; i++) increment(&room.counts[warpIndex()][p.digit(key[i])]);
		syncBlock();
		u32 sum = 0;
		unrolled for (u32 w = 0; w < WARPS; w++) {
			u32 c = room.counts[w][threadIndex()];
			room.counts[w][threadIndex()] = sum;
			sum += c;
		}
		return sum;
	}

	inlined u32 *report(u32 of) const { return p.reports + (u64)of * DIGITS + threadIndex(); }

	// announce reports the tile's own count. The first tile knows what is before
	// it: all keys with lower digits, of which others learn by its report.
	inlined u32 announce(u32 own) const {
		if (tile) {
			storeRelaxed(report(tile), R::own(own));
			return 0;
		}
		u32 lower = before(p.counts[threadIndex()], room.sums[1]);
		storeRelaxed(report(tile), R::upTo(lower + own));
		return lower;
	}

	// order ranks the keys and puts them in their order. start is where this
	// thread's digit begins in the tile.
	inlined void order(const K (&key)[ITEMS], u32 start) {
		unrolled for (u32 w = 0; w < WARPS; w++) room.counts[w][threadIndex()] += start;
		syncBlock();
		u32 lower = (1u << laneIndex()) - 1;
		unrolled for (u32 i = 0; i < ITEMS; i++) {
			u32 digit = p.digit(key[i]), same = matching(digit), at = 0;
			if (!(same & lower)) { // the first of them counts for all
				u32 *next = &room.counts[warpIndex()][digit];
				at = *next;
				*next = at + __builtin_popcount(same);
			}
			if (i + 1 < ITEMS) syncWarp(ALL); // the next item's first may be another lane
			rank[i] = shuffle(at, __builtin_ctz(same)) + __builtin_popcount(same & lower);
			room.keys[rank[i]] = key[i];
		}
	}

	// lookBack gives how many keys come before the tile's first of this thread's
	// digit, and reports it. It reads several reports at once, since all tiles
	// that run have mostly come to this point together.
	inlined u32 lookBack(u32 own) const {
		u32 sum = 0;
		for (u32 t = tile;;) { // tiles from t on are in sum
			u32 words[LOOK];
			unrolled for (u32 i = 0; i < LOOK; i++) words[i] = loadRelaxed(report(t > i ? t - 1 - i : 0));
			bool known = true;
			unrolled for (u32 i = 0; i < LOOK; i++) {
				known &= words[i] != 0;
				if (!known) continue;
				sum += R::countOf(words[i]);
				t--;
				if (R::isUpTo(words[i])) {
					storeRelaxed(report(tile), R::upTo(sum + own));
					return sum;
				}
			}
		}
	}

	// give writes the sorted tile: keys of a digit stand side by side there, too.
	inlined void give() const {
		if (full()) {
			unrolled for (u32 i = 0; i < ITEMS; i++) put(i * THREADS + threadIndex());
			return;
		}
		for (u32 at = threadIndex(); at < p.n - first; at += THREADS) put(at);
	}

	inlined void put(u32 at) const {
		K key = room.keys[at];
		u32 to = at + room.shift[p.digit(key)];
		p.keysTo[to] = key;
		p.placesTo[to] = room.places[at];
	}
};

// pass sorts by one digit.
template <typename K, u32 ITEMS, u32 LOOK> inline_device void pass(const Pass<K> &p, u32 *ticket) {
	__shared__ Room<K, ITEMS> room;
	takeTicket(ticket, room.tile);
	unrolled for (u32 w = 0; w < WARPS; w++) room.counts[w][threadIndex()] = 0;
	syncBlock();
	Tile<K, ITEMS, LOOK> t(p, room);
	K key[ITEMS];
	u32 place[ITEMS];
	t.take(key);
	if (p.clear) p.clear[(u64)t.tile * DIGITS + threadIndex()] = 0;
	u32 own = t.countDigits(key);
	u32 all = t.announce(own);
	u32 start = before(own, room.sums[0]);
	t.order(key, start);
	t.takePlaces(place); // on their way while others are waited for
	if (t.tile) all = t.lookBack(own);
	room.shift[threadIndex()] = all - start;
	unrolled for (u32 i = 0; i < ITEMS; i++) room.places[t.rank[i]] = place[i];
	syncBlock();
	t.give();
}

// spread sets the bits of both words that keys differ in, from the first key: the
// lower half of a key and the upper one.
inline_device void spread(const u64 *keys, u32 n, u32 *bits) {
	u64 first = keys[0], mine = 0;
	u32 at = blockIndex() * THREADS + threadIndex(), all = gridBlocks() * THREADS;
	for (; at + 3 * (u64)all < n; at += 4 * all) mine |= keys[at] ^ first | keys[at + all] ^ first | keys[at + 2 * all] ^ first | keys[at + 3 * all] ^ first;
	for (; at < n; at += all) mine |= keys[at] ^ first;
	unrolled for (u32 by = 1; by < WARP; by *= 2) mine |= shuffleXor(mine, by);
	if (laneIndex()) return;
	unrolled for (u32 half = 0; half < 2; half++)
		asm volatile("red.relaxed.gpu.global.or.b32 [%0], %1;" ::"l"(bits + half), "r"((u32)(mine >> 32 * half)) : "memory");
}

enum { MENDED = 32 }; // keys that mend orders at most

// mend completes a sort of keys that are in the order of their bits from some bit
// on: it orders those side by side that have the same ones, stably. More than
// MENDED of them stay as they are, and where they were not in order, failed is
// set.
inline_device void mend(const u64 *keys, const u32 *places, u64 *keysTo, u32 *placesTo, u32 *failed, u32 n, u32 from) {
	u32 i = blockIndex() * THREADS + threadIndex(), begin = i, end = i + 1, at = i;
	if (i >= n) return;
	u64 key = keys[i], part = key >> from;
	while (begin > 0 && i - begin < MENDED && keys[begin - 1] >> from == part) begin--;
	while (end < n && end - begin <= MENDED && keys[end] >> from == part) end++;
	if (end - begin > MENDED) {
		if (i > begin && keys[i - 1] > key) storeRelaxed(failed, (u32)1);
	} else {
		at = begin;
		for (u32 j = begin; j < end; j++) at += keys[j] < key || (keys[j] == key && j < i);
	}
	keysTo[at] = key;
	placesTo[at] = places[i];
}

// few sorts up to FEW keys, by all of their bits, in one block, to where they are:
// a bitonic sort of pairs, each of a key and its number, so that equal keys stay
// in their order. Other blocks, if there are any, clear quads of 4 words meanwhile.
enum { FEW = 2048 };

template <typename K> inline_device void few(K *keys, const u32 *places, u32 *placesTo, quad *clear, u32 n, u32 quads) {
	__shared__ K key[FEW];
	__shared__ u32 number[FEW];
	if (blockIndex() > 0) {
		for (u32 i = (blockIndex() - 1) * THREADS + threadIndex(); i < quads; i += (gridBlocks() - 1) * THREADS) clear[i] = 0;
		return;
	}
	u32 all = 1;
	while (all < n) all *= 2;
	for (u32 i = threadIndex(); i < all; i += THREADS) {
		key[i] = i < n ? keys[i] : ~(K)0;
		number[i] = i;
	}
	for (u32 run = 2; run <= all; run *= 2) {
		for (u32 by = run / 2; by > 0; by /= 2) {
			syncBlock();
			for (u32 i = threadIndex(); i < all / 2; i += THREADS) {
				u32 a = 2 * i - (i & (by - 1)), b = a + by;
				K x = key[a], y = key[b];
				u32 p = number[a], q = number[b];
				bool above = x > y || (x == y && p > q), down = a & run;
				if (above == down) continue;
				key[a] = y, key[b] = x;
				number[a] = q, number[b] = p;
			}
		}
	}
	syncBlock();
	u32 mine[FEW / THREADS];
	unrolled for (u32 j = 0; j < FEW / THREADS; j++) {
		u32 i = threadIndex() + j * THREADS;
		if (i < n) mine[j] = places ? places[number[i]] : number[i];
	}
	syncBlock(); // all have read their places
	unrolled for (u32 j = 0; j < FEW / THREADS; j++) {
		u32 i = threadIndex() + j * THREADS;
		if (i >= n) continue;
		keys[i] = key[i];
		placesTo[i] = mine[j];
	}
}

// At least 4 blocks fit on a multiprocessor: at most 64 registers a thread.
#define KERNEL extern "C" __global__ launch_bounds(256, 4) void

#define COUNT(BITS) \
	KERNEL sortCount##BITS(const u##BITS *keys, u32 *counts, quad *reports, u32 *failed, u32 n, u32 quads, u32 from, u32 to, u32 width, u32 passes) { \
		count(keys, counts, reports, failed, n, quads, from, to, width, passes); \
	}

#define PASS(NAME, BITS, ITEMS, LOOK) \
	KERNEL NAME(const u##BITS *keys, const u32 *places, u##BITS *keysTo, u32 *placesTo, u32 *ticket, const u32 *counts, u32 *reports, u32 *clear, u32 n, u32 at, u32 mask) { \
		pass<u##BITS, ITEMS, LOOK>(Pass<u##BITS>{keys, places, keysTo, placesTo, counts, reports, clear, n, at, mask}, ticket); \
	}

COUNT(32)
COUNT(64)

// Few keys are cut into small tiles, so that more of the device has work; then
// nearly all of them run at once, and more reports are read at a time.
PASS(sortFew32, 32, 4, 16)
PASS(sortFew64, 64, 4, 16)
PASS(sortMany32, 32, 16, 8)
PASS(sortMany64, 64, 12, 8)

KERNEL sortOnce32(u32 *keys, const u32 *places, u32 *placesTo, quad *clear, u32 n, u32 quads) { few(keys, places, placesTo, clear, n, quads); }
KERNEL sortOnce64(u64 *keys, const u32 *places, u32 *placesTo, quad *clear, u32 n, u32 quads) { few(keys, places, placesTo, clear, n, quads); }

KERNEL sortSpread64(const u64 *keys, u32 *bits, u32 n) { spread(keys, n, bits); }
KERNEL sortMend64(const u64 *keys, const u32 *places, u64 *keysTo, u32 *placesTo, u32 *failed, u32 n, u32 from) { mend(keys, places, keysTo, placesTo, failed, n, from); }

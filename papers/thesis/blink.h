// A B-link tree that many tiles change and search at once: the latched tree of
// Duong's thesis (2021), after Lehman and Yao. docs/latches.md has the protocol,
// what each part of it is for, and what was proven of it.
//
// A node has ORDER pairs, one or more for each lane of the tile that works on
// it:
//
//	  0  word  u64   latch 1 | level 5 | count 10 | version 48 bits
//	  8  high        the greatest key that may be here, or below
//	 16  next  u32   the node of greater keys on the same level; 0 for none
//	 24  low         the least key that may be here, or below; it never changes
//	 32  keys        ORDER of them, ascending, count in use
//	     vals        ORDER of them: values, or numbers of nodes
//
// In an inner node a key is the greatest that its child may have, so that a
// search counts the keys below its own and is there; the last one is the node's
// own high key. No key is reserved. The root is node 0 and stays there: when it
// is full, its halves move to two new nodes.
//
// Everything in a node is read and written by strong accesses of one size, since
// readers take no latch: they read the word, the pairs, and the word again. A
// version is never used twice, so that a latch that is taken by
// compare-and-swap on the word that was read also says that nothing has changed
// since.
#pragma once
#include "ordered.h"

enum { HEAD = 32, ROOT = 0 };

// What a tree does, as bits of Blink.how.
enum How {
	LINKS = 1, // side links are followed; without, a B+-tree begins again at the root where it meets a latch or would follow one
	PEEKS = 2, // inner nodes below the root are read once, and not looked at again
	TOPS = 4,  // a block copies the root once, when it begins
};
static const u64 LATCH = 1, VERSION = 1 << 16;

inline_device u32 levelOf(u64 word) { return (u32)(word >> 1) & 31; }
inline_device u32 countOf(u64 word) { return (u32)(word >> 6) & 1023; }
inline_device u64 wordOf(u32 level, u32 count) { return VERSION | (u64)count << 6 | level << 1; }

// Blink is a tree in memory: struct Blink of blink.go, field by field.
struct Blink {
	u8 *nodes;
	u32 *state;   // nodes in use, then whether one was missing
	u32 capacity; // nodes
	u32 how;      // How
};

// What an operation does, and what becomes of it.
enum Kind { GET, SET, DELETE };
enum Outcome { ABSENT, FOUND, NO_ROOM };

// Part is a part of the protocol. Tests leave one out at a time: each is there
// because a seed fails without it.
enum Part {
	ALL_PARTS,
	READ_ACQUIRE,  // the first read of the word orders those of the pairs
	READ_LATCH,    // a node with a latch is not read
	READ_FENCE,    // the second read of the word comes after the pairs
	READ_AGAIN,    // the word must be the same both times
	READ_AGREE,    // and the same for all lanes
	HIGH_KEY,      // a key above the high key is further right
	LEAF_LATCH,    // a leaf is changed under its latch
	CHILD_LATCH,   // so is a node that is split
	PARENT_LATCH,  // so is its parent
	PARENT_LOOK,   // the parent still has the node, and room
	WRITE_MEET,    // all lanes write after the one that took the latch
	WRITE_FENCE,   // who reads what they write also reads the latch
	GIVE_MEET,     // the latch is given back after all have written
	GIVE_RELEASE,  // and to someone who sees that
	GIVE_VERSION,  // with another version
	LOW_KEY,       // a key below the low key is further left
	PEEK_ACQUIRE,  // who reads the number of a node also reads what it had first
	PEEK_MEET,     // and so do the other lanes
	NEW_MEET,      // the number is written after what all lanes have written there
	NEW_FENCE,     // and not seen before
	NEW_CLEAR,     // slots without a pair have the number of no other node
};

// Top is a root with children, as it once was. Its children never go away, and
// what has moved from them since is further right.
template <typename K, int ORDER> struct Top {
	K key[ORDER];
	u32 val[ORDER], count, level;
};

// Whole is the protocol with all its parts.
struct Whole {
	inlined bool has(Part) const { return true; }
};

// Tile is LANES lanes of a warp that work on one operation at a time.
template <typename K, int LANES, int PER, typename P> struct Tile {
	enum { ORDER = LANES * PER, HALF = ORDER / 2, BYTES = HEAD + 2 * ORDER * sizeof(K) };

	Blink t;
	P parts;
	u32 lane, base, mask; // lane in the tile, the tile's first lane in the warp, its lanes

	inlined Tile(const Blink &tree, P p) : t(tree), parts(p) {
		u32 in = threadIndex() % WARP;
		lane = in % LANES;
		base = in - lane;
		mask = (LANES == WARP ? ALL : (1u << LANES % WARP) - 1) << base;
	}

	// Node is what was read of one: this lane's pairs, slots lane, lane+LANES...
	struct Node {
		u64 word;
		K high, low;
		u32 next;
		K key[PER], val[PER];
	};

	inlined u64 *word(u32 n) const { return (u64 *)(t.nodes + (u64)n * BYTES); }
	inlined K *high(u32 n) const { return (K *)(t.nodes + (u64)n * BYTES + 8); }
	inlined u32 *next(u32 n) const { return (u32 *)(t.nodes + (u64)n * BYTES + 16); }
	inlined K *low(u32 n) const { return (K *)(t.nodes + (u64)n * BYTES + 24); }
	inlined K *key(u32 n, u32 slot) const { return (K *)(t.nodes + (u64)n * BYTES + HEAD) + slot; }
	inlined K *val(u32 n, u32 slot) const { return key(n, ORDER + slot); }
	inlined u32 slot(int j) const { return j * LANES + lane; }

	inlined u32 votes(bool v) const { return __nvvm_vote_ballot_sync(mask, v); }
	inlined u32 from(u32 v, u32 l) const { return __nvvm_shfl_sync_idx_i32(mask, v, base + l, 31); }
	inlined u64 from(u64 v, u32 l) const { return (u64)from((u32)(v >> 32), l) << 32 | from((u32)v, l); }
	inlined bool leads() const { return lane == 0; }

	// pick returns what a slot has.
	inlined K pick(const K (&v)[PER], u32 slot) const {
		K x = v[0];
		for (int j = 1; j < PER; j++) x = slot / LANES == j ? v[j] : x;
		return from(x, slot % LANES);
	}
	// before and behind set to to what the slots before and behind have.
	inlined void before(const K (&v)[PER], K (&to)[PER]) const {
		for (int j = PER - 1; j >= 0; j--) {
			to[j] = from(v[j], (lane + LANES - 1) % LANES);
			if (j < PER - 1 && lane == 0) to[j + 1] = to[j];
		}
	}
	inlined void behind(const K (&v)[PER], K (&to)[PER]) const {
		for (int j = 0; j < PER; j++) {
			to[j] = from(v[j], (lane + 1) % LANES);
			if (j > 0 && lane == LANES - 1) to[j - 1] = to[j];
		}
	}
	// upper sets to to what the slots HALF further up have.
	inlined void upper(const K (&v)[PER], K (&to)[PER]) const {
		for (int j = 0; j < PER; j++) to[j] = PER == 1 ? from(v[0], (lane + HALF) % LANES) : v[(j + PER / 2) % PER];
	}

	// below counts the keys of a node that are below one.
	inlined u32 below(const Node &n, K k) const {
		u32 c = 0;
		for (int j = 0; j < PER; j++) c += __builtin_popcount(votes(slot(j) < countOf(n.word) && n.key[j] < k));
		return c;
	}
	inlined bool holds(const Node &n, K k) const {
		bool yes = false;
		for (int j = 0; j < PER; j++) yes = yes || (slot(j) < countOf(n.word) && n.key[j] == k);
		return votes(yes) != 0;
	}

	// read reads a node without its latch, and reports whether it has read one
	// state of it. Each lane reads the word for itself: that is one access of the
	// tile, and orders the lane's own.
	inlined bool read(u32 at, Node &n) const {
		n.word = parts.has(READ_ACQUIRE) ? loadAcquire(word(at)) : loadRelaxed(word(at));
		n.high = loadRelaxed(high(at));
		n.low = loadRelaxed(low(at));
		n.next = loadRelaxed(next(at));
		for (int j = 0; j < PER; j++) {
			n.key[j] = loadRelaxed(key(at, slot(j)));
			n.val[j] = loadRelaxed(val(at, slot(j)));
		}
		if (parts.has(READ_FENCE)) fence();
		bool good = !parts.has(READ_AGAIN) || loadRelaxed(word(at)) == n.word;
		if (parts.has(READ_LATCH)) good = good && !(n.word & LATCH);
		u64 first = from(n.word, 0);
		if (!parts.has(READ_AGREE)) n.word = first;
		return votes(good && n.word == first) == mask;
	}

	// peek finds the node to go on with below or beside an inner one, which is not
	// the root, in one round of loads that need no order: what it reads may be of
	// several states. All of them have numbers of nodes of the level below, which
	// never go away, and whoever comes too far to the left follows side links, too
	// far to the right sees so by the low key of the leaf. It reports whether the
	// node seemed to be full, and sets down to whether it went down.
	inlined bool peek(u32 at, K k, u32 &to, bool &down) const {
		Node n;
		n.word = loadRelaxed(word(at));
		n.high = loadRelaxed(high(at));
		for (int j = 0; j < PER; j++) n.key[j] = loadRelaxed(key(at, slot(j)));
		for (int j = 0; j < PER; j++) n.val[j] = parts.has(PEEK_ACQUIRE) ? loadAcquire(val(at, slot(j))) : loadRelaxed(val(at, slot(j)));
		down = votes(k > n.high) == 0;
		if (!down) n.val[0] = parts.has(PEEK_ACQUIRE) ? loadAcquire(next(at)) : loadRelaxed(next(at));
		to = (u32)pick(n.val, down ? below(n, k) % ORDER : 0);
		if (parts.has(PEEK_MEET)) syncWarp(mask);
		return votes(countOf(n.word) == ORDER) != 0;
	}

	// take tries to latch a node that has this word. It never waits: a tile that
	// waited with a latch in hand could wait for one of its own warp.
	inlined bool take(u32 at, u64 was) const {
		u32 won = 0;
		if (leads()) won = casRelaxed(word(at), was, was | LATCH) == was;
		return from(won, 0);
	}
	// undo gives a latch back under which nothing was written. Whoever reads this
	// word must see what was written before it, and does: read has acquired that,
	// and its fence makes a release of the store.
	inlined void undo(u32 at, u64 was) const {
		if (leads()) storeRelaxed(word(at), was);
	}
	// open begins the writes under latches, close ends them.
	inlined void open() const {
		if (parts.has(WRITE_MEET)) syncWarp(mask);
		if (parts.has(WRITE_FENCE)) fence();
	}
	// show begins the writes that lead others to a new node.
	inlined void show() const {
		if (!(t.how & PEEKS)) return;
		if (parts.has(NEW_MEET)) syncWarp(mask);
		if (parts.has(NEW_FENCE)) fence();
	}
	inlined void close() const {
		if (parts.has(GIVE_MEET)) syncWarp(mask);
	}
	inlined void give(u32 at, u64 was, u32 level, u32 count) const {
		u64 now = wordOf(level, count) + (parts.has(GIVE_VERSION) ? was & ~(VERSION - 1) : 0);
		if (!leads()) return;
		if (parts.has(GIVE_RELEASE)) storeRelease(word(at), now);
		else storeRelaxed(word(at), now);
	}

	inlined void storeKey(u32 at, int j, K k) const { storeRelaxed(key(at, slot(j)), k); }
	inlined void storeVal(u32 at, int j, K v) const { storeRelaxed(val(at, slot(j)), v); }

	// insert puts a key into its slot, and a value into its own, which for a
	// separator is the next one.
	inlined void insert(u32 at, const Node &n, u32 keySlot, K k, u32 valSlot, K v) const {
		K keys[PER], vals[PER];
		before(n.key, keys);
		before(n.val, vals);
		u32 count = countOf(n.word);
		for (int j = 0; j < PER; j++) {
			u32 s = slot(j);
			if (s >= keySlot && s <= count) storeKey(at, j, s == keySlot ? k : keys[j]);
			if (s >= valSlot && s <= count) storeVal(at, j, s == valSlot ? v : vals[j]);
		}
	}
	inlined void remove(u32 at, const Node &n, u32 p) const {
		K keys[PER], vals[PER];
		behind(n.key, keys);
		behind(n.val, vals);
		for (int j = 0; j < PER; j++) {
			if (slot(j) < p || slot(j) + 1 >= countOf(n.word)) continue;
			storeKey(at, j, keys[j]);
			storeVal(at, j, vals[j]);
		}
	}

	// fresh returns the first of some nodes that nobody uses, 0 if there are
	// none left.
	inlined u32 fresh(u32 count) const {
		u32 at = 0;
		if (leads() && loadRelaxed(&t.state[0]) + count <= t.capacity) {
			at = addRelaxed(&t.state[0], count);
			if (at + count > t.capacity) at = 0;
		}
		return from(at, 0);
	}
	// fill writes a new node of half the pairs, from slot 0 on.
	inlined void fill(u32 at, u32 level, K down, K up, u32 right, const K (&keys)[PER], const K (&vals)[PER]) const {
		for (int j = 0; j < PER; j++) {
			bool there = slot(j) < HALF;
			if (there) storeKey(at, j, keys[j]);
			if (there || parts.has(NEW_CLEAR)) storeVal(at, j, there ? vals[j] : ROOT);
		}
		if (!leads()) return;
		storeRelaxed(low(at), down);
		storeRelaxed(high(at), up);
		storeRelaxed(next(at), right);
		storeRelaxed(word(at), wordOf(level, HALF));
	}

	// grow gives the root, which is full, two children in its place, and reports
	// whether there was memory.
	inlined bool grow(const Node &n) const {
		if (!take(ROOT, n.word)) return true;
		u32 left = fresh(2), level = levelOf(n.word);
		if (!left) {
			undo(ROOT, n.word);
			return false;
		}
		K keys[PER], vals[PER], middle = pick(n.key, HALF - 1);
		upper(n.key, keys);
		upper(n.val, vals);
		open();
		fill(left, level, 0, middle, left + 1, n.key, n.val);
		fill(left + 1, level, middle + 1, n.high, 0, keys, vals);
		if (slot(0) < 2) {
			storeKey(ROOT, 0, lane == 0 ? middle : n.high);
			storeVal(ROOT, 0, left + lane);
		}
		close();
		give(ROOT, n.word, level + 1, 2);
		return true;
	}

	// split moves the upper half of a full node to a new one, and tells its
	// parent. Both are latched, the child first, since the parent has more
	// visitors. It sets at to where k belongs now, to the root if parent is not
	// the parent any more, or has no room, and reports whether there was memory.
	inlined bool split(u32 &at, u32 parent, const Node &n, K k) const {
		Node p;
		u32 child = at;
		if (!read(parent, p)) return true;
		u32 i = below(p, k);
		if (parts.has(PARENT_LOOK) && (k > p.high || countOf(p.word) == ORDER || pick(p.val, i % ORDER) != child)) {
			at = ROOT;
			return true;
		}
		if (parts.has(CHILD_LATCH) && !take(child, n.word)) return true;
		if (parts.has(PARENT_LATCH) && !take(parent, p.word)) {
			undo(child, n.word);
			return true;
		}
		u32 right = fresh(1), level = levelOf(n.word);
		if (!right) {
			undo(child, n.word);
			undo(parent, p.word);
			return false;
		}
		K keys[PER], vals[PER], middle = pick(n.key, HALF - 1);
		upper(n.key, keys);
		upper(n.val, vals);
		open();
		fill(right, level, middle + 1, n.high, n.next, keys, vals);
		show();
		if (leads()) {
			storeRelaxed(high(child), middle);
			storeRelaxed(next(child), right);
		}
		insert(parent, p, i, middle, i + 1, right);
		close();
		give(parent, p.word, level + 1, countOf(p.word) + 1);
		give(child, n.word, level, HALF);
		at = k > middle ? right : child;
		return true;
	}

	// change carries out an operation on a leaf that was read, which needs its
	// latch, and reports whether it got it. p is the key's slot.
	inlined bool change(u32 at, const Node &n, Kind kind, K k, K v, u32 p, bool there) const {
		if (parts.has(LEAF_LATCH) && !take(at, n.word)) return false;
		u32 count = countOf(n.word);
		open();
		if (kind == DELETE) {
			remove(at, n, p);
			count--;
		} else if (there) {
			for (int j = 0; j < PER; j++)
				if (slot(j) == p) storeVal(at, j, v);
		} else {
			insert(at, n, p, k, p, v);
			count++;
		}
		close();
		give(at, n.word, 0, count);
		return true;
	}

	// keep copies the root. It takes one tile of a block, and the others wait.
	inlined void keep(Top<K, ORDER> &top) const {
		Node n;
		while (!read(ROOT, n)) {}
		for (int j = 0; j < PER; j++) {
			top.key[slot(j)] = n.key[j];
			top.val[slot(j)] = (u32)n.val[j];
		}
		if (!leads()) return;
		top.count = countOf(n.word);
		top.level = levelOf(n.word);
	}
	// start returns the node in which a search begins, and sets its level.
	inlined u32 start(const Top<K, ORDER> &top, K k, u32 &level) const {
		level = 0;
		if (!(t.how & TOPS) || !top.level) return ROOT;
		u32 c = 0;
		for (int j = 0; j < PER; j++) c += __builtin_popcount(votes(slot(j) < top.count && top.key[slot(j)] < k));
		level = top.level - 1;
		return top.val[c % ORDER];
	}

	// run carries out an operation. It begins at the root, or at a node that start
	// has returned, with its level. v is the value to set, and becomes the one
	// that was there. There is one loop for everything that can fail, and each
	// round of it gives back what latches it took: a tile that goes round never
	// keeps another one of its warp from going on.
	inlined Outcome run(Kind kind, K k, K &v, u32 at = ROOT, u32 level = 0) const {
		u32 parent = ROOT;
		bool room = true;
		for (;;) {
			if ((t.how & PEEKS) && level && at != ROOT) {
				bool down;
				u32 to;
				bool full = peek(at, k, to, down);
				if (!full || kind != SET || !room || !down) {
					if (down) parent = at, level--;
					at = down || (t.how & LINKS) ? to : ROOT;
					continue;
				}
			}
			Node n;
			if (!read(at, n)) {
				if (!(t.how & LINKS)) at = ROOT;
				continue;
			}
			level = levelOf(n.word);
			if (parts.has(HIGH_KEY) && k > n.high) {
				at = t.how & LINKS ? n.next : ROOT;
				continue;
			}
			if (parts.has(LOW_KEY) && k < n.low) {
				at = ROOT;
				continue;
			}
			u32 p = below(n, k);
			bool full = countOf(n.word) == ORDER, there = !level && holds(n, k);
			if (kind == SET && full && !there && room) {
				room = at == ROOT ? grow(n) : split(at, parent, n, k);
				continue;
			}
			if (level) {
				parent = at;
				at = (u32)pick(n.val, p % ORDER);
				level--;
				continue;
			}
			K was = there ? pick(n.val, p) : 0;
			if (kind == SET && full && !there) {
				if (leads()) storeRelaxed(&t.state[1], 1u);
				return NO_ROOM;
			}
			bool writes = kind == SET || (kind == DELETE && there);
			if (writes && !change(at, n, kind, k, v, p, there)) continue;
			v = was;
			return there ? FOUND : ABSENT;
		}
	}

	// range copies the entries of a range, at most limit of them, and returns how
	// many there are. It reads leaf after leaf, each at one moment.
	inlined u32 range(K low, K up, u32 limit, K *keys, K *vals) const {
		u32 at = ROOT, total = 0;
		if (low > up) return 0;
		for (;;) {
			Node n;
			if (!read(at, n)) continue;
			if (low > n.high) {
				at = n.next;
				continue;
			}
			if (levelOf(n.word)) {
				at = (u32)pick(n.val, below(n, low) % ORDER);
				continue;
			}
			total = least(limit, total + copy(n, low, up, total, limit, keys, vals));
			if (n.high >= up || total == limit) return total;
			low = n.high + 1;
			at = n.next;
		}
	}
	// copy copies the entries of a leaf that are in a range behind those that
	// there are, and returns how many it has.
	inlined u32 copy(const Node &n, K low, K up, u32 total, u32 limit, K *keys, K *vals) const {
		u32 first = below(n, low), some = 0;
		for (int j = 0; j < PER; j++) {
			bool in = slot(j) < countOf(n.word) && n.key[j] >= low && n.key[j] <= up;
			u32 to = total + slot(j) - first;
			some += __builtin_popcount(votes(in));
			if (!in || to >= limit) continue;
			keys[to] = n.key[j];
			vals[to] = n.val[j];
		}
		return some;
	}

	// each deals the operations of a launch: every lane loads one, and the tile
	// works on those of its lanes one after the other, in order.
	template <typename F> inlined void each(u32 n, F f) const {
		u32 first = (blockIndex() * blockThreads() + threadIndex()) - lane;
		if (first >= n) return;
		f(first + lane, least(LANES, n - first));
	}
};

// The chunked layout, as package chunked lays it out: what its kernels have in
// common.
//
//	leaf   keys[32] | vals[32]                   in ascending order, no gaps, no header
//	chunk  a node over up to 256 leaves          separators, references, counts
//	table  a version of the tree                 its chunks in order, a tree of separators above
//
// A separator is the greatest key that its leaf, or chunk, may hold; the last
// one is the greatest key there is. So the number of separators below a key is
// the child to go on to, as in the other layouts.
#pragma once
#include "block.h"
#include "warp.h"

typedef unsigned short u16;

enum {
	LEAF = 32,        // entries of a leaf
	CHUNK = 256,      // leaves of a chunk
	QUARTERS = 4,     // of a chunk
	LEVELS = 8,       // of the tree above the chunks
	LEAF_FILL = 28,   // entries of a leaf, where many are written anew
	CHUNK_FILL = 224, // leaves of a chunk, where many are written anew
};
static const u32 NONE = 0xffffffff;

// GROUP is the number of separators that are looked at together: a line.
template <typename K> constexpr u32 GROUP = LINE / sizeof(K);

template <typename K> struct Leaf {
	K keys[LEAF], vals[LEAF];
};

// Item is what a chunk has of a leaf, beside its separator.
struct alignas(8) Item {
	u32 ref;   // its slot
	u16 first; // entries of the chunk before it
	u16 count; // and its own
};

template <typename K> struct alignas(128) Chunk {
	K seps[CHUNK];              // the greatest key there is behind the last leaf
	K pivots[CHUNK / GROUP<K>]; // the last separator of each group
	Item items[CHUNK];

	// at gives an item, by one load.
	inlined Item at(u32 e) const { return __builtin_bit_cast(Item, *(const u64 *)(items + e)); }
	inlined void put(u32 e, Item x) { *(u64 *)(items + e) = __builtin_bit_cast(u64, x); }
};

static_assert(sizeof(Chunk<u32>) == 3200 && sizeof(Chunk<u64>) == 4352, "kernel.ChunkBytes in Go");

// Head is what the table has of a chunk for those who search: its slot, and the
// last separators of all its quarters but the last.
template <typename K> struct alignas(4 * sizeof(K)) Head {
	K tops[QUARTERS - 1], slot;
};

// Version is kernel.Version in Go: the tree at one time. Chunk c of the tree's
// order is in slot slots[c], and has used[c] leaves and first[c+1] - first[c]
// entries.
struct Version {
	u8 *leaves, *chunks;
	const u8 *seps[LEVELS]; // of each level, the root's first, in groups
	const u8 *heads;
	const u32 *slots, *used, *first;
	u32 levels, count; // count chunks
};

template <typename K> inline_device K most() { return ~(K)0; }

template <typename K> inline_device Leaf<K> *leafAt(const Version &v, u32 slot) { return (Leaf<K> *)v.leaves + slot; }

template <typename K> inline_device Chunk<K> *chunkAt(const Version &v, u32 slot) { return (Chunk<K> *)v.chunks + slot; }

// A home is a leaf's place in the tree's order: its chunk, times 256, and its
// number there.
inline_device u32 chunkOf(u32 home) { return home / CHUNK; }

template <typename K> inline_device Chunk<K> *chunkOfHome(const Version &v, u32 home) { return chunkAt<K>(v, v.slots[chunkOf(home)]); }

// bits gives a word whose lower n bits are set.
inline_device u32 bits(u32 n) { return n >= 32 ? ALL : (1u << n) - 1; }

inline_device u32 ones(u32 v) { return __builtin_popcount(v); }

// Where n things are shared among parts as evenly as can be: the first of a
// part, and the part of a thing.
inline_device u32 firstOf(u32 part, u32 n, u32 parts) { return (u64)part * n / parts; }
inline_device u32 partOf(u32 thing, u32 n, u32 parts) { return ((u64)(thing + 1) * parts - 1) / n; }

// Top is the upper levels of a version, as many as fit, in shared memory. They lie
// one behind the other, there as in the table.
template <typename K> struct Top {
	enum { KEYS = 2048, EACH = 16 / sizeof(K) };
	alignas(16) K keys[KEYS];

	// before gives the separators of all levels above one, or of all there are.
	static inlined u32 before(const Version &v, u32 l) {
		bool all = l == v.levels;
		u32 n = (v.seps[l - all] - v.seps[0]) / sizeof(K);
		return all ? n + (v.count + GROUP<K> - 1) / GROUP<K> * GROUP<K> : n;
	}

	// fill fills it, and gives the number of levels that are there. All threads of
	// a block call it.
	inlined u32 fill(const Version &v) {
		u32 l = 0;
		while (l < v.levels && before(v, l + 1) <= KEYS) l++;
		u32 n = l ? before(v, l) : 0;
		K part[KEYS / THREADS];
		unrolled for (u32 j = 0; j < KEYS / THREADS; j += EACH) {
			u32 i = j * THREADS + threadIndex() * EACH;
			if (i < n) load16((const K *)v.seps[0] + i, part + j);
		}
		unrolled for (u32 j = 0; j < KEYS / THREADS; j += EACH) {
			u32 i = j * THREADS + threadIndex() * EACH;
			if (i < n) unrolled for (u32 k = 0; k < EACH; k++) keys[i + k] = part[j + k];
		}
		__syncthreads();
		return l;
	}
};

// Places is where keys are in the tree: found by a tile for its queries. BLOCKS
// says how a leaf is read: block by block, which are fewer bytes, or at once,
// which is sooner done.
template <typename W, typename K, bool BLOCKS> struct Places {
	u32 home[W::TURNS]; // the leaf that the key belongs to
	u32 ref[W::TURNS];  // its slot
	u32 pos[W::TURNS];  // entries of the leaf that are below the key
	u32 hits;           // a bit for each key that is there

	// spread loads this lane's share of N*LANES keys, in pieces of 16 bytes: the
	// lanes of a tile take pieces side by side, so that each load is of whole
	// sectors. Key i of the share is number placeOf(i).
	enum { LANES = WARP / W::TILES, EACH = 16 / sizeof(K) };
	template <int N> inlined void spread(const W &w, const K *keys, K (&v)[N]) {
		unrolled for (int i = 0; i < N; i += EACH) load16(keys + (i * LANES + w.part * EACH), v + i);
	}
	static inlined u32 placeOf(const W &w, u32 i) { return i / EACH * EACH * LANES + w.part * EACH + i % EACH; }

	// child gives the number of separators of a group that are below each key.
	inlined void child(const W &w, const K *const (&group)[W::TURNS], const K (&keys)[W::TURNS], u32 (&counts)[W::TURNS]) {
		K v[W::TURNS][W::PART];
		unrolled for (int s = 0; s < W::TURNS; s++) spread(w, group[s], v[s]);
		w.below(v, keys, counts);
	}

	inlined Places(const W &w, const Version &v, const Top<K> &top, u32 levels, const K (&keys)[W::TURNS]) {
		const K *group[W::TURNS];
		u32 node[W::TURNS], count[W::TURNS];
		unrolled for (int s = 0; s < W::TURNS; s++) node[s] = 0;
		for (u32 l = 0; l < levels; l++) {
			u32 first = top.before(v, l);
			K k[W::TURNS][W::PART];
			unrolled for (int s = 0; s < W::TURNS; s++) {
				unrolled for (int i = 0; i < W::PART; i++) k[s][i] = top.keys[first + node[s] * GROUP<K> + placeOf(w, i)];
			}
			w.below(k, keys, count);
			unrolled for (int s = 0; s < W::TURNS; s++) node[s] = node[s] * GROUP<K> + count[s];
		}
		for (u32 l = levels; l < v.levels; l++) {
			unrolled for (int s = 0; s < W::TURNS; s++) group[s] = (const K *)v.seps[l] + node[s] * GROUP<K>;
			child(w, group, keys, count);
			unrolled for (int s = 0; s < W::TURNS; s++) node[s] = node[s] * GROUP<K> + count[s];
		}
		const Chunk<K> *chunk[W::TURNS];
		u32 at[W::TURNS];
		unrolled for (int s = 0; s < W::TURNS; s++) node[s] = least(node[s], v.count - 1);
		quarter(w, v, node, keys, chunk, at);
		unrolled for (int s = 0; s < W::TURNS; s++) group[s] = chunk[s]->pivots + (at[s] *= CHUNK / GROUP<K> / QUARTERS);
		child(w, group, keys, count);
		unrolled for (int s = 0; s < W::TURNS; s++) {
			at[s] = least(at[s] + count[s], CHUNK / GROUP<K> - 1) * GROUP<K>;
			group[s] = chunk[s]->seps + at[s];
		}
		child(w, group, keys, count);
		unrolled for (int s = 0; s < W::TURNS; s++) {
			at[s] = least(at[s] + count[s], CHUNK - 1);
			home[s] = node[s] * CHUNK + at[s];
			Item item = chunk[s]->at(at[s]);
			ref[s] = item.ref;
			count[s] = item.count;
		}
		if constexpr (BLOCKS) {
			unrolled for (int s = 0; s < W::TURNS; s++) pos[s] = guess(*chunk[s], at[s], count[s], keys[s]);
			inBlocks(w, v, keys, count);
		} else {
			inLeaf(w, v, keys, count);
		}
	}

	// quarter gives chunks, and the quarter of each that a key is in. Where all pivots
	// of a chunk are one group, that does not matter.
	inlined void quarter(const W &w, const Version &v, const u32 (&node)[W::TURNS], const K (&keys)[W::TURNS], const Chunk<K> *(&chunk)[W::TURNS], u32 (&counts)[W::TURNS]) {
		static_assert(LANES == QUARTERS, "a lane has one part of a head");
		enum { ONE = CHUNK / GROUP<K> <= GROUP<K> };
		K part[W::TURNS];
		unrolled for (int s = 0; s < W::TURNS; s++) part[s] = ((const K *)((const Head<K> *)v.heads + node[s]))[w.part];
		unrolled for (int s = 0; s < W::TURNS; s++) {
			counts[s] = !ONE && w.part < QUARTERS - 1 && part[s] < keys[s];
			chunk[s] = chunkAt<K>(v, shuffle((u32)part[s], w.tile * LANES + QUARTERS - 1));
		}
		if (!ONE) w.total(counts);
	}

	// guess gives where in leaf e, of so many entries, a key is if keys lie evenly
	// between the separators.
	static inlined u32 guess(const Chunk<K> &chunk, u32 e, u32 count, K key) {
		K low = chunk.seps[e ? e - 1 : 0], span = chunk.seps[e] - low;
		if (span == 0) return count / 2; // the chunk's first leaf
		float part;
		asm("div.approx.f32 %0, %1, %2;" : "=f"(part) : "f"((float)(key - low)), "f"((float)span));
		return (u32)(part * (float)count);
	}

	// inBlocks looks at the leaves, of so many entries, block by block, from the
	// one on that has the entry at pos.
	inlined void inBlocks(const W &w, const Version &v, const K (&keys)[W::TURNS], const u32 (&count)[W::TURNS]) {
		enum { BLOCK = LANES * EACH };
		u32 block[W::TURNS], open = (1u << W::TURNS) - 1, left = open, right = open; // which are still open, and may go left, or right
		hits = 0;
		unrolled for (int s = 0; s < W::TURNS; s++) block[s] = least(pos[s], count[s] - (count[s] > 0)) / BLOCK;
		while (ballot(open != 0)) {
			K k[W::TURNS][EACH];
			u32 below[W::TURNS];
			unrolled for (int s = 0; s < W::TURNS; s++) {
				if (open >> s & 1) load16(leafAt<K>(v, ref[s])->keys + (block[s] * BLOCK + w.part * EACH), k[s]);
			}
			unrolled for (int s = 0; s < W::TURNS; s++) {
				bool same = false;
				below[s] = 0;
				unrolled for (int i = 0; i < EACH; i++) {
					bool there = open >> s & 1 && block[s] * BLOCK + w.part * EACH + i < count[s];
					below[s] += there && k[s][i] < keys[s];
					same |= there && k[s][i] == keys[s];
				}
				hits |= (u32)w.any(same) << s;
			}
			w.total(below);
			unrolled for (int s = 0; s < W::TURNS; s++) {
				if (!(open >> s & 1)) continue;
				pos[s] = block[s] * BLOCK + below[s];
				if (below[s] == BLOCK && pos[s] < count[s] && right >> s & 1) {
					block[s]++;
					left &= ~(1u << s);
				} else if (below[s] == 0 && block[s] > 0 && left >> s & 1) {
					block[s]--;
					right &= ~(1u << s);
				} else {
					open &= ~(1u << s);
				}
			}
		}
	}

	// inLeaf looks at the leaves, of so many entries.
	inlined void inLeaf(const W &w, const Version &v, const K (&keys)[W::TURNS], const u32 (&count)[W::TURNS]) {
		enum { MINE = LEAF / LANES };
		K k[W::TURNS][MINE];
		hits = 0;
		unrolled for (int s = 0; s < W::TURNS; s++) spread(w, leafAt<K>(v, ref[s])->keys, k[s]);
		unrolled for (int s = 0; s < W::TURNS; s++) {
			bool same = false;
			pos[s] = 0;
			unrolled for (int i = 0; i < MINE; i++) {
				bool there = placeOf(w, i) < count[s];
				pos[s] += there && k[s][i] < keys[s];
				same |= there && k[s][i] == keys[s];
			}
			hits |= (u32)w.any(same) << s;
		}
		w.total(pos);
	}

	// own gives each lane what belongs to its own queries.
	inlined void own(const W &w, u32 (&homes)[W::OWN], u32 (&refs)[W::OWN], u32 (&at)[W::OWN], u32 (&hit)[W::OWN]) const {
		u32 yes[W::TURNS];
		unrolled for (int s = 0; s < W::TURNS; s++) yes[s] = hits >> s & 1;
		w.collect(home, homes);
		w.collect(ref, refs);
		w.collect(pos, at);
		w.collect(yes, hit);
	}
};

// eachPlace runs over all keys, and calls at for each with its number, its
// home, the slot of its leaf, its place there and whether it is there; the lanes
// of a warp call it together, with numbers that may be n and more.
template <typename W, bool BLOCKS, typename K, typename F> inline_device void eachPlace(const Version &v, const K *keys, u32 n, F at) {
	static __shared__ Top<K> top;
	u32 levels = top.fill(v);
	W w;
	for (Rounds<W> r; r.first < n; r.next()) {
		K key[W::TURNS];
		w.take(keys, r.first, n, key);
		Places<W, K, BLOCKS> places(w, v, top, levels, key);
		u32 home[W::OWN], ref[W::OWN], pos[W::OWN], hit[W::OWN];
		places.own(w, home, ref, pos, hit);
		unrolled for (int i = 0; i < W::OWN; i++) at(r.first + i * WARP + w.lane, home[i], ref[i], pos[i], hit[i]);
	}
}

template <typename K> using Four = Warp<K, 4, 32>; // four lanes a query

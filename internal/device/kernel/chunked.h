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
#include "ordered.h"
#include "warp.h"

typedef unsigned short u16;

enum {
	LEAF = 32,        // entries of a leaf
	CHUNK = 256,      // leaves of a chunk
	GROUP = 16,       // separators that are looked at together
	LEVELS = 7,       // of the tree above the chunks
	LEAF_FILL = 28,   // entries of a leaf, where many are written anew
	CHUNK_FILL = 224, // leaves of a chunk, where many are written anew
};
static const u32 NONE = 0xffffffff;

template <typename K> struct Leaf {
	K keys[LEAF], vals[LEAF];
};

template <typename K> struct Chunk {
	K pivots[CHUNK / GROUP]; // the last separator of each group
	K seps[CHUNK];           // the greatest key there is behind the last leaf
	u32 refs[CHUNK];         // slots of the leaves
	u16 first[CHUNK];        // entries of the chunk before each leaf
	u8 counts[CHUNK];        // entries of each leaf
};

// Version is kernel.Version in Go: the tree at one time. Chunk c of the tree's
// order is in slot slots[c], and has used[c] leaves and first[c+1] - first[c]
// entries.
struct Version {
	u8 *leaves, *chunks;
	const u8 *seps[LEVELS]; // of each level, the root's first; 16 and 16 belong together
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

// Top is the upper levels of a version, as many as fit, in shared memory.
template <typename K> struct Top {
	enum { KEYS = 1024 };
	K keys[KEYS];

	// fill fills it, and gives the number of levels that are there. All threads of
	// a block call it.
	inlined u32 fill(const Version &v) {
		u32 at = 0, l = 0;
		for (; l < v.levels; l++) {
			u32 n = room(v, l);
			if (at + n > KEYS) break;
			for (u32 i = threadIndex(); i < n; i += blockThreads()) keys[at + i] = ((const K *)v.seps[l])[i];
			at += n;
		}
		__syncthreads();
		return l;
	}

	// room gives the separators of a level, with those behind the last up to the
	// end of a group.
	static inlined u32 room(const Version &v, u32 l) {
		u32 by = 4 * (v.levels - 1 - l); // 16 to the power of the levels below
		u32 n = (v.count + (1u << by) - 1) >> by;
		return (n + GROUP - 1) / GROUP * GROUP;
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
		for (u32 l = 0, first = 0; l < levels; first += top.room(v, l++)) {
			K k[W::TURNS][W::PART];
			unrolled for (int s = 0; s < W::TURNS; s++) {
				unrolled for (int i = 0; i < W::PART; i++) k[s][i] = top.keys[first + node[s] * GROUP + placeOf(w, i)];
			}
			w.below(k, keys, count);
			unrolled for (int s = 0; s < W::TURNS; s++) node[s] = node[s] * GROUP + count[s];
		}
		for (u32 l = levels; l < v.levels; l++) {
			unrolled for (int s = 0; s < W::TURNS; s++) group[s] = (const K *)v.seps[l] + node[s] * GROUP;
			child(w, group, keys, count);
			unrolled for (int s = 0; s < W::TURNS; s++) node[s] = node[s] * GROUP + count[s];
		}
		const Chunk<K> *chunk[W::TURNS];
		unrolled for (int s = 0; s < W::TURNS; s++) {
			node[s] = least(node[s], v.count - 1);
			chunk[s] = chunkAt<K>(v, v.slots[node[s]]);
			group[s] = chunk[s]->pivots;
		}
		u32 at[W::TURNS];
		child(w, group, keys, at);
		unrolled for (int s = 0; s < W::TURNS; s++) group[s] = chunk[s]->seps + (at[s] = least(at[s], CHUNK / GROUP - 1) * GROUP);
		child(w, group, keys, count);
		unrolled for (int s = 0; s < W::TURNS; s++) {
			at[s] = least(at[s] + count[s], CHUNK - 1);
			home[s] = node[s] * CHUNK + at[s];
			ref[s] = chunk[s]->refs[at[s]];
			count[s] = chunk[s]->counts[at[s]];
		}
		if constexpr (BLOCKS) inBlocks(w, v, keys, count);
		else inLeaf(w, v, keys, count);
	}

	// inBlocks looks at the leaves, of so many entries, block by block, from the
	// second of four on, or the first of two.
	inlined void inBlocks(const W &w, const Version &v, const K (&keys)[W::TURNS], const u32 (&count)[W::TURNS]) {
		enum { BLOCK = LANES * EACH, ALL_BLOCKS = LEAF / BLOCK, START = (ALL_BLOCKS - 1) / 2 };
		static_assert(START <= 1, "there is more than one block before the first that is looked at");
		u32 block[W::TURNS], open = (1u << W::TURNS) - 1; // which are still open
		hits = 0;
		unrolled for (int s = 0; s < W::TURNS; s++) block[s] = START, pos[s] = 0;
		for (int step = 0; step < ALL_BLOCKS - START && ballot(open != 0); step++) {
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
				bool left = below[s] == 0 && step == 0 && block[s] > 0, right = below[s] == BLOCK && block[s] + 1 < ALL_BLOCKS;
				if (left) block[s]--;
				else if (right) block[s]++;
				if (!left && (!right || (step > 0 && block[s] <= START))) open &= ~(1u << s);
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

template <typename K> using Four = Warp<K, 4, 32, GROUP>; // four lanes a query

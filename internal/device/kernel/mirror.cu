// Searches in a mirror of a regular B+-tree's inner nodes, as package mirror lays
// it out, and the update of single nodes.
//
//	node   0    index line: the last separator of each line but the last, then the maximum
//	       64   of a pilot: its leaf's word, low key, number, and whether it is the first
//	       128  64 separators
//	       …    of an upper node: 64 places (u32) of children in the mirror
//
// A pilot carries all that is needed to tell whether what it says is still so.
// Upper nodes may be of any age, and places may lead anywhere: they are cut to
// those there are, and a query that came to a pilot of other keys is told so.
#include "warp.h"

enum { FANOUT = 64, SEPS = 2 * LINE };

// STALE stands for the word of a leaf that cannot be told: it is locked and dead,
// which the CPU takes for no answer.
static const u64 STALE = 5;

// Mirror is kernel.Mirror in Go.
struct Mirror {
	const u8 *uppers, *pilots;
	u32 upperCount, pilotCount;
	u32 upperLines, pilotLines; // of a node
	u32 root, height;           // height 0: the root is a pilot
};

struct Info {
	u64 word, low;
	u32 leaf, first;
};

// step gives the number of separators of each node that are below its key.
template <typename W, typename K> inline_device void step(const W &w, const u8 *const (&node)[W::TURNS], const K (&keys)[W::TURNS], u32 (&at)[W::TURNS]) {
	enum { KEYS = LINE / sizeof(K) };
	K v[W::TURNS][W::PART];
	u32 line[W::TURNS];
	unrolled for (int s = 0; s < W::TURNS; s++) load((const K *)node[s] + w.part * W::PART, v[s]);
	w.below(v, keys, line);
	unrolled for (int s = 0; s < W::TURNS; s++) {
		line[s] = least(line[s], FANOUT / KEYS - 1);
		load((const K *)(node[s] + SEPS + line[s] * LINE) + w.part * W::PART, v[s]);
	}
	w.below(v, keys, at);
	unrolled for (int s = 0; s < W::TURNS; s++) at[s] += line[s] * KEYS;
}

// find takes keys down the mirror. places gets each key's leaf, times 256, plus
// the line of its block; words gets the word that the leaf had when that was so.
template <typename W, typename K> inline_device void find(const Mirror &m, const K *keys, u32 n, u64 *places, u64 *words) {
	W w;
	for (Rounds<W> r; r.first < n; r.next()) {
		K key[W::TURNS];
		const u8 *node[W::TURNS];
		u32 x[W::TURNS], at[W::TURNS];
		w.take(keys, r.first, n, key);
		unrolled for (int s = 0; s < W::TURNS; s++) x[s] = m.root;
		for (u32 l = 0; l < m.height; l++) {
			unrolled for (int s = 0; s < W::TURNS; s++) node[s] = m.uppers + (u64)least(x[s], m.upperCount - 1) * m.upperLines * LINE;
			step(w, node, key, at);
			unrolled for (int s = 0; s < W::TURNS; s++) x[s] = ((const u32 *)(node[s] + SEPS + FANOUT * sizeof(K)))[least(at[s], FANOUT - 1)];
		}
		unrolled for (int s = 0; s < W::TURNS; s++) {
			x[s] = least(x[s], m.pilotCount - 1);
			node[s] = m.pilots + (u64)x[s] * m.pilotLines * LINE;
		}
		step(w, node, key, at);
		u32 slot[W::OWN], line[W::OWN];
		w.collect(x, slot);
		w.collect(at, line);
		unrolled for (int i = 0; i < W::OWN; i++) {
			u64 q = r.first + i * WARP + w.lane;
			if (q >= n) continue;
			const Info *info = (const Info *)(m.pilots + (u64)slot[i] * m.pilotLines * LINE + LINE);
			bool inside = line[i] < FANOUT && (info->first == 1 || keys[q] > info->low);
			places[q] = (u64)info->leaf << 8 | line[i];
			words[q] = inside ? info->word : STALE;
		}
	}
}

// scatter copies nodes to their places in the mirror, a warp for each: from line
// moves[2i+1] of the copied ones to line moves[2i] of the mirror, where pilots
// begin with line pilots.
inline_device void scatter(u8 *to, const u8 *from, const u32 *moves, u32 n, u32 pilots, u32 upperLines, u32 pilotLines) {
	u32 lane = threadIndex() % WARP, warp = (blockIndex() * blockThreads() + threadIndex()) / WARP, warps = gridBlocks() * blockThreads() / WARP;
	for (u32 i = warp; i < n; i += warps) {
		u32 at = moves[2 * i], lines = at < pilots ? upperLines : pilotLines;
		u64 *dst = (u64 *)(to + (u64)at * LINE);
		const u64 *src = (const u64 *)(from + (u64)moves[2 * i + 1] * LINE);
		for (u32 j = lane; j < lines * (LINE / 8); j += WARP) dst[j] = src[j];
	}
}

typedef Warp<u32, 4, 32> Warp32;
typedef Warp<u64, 4, 32> Warp64;

KERNEL mirrorFind32(Mirror m, const u32 *keys, u32 n, u64 *places, u64 *words) { find<Warp32>(m, keys, n, places, words); }
KERNEL mirrorFind64(Mirror m, const u64 *keys, u32 n, u64 *places, u64 *words) { find<Warp64>(m, keys, n, places, words); }
KERNEL mirrorScatter(u8 *to, const u8 *from, const u32 *moves, u32 n, u32 pilots, u32 upperLines, u32 pilotLines) {
	scatter(to, from, moves, n, pilots, upperLines, pilotLines);
}

// Searches in the layouts of package blocked: rows of pages above implicit's
// leaves, and pages of packed keys below an implicit tree. What is above or
// below is left to the kernels of search.cu: a u32 for each query goes from one
// kernel to the next.
#include "warp.h"

// Row is kernel.Row in Go: pages of lines, one behind the other. A page is a
// tree of its own, its root first, level by level.
struct Row {
	u32 at;        // line of the first page
	u32 pageLines; // lines of a page
	u32 levels;    // levels of lines in a page
	u32 last;      // number of the last page
};

// Blocked is kernel.Blocked in Go. A line has 2^fan children; its slots hold
// their separators, and the maximum where there is none, so that all slots
// count. Behind the last row are the leaves, by their lines.
//
// A search may begin in the middle, as in struct Tree of search.cu: a level is
// a row here, and a node the number of a page in it.
struct Blocked {
	const u8 *base;
	const u32 *start; // null: all queries begin at the root
	u32 from, deep;
	u32 to, rows; // the row where a search ends; rows in all
	u32 fan, leaves, last;
	Row row[16];
};

// through takes a tile's queries through a row: from numbers of its pages to
// numbers of the next row's. The number of a line counts those of its level,
// over all pages. Pages and children are cut to those that there are: what is
// counted in a damaged tree stays inside.
template <typename W, typename K> inline_device void through(const W &w, const Blocked &t, const Row &row, const K (&keys)[W::TURNS], u32 (&node)[W::TURNS]) {
	for (int s = 0; s < W::TURNS; s++) node[s] = least(node[s], row.last);
	u32 above = 0, most = (1u << t.fan) - 1; // lines of a page above the level; greatest child
	for (u32 shift = 0, end = row.levels * t.fan; shift < end; shift += t.fan) {
		K v[W::TURNS][W::PART];
		u32 counts[W::TURNS], mask = (1u << shift) - 1;
		for (int s = 0; s < W::TURNS; s++)
			w.fetch(t, row.at + (node[s] >> shift) * row.pageLines + above + (node[s] & mask), v[s]);
		w.below(v, keys, counts);
		for (int s = 0; s < W::TURNS; s++) node[s] = (node[s] << t.fan) + least(counts[s], most);
		above = (above << t.fan) + 1;
	}
}

// down gives the page that each query has come to, or the line of its leaf.
template <typename W, typename K> inline_device void down(const Blocked &t, const K *keys, u32 n, u32 *nodes) {
	W w;
	for (Rounds<W> r; r.first < n; r.next()) {
		K key[W::TURNS];
		u32 node[W::TURNS], mine[W::OWN];
		w.take(keys, r.first, n, key);
		u32 from = w.begin(t, r.first, n, node);
		for (u32 l = from; l < t.to; l++) through(w, t, t.row[l], key, node);
		if (t.to == t.rows) {
			for (int s = 0; s < W::TURNS; s++) {
				if (from < t.rows) node[s] += t.leaves;
				node[s] = least(node[s], t.last);
			}
		}
		w.collect(node, mine);
		w.give(mine, r.first, n, nodes);
	}
}

// Packed is kernel.Packed in Go: pages of 16 groups of 16 keys. A page has an
// entry in the table: its least key, and where its words begin in units of 8
// bytes, times 256, plus the bits of a difference to that key. Its words are
// the differences of each group's greatest key, then those of all keys, bit
// by bit.
struct Packed {
	const u64 *table;
	const u64 *words;
	u64 end;     // words in all pages
	u32 last;    // number of the last page
	u32 entries; // keys in all, at least 1
};

enum { GROUP = 16, PAGE = GROUP * GROUP };

// Few is four differences of a group: what a lane of four looks at.
template <typename K> struct Few {
	u64 word[sizeof(K) == 8 ? 4 : 3]; // those that hold their bits
	u32 skip, bits;
	K v[4];

	// fetch loads the words of four differences, from number i of a page on. Not
	// a word is read that has none of their bits.
	inlined void fetch(const u64 *page, u32 width, u32 i) {
		bits = width;
		u32 at = i * bits;
		skip = at % 64;
		u32 end = skip + 4 * bits;
		for (int j = 0; j < sizeof(word) / 8; j++) word[j] = loadIf(page + at / 64 + j, end > 64 * j);
	}

	// unpack makes differences of the words: of 32 bits at most, or of 64, each
	// a word.
	inlined void unpack() {
		u64 mask = ((u64)1 << bits % 64) - 1;
		u64 a = word[0] >> skip | word[1] << 1 << (63 - skip);
		u64 b = word[1] >> skip | word[2] << 1 << (63 - skip);
		for (int j = 0; j < 4; j++) {
			v[j] = (K)(a & mask);
			if (sizeof(K) == 8 && bits == 64) v[j] = word[sizeof(K) == 8 ? j : 0];
			a = a >> bits % 64 | b << 1 << (63 - bits % 64);
			b >>= bits % 64;
		}
	}

	// below counts those below a difference.
	inlined u32 below(K d) {
		unpack();
		u32 n = 0;
		for (int j = 0; j < 4; j++) n += v[j] < d;
		return n;
	}

	inlined bool has(K d) const { return (v[0] == d) | (v[1] == d) | (v[2] == d) | (v[3] == d); }
};

// pageWords is the words of a page. What the table says of one is cut to what
// there may be: a damaged one leads nowhere else.
inline_device u32 pageWords(u32 bits) { return ((GROUP + PAGE) * bits + 63) / 64; }

inline_device u32 widthOf(const Packed &t, u32 bits) { return pageWords(bits) <= t.end ? bits : 0; }

inline_device u64 wordOf(const Packed &t, u64 word, u32 bits) {
	u64 most = t.end - pageWords(bits);
	return word < most ? word : most;
}

// packed takes queries from their pages to their ranks, and hands them on with
// a bit for each of a tile's queries whose key is there.
//
// A key below its page's least has the difference 0, as that has: so it comes
// to the page's begin. One above all comes to the page's end.
template <typename W, typename K, typename F> inline_device void packed(const Packed &t, const K *keys, u32 n, const u32 *pages, F give) {
	W w;
	for (Rounds<W> r; r.first < n; r.next()) {
		K d[W::TURNS];
		u32 page[W::TURNS], bits[W::TURNS], group[W::TURNS], rank[W::TURNS], hits = 0;
		const u64 *words[W::TURNS];
		bool under[W::TURNS];
		Few<K> few[W::TURNS];
		w.take(keys, r.first, n, d);
		w.take(pages, r.first, n, page);
		unrolled for (int s = 0; s < W::TURNS; s++) {
			page[s] = least(page[s], t.last);
			u64 entry[2];
			load16(t.table + 2 * (u64)page[s], entry);
			bits[s] = widthOf(t, entry[1] & 0xff);
			words[s] = t.words + wordOf(t, entry[1] >> 8, bits[s]);
			under[s] = d[s] < (K)entry[0];
			d[s] = under[s] ? 0 : d[s] - (K)entry[0];
		}
		unrolled for (int s = 0; s < W::TURNS; s++) few[s].fetch(words[s], bits[s], w.part * 4);
		unrolled for (int s = 0; s < W::TURNS; s++) group[s] = few[s].below(d[s]);
		w.total(group);
		unrolled for (int s = 0; s < W::TURNS; s++) {
			group[s] = group[s] < GROUP ? group[s] : GROUP - 1;
			few[s].fetch(words[s], bits[s], (1 + group[s]) * GROUP + w.part * 4);
		}
		unrolled for (int s = 0; s < W::TURNS; s++) {
			rank[s] = few[s].below(d[s]);
			hits |= (u32)w.any(!under[s] & few[s].has(d[s])) << s;
		}
		w.total(rank);
		for (int s = 0; s < W::TURNS; s++) rank[s] += page[s] * PAGE + group[s] * GROUP;
		give(w, r.first, rank, hits);
	}
}

template <typename W, typename K> inline_device void packedRank(const Packed &t, const K *keys, u32 n, const u32 *pages, u32 *ranks) {
	packed<W>(t, keys, n, pages, [&](const W &w, u64 first, u32(&rank)[W::TURNS], u32) {
		u32 mine[W::OWN];
		for (int s = 0; s < W::TURNS; s++) rank[s] = least(rank[s], t.entries);
		w.collect(rank, mine);
		w.give(mine, first, n, ranks);
	});
}

template <typename W, typename K> inline_device void packedFind(const Packed &t, const K *keys, u32 n, const u32 *pages, u32 *places) {
	packed<W>(t, keys, n, pages, [&](const W &w, u64 first, u32(&rank)[W::TURNS], u32 hits) {
		u32 mine[W::OWN];
		for (int s = 0; s < W::TURNS; s++) rank[s] = hits >> s & 1 ? rank[s] : ALL;
		w.collect(rank, mine);
		w.give(mine, first, n, places);
	});
}

// gather gives the values at places of a column of so many entries, and a bit for
// each place that is one of them.
template <typename V> inline_device void gather(const V *column, u32 entries, u32 n, const u32 *places, V *vals, u32 *found) {
	typedef Warp<u32, 4, 32> W;
	W w;
	for (Rounds<W> r; r.first < n; r.next()) {
		u64 q = r.first + w.lane;
		u32 place = q < n ? places[q] : ALL;
		u32 hit[1] = {place < entries};
		V v[1] = {0};
		if (hit[0]) v[0] = column[place];
		store(w, r.first, n, v, hit, vals, found);
	}
}

#define SEARCHES(BITS) \
	typedef Warp<u##BITS, 4, 32> Warp##BITS; \
	KERNEL blockedDown##BITS(Blocked t, const u##BITS *keys, u32 n, u32 *nodes) { down<Warp##BITS>(t, keys, n, nodes); } \
	KERNEL packedRank##BITS(Packed t, const u##BITS *keys, u32 n, const u32 *pages, u32 *ranks) { packedRank<Warp##BITS>(t, keys, n, pages, ranks); } \
	KERNEL packedFind##BITS(Packed t, const u##BITS *keys, u32 n, const u32 *pages, u32 *places) { packedFind<Warp##BITS>(t, keys, n, pages, places); } \
	KERNEL gather##BITS(const u##BITS *column, u32 entries, u32 n, const u32 *places, u##BITS *vals, u32 *found) { gather(column, entries, n, places, vals, found); }

// Four lanes a query, 32 queries a warp, as in search.cu.
SEARCHES(32)
SEARCHES(64)

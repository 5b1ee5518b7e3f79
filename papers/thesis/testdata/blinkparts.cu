// The kernel of mixed operations on small nodes, so that there are splits all the
// time, and with one part of the protocol left out. Compiled to blinkparts.ptx as
// blink.go says.
#include "../blink.h"
#include "warp.h"

enum { LANES = 2, PER = 2 };

struct Without {
	u32 part;
	inlined bool has(Part p) const { return part != p; }
};

KERNEL blinkParts(Blink tree, const u8 *kinds, const u32 *keys, u32 *vals, u32 n, u8 *outcomes, u32 part) {
	Tile<u32, LANES, PER, Without> tile(tree, Without{part});
	tile.each(n, [&](u32 mine, u32 count) {
		bool there = mine < n;
		u32 key = there ? keys[mine] : 0, val = there ? vals[mine] : 0, kind = there ? kinds[mine] : 0, outcome = 0;
		for (u32 i = 0; i < count; i++) {
			u32 v = tile.from(val, i);
			Outcome o = tile.run((Kind)tile.from(kind, i), tile.from(key, i), v);
			if (tile.lane == i) val = v, outcome = o;
		}
		if (!there) return;
		vals[mine] = val;
		outcomes[mine] = outcome;
	});
}

// Batches of a few operations, which are one tile of a sum: to launch a kernel takes
// longer than what most of them do.
#pragma once
#include "chunkedown.h"

// planFew does what owns, plan, sums and effects do. The first block to begin does
// all that has to do with operations and leaves, a second one lists effects where
// somebody asks (e.keys), the others wait until the first has told what chunks get,
// and add these up.
template <typename K> inline_device void planFew(const Version &v, const Owned &o, const Effects<K> &e, const PlanChunks &chunks, u32 *begun, u32 *told, u32 *ticket, u64 *reports) {
	__shared__ u32 number;
	takeTicket(begun, number);
	syncBlock();
	if (number == 0) {
		scan<u64>(Owns{o}, 0, 0, 1);
		syncBlock();
		u32 touched = o.touched(), more = 0, all;
		for (u32 first = 0; first < touched; first += PART * THREADS) {
			u32 t = first + threadIndex();
			Planned<K> w(v, o, t, touched), x(v, o, t + THREADS, touched), y(v, o, t + 2 * THREADS, touched), z(v, o, t + 3 * THREADS, touched);
			Item a = w.item(), b = x.item(), c = y.item(), d = z.item();
			more += w.plan(a) + x.plan(b) + y.plan(c) + z.plan(d);
		}
		sumBlock(more, &all); // all have planned
		if (threadIndex() == 0) {
			o.told[GROWTH] = all;
			storeRelease(told, (u32)1);
		}
		scan<u32>(Needs{o, touched}, 0, 0, 1);
	} else if (number == 1 && e.keys) {
		scan<u32>(e, 0, 0, 1);
	} else {
		if (threadIndex() == 0)
			while (!loadAcquire(told)) {}
		syncBlock();
		scan<u64>(chunks, ticket, reports, gridBlocks() - (e.keys ? 2 : 1));
	}
}

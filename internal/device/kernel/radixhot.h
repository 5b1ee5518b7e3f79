// Many operations on one slot. An owner that does them one after the other is one
// thread, and the rest of the GPU waits for it. So where there is such a slot,
// neighbours of one key are made runs first, by all threads: an owner does what a run
// comes to, and each other operation of the run answers by the last change before it,
// or as the first one does.
#pragma once
#include "radixown.h"

enum { HOT = 64 }; // a slot with more operations makes it worth while

// Runs is operations in the order of their slots, in runs of one key. Places are
// counted from 1 where 0 is none.
struct Runs {
	u32 *heads;   // of each operation: the first of its run
	u32 *changes; // the last change of the run before it, from 1
	u32 *next;    // of each first one: the first of the next run,
	u32 *last;    // and the last change of its own, from 1
	u32 *blockHeads, *blockChanges; // the last of a block's operations, from 1
};

// findHot says whether a slot has many operations.
inline_device void findHot(const u32 *slots, u32 *hot, u32 n) {
	u32 i = blockIndex() * blockThreads() + threadIndex();
	if (i + HOT >= n || slots[i] != slots[i + HOT]) return;
	if (i == 0 || slots[i - 1] != slots[i]) storeRelaxed(hot, 1u);
}

inline_device bool same(const Query &a, const Query &b) { return a.length == b.length && common(a, b) == a.length; }

inline_device u32 kindOf(const Changes &c, u32 at) { return c.kinds ? c.kinds[at] : c.kind; }

// latest gives the greatest value of the threads up to this one in the block. tops is
// room in shared memory that nothing else uses until the next barrier.
inline_device u32 latest(u32 v, u32 (&tops)[WARPS]) {
	unrolled for (u32 by = 1; by < WARP; by *= 2) {
		u32 from = shuffleUp(v, by);
		if (laneIndex() >= by && from > v) v = from;
	}
	if (laneIndex() == WARP - 1) tops[warpIndex()] = v;
	syncBlock();
	unrolled for (u32 w = 0; w < WARPS; w++)
		if (w < warpIndex() && tops[w] > v) v = tops[w];
	return v;
}

// findRuns sees where runs begin, and where changes are: for each operation the last
// ones up to it, as far as they are in the same block.
inline_device void findRuns(const Changes &c, const Runs &r, u32 longest) {
	__shared__ u32 heads[WARPS], changes[WARPS];
	u32 i = blockIndex() * blockThreads() + threadIndex(), n = c.keys.n, head = 0, change = 0;
	if (i < n) {
		Query q = c.keys.at(c.places[i]);
		if (i == 0 || c.slots[i - 1] != c.slots[i] || !same(q, c.keys.at(c.places[i - 1]))) head = i + 1;
		if (q.length <= longest && kindOf(c, c.places[i]) != GET) change = i + 1;
	}
	head = latest(head, heads);
	change = latest(change, changes);
	if (i < n) {
		r.heads[i] = head;
		r.changes[i] = change;
	}
	if (threadIndex() == blockThreads() - 1) {
		r.blockHeads[blockIndex()] = head;
		r.blockChanges[blockIndex()] = change;
	}
}

// earlier finds the last run that begins in blocks before, and the last change up to
// then or later. A warp does it, 32 blocks at a time.
inline_device void earlier(const Runs &r, u32 &head, u32 &change) {
	for (u32 t = blockIndex();; t -= WARP) {
		u32 lane = laneIndex();
		u32 h = lane < t ? r.blockHeads[t - 1 - lane] : 1, c = lane < t ? r.blockChanges[t - 1 - lane] : 0;
		u32 hs = ballot(h != 0), cs = ballot(c != 0);
		if (!change && cs) change = shuffle(c, __builtin_ctz(cs));
		if (!hs) continue;
		head = shuffle(h, __builtin_ctz(hs));
		return;
	}
}

// endRuns finds what began in earlier blocks, and tells the first of each run where it
// ends.
inline_device void endRuns(const Runs &r, u32 n) {
	__shared__ u32 before[2];
	u32 i = blockIndex() * blockThreads() + threadIndex();
	u32 head = 0, change = 0, headBefore = 0, changeBefore = 0;
	if (i < n) {
		head = r.heads[i];
		change = r.changes[i];
		if (threadIndex()) {
			headBefore = r.heads[i - 1];
			changeBefore = r.changes[i - 1];
		}
	}
	if (blockIndex() && warpIndex() == 0) {
		u32 h = 0, c = 0;
		earlier(r, h, c);
		if (laneIndex() == 0) {
			before[0] = h;
			before[1] = c;
		}
	}
	syncBlock(); // all have read
	if (i >= n) return;
	if (blockIndex()) {
		if (!head) head = before[0];
		if (!change) change = before[1];
		if (!headBefore) headBefore = before[0];
		if (!changeBefore) changeBefore = before[1];
	}
	bool first = head == i + 1;
	if (first && i) {
		r.next[headBefore - 1] = i;
		r.last[headBefore - 1] = changeBefore >= headBefore ? changeBefore : 0;
	}
	if (i == n - 1) {
		r.next[head - 1] = n;
		r.last[head - 1] = change >= head ? change : 0;
	}
	r.heads[i] = head - 1;
	r.changes[i] = !first && changeBefore >= head ? changeBefore : 0;
}

// ownRuns does what the runs of a slot come to, a thread each slot, and answers for
// the first operation of each.
template <typename V> inline_device void ownRuns(const Radix &t, const Changes &c, const Runs &r, const Pools &p) {
	u32 i = blockIndex() * blockThreads() + threadIndex(), n = c.keys.n;
	if (i >= n) return;
	u32 slot = c.slots[i];
	if (i && c.slots[i - 1] == slot) return; // another's
	Owner<V> owner = {t, p, t.table + slot};
	do {
		u32 at = c.places[i], last = r.last[i], kind = GET;
		V old = 0, val = 0;
		if (last) {
			u32 from = c.places[last - 1];
			kind = kindOf(c, from);
			if (kind == SET) val = ((const V *)c.vals)[from];
		}
		Query q = c.keys.at(at);
		bool had = q.length <= t.longest && owner.apply(q, kind, val, old);
		if (c.old) {
			((V *)c.old)[at] = old;
			c.had[at] = had;
		}
		i = r.next[i];
	} while (i < n && c.slots[i] == slot);
}

// answerRuns answers for all operations but the first of each run.
template <typename V> inline_device void answerRuns(const Changes &c, const Runs &r) {
	u32 i = blockIndex() * blockThreads() + threadIndex();
	if (i >= c.keys.n) return;
	u32 head = r.heads[i], at = c.places[i], before = r.changes[i];
	if (head == i) return;
	V *old = (V *)c.old;
	if (before) {
		u32 from = c.places[before - 1];
		bool set = kindOf(c, from) == SET;
		old[at] = set ? ((const V *)c.vals)[from] : 0;
		c.had[at] = set;
	} else {
		u32 from = c.places[head];
		old[at] = old[from];
		c.had[at] = c.had[from];
	}
}

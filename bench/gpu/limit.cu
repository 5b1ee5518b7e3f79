// What a GPU's memory allows at best: random lines of 64 bytes, each read by
// four lanes of 16 bytes as Pando's search reads a node, no read waiting for
// another. Which lines follows from the numbers of the reads, so nothing else
// is read and next to nothing written.
#include "../../internal/device/kernel/builtins.h"

enum { LANES = 4, WORDS = 4, THREADS = 256 }; // words of 32 bits a lane

// MARK is odd, so that words differ; limit.go has it too.
static const u32 MARK = 0x9e3779b1;

// scramble is the last step of MurmurHash3: a bijection without visible order.
inline_device u32 scramble(u32 x) {
	x = (x ^ x >> 16) * 0x85ebca6b;
	x = (x ^ x >> 13) * 0xc2b2ae35;
	return x ^ x >> 16;
}

inline_device u32 lineOf(u64 read, u32 seed, u32 lines) {
	return __nvvm_mulhi_ui(scramble((u32)read + seed), lines);
}

inline_device void fetch(const u32 *words, u32 line, u32 part, u32 *v) {
	load16(words + ((u64)line * LANES + part) * WORDS, v);
}

inline_device u32 sum(const u32 *v) { return v[0] + v[1] + v[2] + v[3]; }

// gather has DEEP reads of a thread on their way at once.
template <int DEEP> inline_device void gather(const u32 *words, u32 lines, u32 n, u32 seed, u32 *sums) {
	u32 thread = blockIndex() * blockThreads() + threadIndex(), part = thread % LANES, total = 0;
	u64 tiles = (u64)gridBlocks() * blockThreads() / LANES, read = thread / LANES;
	for (; read + (DEEP - 1) * tiles < n; read += DEEP * tiles) {
		u32 v[DEEP][WORDS];
		for (int i = 0; i < DEEP; i++) fetch(words, lineOf(read + i * tiles, seed, lines), part, v[i]);
		for (int i = 0; i < DEEP; i++) total += sum(v[i]);
	}
	for (; read < n; read += tiles) {
		u32 v[WORDS];
		fetch(words, lineOf(read, seed, lines), part, v);
		total += sum(v);
	}
	sums[thread] = total;
}

#define KERNEL extern "C" __global__ launch_bounds(THREADS) void
#define GATHER(DEEP) \
	KERNEL gather##DEEP(const u32 *words, u32 lines, u32 n, u32 seed, u32 *sums) { gather<DEEP>(words, lines, n, seed, sums); }

GATHER(1)
GATHER(2)
GATHER(4)
GATHER(8)
GATHER(16)

// mark numbers the words of the block that gather reads.
KERNEL mark(u32 *words, u64 n) {
	u64 threads = (u64)gridBlocks() * blockThreads();
	for (u64 i = (u64)blockIndex() * blockThreads() + threadIndex(); i < n; i += threads) words[i] = (u32)i * MARK;
}

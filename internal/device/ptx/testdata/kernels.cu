// Kernels that the interpreter is tested with. Compile to kernels_70.ptx and
// kernels_90.ptx as TestKernelsAreFresh says.
#include "builtins.h"

// search finds, for each query, the number of keys below it, in a tree of
// 64-byte nodes: 16 keys each, 17 children, complete, level after level. Four
// lanes work on one query, each on 16 bytes of a node.
extern "C" __global__ void search(const u32x4 *nodes, const u32 *queries, u32 *ranks, u32 count, u32 levels) {
	u32 lane = threadIndex() & 3;
	u32 tile = (blockIndex() * blockSize() + threadIndex()) >> 2;
	u32 mask = 15u << (threadIndex() & 28);
	for (u32 q = tile; q < count; q += gridSize() * blockSize() >> 2) {
		u32 key = queries[q], node = 0, first = 0, width = 1;
		for (u32 l = 0; l < levels; l++) {
			u32x4 k = nodes[(first + node) * 4 + lane];
			u32 below = (k.x < key) + (k.y < key) + (k.z < key) + (k.w < key);
			below += shuffleXor(mask, below, 1);
			below += shuffleXor(mask, below, 2);
			first += width;
			width *= 17;
			node = node * 17 + below;
		}
		if (lane == 0) ranks[q] = node;
	}
}

// total adds all numbers: a tree in shared memory for each block, shuffles for
// its last warp, one atomic a block.
extern "C" __global__ void __launch_bounds__(256) total(const u32 *in, u32 *out, u32 count) {
	__shared__ u32 part[256];
	u32 t = threadIndex(), sum = 0;
	for (u32 i = blockIndex() * blockSize() + t; i < count; i += gridSize() * blockSize()) sum += in[i];
	part[t] = sum;
	__syncthreads();
	for (u32 half = blockSize() / 2; half >= 32; half >>= 1) {
		if (t < half) part[t] += part[t + half];
		__syncthreads();
	}
	if (t < 32) {
		sum = part[t];
		for (u32 by = 16; by > 0; by >>= 1) sum += shuffleDown(~0u, sum, by);
		if (t == 0) atomicAdd(out, sum);
	}
}

// lastBlock is total without an atomic sum: every block leaves its sum, and
// the block that comes last adds them. RACY leaves the fence out.
template <bool RACY>
static __device__ void lastBlockSum(const u32 *in, u32 *partial, u32 *arrived, u32 *out, u32 count) {
	extern __shared__ u32 part[];
	__shared__ u32 last;
	u32 t = threadIndex(), sum = 0;
	for (u32 i = blockIndex() * blockSize() + t; i < count; i += gridSize() * blockSize()) sum += in[i];
	part[t] = sum;
	__syncthreads();
	if (t == 0) {
		for (u32 i = 1; i < blockSize(); i++) sum += part[i];
		partial[blockIndex()] = sum;
		if (!RACY) threadFence();
		last = atomicAdd(arrived, 1) == gridSize() - 1;
	}
	__syncthreads();
	if (last && t == 0) {
		sum = 0;
		for (u32 i = 0; i < gridSize(); i++) sum += partial[i];
		*out = sum;
	}
}

extern "C" __global__ void lastBlock(const u32 *in, u32 *partial, u32 *arrived, u32 *out, u32 count) {
	lastBlockSum<false>(in, partial, arrived, out, count);
}

extern "C" __global__ void lastBlockRacy(const u32 *in, u32 *partial, u32 *arrived, u32 *out, u32 count) {
	lastBlockSum<true>(in, partial, arrived, out, count);
}

// mixed uses what else clang makes: device functions, structures by value,
// local arrays, constants, bytes, 64-bit arithmetic and floats.
struct Shape {
	u32 width;
	u64 scale[3];
};

__constant__ u64 weights[4] = {3, 5, 7, ~0ull};
__device__ u32 primes[8] = {2, 3, 5, 7, 11, 13, 17, 19};
__device__ u32 *third = primes + 2;

static __device__ __attribute__((noinline)) u64 blend(u64 a, u32 b, const Shape *s) {
	return a * b + s->scale[b % 3] / (s->width + 1);
}

extern "C" __global__ void mixed(u64 *out, u8 *bytes, Shape shape, float factor) {
	u32 t = blockIndex() * blockSize() + threadIndex();
	u64 local[8];
	for (u32 i = 0; i < 8; i++) local[i] = t * (i + 1) + weights[i & 3];
	u64 v = blend(local[t & 7], primes[t & 7], &shape) + *third;
	v ^= (u64)__builtin_popcountll(v) << 56 | (u64)__builtin_clz(t | 1) << 48;
	v += (u64)((float)t * factor) + (u64)(int)(-1.5f * (float)(t & 3));
	bytes[t] = bytes[t] / 3 + (u8)v;
	out[t] = v % 1000000007ull;
}

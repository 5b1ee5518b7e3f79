// The part of CUDA that Pando's kernels use, for plain clang: no toolkit.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define inlined __device__ __attribute__((always_inline)) inline
#define inline_device static inlined
#define unrolled _Pragma("unroll")
#define launch_bounds(...) __attribute__((launch_bounds(__VA_ARGS__)))

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

enum { WARP = 32 };
static const u32 ALL = 0xffffffff;

inline_device u32 least(u32 a, u32 b) { return a < b ? a : b; }

inline_device u32 threadIndex() { return __nvvm_read_ptx_sreg_tid_x(); }
inline_device u32 blockIndex() { return __nvvm_read_ptx_sreg_ctaid_x(); }
inline_device u32 blockThreads() { return __nvvm_read_ptx_sreg_ntid_x(); }
inline_device u32 gridBlocks() { return __nvvm_read_ptx_sreg_nctaid_x(); }

inline_device u32 shuffleXor(u32 v, u32 mask) { return __nvvm_shfl_sync_bfly_i32(ALL, v, mask, 31); }
inline_device u32 shuffle(u32 v, u32 lane) { return __nvvm_shfl_sync_idx_i32(ALL, v, lane, 31); }
inline_device u64 shuffle(u64 v, u32 lane) {
	u32 lo = shuffle((u32)v, lane), hi = shuffle((u32)(v >> 32), lane);
	return (u64)hi << 32 | lo;
}
inline_device u32 ballot(bool v) { return __nvvm_vote_ballot_sync(ALL, v); }

// Loads of memory that no kernel writes, through the read-only cache.
inline_device void load(const u32 *p, u32 (&v)[2]) {
	asm("ld.global.nc.v2.u32 {%0, %1}, [%2];" : "=r"(v[0]), "=r"(v[1]) : "l"(p));
}
inline_device void load(const u64 *p, u64 (&v)[1]) {
	asm("ld.global.nc.u64 %0, [%1];" : "=l"(v[0]) : "l"(p));
}
// loadIf is a load without a branch, so that others need not wait for it; 0
// where there is nothing to load.
inline_device u64 loadIf(const u64 *p, bool there) {
	u64 v;
	asm("{ .reg .pred p; setp.ne.u32 p, %2, 0; mov.u64 %0, 0; @p ld.global.nc.u64 %0, [%1]; }" : "=&l"(v) : "l"(p), "r"((u32)there));
	return v;
}
inline_device u32 loadIf(const u32 *p, bool there) {
	u32 v;
	asm("{ .reg .pred p; setp.ne.u32 p, %2, 0; mov.u32 %0, 0; @p ld.global.nc.u32 %0, [%1]; }" : "=&r"(v) : "l"(p), "r"((u32)there));
	return v;
}
inline_device void load16(const u32 *p, u32 *v) {
	asm("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "l"(p));
}
inline_device void load16(const u64 *p, u64 *v) {
	asm("ld.global.nc.v2.u64 {%0, %1}, [%2];" : "=l"(v[0]), "=l"(v[1]) : "l"(p));
}
template <typename T, int N> inline_device void load(const T *p, T (&v)[N]) {
	for (int i = 0; i < N; i += 16 / (int)sizeof(T)) load16(p + i, v + i);
}

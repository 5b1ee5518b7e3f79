// The built-ins that the test kernels need, under their usual names.
#pragma once
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __launch_bounds__(n) __attribute__((launch_bounds(n)))

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef u32 u32x4 __attribute__((ext_vector_type(4)));

static __device__ inline u32 threadIndex() { return __nvvm_read_ptx_sreg_tid_x(); }
static __device__ inline u32 blockIndex() { return __nvvm_read_ptx_sreg_ctaid_x(); }
static __device__ inline u32 blockSize() { return __nvvm_read_ptx_sreg_ntid_x(); }
static __device__ inline u32 gridSize() { return __nvvm_read_ptx_sreg_nctaid_x(); }
static __device__ inline u32 shuffleXor(u32 mask, u32 v, u32 lanes) { return __nvvm_shfl_sync_bfly_i32(mask, v, lanes, 31); }
static __device__ inline u32 shuffleDown(u32 mask, u32 v, u32 by) { return __nvvm_shfl_sync_down_i32(mask, v, by, 31); }
static __device__ inline u32 atomicAdd(u32 *p, u32 v) { return __nvvm_atom_add_gen_i((int *)p, v); }
static __device__ inline void threadFence() { __nvvm_membar_gl(); }

// Kernels for the tests of this package. test.ptx is made from this file by
// go generate.

#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

static __attribute__((device)) inline u32 index() {
  return __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x();
}

// test_nothing takes no parameters and does nothing.
extern "C" __global__ void test_nothing() {}

// test_add writes src[i] + value to dst[i]; dst and src may be the same.
extern "C" __global__ void test_add(u32 *dst, const u32 *src, u32 n, u32 value) {
  u32 i = index();
  if (i < n) dst[i] = src[i] + value;
}

// test_echo writes its parameters, which have gaps between them, to out.
extern "C" __global__ void test_echo(u8 a, u64 *out, u16 b, u32 c, u8 d, u64 e) {
  if (index() != 0) return;
  out[0] = a;
  out[1] = b;
  out[2] = c;
  out[3] = d;
  out[4] = e;
}

// test_late waits for so many clocks, then writes value to *dst.
extern "C" __global__ void test_late(u32 *dst, u32 value, u64 clocks) {
  if (index() != 0) return;
  u64 begin = __nvvm_read_ptx_sreg_clock64();
  while (__nvvm_read_ptx_sreg_clock64() - begin < clocks) {}
  *dst = value;
}

// test_shared turns a block's words around in dynamic shared memory: dst[i] is
// n-1-i within the block.
extern __shared__ u32 store[];
extern "C" __global__ void test_shared(u32 *dst, u32 n) {
  u32 first = __nvvm_read_ptx_sreg_ctaid_x() * n, step = __nvvm_read_ptx_sreg_ntid_x();
  for (u32 i = __nvvm_read_ptx_sreg_tid_x(); i < n; i += step) store[i] = i;
  __syncthreads();
  for (u32 i = __nvvm_read_ptx_sreg_tid_x(); i < n; i += step) dst[first + i] = store[n - 1 - i];
}

// test_trap stops as a failed assertion would.
extern "C" __global__ void test_trap() { __builtin_trap(); }

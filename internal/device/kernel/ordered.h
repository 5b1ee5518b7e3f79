// Atomics with an order, on words of global memory that threads of any block
// share. They are inline PTX, because clang-19 drops the order of a cmpxchg: it
// makes a plain atom.cas of any of them, and what latches protect then leaks
// out. internal/device/ptx has a test of the text that comes out.
//
// A latch is taken by casAcquire and given back by storeRelease. A word that is
// read without its latch, while others may write it, needs loadAcquire or
// loadRelaxed on that side and storeRelease or storeRelaxed on the other: a
// plain access beside them is a race (ptx.Strict).
#pragma once
#include "builtins.h"

// For values of 32 and 64 bits: T is the type, B and U its names in PTX, R its
// kind of register in inline assembly.
#define ORDERED(T, B, U, R)                                                                                                     \
	inline_device T loadRelaxed(const T *p) {                                                                               \
		T v;                                                                                                            \
		asm volatile("ld.relaxed.gpu.global." U " %0, [%1];" : "=" R(v) : "l"(p) : "memory");                           \
		return v;                                                                                                       \
	}                                                                                                                       \
	inline_device T loadAcquire(const T *p) {                                                                               \
		T v;                                                                                                            \
		asm volatile("ld.acquire.gpu.global." U " %0, [%1];" : "=" R(v) : "l"(p) : "memory");                           \
		return v;                                                                                                       \
	}                                                                                                                       \
	inline_device void storeRelaxed(T *p, T v) { asm volatile("st.relaxed.gpu.global." U " [%0], %1;" ::"l"(p), R(v) : "memory"); } \
	inline_device void storeRelease(T *p, T v) { asm volatile("st.release.gpu.global." U " [%0], %1;" ::"l"(p), R(v) : "memory"); } \
	ORDERED_CAS(T, B, R, casRelaxed, "relaxed")                                                                             \
	ORDERED_CAS(T, B, R, casAcquire, "acquire")                                                                             \
	ORDERED_CAS(T, B, R, casRelease, "release")                                                                             \
	ORDERED_CAS(T, B, R, casAcqRel, "acq_rel")                                                                              \
	ORDERED_RMW(T, R, exchAcquire, "acquire", "exch." B)                                                                    \
	ORDERED_RMW(T, R, exchRelease, "release", "exch." B)                                                                    \
	ORDERED_RMW(T, R, exchAcqRel, "acq_rel", "exch." B)                                                                     \
	ORDERED_RMW(T, R, addRelaxed, "relaxed", "add." U)                                                                      \
	ORDERED_RMW(T, R, addAcquire, "acquire", "add." U)                                                                      \
	ORDERED_RMW(T, R, addRelease, "release", "add." U)                                                                      \
	ORDERED_RMW(T, R, addAcqRel, "acq_rel", "add." U)                                                                       \
	inline_device void reduceRelaxed(T *p, T v) { asm volatile("red.relaxed.gpu.global.add." U " [%0], %1;" ::"l"(p), R(v) : "memory"); } \
	inline_device void reduceRelease(T *p, T v) { asm volatile("red.release.gpu.global.add." U " [%0], %1;" ::"l"(p), R(v) : "memory"); }

// A compare-and-swap returns what was there: it has written if that is old.
#define ORDERED_CAS(T, B, R, NAME, ORDER)                                                                                       \
	inline_device T NAME(T *p, T old, T v) {                                                                                \
		T was;                                                                                                          \
		asm volatile("atom." ORDER ".gpu.global.cas." B " %0, [%1], %2, %3;" : "=" R(was) : "l"(p), R(old), R(v) : "memory"); \
		return was;                                                                                                     \
	}

// The others return what was there, too.
#define ORDERED_RMW(T, R, NAME, ORDER, OP)                                                                                      \
	inline_device T NAME(T *p, T v) {                                                                                       \
		T was;                                                                                                          \
		asm volatile("atom." ORDER ".gpu.global." OP " %0, [%1], %2;" : "=" R(was) : "l"(p), R(v) : "memory");          \
		return was;                                                                                                     \
	}

ORDERED(u32, "b32", "u32", "r")
ORDERED(u64, "b64", "u64", "l")

#undef ORDERED
#undef ORDERED_CAS
#undef ORDERED_RMW

// fence orders what is before it against what is after it, for those who
// communicate by relaxed accesses; fenceSC also keeps a store from passing a
// later load.
inline_device void fence() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }
inline_device void fenceSC() { asm volatile("fence.sc.gpu;" ::: "memory"); }

// syncWarp makes what each lane of a mask has done known to all of them. A
// shuffle or a vote does not.
inline_device void syncWarp(u32 mask) { asm volatile("bar.warp.sync %0;" ::"r"(mask) : "memory"); }

// Prefix sums of numbers.
#include "scan.h"

typedef u64 pair __attribute__((ext_vector_type(2)));

inline_device void put(u32 *to, const u32 (&v)[PART]) { *(quad *)to = quad{v[0], v[1], v[2], v[3]}; }
inline_device void put(u64 *to, const u64 (&v)[PART]) {
	((pair *)to)[0] = pair{v[0], v[1]};
	((pair *)to)[1] = pair{v[2], v[3]};
}

// Prefixes sets out[i] to the sum of in[0..i), for i from 0 to n.
template <typename T> struct Prefixes {
	const u32 *in;
	T *out;
	u32 n;

	inlined void take(u32 at, T (&v)[PART]) const {
		if (at + PART <= n) {
			quad q = *(const quad *)(in + at);
			unrolled for (u32 i = 0; i < PART; i++) v[i] = q[i];
			return;
		}
		unrolled for (u32 i = 0; i < PART; i++) v[i] = at + i < n ? in[at + i] : 0;
	}

	inlined void give(u32 at, T sum, const T (&v)[PART]) const {
		T sums[PART] = {sum, sum + v[0], sum + v[0] + v[1], sum + v[0] + v[1] + v[2]};
		if (at + PART <= n) {
			put(out + at, sums);
			return;
		}
		unrolled for (u32 i = 0; i < PART; i++)
			if (at + i < n) out[at + i] = sums[i];
	}

	inlined void end(T all) const { out[n] = all; }
};

// tilesOf is the number of blocks for n numbers. A test runs the last one alone.
inline_device u32 tilesOf(u32 n) { return n <= TILE ? 1 : (n + TILE - 1) / TILE; }

#define KERNEL extern "C" __global__ launch_bounds(256) void

KERNEL sum32(const u32 *in, u32 *out, u32 *ticket, u64 *reports, u32 n) { scan<u32>(Prefixes<u32>{in, out, n}, ticket, reports, tilesOf(n)); }
KERNEL sum64(const u32 *in, u64 *out, u32 *ticket, u64 *reports, u32 n) { scan<u64>(Prefixes<u64>{in, out, n}, ticket, reports, tilesOf(n)); }

// A peer: thrust::lower_bound of the CUDA toolkit over a sorted array, all
// queries in one call, and for pairs a gather of the values found; and what a
// batch of updates costs at least if an array is merged with all of it, by the
// toolkit's own sort and merge; and the sum of an array, by the toolkit's own
// reduction. The benchmark compiles this with nvcc and starts it as
//
//	thrust rank32|point64|update64|sum64 KEYS QUERIES SEED WARM_UP_SECONDS
//
// It makes its data on the GPU, says "ready", and then plays one round for
// every line of standard input, which holds a number of queries. The answer is
// the milliseconds that the GPU took, and how many results were wrong.
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <thrust/binary_search.h>
#include <thrust/count.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/fill.h>
#include <thrust/gather.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/merge.h>
#include <thrust/reduce.h>
#include <thrust/sort.h>
#include <thrust/tabulate.h>
#include <thrust/transform.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

typedef std::uint32_t u32;
typedef std::uint64_t u64;

static void must(cudaError_t e) {
	if (e != cudaSuccess) throw std::runtime_error(cudaGetErrorString(e));
}

// draw gives the i-th random number of a stream: SplitMix64.
__host__ __device__ inline u64 draw(u64 stream, u64 i) {
	u64 x = (stream << 40) + (i + 1) * 0x9e3779b97f4a7c15;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

template <typename K> struct RandomKey {
	u64 stream;
	template <typename I> __host__ __device__ K operator()(I i) const { return (K)(draw(stream, (u64)i) >> (64 - 8 * sizeof(K))); }
};

// RandomHit picks one of n keys.
template <typename K> struct RandomHit {
	u64 stream, n;
	const K *keys;
	template <typename I> __host__ __device__ K operator()(I i) const { return keys[draw(stream, (u64)i) % n]; }
};

template <typename K> struct ValueOf {
	__host__ __device__ K operator()(K k) const { return k * (K)0x9e3779b97f4a7c15 ^ (K)0x9e3779b9; }
};

// WrongRank says whether result i is not the number of keys below query i.
template <typename K> struct WrongRank {
	const K *keys, *queries;
	const u32 *ranks;
	u64 n;
	__host__ __device__ bool operator()(u64 i) const {
		u64 r = ranks[i];
		K q = queries[i];
		return r > n || (r > 0 && keys[r - 1] >= q) || (r < n && keys[r] < q);
	}
};

template <typename K> struct WrongValue {
	const K *queries, *found;
	__host__ __device__ bool operator()(u64 i) const { return found[i] != ValueOf<K>()(queries[i]); }
};

// WrongPair says whether pair i is not behind the one before, or has another
// key's value.
struct WrongPair {
	const u64 *keys, *vals;
	__host__ __device__ bool operator()(u64 i) const { return (i > 0 && keys[i - 1] > keys[i]) || vals[i] != ValueOf<u64>()(keys[i]); }
};

template <typename T> const T *raw(const thrust::device_vector<T> &v) { return thrust::raw_pointer_cast(v.data()); }

// Peer is n sorted keys and the queries. Keys are random and so almost all
// distinct.
template <typename K> struct Peer {
	thrust::device_vector<K> keys, queries;
	thrust::device_vector<u32> ranks;

	Peer(u64 n, u64 most, u64 seed) : keys(n), queries(most), ranks(most) {
		thrust::tabulate(thrust::device, keys.begin(), keys.end(), RandomKey<K>{2 * seed});
		thrust::sort(thrust::device, keys.begin(), keys.end());
	}

	void lowerBound(u64 ops) {
		thrust::lower_bound(thrust::device, keys.begin(), keys.end(), queries.begin(), queries.begin() + ops, ranks.begin());
	}
};

// Ranks asks for numbers of the whole domain.
struct Ranks : Peer<u32> {
	Ranks(u64 n, u64 most, u64 seed) : Peer<u32>(n, most, seed) {
		thrust::tabulate(thrust::device, queries.begin(), queries.end(), RandomKey<u32>{2 * seed + 1});
	}
	void wipe(u64 ops) { thrust::fill(thrust::device, ranks.begin(), ranks.begin() + ops, ~0u); }
	void work(u64 ops) { lowerBound(ops); }
	u64 wrong(u64 ops) {
		thrust::counting_iterator<u64> first(0);
		return thrust::count_if(thrust::device, first, first + ops, WrongRank<u32>{raw(keys), raw(queries), raw(ranks), keys.size()});
	}
};

// Points asks for keys, and fetches their values.
struct Points : Peer<u64> {
	thrust::device_vector<u64> vals, found;

	Points(u64 n, u64 most, u64 seed) : Peer<u64>(n, most, seed), vals(n), found(most) {
		thrust::transform(thrust::device, keys.begin(), keys.end(), vals.begin(), ValueOf<u64>());
		thrust::tabulate(thrust::device, queries.begin(), queries.end(), RandomHit<u64>{2 * seed + 1, n, raw(keys)});
	}
	void wipe(u64 ops) { thrust::fill(thrust::device, found.begin(), found.begin() + ops, ~(u64)0); }
	void work(u64 ops) {
		lowerBound(ops);
		thrust::gather(thrust::device, ranks.begin(), ranks.begin() + ops, vals.begin(), found.begin());
	}
	u64 wrong(u64 ops) {
		thrust::counting_iterator<u64> first(0);
		return thrust::count_if(thrust::device, first, first + ops, WrongValue<u64>{raw(queries), raw(found)});
	}
};

// Kept hands the same memory out again and again, so that no merge waits for an
// allocation.
struct Kept {
	typedef char value_type;
	thrust::device_vector<char> block;
	char *allocate(std::ptrdiff_t bytes) {
		if (block.size() < (std::size_t)bytes) block = thrust::device_vector<char>(bytes);
		return thrust::raw_pointer_cast(block.data());
	}
	void deallocate(char *, std::size_t) {}
};

// Updates sorts a batch of pairs and merges it with sorted ones. One in two of
// its keys is there already, and is then there twice.
struct Updates {
	thrust::device_vector<u64> keys, vals, newKeys, newVals, sortedKeys, sortedVals, outKeys, outVals;
	thrust::device_vector<char> temp;
	Kept kept;

	Updates(u64 n, u64 most, u64 seed)
		: keys(n), vals(n), newKeys(most), newVals(most), sortedKeys(most), sortedVals(most), outKeys(n + most), outVals(n + most) {
		thrust::tabulate(thrust::device, keys.begin(), keys.end(), RandomKey<u64>{2 * seed});
		thrust::sort(thrust::device, keys.begin(), keys.end());
		thrust::transform(thrust::device, keys.begin(), keys.end(), vals.begin(), ValueOf<u64>());
		thrust::tabulate(thrust::device, newKeys.begin(), newKeys.begin() + most / 2, RandomHit<u64>{2 * seed + 1, n, raw(keys)});
		thrust::tabulate(thrust::device, newKeys.begin() + most / 2, newKeys.end(), RandomKey<u64>{2 * seed + 3});
		thrust::transform(thrust::device, newKeys.begin(), newKeys.end(), newVals.begin(), ValueOf<u64>());
		std::size_t bytes = 0;
		must(sort(nullptr, bytes, most));
		temp = thrust::device_vector<char>(bytes);
	}

	// The first half of a batch is there, the second is new: a part is taken from the middle.
	cudaError_t sort(void *room, std::size_t &bytes, u64 ops) {
		u64 from = (newKeys.size() - ops) / 2;
		return cub::DeviceRadixSort::SortPairs(room, bytes, raw(newKeys) + from, thrust::raw_pointer_cast(sortedKeys.data()),
			raw(newVals) + from, thrust::raw_pointer_cast(sortedVals.data()), (int)ops);
	}
	void wipe(u64 ops) { thrust::fill(thrust::device, outKeys.begin(), outKeys.begin() + keys.size() + ops, (u64)0); }
	void work(u64 ops) {
		std::size_t bytes = temp.size();
		must(sort(thrust::raw_pointer_cast(temp.data()), bytes, ops));
		thrust::merge_by_key(thrust::cuda::par(kept), keys.begin(), keys.end(), sortedKeys.begin(), sortedKeys.begin() + ops,
			vals.begin(), sortedVals.begin(), outKeys.begin(), outVals.begin());
	}
	u64 wrong(u64 ops) {
		thrust::counting_iterator<u64> first(0);
		return thrust::count_if(thrust::device, first, first + keys.size() + ops, WrongPair{raw(outKeys), raw(outVals)});
	}
};

// Sums adds up the first of n values.
struct Sums {
	thrust::device_vector<u64> vals, sum;
	thrust::device_vector<char> temp;

	Sums(u64 n, u64, u64 seed) : vals(n), sum(1) {
		thrust::tabulate(thrust::device, vals.begin(), vals.end(), RandomKey<u64>{2 * seed});
		std::size_t bytes = 0;
		must(add(nullptr, bytes, n));
		temp = thrust::device_vector<char>(bytes);
	}
	cudaError_t add(void *room, std::size_t &bytes, u64 ops) {
		return cub::DeviceReduce::Sum(room, bytes, raw(vals), thrust::raw_pointer_cast(sum.data()), (int)ops);
	}
	void wipe(u64) { sum[0] = 0x5555; }
	void work(u64 ops) {
		std::size_t bytes = temp.size();
		must(add(thrust::raw_pointer_cast(temp.data()), bytes, ops));
	}
	u64 wrong(u64 ops) { return sum[0] != thrust::reduce(thrust::device, vals.begin(), vals.begin() + ops, (u64)0); }
};

// busy works untimed, so that the GPU's clocks are up when time counts.
template <typename P> void busy(P &peer, u64 ops, double seconds) {
	std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
	do {
		peer.work(ops);
		must(cudaDeviceSynchronize());
	} while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds);
}

template <typename P> int play(u64 n, u64 most, u64 seed, double warmUp) {
	P peer(n, most, seed);
	cudaEvent_t begin, end;
	must(cudaEventCreate(&begin));
	must(cudaEventCreate(&end));
	std::printf("ready\n");
	std::fflush(stdout);
	char line[64];
	while (std::fgets(line, sizeof line, stdin)) {
		u64 ops = std::strtoull(line, nullptr, 10);
		if (ops > most) throw std::runtime_error("more queries than there are");
		busy(peer, ops, warmUp);
		peer.wipe(ops);
		must(cudaEventRecord(begin));
		peer.work(ops);
		must(cudaEventRecord(end));
		must(cudaEventSynchronize(end));
		float ms = 0;
		must(cudaEventElapsedTime(&ms, begin, end));
		std::printf("%.6f %llu\n", ms, (unsigned long long)peer.wrong(ops));
		std::fflush(stdout);
	}
	return 0;
}

int main(int argc, char **argv) try {
	if (argc != 6) throw std::runtime_error("five arguments");
	u64 n = std::strtoull(argv[2], nullptr, 10), most = std::strtoull(argv[3], nullptr, 10), seed = std::strtoull(argv[4], nullptr, 10);
	double warmUp = std::strtod(argv[5], nullptr);
	if (n >= ~0u || most >= ~0u) throw std::runtime_error("too many keys or queries for 32-bit results");
	if (!std::strcmp(argv[1], "rank32")) return play<Ranks>(n, most, seed, warmUp);
	if (!std::strcmp(argv[1], "point64")) return play<Points>(n, most, seed, warmUp);
	if (!std::strcmp(argv[1], "update64")) return play<Updates>(n, most, seed, warmUp);
	if (!std::strcmp(argv[1], "sum64")) return play<Sums>(n, most, seed, warmUp);
	throw std::runtime_error(std::string("no mode ") + argv[1]);
} catch (const std::exception &e) {
	std::fprintf(stderr, "thrust: %s\n", e.what());
	return 1;
}

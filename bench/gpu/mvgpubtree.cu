// A peer: the B-link tree of MVGpuBTree (Awad, Porumbescu, Owens, PACT 2022), with
// uint32 keys and values. Its sources are not part of this repository: whoever
// measures has a copy, and the benchmark compiles this against it. It is started
// as
//
//	mvgpubtree insert|find KEYS QUERIES SEED WARM_UP_SECONDS
//
// says "ready", and then plays one round for every line of standard input, which
// holds a number of operations. The answer is the milliseconds that the GPU took,
// and how many results were wrong. insert puts all of them into an empty tree.
#include <gpu_btree.h>

#include <thrust/count.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/fill.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/tabulate.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

typedef std::uint32_t u32;
typedef std::uint64_t u64;

static const int nodeEntries = 16;
typedef GpuBTree::node_type<u32, u32, nodeEntries> Node;
typedef GpuBTree::gpu_blink_tree<u32, u32, nodeEntries, device_bump_allocator<Node>> Tree;

static void must(cudaError_t e) {
	if (e != cudaSuccess) throw std::runtime_error(cudaGetErrorString(e));
}

// DistinctKey is a permutation of 32 bits, so that keys differ, in random order.
// The greatest number, which the tree reserves, and 0 are left out.
struct DistinctKey {
	u32 seed;
	__host__ __device__ u32 operator()(u64 i) const {
		u32 x = (u32)(i + 1) * 0x9e3779b1u + seed;
		x = (x ^ x >> 16) * 0x85ebca6bu;
		x = (x ^ x >> 13) * 0xc2b2ae35u;
		x ^= x >> 16;
		return x == ~0u ? 0x7ffffffeu : x == 0 ? 0x7fffffffu : x;
	}
};

__host__ __device__ inline u32 valueOf(u32 key) { return key * 0x9e3779b1u >> 1; }

struct Value {
	DistinctKey key;
	__host__ __device__ u32 operator()(u64 i) const { return valueOf(key(i)); }
};

struct WrongValue {
	const u32 *keys, *found;
	__host__ __device__ bool operator()(u64 i) const { return found[i] != valueOf(keys[i]); }
};

struct Peer {
	thrust::device_vector<u32> keys, vals, found;
	std::unique_ptr<Tree> tree;

	Peer(u64 n, u64 seed) : keys(n), vals(n), found(n) {
		DistinctKey key{(u32)seed};
		thrust::tabulate(thrust::device, keys.begin(), keys.end(), key);
		thrust::tabulate(thrust::device, vals.begin(), vals.end(), Value{key});
	}
	void empty() {
		tree.reset();
		tree.reset(new Tree());
		must(cudaDeviceSynchronize());
	}
	void insert(u64 ops) { tree->insert(thrust::raw_pointer_cast(keys.data()), thrust::raw_pointer_cast(vals.data()), (u32)ops); }
	void find(u64 ops) { tree->find(thrust::raw_pointer_cast(keys.data()), thrust::raw_pointer_cast(found.data()), (u32)ops); }
	u64 wrong(u64 ops) {
		thrust::counting_iterator<u64> first(0);
		return thrust::count_if(thrust::device, first, first + ops,
			WrongValue{thrust::raw_pointer_cast(keys.data()), thrust::raw_pointer_cast(found.data())});
	}
};

// prepare makes the tree that a round needs, and keeps the GPU busy, so that its
// clocks are up when time counts.
static void prepare(Peer &p, bool inserts, u64 ops, double seconds) {
	std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
	do {
		if (inserts) {
			p.empty();
			p.insert(ops);
		} else {
			p.find(ops);
		}
		must(cudaDeviceSynchronize());
	} while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds);
	if (inserts) p.empty();
	thrust::fill(thrust::device, p.found.begin(), p.found.end(), ~0u);
}

static int play(bool inserts, u64 n, u64 seed, double warmUp) {
	Peer p(n, seed);
	if (!inserts) {
		p.empty();
		p.insert(n);
	}
	cudaEvent_t begin, end;
	must(cudaEventCreate(&begin));
	must(cudaEventCreate(&end));
	must(cudaDeviceSynchronize());
	std::printf("ready\n");
	std::fflush(stdout);
	char line[64];
	while (std::fgets(line, sizeof line, stdin)) {
		u64 ops = std::strtoull(line, nullptr, 10);
		if (ops > n) throw std::runtime_error("more operations than there are keys");
		prepare(p, inserts, ops, warmUp);
		must(cudaEventRecord(begin));
		if (inserts)
			p.insert(ops);
		else
			p.find(ops);
		must(cudaEventRecord(end));
		must(cudaEventSynchronize(end));
		float ms = 0;
		must(cudaEventElapsedTime(&ms, begin, end));
		if (inserts) p.find(ops);
		must(cudaDeviceSynchronize());
		std::printf("%.6f %llu\n", ms, (unsigned long long)p.wrong(ops));
		std::fflush(stdout);
	}
	return 0;
}

int main(int argc, char **argv) try {
	if (argc != 6) throw std::runtime_error("five arguments");
	u64 n = std::strtoull(argv[2], nullptr, 10), seed = std::strtoull(argv[4], nullptr, 10);
	double warmUp = std::strtod(argv[5], nullptr);
	bool inserts = !std::strcmp(argv[1], "insert");
	if (!inserts && std::strcmp(argv[1], "find")) throw std::runtime_error(std::string("no mode ") + argv[1]);
	return play(inserts, n, seed, warmUp);
} catch (const std::exception &e) {
	std::fprintf(stderr, "mvgpubtree: %s\n", e.what());
	return 1;
}

// A peer: an ordered map of a C++ library, in a process of its own. The
// benchmark compiles this and starts it as
//
//	map 32|64
//
// with the width of keys and values. It then does what the lines of standard
// input say, each followed by raw numbers of the machine's byte order:
//
//	load N        N sorted keys, N values: takes the place of what was there
//	set N         N keys, N values: one insert a key
//	get N T       N keys: looked up on T threads
//	clear         empties the map
//
// Every answer is a line of nanoseconds, entries and bytes of memory, or hits in
// the place of bytes for get, after which come N values and N bytes that are 1
// where the key was found. Only work on the map is in the time.
#if defined(PEER_ABSL)
#if !__has_include(<absl/container/btree_map.h>)
#error PEER_LIBRARY_MISSING
#endif
#include <absl/container/btree_map.h>
template <typename W> using Map = absl::btree_map<W, W>;
#elif defined(PEER_TLX)
#if !__has_include(<tlx/container/btree_map.hpp>)
#error PEER_LIBRARY_MISSING
#endif
#include <tlx/container/btree_map.hpp>
template <typename W> using Map = tlx::btree_map<W, W>;
#else
#include <map>
template <typename W> using Map = std::map<W, W>;
#endif

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

// inUse returns the bytes that malloc has handed out; 0 where it does not tell.
static long long inUse() {
#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 33)
	struct mallinfo2 m = mallinfo2();
	return (long long)(m.uordblks + m.hblkhd);
#endif
#endif
	return 0;
}

template <typename F> long long timed(F work) {
	std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
	work();
	return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start).count();
}

template <typename T> void readAll(std::vector<T> &v, std::size_t n) {
	v.resize(n);
	if (std::fread(v.data(), sizeof(T), n, stdin) != n) throw std::runtime_error("the input ends early");
}

template <typename T> void writeAll(const std::vector<T> &v) {
	if (std::fwrite(v.data(), sizeof(T), v.size(), stdout) != v.size()) throw std::runtime_error("cannot write");
}

// load takes sorted pairs in the way that is best for the map.
template <typename W> void load(Map<W> &map, const std::vector<W> &keys, const std::vector<W> &vals) {
	map.clear();
#if defined(PEER_TLX)
	std::vector<std::pair<W, W>> pairs(keys.size());
	for (std::size_t i = 0; i < keys.size(); i++) pairs[i] = std::make_pair(keys[i], vals[i]);
	map.bulk_load(pairs.begin(), pairs.end());
#else
	for (std::size_t i = 0; i < keys.size(); i++) map.emplace_hint(map.end(), keys[i], vals[i]);
#endif
}

template <typename W> struct Peer {
	Map<W> map;
	std::vector<W> keys, vals;
	std::vector<std::uint8_t> found;
	long long before = inUse();

	void answer(long long ns, long long last) {
		std::printf("%lld %zu %lld\n", ns, (std::size_t)map.size(), last);
	}

	long long get(std::size_t lo, std::size_t hi) {
		long long hits = 0;
		for (std::size_t i = lo; i < hi; i++) {
			typename Map<W>::const_iterator at = map.find(keys[i]);
			bool there = at != map.end();
			vals[i] = there ? at->second : 0;
			found[i] = there;
			hits += there;
		}
		return hits;
	}

	long long getAll(std::size_t threads) {
		if (threads <= 1) return get(0, keys.size());
		std::vector<long long> hits(threads);
		std::vector<std::thread> team;
		for (std::size_t t = 0; t < threads; t++) {
			std::size_t lo = keys.size() * t / threads, hi = keys.size() * (t + 1) / threads;
			team.emplace_back([this, &hits, t, lo, hi] { hits[t] = get(lo, hi); });
		}
		long long sum = 0;
		for (std::size_t t = 0; t < threads; t++) {
			team[t].join();
			sum += hits[t];
		}
		return sum;
	}

	// play does what one line says.
	void play(const char *line) {
		char what[16];
		unsigned long long n = 0, threads = 1;
		if (std::sscanf(line, "%15s %llu %llu", what, &n, &threads) < 1) throw std::runtime_error("an empty line");
		if (n > (1ull << 40) / sizeof(W) || threads > 4096) throw std::runtime_error("too many");
		if (!std::strcmp(what, "clear")) {
			map.clear();
			answer(0, 0);
		} else if (!std::strcmp(what, "load") || !std::strcmp(what, "set")) {
			bool sorted = what[0] == 'l';
			readAll(keys, n);
			readAll(vals, n);
			long long room = inUse();
			if (sorted) map.clear(), room = inUse();
			long long ns = timed([&] {
				if (sorted) {
					load(map, keys, vals);
					return;
				}
				for (std::size_t i = 0; i < keys.size(); i++) map[keys[i]] = vals[i];
			});
			answer(ns, inUse() - room);
		} else if (!std::strcmp(what, "get")) {
			readAll(keys, n);
			vals.assign(n, 0);
			found.assign(n, 0);
			long long hits = 0;
			long long ns = timed([&] { hits = getAll(threads); });
			answer(ns, hits);
			writeAll(vals);
			writeAll(found);
		} else {
			throw std::runtime_error(std::string("no command ") + what);
		}
		std::fflush(stdout);
	}
};

template <typename W> int play() {
	Peer<W> peer;
	std::printf("ready\n");
	std::fflush(stdout);
	char line[128];
	while (std::fgets(line, sizeof line, stdin)) peer.play(line);
	return 0;
}

int main(int argc, char **argv) try {
	if (argc == 2 && !std::strcmp(argv[1], "32")) return play<std::uint32_t>();
	if (argc == 2 && !std::strcmp(argv[1], "64")) return play<std::uint64_t>();
	throw std::runtime_error("say 32 or 64");
} catch (const std::exception &e) {
	std::fprintf(stderr, "map: %s\n", e.what());
	return 1;
}

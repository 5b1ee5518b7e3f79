// Package serve measures the server beside others that speak its protocol, over loopback, by the loads of redis-benchmark and by
// batches and ranges. Every server is a process of its own, and every reply is checked.
package serve

import "github.com/pando-index/pando/bench/contest"

const colRate = "a second"

// connections is how many clients redis-benchmark has.
const connections = 50

func experiment(name, about, per string, queries int, loads ...load) *contest.Experiment {
	return &contest.Experiment{
		Name: name, About: about, Per: per, CaseName: "load", Sizes: []int{contest.Mega}, Queries: queries, Threads: []int{1, connections},
		Extra: []contest.ExtraColumn{{Name: colRate, Format: contest.Number}},
		Run:   func(s *contest.Session) error { return run(s, loads) },
	}
}

// Experiments are those of this package.
var Experiments = []*contest.Experiment{
	experiment("serve-single", "GET, SET and INCR, each sent when the one before is answered; --threads are the connections", "one command", 200_000,
		getOne(1), setOne(1), incrOne(1)),
	experiment("serve-pipe", "the same, 16 of a connection on their way", "one command", contest.Mega,
		getOne(16), setOne(16), incrOne(16)),
	experiment("serve-batch", "MGET and MSET of 1000 keys", "one key", 4*contest.Mega,
		getMany(1000), setMany(1000)),
	experiment("serve-range", "ZRANGEBYLEX of 1000 keys, which redis has of a sorted set", "one key", 4*contest.Mega,
		rangeOf(1000)),
	experiment("serve-mixed", "an MGET of 100, a range of 100 and an MSET of 100, sent together: what an analyst's program does", "one key", 4*contest.Mega,
		mixed(100)),
}

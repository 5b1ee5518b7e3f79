package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/exp/cuart"
	"github.com/pando-index/pando/bench/exp/fast"
	"github.com/pando-index/pando/bench/exp/gpu"
	"github.com/pando-index/pando/bench/exp/hbplus"
	"github.com/pando-index/pando/bench/exp/hybrid"
	"github.com/pando-index/pando/bench/exp/latched"
	"github.com/pando-index/pando/bench/exp/point"
	"github.com/pando-index/pando/bench/exp/ranges"
	"github.com/pando-index/pando/bench/exp/serve"
	"github.com/pando-index/pando/bench/exp/stalls"
	"github.com/pando-index/pando/bench/exp/store"
	"github.com/pando-index/pando/bench/exp/text"
	"github.com/pando-index/pando/bench/exp/tree"
	"github.com/pando-index/pando/bench/exp/values"
	"github.com/pando-index/pando/bench/exp/vectors"
)

// listing is the order of list and of "run all". An experiment that it does not name
// comes behind those that it does.
var listing = strings.Fields(`
	point-u64 point-u32 rank-u32 single-get range range-iter build memory node-search pipeline-length fanout pages
	skew threads layout gpu-rank-u32 gpu-point-u64 gpu-endtoend gpu-update gpu-update-shapes gpu-tree-find
	gpu-tree-u32 gpu-tree-endtoend hybrid-ways hybrid-buckets hybrid-skew hybrid-sizes hybrid-ranges
	hybrid-balance hybrid-capped batcher set-random set-ascending delete set-batch tree-get scan tree-memory
	writers snapshot mixed dict-search dict-insert gpu-dict-search gpu-dict-insert gpu-latched-insert
	gpu-latched-hot gpu-single-insert gpu-page-size gpu-visit gpu-aggregate aggregate transform histogram select
	update-ways update-batches rebuild update-mix strings strings-tree tree-get-strings values values-memory values-waves key-entropy key-size
	fast-steps fast-sizes fast-build response-time layouts packed-distance gpu-layouts gpu-strings gpu-radix
	gpu-radix-host gpu-radix-long gpu-radix-endtoend stops waits cuart-layout cuart-batch cuart-threads
	cuart-sizes cuart-keys cuart-real cuart-long cuart-updates cuart-root radix-wide store-set store-batch
	store-recover store-checkpoint serve-single serve-pipe serve-batch serve-range serve-mixed
`)

// allExperiments are those of all parts, in order.
var allExperiments = listed(slices.Concat(
	point.Experiments, ranges.Experiments, tree.Experiments, text.Experiments, values.Experiments, vectors.Experiments, stalls.Experiments,
	gpu.Experiments, hybrid.Experiments, hbplus.Experiments, fast.Experiments, latched.Experiments, cuart.Experiments,
	store.Experiments, serve.Experiments,
))

func listed(exps []*contest.Experiment) []*contest.Experiment {
	place := func(e *contest.Experiment) int {
		if at := slices.Index(listing, e.Name); at >= 0 {
			return at
		}
		return len(listing)
	}
	slices.SortStableFunc(exps, func(a, b *contest.Experiment) int { return cmp.Compare(place(a), place(b)) })
	return exps
}

func findExperiment(name string) *contest.Experiment {
	i := slices.IndexFunc(allExperiments, func(e *contest.Experiment) bool { return e.Name == name })
	if i < 0 {
		return nil
	}
	return allExperiments[i]
}

func experimentNames() []string {
	names := make([]string, len(allExperiments))
	for i, e := range allExperiments {
		names[i] = e.Name
	}
	return names
}

func printList(w io.Writer) {
	for _, e := range allExperiments {
		fmt.Fprintf(w, "%-16s %s\n", e.Name, e.About)
		if e.Figure != "" {
			fmt.Fprintf(w, "%-16s redoes %s\n", "", e.Figure)
		}
	}
	fmt.Fprint(w, "\nRun one with: go run . run NAME (more: go run . --help)\n")
}

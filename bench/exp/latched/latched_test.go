package latched

import (
	"slices"
	"testing"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/rig"
	"github.com/pando-index/pando/bench/rig/rigtest"
	"github.com/pando-index/pando/internal/device/ptx"
)

// Runs the experiments of the latched trees and of the trees of large pages on
// the interpreter: their own checks look at every answer.
func TestLatchedExperimentsOnTheInterpreter(t *testing.T) {
	defer func(sizes, threads []int) { pageSizes, pageThreads = sizes, threads }(pageSizes, pageThreads)
	pageSizes, pageThreads = []int{8, 64}, []int{32}
	defer func(sizes []int) { singlePages = sizes }(singlePages)
	singlePages = []int{16}
	for e, cases := range map[*contest.Experiment][]string{
		gpuDictInsert:    {"shuffled", "ascending", "Gaussian", "mesh-like"},
		gpuDictSearch:    {"shuffled", "ascending", "Gaussian", "mesh-like"},
		gpuLatchedInsert: {"insert", "set", "get"},
		gpuLatchedHot:    {"1"},
		gpuSingleInsert:  {""},
		gpuPageSize:      {"8", "64"},
		gpuVisit:         {"8", "64"},
	} {
		s := rigtest.Interpreted(t, e, 30, 30)
		seed := s.Seed
		rigtest.UseGPU(t, func() (rig.Device, error) { return ptx.New(ptx.Seed(seed), ptx.RaceCheck(false)), nil })
		if err := e.Run(s); err != nil {
			t.Fatalf("%s: %v", e.Name, err)
		}
		var got []string
		for _, r := range s.Rows {
			if !slices.Contains(got, r.Case) {
				got = append(got, r.Case)
			}
			if len(r.Rounds) != 2 || r.Best <= 0 || r.N != 30 {
				t.Errorf("%s: %+v", e.Name, r)
			}
		}
		if !slices.Equal(got, cases) {
			t.Errorf("%s: cases %q, want %q; left out: %q", e.Name, got, cases, s.Skipped)
		}
	}
}

// Package contesttest has sessions for tests.
package contesttest

import (
	"bytes"
	"testing"

	"github.com/pando-index/pando/bench/contest"
)

// Session returns a session of an experiment of no purpose, with few queries and short rounds.
func Session(t *testing.T, seed uint64) *contest.Session {
	t.Helper()
	t.Logf("seed %d", seed)
	cfg := contest.DefaultConfig()
	cfg.Rounds, cfg.Queries, cfg.Seconds, cfg.Seed = 3, 256, 0.001, seed
	return contest.NewSession(cfg, &contest.Experiment{Name: "test", Sizes: contest.UsualSizes}, &bytes.Buffer{})
}

package contesttest

import (
	"bytes"
	"testing"

	"github.com/pando-index/pando/bench/contest"
)

func Session(t *testing.T, seed uint64) *contest.Session {
	t.Helper()
	t.Logf("seed %d", seed)
	cfg := contest.DefaultConfig()
	cfg.Rounds, cfg.Queries, cfg.Seconds, cfg.Seed = 3, 256, 0.001, seed
	return contest.NewSession(cfg, &contest.Experiment{Name: "test", Sizes: contest.UsualSizes}, &bytes.Buffer{})
}

package hbplus

import (
	"time"

	"github.com/pando-index/pando/internal/flow"
)

// Predict returns the prediction of the cost model of section 5.4 of the
// HB+-tree paper: the time from one bucket to the next where they overlap in
// some way, from times that were measured one bucket after the other.
//
// Where buckets overlap, no worker waits for the last piece of its bucket, so
// only the time that the CPU is busy counts. Two things the paper does not
// have: only one bucket is filled and sent at a time, which bounds small ones;
// and the CPU answers queries of its own while it has nothing else to do, so
// that fewer are left for the buckets.
func Predict(t flow.Times, o flow.Overlap) time.Duration {
	gpu := t.GPU()
	switch o {
	case flow.Sequential:
		return t.Fill + t.In + t.Search + t.Out + t.Finish
	case flow.Pipelined:
		gpu = t.In + t.Search + t.Out
	}
	took := max(t.Busy, t.Fill+t.Send, gpu)
	if t.Alone > 0 {
		took = time.Duration(float64(took) / (1 + float64(took-t.Busy)/float64(t.Alone)))
	}
	return took
}

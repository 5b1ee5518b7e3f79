package hbplus

import (
	"testing"
	"time"

	"github.com/pando-index/pando/internal/flow"
)

func TestPredict(t *testing.T) {
	for _, c := range []struct {
		flow.Times
		sequential, pipelined, doubled time.Duration
	}{
		{flow.Times{}, 0, 0, 0},
		{flow.Times{Fill: 1, In: 2, Search: 3, Out: 4, Finish: 5, Busy: 6}, 15, 9, 6},
		{flow.Times{Fill: 1, In: 20, Search: 3, Out: 4, Finish: 5, Busy: 6}, 33, 27, 20},
		{flow.Times{Fill: 1, In: 2, Search: 30, Out: 4, Finish: 5, Busy: 6}, 42, 36, 30},
		{flow.Times{Fill: 1, In: 2, Search: 3, Out: 40, Finish: 5, Busy: 6}, 51, 45, 40},
		{flow.Times{Fill: 70, In: 2, Search: 3, Out: 4, Finish: 5, Busy: 40}, 84, 70, 70}, // filling bounds
		{flow.Times{Fill: 7, In: 2, Search: 3, Out: 4, Finish: 5, Send: 30}, 21, 37, 37},  // and sending
		{flow.Times{Finish: 8, Busy: 8, Latency: 100, Queries: 100}, 8, 8, 8},
		{flow.Times{In: 10, Search: 20, Busy: 10, Alone: 20}, 30, 15, 13}, // the CPU takes a part
	} {
		for o, want := range []time.Duration{c.sequential, c.pipelined, c.doubled} {
			if got := Predict(c.Times, flow.Overlap(o)); got != want {
				t.Errorf("%+v, %v: %d, want %d", c.Times, flow.Overlap(o), got, want)
			}
		}
	}
}

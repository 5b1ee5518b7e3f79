package values

import (
	"math"
	"runtime/metrics"
	"time"
)

// collector is what the garbage collector has taken so far.
type collector struct {
	cpu, busy float64 // seconds of processors: its own, and of all that was not idle
	pauses    *metrics.Float64Histogram
}

func readCollector() collector {
	m := []metrics.Sample{
		{Name: "/cpu/classes/gc/total:cpu-seconds"},
		{Name: "/cpu/classes/total:cpu-seconds"},
		{Name: "/cpu/classes/idle:cpu-seconds"},
		{Name: "/sched/pauses/total/gc:seconds"},
	}
	metrics.Read(m)
	return collector{m[0].Value.Float64(), m[1].Value.Float64() - m[2].Value.Float64(), m[3].Value.Float64Histogram()}
}

// since returns the collector's share of processor time, and its longest pause.
func (c collector) since(before collector) (share float64, longest time.Duration) {
	if busy := c.busy - before.busy; busy > 0 {
		share = (c.cpu - before.cpu) / busy
	}
	for i, n := range c.pauses.Counts {
		if n > before.pauses.Counts[i] {
			if end := c.pauses.Buckets[i+1]; !math.IsInf(end, 0) {
				longest = time.Duration(end * float64(time.Second))
			}
		}
	}
	return share, longest
}

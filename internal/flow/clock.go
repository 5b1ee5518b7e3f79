package flow

import (
	"time"

	"github.com/pando-index/pando/internal/device"
)

// Times is the average time of a bucket, step by step. In, Search, Out and
// Finish are T1 to T4 of the HB+-tree paper; Fill, which it does not count, is
// the CPU's work before a bucket is sent: copying keys into page-locked memory,
// and the first levels, where those are the CPU's.
type Times struct {
	Fill, In, Search, Out, Finish time.Duration
	Send                          time.Duration // of one worker, in the driver
	Busy                          time.Duration // of the CPU, all workers together, by their number
	Alone                         time.Duration // of the CPU without a GPU; 0 where it does not help out
	Latency                       time.Duration // from the first key filled in to the last result
	Queries                       int           // in a bucket
}

// GPU returns the longest of the steps that overlap on the GPU's side.
func (t Times) GPU() time.Duration { return max(t.In, t.Search, t.Out) }

// Clock adds up the times of the buckets of a flow, under its lock.
type Clock struct {
	sum     Times
	buckets int
	err     error
}

// Times returns the averages, and the error of taking them.
func (c *Clock) Times() (Times, error) {
	t, n := c.sum, time.Duration(max(c.buckets, 1))
	for _, d := range []*time.Duration{&t.Fill, &t.In, &t.Search, &t.Out, &t.Finish, &t.Send, &t.Busy, &t.Latency} {
		*d /= n
	}
	t.Queries /= int(n)
	return t, c.err
}

// The steps of a bucket on a device, as Mark takes them.
const (
	Sent = iota
	CopiedIn
	Searched
)

// Mark notes in the stream that a step of a bucket is over, where it is timed.
func (f *Flow[B]) Mark(s *Slot[B], st device.Stream, step int) error {
	if f.clock == nil {
		return nil
	}
	return st.Record(s.marks[step])
}

// arrived adds the times of a bucket that is back.
func (c *Clock) arrived(s *times) {
	var steps [3]time.Duration
	for i := range steps {
		ms, err := s.marks[i+1].Since(s.marks[i])
		if err != nil {
			c.err = err
			return
		}
		steps[i] = time.Duration(ms * float64(time.Millisecond))
	}
	c.sum.In += steps[0]
	c.sum.Search += steps[1]
	c.sum.Out += steps[2]
	c.sum.Queries += s.Queries
	c.buckets++
}

// finished adds the CPU's time for a bucket: from its first piece to its last,
// which is its own time only where no other bucket is under way.
func (c *Clock) finished(s *times, workers int) {
	c.sum.Busy += time.Duration(s.busy.Load()) / time.Duration(workers)
	c.sum.Latency += time.Since(s.begun)
	c.sum.Fill += s.sent.Sub(s.begun)
	c.sum.Send += s.gone.Sub(s.sent)
	c.sum.Finish += time.Since(s.back)
}

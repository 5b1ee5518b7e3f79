package exec

import (
	"sync"
	"time"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/order"
)

// Times is what a bucket takes on average, step by step. In, Search, Out and
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

// GPU is the longest of the steps that overlap on the GPU's side.
func (t Times) GPU() time.Duration { return max(t.In, t.Search, t.Out) }

// Predict is the cost model of section 5.4: the time between two buckets that
// follow each other in some way, from times measured one after the other. Where
// they overlap, no worker waits for the last of its bucket: what counts of the
// CPU's time is how long it is busy. But only one bucket is filled and sent at a
// time, which bounds small ones; and what is left of the CPU's time goes into
// queries of its own.
func (t Times) Predict(w Way) time.Duration {
	gpu := t.GPU()
	switch w {
	case Sequential:
		return t.Fill + t.In + t.Search + t.Out + t.Finish
	case Pipelined:
		gpu = t.In + t.Search + t.Out
	}
	took := max(t.Busy, t.Fill+t.Send, gpu)
	if t.Alone > 0 {
		took = time.Duration(float64(took) / (1 + float64(took-t.Busy)/float64(t.Alone)))
	}
	return took
}

// clock adds up the times of the buckets of a flow, under its lock.
type clock struct {
	sum     Times
	buckets int
	err     error
}

// times gives the averages.
func (c *clock) times() Times {
	t, n := c.sum, time.Duration(max(c.buckets, 1))
	for _, d := range []*time.Duration{&t.Fill, &t.In, &t.Search, &t.Out, &t.Finish, &t.Send, &t.Busy, &t.Latency} {
		*d /= n
	}
	t.Queries /= int(n)
	return t
}

// mark notes in the stream that a step is over. A nil clock does nothing.
func (c *clock) mark(s *slot, st device.Stream, step int) error {
	if c == nil {
		return nil
	}
	return st.Record(s.marks[step])
}

// arrived adds the times of a bucket that is back.
func (c *clock) arrived(s *slot) {
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
	c.sum.Queries += s.hi - s.lo
	c.buckets++
}

// finished adds what the CPU took for a bucket: from its first piece to its
// last, which is its own time only where no other bucket is under way.
func (c *clock) finished(s *slot, workers int) {
	c.sum.Busy += time.Duration(s.busy.Load()) / time.Duration(workers)
	c.sum.Latency += time.Since(s.begun)
	c.sum.Fill += s.sent.Sub(s.begun)
	c.sum.Send += s.gone.Sub(s.sent)
	c.sum.Finish += time.Since(s.landed)
}

// trial is a sample of keys, and room for the results.
type trial[K order.Key, C order.Code] struct {
	gpu   *GPU[K, C]
	batch batch[K, C]
}

// try makes a trial that looks keys up as batches of this tree do.
func (g *GPU[K, C]) try(keys []K) *trial[K, C] {
	t := &trial[K, C]{gpu: g, batch: batch[K, C]{ask: rank, keys: keys}}
	if g.image.pairs() {
		t.batch.ask, t.batch.vals = getPairs, make([]C, len(keys))
		t.batch.raw = arena.Bytes(t.batch.vals)
	} else {
		t.batch.ranks = make([]int, len(keys))
	}
	return t
}

// part is the trial with some of the keys.
func (t *trial[K, C]) part(n int) batch[K, C] {
	b := t.batch
	b.keys = b.keys[:n]
	return b
}

// pace gives how long the sample takes by a plan.
func (t *trial[K, C]) pace(p Plan) time.Duration {
	return BestOf(func() { t.gpu.runBy(t.batch, &p, nil) })
}

// times runs the sample by a plan and takes the time of every step.
func (t *trial[K, C]) times(p Plan) (Times, error) {
	t.gpu.runBy(t.batch, &p, nil) // the first round finds cold caches
	c := new(clock)
	t.gpu.runBy(t.batch, &p, c)
	if err := t.gpu.Down(); err != nil {
		return Times{}, err
	}
	times := c.times()
	if p.Lower <= t.gpu.steps.Depth() {
		alone := BestOf(func() { t.gpu.CPU.run(t.batch) })
		times.Alone = alone * time.Duration(times.Queries) / time.Duration(max(len(t.batch.keys), 1))
	}
	return times, c.err
}

// Measure looks keys up by a plan and gives the average times of a bucket.
// They are those of single steps only where buckets follow one after another.
func (g *GPU[K, C]) Measure(keys []K, p Plan) (Times, error) {
	if err := p.check(g.keep, g.steps.Depth()); err != nil {
		return Times{}, err
	}
	return g.try(keys).times(p)
}

// Balance finds the split that leaves CPU and GPU as equally busy as can be,
// by the paper's discovery algorithm on a sample of keys, and takes the faster
// of it and the split before. From then on batches run by it, and when they
// take much more or less time than the sample did, it is looked for again.
func (g *GPU[K, C]) Balance(sample []K) (Plan, error) {
	plan, took, err := g.balance(g.try(sample))
	if err != nil {
		return g.Plan(), err
	}
	g.plan.Store(&plan)
	g.watch.expect(sampleOf(sample), took, len(sample))
	return plan, nil
}

// sampleOf copies the sample, for later.
func sampleOf[K any](keys []K) any { return append([]K(nil), keys...) }

func (g *GPU[K, C]) balance(t *trial[K, C]) (Plan, time.Duration, error) {
	plan, bucket := g.Plan(), g.Plan().Bucket
	plan.Split = Split{Upper: g.keep.First, Lower: g.keep.Last}
	plan.Bucket = min(bucket, max(len(t.batch.keys)/16, smallest)) // many buckets, as batches have
	var failed error
	split := discover(plan.Split, min(plan.Lower, g.steps.Depth()), func(s Split) (gpu, cpu time.Duration) {
		if failed != nil {
			return 0, 0
		}
		try := plan
		try.Split, try.Way = s, Sequential
		times, err := t.times(try)
		failed = err
		return times.GPU(), times.Busy
	})
	if failed != nil {
		return plan, 0, failed
	}
	other := plan
	other.Split = split
	took := t.pace(plan)
	if split != plan.Split {
		if faster := t.pace(other); faster < took {
			plan, took = other, faster
		}
	}
	plan.Bucket = bucket
	return plan, took, nil
}

// discover is the discovery algorithm: levels go to the CPU one by one while
// the GPU is the slower; then the share of a bucket for which the CPU takes
// the last of them is halved in, in four steps: to a 32nd.
func discover(s Split, most int, sample func(Split) (gpu, cpu time.Duration)) Split {
	s.Share = 0
	gpu, cpu := sample(s)
	if gpu <= cpu {
		return s
	}
	for gpu > cpu {
		if s.Upper == most {
			return s
		}
		s.Upper++
		gpu, cpu = sample(s)
	}
	s.Upper-- // the level at which the balance tips
	s.Share = 0.5
	for step := 0.25; step >= 1.0/32; step /= 2 {
		if gpu, cpu = sample(s); gpu > cpu {
			s.Share += step
		} else {
			s.Share -= step
		}
	}
	return s
}

// watch looks whether batches still take the time that was measured.
type watch struct {
	mu       sync.Mutex
	sample   any           // []K; nil before the first Balance
	expected time.Duration // for 1024 queries, when the plan was made
	strayed  int           // batches in a row that took much longer or shorter
	running  bool
	done     sync.WaitGroup
	closed   bool
}

func (w *watch) expect(sample any, took time.Duration, queries int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sample, w.expected, w.strayed = sample, took*1024/time.Duration(max(queries, 1)), 0
}

// A plan is old when so many large batches in a row take that much more, or
// less, than when it was made.
const (
	strayedBatches = 16
	strayedBy      = 2
)

// saw notes a batch. Where it is time to measure again it gives the sample,
// and the caller must call measured.
func (w *watch) saw(took time.Duration, queries int) (sample any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sample == nil || w.running || w.closed {
		return nil
	}
	took = took * 1024 / time.Duration(queries)
	if took <= w.expected*strayedBy && took*strayedBy >= w.expected {
		w.strayed = 0
		return nil
	}
	if w.strayed++; w.strayed < strayedBatches {
		return nil
	}
	w.strayed, w.running = 0, true
	w.done.Add(1)
	return w.sample
}

func (w *watch) measured() {
	w.mu.Lock()
	w.running = false
	w.mu.Unlock()
	w.done.Done()
}

// close lets no more measurements begin, and waits for one under way.
func (w *watch) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.done.Wait()
}

// look compares the time of a batch with what is expected, and has the plan
// made anew, beside, where it is old.
func (g *GPU[K, C]) look(took time.Duration, queries int) {
	if queries < watchedBatch || g.given() {
		return
	}
	if sample := g.watch.saw(took, queries); sample != nil {
		go func() {
			defer g.watch.measured()
			g.Balance(sample.([]K)) // what fails here fails in a batch, too
		}()
	}
}

// watchedBatch is the batch that is large enough to be compared.
const watchedBatch = 64 << 10

// Crossover finds the least batch from which on the schedule is faster than
// the CPU alone, by looking up some of the sample both ways; 0 if it never is.
func (g *GPU[K, C]) Crossover(sample []K) (least int) {
	t, plan := g.try(sample), g.Plan()
	for n := len(sample); n >= 256; n /= 4 {
		part := t.part(n)
		if BestOf(func() { g.runBy(part, &plan, nil) }) >= BestOf(func() { g.CPU.run(part) }) {
			break
		}
		least = n
	}
	return least
}

// BestOf times a few runs and gives the fastest.
func BestOf(run func()) (best time.Duration) {
	for i := range 4 {
		start := time.Now()
		run()
		if took := time.Since(start); i == 0 || took < best {
			best = took
		}
	}
	return best
}

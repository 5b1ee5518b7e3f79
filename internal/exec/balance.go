package exec

import (
	"sync"
	"time"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/flow"
	"github.com/pando-index/pando/internal/order"
)

// Times is the average time of a bucket, step by step.
type Times = flow.Times

// trial is a sample of keys, and room for the results.
type trial[C order.Code] struct {
	gpu   *GPU[C]
	batch batch[C]
}

// try makes a trial that looks keys up as batches of this tree do.
func (g *GPU[C]) try(keys order.Keys) *trial[C] {
	t := &trial[C]{gpu: g, batch: batch[C]{ask: rank, keys: keys}}
	if g.image.Pairs {
		t.batch.ask, t.batch.vals = getPairs, make([]C, keys.Len())
		t.batch.raw = arena.Bytes(t.batch.vals)
	} else {
		t.batch.ranks = make([]int, keys.Len())
	}
	return t
}

// part is the trial with some of the keys.
func (t *trial[C]) part(n int) batch[C] {
	b := t.batch
	b.keys = b.keys.Slice(0, n)
	return b
}

// pace returns how long the sample takes by a plan.
func (t *trial[C]) pace(p Plan) time.Duration {
	return BestOf(func() { t.gpu.runBy(t.batch, &p, nil) })
}

// times runs the sample by a plan and takes the time of every step.
func (t *trial[C]) times(p Plan) (Times, error) {
	t.gpu.runBy(t.batch, &p, nil) // the first round finds cold caches
	c := new(flow.Clock)
	t.gpu.runBy(t.batch, &p, c)
	if err := t.gpu.Down(); err != nil {
		return Times{}, err
	}
	times, err := c.Times()
	if p.Lower <= t.gpu.steps.Depth() {
		alone := BestOf(func() { t.gpu.CPU.run(t.batch) })
		times.Alone = alone * time.Duration(times.Queries) / time.Duration(max(t.batch.keys.Len(), 1))
	}
	return times, err
}

// Measure looks keys up by a plan and returns the average times of a bucket.
// They are those of single steps only where buckets follow one after another.
func (g *GPU[C]) Measure(keys order.Keys, p Plan) (Times, error) {
	if err := p.check(g.keep, g.steps.Depth()); err != nil {
		return Times{}, err
	}
	return g.try(keys).times(p)
}

// Balance finds the split that leaves CPU and GPU as equally busy as can be,
// by the paper's discovery algorithm on a sample of keys, and takes the faster
// of it and the split before. From then on batches run by it, and when they
// take much more or less time than the sample did, it is looked for again. The
// sample must stay as it is.
func (g *GPU[C]) Balance(sample order.Keys) (Plan, error) {
	plan, took, err := g.balance(g.try(sample))
	if err != nil {
		return g.Plan(), err
	}
	g.plan.Store(&plan)
	g.watch.expect(sample, took)
	return plan, nil
}

func (g *GPU[C]) balance(t *trial[C]) (Plan, time.Duration, error) {
	plan, bucket := g.Plan(), g.Plan().Bucket
	plan.Split = Split{Upper: g.keep.First, Lower: g.keep.Last}
	plan.Bucket = min(bucket, max(t.batch.keys.Len()/16, smallest)) // many buckets, as batches have
	var failed error
	split := discover(plan.Split, min(plan.Lower, g.steps.Depth()), func(s Split) (gpu, cpu time.Duration) {
		if failed != nil {
			return 0, 0
		}
		try := plan
		try.Split, try.Overlap = s, flow.Sequential
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
	sample   order.Keys    // empty before the first Balance
	expected time.Duration // for 1024 queries, when the plan was made
	strayed  int           // batches in a row that took much longer or shorter
	running  bool
	done     sync.WaitGroup
	closed   bool
}

func (w *watch) expect(sample order.Keys, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sample, w.expected, w.strayed = sample, took*1024/time.Duration(max(sample.Len(), 1)), 0
}

// A plan is old when this many large batches in a row take this much more, or
// less, than when it was made.
const (
	strayedBatches = 16
	strayedBy      = 2
)

// saw notes a batch. Where it is time to measure again it returns the sample,
// and the caller must call measured.
func (w *watch) saw(took time.Duration, queries int) (sample order.Keys, again bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sample.Len() == 0 || w.running || w.closed {
		return sample, false
	}
	took = took * 1024 / time.Duration(queries)
	if took <= w.expected*strayedBy && took*strayedBy >= w.expected {
		w.strayed = 0
		return sample, false
	}
	if w.strayed++; w.strayed < strayedBatches {
		return sample, false
	}
	w.strayed, w.running = 0, true
	w.done.Add(1)
	return w.sample, true
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

// look compares the time of a batch with the expected one, and has the plan
// made anew, beside, where it is old.
func (g *GPU[C]) look(took time.Duration, queries int) {
	if queries < watchedBatch || g.given() {
		return
	}
	if sample, again := g.watch.saw(took, queries); again {
		go func() {
			defer g.watch.measured()
			g.Balance(sample) // an error here comes in a batch, too
		}()
	}
}

// watchedBatch is the batch that is large enough to be compared.
const watchedBatch = 64 << 10

// Crossover finds the least batch from which on the schedule is faster than
// the CPU alone, by looking up some of the sample both ways; 0 if it never is.
func (g *GPU[C]) Crossover(sample order.Keys) (least int) {
	t, plan := g.try(sample), g.Plan()
	for n := sample.Len(); n >= 256; n /= 4 {
		part := t.part(n)
		if BestOf(func() { g.runBy(part, &plan, nil) }) >= BestOf(func() { g.CPU.run(part) }) {
			break
		}
		least = n
	}
	return least
}

// BestOf times a few runs and returns the fastest.
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

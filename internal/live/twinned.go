package live

import (
	"math"
	"slices"
	"time"
	"unsafe"

	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/twin"
	"github.com/pando-index/pando/internal/vector"
)

// twinned is a Tree of numbers whose large batches run on a GPU that has a twin of it.
type twinned[C order.Code] struct {
	waiting
	codes *codes[C] // in host memory
	twin  *twin.Twin[C]
}

func newTwinned[C order.Code](c *codes[C], t *twin.Twin[C]) *twinned[C] {
	return &twinned[C]{waiting{c, t}, c, t}
}

// leastSearches and leastChanges are the numbers of operations from which on a
// batch goes to the GPU: 4K lookups take a CPU's tree of 64M entries four times as
// long as a GPU, and 1K changes five times (experiment gpu-tree-endtoend). A smaller
// tree is nearer to the CPU, so lookups have a reserve.
const leastSearches, leastChanges = 4 << 10, 1 << 10

// leastElsewhere is the same for searches of which a GPU does a part, or for which
// strings have to be gathered.
const leastElsewhere = 32 << 10

// Attach gives a tree a twin on a GPU.
func (c *codes[C]) Attach(cfg index.Config, valSize int) (Tree, index.Device, string, error) {
	asked := cfg.Device
	switch {
	case asked.Kind == index.CPU:
		return c, asked, index.ReasonAsked, nil
	case asked.Kind == index.Auto && c.Len() < index.AutoEntries:
		return c, index.OnCPU, index.ReasonSmall, nil
	}
	return attachTree(c, cfg, valSize)
}

// twinCodes is Attach where a driver is linked.
func twinCodes[C order.Code](c *codes[C], cfg index.Config) (Tree, index.Device, string, error) {
	asked := cfg.Device
	if asked.Kind == index.Hybrid {
		return attachMirror(c, cfg)
	}
	dev, free, err := index.OpenWithin(asked.Ordinal, cfg.Room)
	if err != nil {
		where, why, err := index.WithoutGPU(asked, err)
		return c, where, why, err
	}
	opts := twin.Options{Workers: c.workers, Least: leastSearches, Changes: leastChanges, Room: free}
	if !index.PreferCPU {
		opts.Least, opts.Changes = 1, 1
	}
	if cfg.Limit > 0 {
		opts.Changes = 0 // host memory knows the limit
	}
	t, err := twin.New(c.tree, dev, opts)
	if err != nil {
		where, why, err := index.WithoutGPU(asked, err)
		return c, where, why, err
	}
	m := newTwinned(c, t)
	if asked.Kind == index.GPU || !index.PreferCPU {
		return m, index.Device{Kind: index.GPU, Ordinal: asked.Ordinal}, index.ReasonAsked, nil
	}
	if !m.settle(cfg.Limit == 0) {
		where, why, err := index.LeaveOut(t, index.ReasonMeasured)
		return c, where, why, err
	}
	return m, index.Device{Kind: index.GPU, Ordinal: asked.Ordinal}, "measured: large batches are faster there", nil
}

// settle measures from which size on batches are faster on the GPU, and reports
// whether there is one.
func (t *twinned[C]) settle(changes bool) bool {
	t.twin.Least, t.twin.Changes = 1, 1
	n := min(index.SampleKeys, t.codes.Len())
	keys, vals := make([]C, n), make([]C, n)
	for i, at := range index.Spread(n, t.codes.Len()) {
		keys[i], vals[i], _ = t.codes.tree.At(at)
	}
	least := t.crossover(n, func(k int) {
		t.codes.tree.GetBatch(keys[:k], make([]C, k), nil, t.codes.workers, nil)
	}, func(k int) {
		t.twin.Find(k, func(lo int, ks []C) { copy(ks, keys[lo:]) }, func(int, []C, []byte) {})
	})
	most := 0
	if changes { // each key is set to its own value
		most = t.crossover(n, func(k int) {
			ks, vs := order.Sort(slices.Clone(keys[:k]), make([]C, k), slices.Clone(vals[:k]), make([]C, k), t.codes.workers)
			t.codes.tree.Apply(&bplus.Ops[C]{Keys: ks, Vals: vs, Kind: op.Set}, t.codes.workers)
		}, func(k int) {
			fill := func(lo int, ks, vs []C, _ []uint8) {
				copy(ks, keys[lo:])
				copy(vs, vals[lo:])
			}
			none := func(int, int) ([]C, error) { return nil, nil } // the tree has these values
			t.twin.Apply(&twin.Batch[C]{N: k, Kind: op.Set, Fill: fill, CPU: none})
			t.twin.Wait()
		})
	}
	if least == 0 && most == 0 || t.twin.Down() != nil {
		return false
	}
	if least == 0 {
		least = math.MaxInt
	}
	t.twin.Least, t.twin.Changes = least, most
	return true
}

// crossover returns the least number of operations, up to n, for which the GPU
// takes less time than the CPU; 0 if there is none.
func (t *twinned[C]) crossover(n int, cpu, gpu func(k int)) int {
	took := func(f func(int), k int) time.Duration {
		best := time.Duration(math.MaxInt64)
		for range 3 {
			start := time.Now()
			f(k)
			best = min(best, time.Since(start))
		}
		return best
	}
	for k := 4096; k <= n; k *= 4 {
		if took(gpu, k) < took(cpu, k) {
			return k
		}
	}
	return 0
}

func (t *twinned[C]) Get(key order.Probe) (uint64, bool) {
	v, ok := t.twin.Get(C(key.Code))
	return uint64(v), ok
}

func (t *twinned[C]) Set(key order.Probe, val uint64) (uint64, bool, error) {
	v, had, err := t.twin.Set(C(key.Code), C(val))
	return uint64(v), had, err
}

func (t *twinned[C]) Delete(key order.Probe) (uint64, bool, error) {
	v, had, err := t.twin.Delete(C(key.Code))
	return uint64(v), had, err
}

func (t *twinned[C]) Update(key order.Probe, f func(uint64, bool, uint64) (uint64, bool)) (uint64, bool, error) {
	v, had, err := t.twin.Update(C(key.Code), func(old C, had bool) (C, bool) {
		val, keep := f(uint64(old), had, 0)
		return C(val), keep
	})
	return uint64(v), had, err
}

func (t *twinned[C]) Pop(greatest bool) (order.Probe, uint64, bool, error) {
	k, v, ok, err := t.twin.Pop(greatest)
	return order.Probe{Code: uint64(k)}, uint64(v), ok, err
}

func (t *twinned[C]) DeleteRange(lo, hi order.Probe, gone func(uint64)) (int, error) {
	return t.twin.DeleteRange(C(lo.Code), C(hi.Code), widening[C](gone))
}

func (t *twinned[C]) Apply(b *changes) error {
	batch := twinBatch[C](b)
	batch.CPU = func(lo, hi int) (keys []C, err error) {
		c := b.slice(lo, hi)
		keys = make([]C, hi-lo)
		codesOf(keys, c.keys)
		return keys, t.onCPU(c)
	}
	return t.twin.Apply(batch)
}

// onCPU does a batch in host memory. Nobody else changes it meanwhile.
func (t *twinned[C]) onCPU(b *changes) error {
	before := t.codes.tree.Len()
	err := t.codes.Apply(b)
	if err == nil && b.deleted != nil {
		*b.deleted += before - t.codes.tree.Len()
	}
	return err
}

// part returns the memory of values [lo, hi).
func part(vals []byte, size, lo, hi int) []byte {
	if vals == nil {
		return nil
	}
	return vals[lo*size : hi*size]
}

// slice returns operations [lo, hi).
func (b *changes) slice(lo, hi int) *changes {
	if lo == 0 && hi == b.keys.Len() {
		return b
	}
	c := *b
	c.keys, c.vals, c.old = b.keys.Slice(lo, hi), part(b.vals, b.size, lo, hi), part(b.old, b.size, lo, hi)
	if b.kinds != nil {
		c.kinds = b.kinds[lo:hi]
	}
	if b.found != nil {
		c.found = b.found[lo:hi]
	}
	return &c
}

func (t *twinned[C]) GetBatch(keys order.Keys, vals []byte, size int, found []bool, use func(lo, hi int)) int {
	g := newGathering[C](keys, vals, size, found)
	if g.n == 0 || !t.twin.Takes(g.n) && !t.twin.Pending() {
		return t.codes.GetBatch(keys, vals, size, found, use)
	}
	if unsafe.Pointer(unsafe.SliceData(vals)) == keys.At() { // the CPU may need them when some have been answered
		keys = order.MakeKeys(keys.Type, g.n)
		setKeys(keys, codesIn[C](g.keys, g.n))
		g.keys = keys
	}
	if !t.twin.Find(g.n, g.fill, g.answer) {
		t.twin.Wait()
		return t.codes.GetBatch(keys, vals, size, found, use)
	}
	return g.hits()
}

func (t *twinned[C]) RankBatch(keys order.Keys, after bool, ranks []int) {
	if n := len(ranks); t.twin.Takes(n) && t.twin.Rank(codesIn[C](keys, n), after, ranks) {
		return
	}
	t.twin.Wait()
	t.codes.RankBatch(keys, after, ranks)
}

// codesIn returns the codes of the first n keys.
func codesIn[C order.Code](keys order.Keys, n int) []C {
	out := make([]C, n)
	codesOf(out, keys.Slice(0, n))
	return out
}

// RangeBatch reads many ranges at once, all at one moment: see Ranger. It
// returns false where they are better read one by one.
func (m *Map) RangeBatch(lo, hi order.Keys, limit int, offsets []int, room func(n int) (order.Keys, index.Column)) bool {
	r, ok := m.tree.(Ranger)
	return ok && r.Ranges(lo, hi, limit, offsets, func(n int) (order.Keys, []byte) {
		keys, vals := room(n)
		return keys, m.val.Bytes(vals)
	}, m.size)
}

func (t *twinned[C]) Ranges(lo, hi order.Keys, limit int, offsets []int, room func(n int) (order.Keys, []byte), size int) bool {
	n := lo.Len()
	if !t.twin.Takes(n) {
		return false
	}
	r := &gatheredRanges[C]{room: room, size: size}
	if !t.twin.Ranges(codesIn[C](lo, n), codesIn[C](hi, n), limit, offsets, r.take) {
		return false
	}
	r.give()
	return true
}

// gatheredRanges is entries on their way from a GPU to the caller.
type gatheredRanges[C order.Code] struct {
	room       func(n int) (order.Keys, []byte)
	size       int
	keys, vals []C
}

// take makes memory for n entries.
func (r *gatheredRanges[C]) take(n int) (keys, vals []C) {
	r.keys, r.vals = make([]C, n), make([]C, n)
	return r.keys, r.vals
}

// give hands them to the caller.
func (r *gatheredRanges[C]) give() {
	keys, vals := r.room(len(r.keys))
	setKeys(keys, r.keys)
	storeVals(vals, r.size, r.vals)
}

func (t *twinned[C]) ReadValues(lo, hi uint64, size int, r *vector.Reader) {
	t.twin.Wait()
	t.codes.ReadValues(lo, hi, size, r)
}

func (t *twinned[C]) SelectValues(lo, hi uint64, s *selecting) {
	t.twin.Wait()
	t.codes.SelectValues(lo, hi, s)
}

func (t *twinned[C]) Transform(s *span, entries int, f bplus.Changer) (n int, err error) {
	t.twin.Alone(func() []C {
		n, err = t.codes.Transform(s, entries, f)
		return t.keysIn(C(s.lo), C(s.hi))
	})
	return n, err
}

// keysIn returns the keys from lo to hi of the tree in host memory.
func (t *twinned[C]) keysIn(lo, hi C) (keys []C) {
	t.codes.tree.Scan(lo, hi, true, func(ks, _ []C) { keys = append(keys, ks...) })
	return keys
}

var _ Tree = (*twinned[uint64])(nil)

package exec

import (
	"sort"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/flow"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
)

// copying is a batch of runs of entries that are copied out of a tree.
type copying[C order.Code] struct {
	gpu     *GPU[C]
	first   []int // the entry of the tree that each run begins with
	offsets []int // the entry of the result that it begins with; one more for the end
	keys    order.Keys
	raw     []byte // memory of the values
	onCPU   func(lo, hi int)
	flow    flow.Flow[bucket]
	next    int // entry of the result that is in no bucket yet
	most    int // entries of a bucket
}

// Entries copies runs of entries out of a tree, on the GPU where CopiesEntries:
// run i begins with entry first[i] and has offsets[i+1]-offsets[i] entries,
// which go to keys and to raw, the memory of the values, from offsets[i] on.
// onCPU does the same for entries [lo, hi) of the result.
func (g *GPU[C]) Entries(first, offsets []int, keys order.Keys, raw []byte, onCPU func(lo, hi int)) {
	j := &copying[C]{gpu: g, first: first, offsets: offsets, keys: keys, raw: raw, onCPU: onCPU}
	n := keys.Len()
	if _, can := g.image.Resident.(layout.EntryCopier); !can || g.given() || g.keep.Last <= g.steps.Depth() {
		j.Rest()
		return
	}
	// A bucket's keys and values lie one behind the other where a search has a
	// value: it holds half as many.
	j.most = min(max(n/flow.MaxFlight, smallest), MaxBucket) / 2
	j.flow.Run(&g.Schedule, j, flow.Batch{
		Workers: g.workers, Overlap: flow.DoubleBuffered, In: 2 * j.most * inBytes, Out: 2 * j.most * outBytes,
	})
}

// CopiesEntries reports whether the GPU holds all entries and can copy runs of
// them.
func (g *GPU[C]) CopiesEntries() bool {
	_, can := g.image.Resident.(layout.EntryCopier)
	return can && g.Whole()
}

// Cut takes runs, and parts of them, until a bucket is full of entries or of
// runs.
func (j *copying[C]) Cut(s *flow.Slot[bucket]) (pieces int, ok bool) {
	if j.next >= j.keys.Len() {
		return 0, false
	}
	s.Bucket.lo = j.next
	s.Bucket.hi = min(s.Bucket.lo+j.most, j.keys.Len())
	run := sort.SearchInts(j.offsets, s.Bucket.lo+1) - 1 // the last that begins at lo or before
	starts, ends := arena.As[uint32](s.In)[:j.most], arena.As[uint32](s.In)[j.most:2*j.most]
	n := 0
	for at := s.Bucket.lo; at < s.Bucket.hi && n < j.most; run++ {
		end := min(j.offsets[run+1], s.Bucket.hi)
		if end <= at { // an empty run
			continue
		}
		starts[n], ends[n] = uint32(j.first[run]+at-j.offsets[run]), uint32(at-s.Bucket.lo)
		n++
		at = end
		j.next = end
	}
	s.Bucket.hi, s.Bucket.deep = j.next, n
	s.Queries = s.Bucket.hi - s.Bucket.lo
	return 0, true
}

func (j *copying[C]) Fill(*flow.Slot[bucket], int) {}

// Send copies the runs in, lets the entries be copied, and copies them out.
func (j *copying[C]) Send(s *flow.Slot[bucket], st device.Stream) error {
	g, n := j.gpu, s.Bucket.hi-s.Bucket.lo
	offsets := s.DevIn + device.Ptr(4*j.most)
	if err := st.CopyIn(s.DevIn, s.In[:4*s.Bucket.deep]); err != nil {
		return err
	}
	if err := st.CopyIn(offsets, s.In[4*j.most:4*(j.most+s.Bucket.deep)]); err != nil {
		return err
	}
	vals, size := s.DevOut+device.Ptr(j.valsAt(s)), g.image.ValSize
	if size == 0 {
		vals = 0
	}
	s.Bucket.copy = layout.EntryCopy{
		Set: g.set, Stream: st, Params: &s.Bucket.params, Bits: 8 * width[C](), ValBits: 8 * size,
		First: s.DevIn, Offsets: offsets, Runs: s.Bucket.deep, N: n, Keys: s.DevOut, Vals: vals,
	}
	if err := g.image.Resident.(layout.EntryCopier).CopyEntries(&s.Bucket.copy); err != nil {
		return err
	}
	return st.CopyOut(s.Out[:j.valsAt(s)+n*size], s.DevOut)
}

// valsAt returns where the values begin in a bucket's result: behind the keys.
func (j *copying[C]) valsAt(s *flow.Slot[bucket]) int {
	return roundUp((s.Bucket.hi-s.Bucket.lo)*width[C](), 8)
}

func (j *copying[C]) Ends(s *flow.Slot[bucket]) int {
	return (s.Bucket.hi - s.Bucket.lo + maxBucket - 1) / maxBucket
}

func (j *copying[C]) Finish(s *flow.Slot[bucket], piece int) {
	lo := piece * maxBucket
	hi := min(lo+maxBucket, s.Bucket.hi-s.Bucket.lo)
	if s.Err != nil {
		j.onCPU(s.Bucket.lo+lo, s.Bucket.lo+hi)
		return
	}
	order.SetKeys(j.keys.Slice(s.Bucket.lo+lo, s.Bucket.lo+hi), arena.As[C](s.Out)[lo:hi])
	size := j.gpu.image.ValSize
	copy(j.raw[(s.Bucket.lo+lo)*size:(s.Bucket.lo+hi)*size], s.Out[j.valsAt(s)+lo*size:])
}

func (j *copying[C]) Rest() {
	if j.next < j.keys.Len() {
		j.onCPU(j.next, j.keys.Len())
	}
	j.next = j.keys.Len()
}

// Done keeps nothing of the caller's slices: a bucket has none of them.
func (j *copying[C]) Done(*flow.Slot[bucket]) {}

// Spare leaves all to the GPU: the CPU has enough to do with the results.
func (j *copying[C]) Spare() (lo, hi int, ok bool) { return 0, 0, false }

func (j *copying[C]) Answer(lo, hi int) { j.onCPU(lo, hi) }

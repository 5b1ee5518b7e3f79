package exec

import (
	"sort"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/order"
)

// copying is a batch of runs of entries that are copied out of a tree.
type copying[K order.Key, C order.Code] struct {
	gpu     *GPU[K, C]
	first   []int // the entry of the tree that each run begins with
	offsets []int // the entry of the result that it begins with; one more for the end
	keys    []K
	raw     []byte // memory of the values
	onCPU   func(lo, hi int)
	flow    flow
	next    int // entry of the result that is in no bucket yet
	most    int // entries of a bucket
}

// Entries copies runs of entries out of a tree whose leaves the GPU holds, if
// they are not packed:
// run i begins with entry first[i] and has offsets[i+1]-offsets[i] entries,
// which go to keys and to raw, the memory of the values, from offsets[i] on.
// onCPU does the same for entries [lo, hi) of the result.
func (g *GPU[K, C]) Entries(first, offsets []int, keys []K, raw []byte, onCPU func(lo, hi int)) {
	j := &copying[K, C]{gpu: g, first: first, offsets: offsets, keys: keys, raw: raw, onCPU: onCPU}
	n := len(keys)
	if g.down.Load() != nil || g.keep.Last <= g.steps.Depth() || g.image.Pages != nil {
		j.rest()
		return
	}
	// A bucket's keys and values lie one behind the other where a search has a
	// value: it holds half as many.
	j.most = min(max(n/maxFlight, smallest), MaxBucket) / 2
	f := &j.flow
	f.reset(j, Doubled, 2*j.most)
	f.of(&g.slots, g.serial, g.given, g.fail)
	f.workers = g.workers
	f.run()
}

// cut takes runs, and parts of them, until a bucket is full of entries or of
// runs.
func (j *copying[K, C]) cut(s *slot) (pieces int, ok bool) {
	if j.next >= len(j.keys) {
		return 0, false
	}
	s.lo = j.next
	s.hi = min(s.lo+j.most, len(j.keys))
	run := sort.SearchInts(j.offsets, s.lo+1) - 1 // the last that begins at lo or before
	starts, ends := arena.As[uint32](s.in)[:j.most], arena.As[uint32](s.in)[j.most:2*j.most]
	n := 0
	for at := s.lo; at < s.hi && n < j.most; run++ {
		end := min(j.offsets[run+1], s.hi)
		if end <= at { // an empty run
			continue
		}
		starts[n], ends[n] = uint32(j.first[run]+at-j.offsets[run]), uint32(at-s.lo)
		n++
		at = end
		j.next = end
	}
	s.hi, s.deep = j.next, n
	return 0, true
}

func (j *copying[K, C]) stage(*slot, int) {}

// send copies the runs in, lets the entries be copied, and copies them out.
func (j *copying[K, C]) send(s *slot, st device.Stream) error {
	g, n := j.gpu, s.hi-s.lo
	offsets := s.devIn + device.Ptr(4*j.most)
	if err := st.CopyIn(s.devIn, s.in[:4*s.deep]); err != nil {
		return err
	}
	if err := st.CopyIn(offsets, s.in[4*j.most:4*(j.most+s.deep)]); err != nil {
		return err
	}
	t, vals, size := g.tree, s.devOut+device.Ptr(j.valsAt(s)), g.image.Bytes
	if size == 0 {
		vals = 0
	}
	err := g.set.Entries(st, &s.params, &t, 8*width[C](), 8*size, s.devIn, offsets, s.deep, n, s.devOut, vals)
	if err != nil {
		return err
	}
	return st.CopyOut(s.out[:j.valsAt(s)+n*size], s.devOut)
}

// valsAt is where the values begin in a bucket's result: behind the keys.
func (j *copying[K, C]) valsAt(s *slot) int { return roundUp((s.hi-s.lo)*width[C](), 8) }

func (j *copying[K, C]) ends(s *slot) int { return (s.hi - s.lo + maxBucket - 1) / maxBucket }

func (j *copying[K, C]) finish(s *slot, piece int) {
	lo := piece * maxBucket
	hi := min(lo+maxBucket, s.hi-s.lo)
	if s.err != nil {
		j.onCPU(s.lo+lo, s.lo+hi)
		return
	}
	j.gpu.codec.DecodeSlice(j.keys[s.lo+lo:s.lo+hi], arena.As[C](s.out)[lo:hi])
	size := j.gpu.image.Bytes
	copy(j.raw[(s.lo+lo)*size:(s.lo+hi)*size], s.out[j.valsAt(s)+lo*size:])
}

func (j *copying[K, C]) rest() {
	if j.next < len(j.keys) {
		j.onCPU(j.next, len(j.keys))
	}
	j.next = len(j.keys)
}

// spare leaves all to the GPU: the CPU has enough to do with what comes back.
func (j *copying[K, C]) spare() (lo, hi int, ok bool) { return 0, 0, false }

func (j *copying[K, C]) answer(lo, hi int) { j.onCPU(lo, hi) }

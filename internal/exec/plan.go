package exec

import (
	"fmt"

	"github.com/pando-index/pando/internal/flow"
	"github.com/pando-index/pando/internal/layout"
)

// Plan says how batches run on CPU and GPU together.
type Plan struct {
	Split
	Bucket  int // queries that travel at once, at most
	Overlap flow.Overlap
}

// Split says who takes which levels of a search (HB+-tree paper, section 5.5):
// the CPU those before Upper, the paper's D, and for a Share of each bucket,
// its R, one more; then the GPU those before Lower; then the CPU the rest. With
// Lower behind the leaves' level nothing is left: the GPU answers. So the whole
// tree on the GPU is {0, 0, Depth+1}, the paper's hybrid {0, 0, Depth}, and the
// hybrid of Kaczmarek's paper, with the leaves on the GPU, {D, 0, Depth+1}.
type Split struct {
	Upper int
	Share float64
	Lower int
}

// Bucket sizes. A GPU that answers alone does best with the largest: launches
// and copies then cost least (experiment gpu-endtoend). Where the CPU goes on,
// a bucket must not leave its caches before that (experiment hybrid-buckets).
const (
	MaxBucket     = 1 << 20
	DefaultBucket = 256 << 10
)

// Keep says which levels a GPU holds: those from First on, before Last. Level
// Depth is the entries: leaves, or pages, and their values.
type Keep struct{ First, Last int }

// Whole returns all levels of a tree.
func Whole(im *layout.Image) Keep { return Keep{0, im.Depth() + 1} }

// Inner returns as many upper inner levels as a device with free bytes can
// hold, beside buckets.
func Inner(im *layout.Image, free int64) Keep {
	k := Keep{}
	for k.Last < im.Depth() && (Keep{0, k.Last + 1}).Need(im) <= free {
		k.Last++
	}
	return k
}

// Size returns the memory that the levels take.
func (k Keep) Size(im *layout.Image) int64 { return int64(im.Level(k.Last) - im.Level(k.First)) }

// Need returns Size, and all the buckets that there may be.
func (k Keep) Need(im *layout.Image) int64 {
	return k.Size(im) + flow.MaxSlots*int64(k.bucket(im))*(inBytes+outBytes)
}

// bucket returns the best bucket for a GPU that holds these levels.
func (k Keep) bucket(im *layout.Image) int {
	if k.Last > im.Depth() {
		return MaxBucket
	}
	return DefaultBucket
}

// Bytes that a query may take in a slot, on either side: a key and the node it
// begins at; a value and a bit.
const (
	inBytes  = 8 + 4
	outBytes = 8 + 1
)

// check returns an error for a plan that a GPU with these levels cannot follow.
func (p Plan) check(k Keep, depth int) error {
	lowest := p.Upper
	if p.Share > 0 {
		lowest++
	}
	switch {
	case p.Bucket < 1 || p.Bucket > MaxBucket:
		return fmt.Errorf("exec: buckets of %d, the most is %d", p.Bucket, MaxBucket)
	case p.Overlap > flow.DoubleBuffered:
		return fmt.Errorf("exec: no overlap %d", p.Overlap)
	case !(p.Share >= 0 && p.Share <= 1): // NaN is neither
		return fmt.Errorf("exec: a share of %v", p.Share)
	case p.Upper < k.First || p.Lower > k.Last || lowest > min(p.Lower, depth):
		return fmt.Errorf("exec: the GPU holds levels %d to %d, the plan asks for %d to %d", k.First, k.Last, p.Upper, p.Lower)
	}
	return nil
}

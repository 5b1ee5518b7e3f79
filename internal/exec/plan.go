package exec

import "fmt"

// Plan says how batches run on CPU and GPU together.
type Plan struct {
	Split
	Bucket int // queries that travel at once, at most
	Way    Way
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

// Way is how buckets follow each other (section 5.4).
type Way uint8

const (
	Sequential Way = iota // one bucket after the other
	Pipelined             // the CPU works on one bucket while the GPU works on another
	Doubled               // and copies run while the GPU works on a third
)

func (w Way) String() string {
	return [...]string{"sequential", "pipelined", "double buffered"}[w]
}

// flight is the number of buckets under way at once: one that the CPU fills,
// one that it finishes, and those in between.
func (w Way) flight() int { return [...]int{1, 3, maxFlight}[w] }

const maxFlight = 4

// Bucket sizes. A GPU that answers alone does best with the largest: launches
// and copies then cost least (experiment gpu-endtoend). Where the CPU goes on,
// a bucket must not leave its caches before that (experiment hybrid-buckets).
const (
	MaxBucket     = 1 << 20
	DefaultBucket = 256 << 10
)

// bucketFor is the best bucket for a GPU that holds these levels.
func (im *Image) bucketFor(k Keep) int {
	if k.Last > im.depth() {
		return MaxBucket
	}
	return DefaultBucket
}

// check says what is wrong with a plan for a GPU that holds these levels.
func (p Plan) check(k Keep, depth int) error {
	lowest := p.Upper
	if p.Share > 0 {
		lowest++
	}
	switch {
	case p.Bucket < 1 || p.Bucket > MaxBucket:
		return fmt.Errorf("exec: buckets of %d, the most is %d", p.Bucket, MaxBucket)
	case p.Way > Doubled:
		return fmt.Errorf("exec: no way %d", p.Way)
	case !(p.Share >= 0 && p.Share <= 1): // NaN is neither
		return fmt.Errorf("exec: a share of %v", p.Share)
	case p.Upper < k.First || p.Lower > k.Last || lowest > min(p.Lower, depth):
		return fmt.Errorf("exec: the GPU holds levels %d to %d, the plan asks for %d to %d", k.First, k.Last, p.Upper, p.Lower)
	}
	return nil
}

package live

import (
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/vector"
)

func (t *twinned[C]) Summarize(typ vector.Type, lo, hi []uint64, out []vector.Summary) bool {
	return t.forVectors(lo, hi) && t.twin.Summarize(typ, codesTo[C](lo), codesTo[C](hi), out)
}

func (t *twinned[C]) Histogram(typ vector.Type, lo, hi uint64, bounds []uint64, counts []int) bool {
	return t.forVectors([]uint64{lo}, []uint64{hi}) && t.twin.Histogram(typ, C(lo), C(hi), bounds, counts)
}

// forVectors reports whether values are read on the GPU: there are many, or the
// tree in host memory has not all of them yet.
func (t *twinned[C]) forVectors(lo, hi []uint64) bool {
	switch {
	case t.twin.Down() != nil:
		return false
	case !index.PreferCPU || t.twin.Pending():
		return true
	case t.codes.Len() < index.LeastSummed/len(lo):
		return false
	}
	n := 0
	for i := range lo {
		n += max(0, t.codes.Rank(order.Probe{Code: hi[i]}, true)-t.codes.Rank(order.Probe{Code: lo[i]}, false))
		if n >= index.LeastSummed {
			return true
		}
	}
	return false
}

// codesTo returns codes as wide as they are in the tree.
func codesTo[C order.Code](wide []uint64) []C {
	out := make([]C, len(wide))
	for i, c := range wide {
		out[i] = C(c)
	}
	return out
}

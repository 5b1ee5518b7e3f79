package twin

import (
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/vector"
)

// Summarize sets out[i] to the summary of the values from lo[i] to hi[i], for each
// i, all at one moment, and reports whether the GPU could.
func (t *Twin[C]) Summarize(typ vector.Type, lo, hi []C, out []vector.Summary) bool {
	return t.read(func() error { return t.gpu.summarize(typ, lo, hi, out) })
}

// Summarize sums up ranges: see Twin.Summarize.
func (s *Solo[C]) Summarize(typ vector.Type, lo, hi []C, out []vector.Summary) error {
	return s.use(func() error { return s.gpu.summarize(typ, lo, hi, out) })
}

// Histogram counts the values from lo to hi between bounds, and reports whether
// the GPU could: see vector.Histogram.
func (t *Twin[C]) Histogram(typ vector.Type, lo, hi C, bounds []uint64, counts []int) bool {
	return t.read(func() error { return t.gpu.histogram(typ, lo, hi, bounds, counts) })
}

// Histogram counts values: see Twin.Histogram.
func (s *Solo[C]) Histogram(typ vector.Type, lo, hi C, bounds []uint64, counts []int) error {
	return s.use(func() error { return s.gpu.histogram(typ, lo, hi, bounds, counts) })
}

func (g *onDevice[C]) summarize(typ vector.Type, lo, hi []C, out []vector.Summary) error {
	ranges, err := g.spans(lo, hi)
	if err != nil {
		return err
	}
	return g.vectors().Sum(typ, ranges, g.tree.Vectors, out)
}

func (g *onDevice[C]) histogram(typ vector.Type, lo, hi C, bounds []uint64, counts []int) error {
	ranges, err := g.spans([]C{lo}, []C{hi})
	if err != nil {
		return err
	}
	return g.vectors().Histogram(typ, ranges[0], bounds, g.tree.Vectors, counts)
}

// vectors returns the OnDevice that works on values.
func (g *onDevice[C]) vectors() *vector.OnDevice {
	if g.values.Stream == nil {
		g.values.Device, g.values.Stream = g.dev, g.tree.Stream()
		g.values.Sums, g.values.Histograms = kernel.ChunkedVectors, kernel.ChunkedHistograms
		g.values.InLeaves = true
	}
	return &g.values
}

// spans returns which entries have keys from lo[i] to hi[i].
func (g *onDevice[C]) spans(lo, hi []C) ([]vector.Range, error) {
	keys, spans := make([]C, 0, 2*len(lo)), make([]vector.Range, len(lo))
	for i := range lo { // those up to a key are those below the next
		keys = append(keys, lo[i], hi[i]+1)
	}
	ranks := make([]int, len(keys))
	if all := len(lo) == 1 && lo[0] == 0 && hi[0] == ^C(0); !all {
		if err := g.ranks(g.tree, keys, false, ranks); err != nil {
			return nil, err
		}
	}
	for i := range lo {
		end := ranks[2*i+1]
		if hi[i] == ^C(0) {
			end = g.tree.Len()
		}
		spans[i] = vector.Range{First: ranks[2*i], N: max(0, end-ranks[2*i])}
	}
	return spans, nil
}

// From sets keys and vals to those of the entries from a key on, as many as there
// are and fit, and returns how many.
func (s *Solo[C]) From(key C, keys, vals []C) (n int, err error) {
	err = s.use(func() error {
		n, err = s.gpu.from(key, keys, vals)
		return err
	})
	return n, err
}

func (g *onDevice[C]) from(key C, keys, vals []C) (n int, err error) {
	var at [1]int
	if err := g.ranks(g.tree, []C{key}, false, at[:]); err != nil {
		return 0, err
	}
	n = max(0, min(len(keys), g.tree.Len()-at[0]))
	return n, g.runs(g.tree, at[:], []int{0, n}, keys[:n], vals[:n])
}

// Change sets keys and vals to those of the entries from a key on, as many as there
// are and fit, lets f change the values of some, the first, and puts these in
// their place: nothing happens to the tree in between. It returns how many were
// changed.
func (s *Solo[C]) Change(key C, keys, vals []C, f func(keys, vals []C) (changed int)) (n int, err error) {
	err = s.use(func() error {
		some, err := s.gpu.from(key, keys, vals)
		if err != nil {
			return err
		}
		if n = f(keys[:some], vals[:some]); n == 0 {
			return nil
		}
		s.seq.Add(1)
		return s.gpu.apply(&batch[C]{n: n, kind: op.Set, sorted: true, workers: s.workers, fill: func(lo int, ks, vs []C, _ []uint8) {
			copy(ks, keys[lo:])
			copy(vs, vals[lo:])
		}})
	})
	if err != nil {
		n = 0
	}
	return n, err
}

package live

import (
	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/vector"
)

// codesMoment is a moment of a B+-tree.
type codesMoment[C order.Code] struct {
	taken *bplus.Snapshot[C]
	view  *bplus.View[C] // a directory of its leaves; nil before open
	tree  *bplus.Tree[C]
	work  int
}

func (t *codes[C]) Freeze() (Moment, error) {
	s, err := t.tree.Snapshot()
	if err != nil {
		return nil, err
	}
	return &codesMoment[C]{taken: s, tree: t.tree, work: t.workers}, nil
}

func (e *codesMoment[C]) Open(workers int) (n int, err error) {
	if e.view, err = e.taken.View(workers); err != nil {
		return 0, err
	}
	return e.view.Len(), nil
}

func (e *codesMoment[C]) Seek(key order.Probe) (rank int, equal bool) {
	rank, _, equal = e.view.Seek(C(key.Code))
	return rank, equal
}

func (e *codesMoment[C]) Rank(key order.Probe, after bool) int {
	rank, _, equal := e.view.Seek(C(key.Code))
	if equal && after {
		rank++
	}
	return rank
}

func (e *codesMoment[C]) Key(i int) order.Probe {
	var k [1]C
	e.view.CopyOut(i, 1, k[:], nil)
	return order.Probe{Code: uint64(k[0])}
}

func (e *codesMoment[C]) Get(key order.Probe) (uint64, bool) {
	_, val, ok := e.view.Seek(C(key.Code))
	return uint64(val), ok
}

func (e *codesMoment[C]) Entries(lo, n int, keys order.Keys, vals []uint64) error {
	const most = 4096
	var ks, vs []C
	if keys.Len() > 0 {
		ks = make([]C, min(most, n))
	}
	if vals != nil {
		vs = make([]C, min(most, n))
	}
	for at := 0; at < n; at += most {
		k := min(most, n-at)
		e.view.CopyOut(lo+at, k, ks, vs)
		if ks != nil {
			setKeys(keys.Slice(at, at+k), ks[:k])
		}
		if vs != nil {
			for i, v := range vs[:k] {
				vals[at+i] = uint64(v)
			}
		}
	}
	return nil
}

// source returns the entries, unless their codes are narrower than the tree's.
func (e *codesMoment[C]) Source(key order.Type, size int) (src any, ok bool) {
	if key.Bits() != order.CodeBits[C]() {
		return nil, false
	}
	s := layout.Source[C]{Len: e.view.Len(), Encode: func(dst []C, lo int) { e.view.CopyOut(lo, len(dst), dst, nil) }}
	if size > 0 {
		s.Both = func(keys []C, vals []byte, lo int) { e.both(keys, vals, lo, size) }
	}
	return s, true
}

// both sets keys, unless that is nil, and vals of size bytes to the entries from lo on.
func (e *codesMoment[C]) both(keys []C, vals []byte, lo, size int) {
	n := len(vals) / size
	if size*8 == order.CodeBits[C]() {
		e.view.CopyOut(lo, n, keys, arena.As[C](vals))
		return
	}
	vs := make([]C, n)
	e.view.CopyOut(lo, n, keys, vs)
	storeVals(vals, size, vs)
}

// each calls do with the codes of spans of keys, on all workers.
func (e *codesMoment[C]) each(keys order.Keys, do func(lo int, ks []C)) {
	const piece = 1024
	par.Run(e.work, (keys.Len()+piece-1)/piece, par.Func(func(p int) {
		lo, hi := p*piece, min((p+1)*piece, keys.Len())
		ks := make([]C, hi-lo)
		codesOf(ks, keys.Slice(lo, hi))
		do(lo, ks)
	}))
}

func (e *codesMoment[C]) RankBatch(keys order.Keys, after bool, ranks []int) {
	e.each(keys, func(lo int, ks []C) { e.view.Rank(ks, after, ranks[lo:lo+len(ks)]) })
}

func (e *codesMoment[C]) GetBatch(keys order.Keys, vals []uint64, found []bool) (hits int) {
	counts := make([]int, keys.Len()/1024+1)
	e.each(keys, func(lo int, ks []C) {
		vs, ranks := make([]C, len(ks)), make([]int, len(ks))
		counts[lo/1024] = e.view.Get(ks, vs, found[lo:lo+len(ks)], ranks)
		for i, v := range vs {
			vals[lo+i] = uint64(v)
		}
	})
	for _, n := range counts {
		hits += n
	}
	return hits
}

func (e *codesMoment[C]) ReadValues(lo, n, size int, r *vector.Reader) {
	e.view.Scan(lo, n, false, func(_, vals []C) { take(r, vals, size) })
}

func (e *codesMoment[C]) SelectValues(lo, n int, s *selecting) {
	e.view.Scan(lo, n, true, func(keys, vals []C) { selectFrom(s, keys, vals) })
}

func (e *codesMoment[C]) About() about {
	s := layout.Stats{Kind: "bplus", Fanout: 64}
	if e.view != nil {
		s.InnerBytes = e.view.Bytes()
	}
	s.TotalBytes = s.InnerBytes
	return about{stats: s, where: index.OnCPU, kept: e.tree.Kept(), shown: e.view}
}

func (e *codesMoment[C]) Release() error {
	if e.view != nil {
		e.view.Release()
		return nil
	}
	e.taken.Close()
	return nil
}

var (
	_ Moment       = (*codesMoment[uint64])(nil)
	_ valueMoment  = (*codesMoment[uint64])(nil)
	_ sourceMoment = (*codesMoment[uint64])(nil)
)

package live

import (
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/radix"
)

// textMoment is a moment of a radix tree, which needs no directory to be read by.
type textMoment struct {
	*radix.Snapshot
	tree   *radix.Tree
	digits digits
	work   int
}

func (t *texts) Freeze() (Moment, error) {
	s, err := t.tree.Snapshot()
	if err != nil {
		return nil, err
	}
	return &textMoment{s, t.tree, t.digits, t.workers}, nil
}

func (e *textMoment) Open(int) (n int, err error) { return e.Snapshot.Len(), nil }

func (e *textMoment) Seek(key order.Probe) (rank int, equal bool) {
	s := e.digits.text(key)
	_, equal = e.Snapshot.Get(s)
	return e.Snapshot.Rank(s, false), equal
}

func (e *textMoment) Rank(key order.Probe, after bool) int {
	return e.Snapshot.Rank(e.digits.text(key), after)
}

func (e *textMoment) Get(key order.Probe) (uint64, bool) { return e.Snapshot.Get(e.digits.text(key)) }

func (e *textMoment) Key(i int) order.Probe {
	k, _, _ := e.Snapshot.At(i)
	return e.digits.probe(k)
}

func (e *textMoment) RankBatch(keys order.Keys, after bool, ranks []int) {
	eachText(e.work, e.digits.texts(keys), func(i int, key string) { ranks[i] = e.Snapshot.Rank(key, after) })
}

func (e *textMoment) GetBatch(keys order.Keys, vals []uint64, found []bool) (hits int) {
	return e.Snapshot.GetBatch(e.digits.texts(keys), vals, found, e.work)
}

func (e *textMoment) Entries(lo, n int, keys order.Keys, vals []uint64) error {
	if n == 0 {
		return nil
	}
	if n == 1 && keys.Len() == 0 {
		_, vals[0], _ = e.Snapshot.At(lo)
		return nil
	}
	first, _, _ := e.Snapshot.At(lo)
	c := e.Snapshot.Cursor()
	c.Move(first, false, false)
	for i := range n {
		k, v, _ := c.Next()
		if keys.Len() > 0 {
			keys.SetProbe(i, e.digits.probe(k))
		}
		if vals != nil {
			vals[i] = v
		}
	}
	return nil
}

func (e *textMoment) AppendKey(dst []byte, i int) []byte { return e.Snapshot.AppendKey(dst, i) }

func (e *textMoment) About() about {
	return about{layout.Stats{Kind: "radix", Fanout: 256}, index.OnCPU, e.tree.Kept(), e.digits.shown(e.Snapshot)}
}

func (e *textMoment) Release() error {
	e.Snapshot.Close()
	return nil
}

var (
	_ Moment      = (*textMoment)(nil)
	_ keyAppender = (*textMoment)(nil)
)

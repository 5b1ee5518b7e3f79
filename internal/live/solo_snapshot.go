package live

import (
	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/twin"
	"github.com/pando-index/pando/internal/vector"
)

// soloMoment is a moment of a tree on a GPU alone: a version of it there. All of it is
// answered by the GPU; a batch is one call, and so is a single key. It panics when the GPU is
// lost, as solo does.
type soloMoment[C order.Code] struct {
	at    *twin.SoloSnapshot[C]
	typ   order.Type
	where index.Device
}

func (t *solo[C]) Freeze() (Moment, error) {
	s, err := t.Solo.Snapshot()
	if err != nil {
		return nil, soloError(err)
	}
	return &soloMoment[C]{s, t.key, t.where}, nil
}

func (e *soloMoment[C]) Open(int) (n int, err error) { return e.at.Len(), nil }

// rank returns the number of entries below key, or up to it.
func (e *soloMoment[C]) Rank(key order.Probe, after bool) int {
	var r [1]int
	mustSolo(e.at.Rank([]C{C(key.Code)}, after, r[:]))
	return r[0]
}

func (e *soloMoment[C]) Seek(key order.Probe) (rank int, equal bool) {
	rank = e.Rank(key, false)
	if rank < e.at.Len() {
		equal = e.Key(rank).Code == key.Code
	}
	return rank, equal
}

func (e *soloMoment[C]) Get(key order.Probe) (uint64, bool) {
	keys := order.MakeKeys(e.typ, 1)
	keys.SetProbe(0, key)
	var val [1]uint64
	var found [1]bool
	e.GetBatch(keys, val[:], found[:])
	return val[0], found[0]
}

func (e *soloMoment[C]) RankBatch(keys order.Keys, after bool, ranks []int) {
	if keys.Len() > 0 {
		mustSolo(e.at.Rank(codesIn[C](keys, keys.Len()), after, ranks[:keys.Len()]))
	}
}

func (e *soloMoment[C]) Key(i int) order.Probe {
	ks, _ := e.read(i, 1)
	return order.Probe{Code: uint64(ks[0])}
}

// read returns n entries from lo on.
func (e *soloMoment[C]) read(lo, n int) (keys, vals []C) {
	return e.readRuns([]int{lo}, []int{0, n})
}

func (e *soloMoment[C]) readRuns(first, offsets []int) (keys, vals []C) {
	keys, vals, err := e.tryRuns(first, offsets)
	mustSolo(err)
	return keys, vals
}

// tryRuns returns runs of entries, or the GPU's error.
func (e *soloMoment[C]) tryRuns(first, offsets []int) (keys, vals []C, err error) {
	n := offsets[len(first)]
	keys, vals = make([]C, n), make([]C, n)
	if n > 0 {
		err = e.at.Runs(first, offsets, keys, vals)
	}
	return keys, vals, err
}

func (e *soloMoment[C]) Entries(lo, n int, keys order.Keys, vals []uint64) error {
	ks, vs, err := e.tryRuns([]int{lo}, []int{0, n})
	if err == nil {
		setEntries(keys, vals, ks, vs)
	}
	return err
}

func (e *soloMoment[C]) CopyRuns(first, offsets []int, keys order.Keys, vals []uint64) {
	ks, vs := e.readRuns(first, offsets)
	setEntries(keys, vals, ks, vs)
}

// setEntries sets keys and vals, where they are asked for, to the entries read.
func setEntries[C order.Code](keys order.Keys, vals []uint64, ks, vs []C) {
	if keys.Len() > 0 {
		setKeys(keys, ks)
	}
	if vals != nil {
		for i, v := range vs {
			vals[i] = uint64(v)
		}
	}
}

func (e *soloMoment[C]) GetBatch(keys order.Keys, vals []uint64, found []bool) (hits int) {
	g := newGathering[C](keys, arena.Bytes(vals), 8, found)
	if g.n > 0 {
		mustSolo(e.at.Find(g.n, g.fill, g.answer))
	}
	return g.hits()
}

func (e *soloMoment[C]) ReadValues(lo, n, size int, r *vector.Reader) {
	_, vals := e.read(lo, n)
	take(r, vals, size)
}

func (e *soloMoment[C]) SelectValues(lo, n int, s *selecting) {
	keys, vals := e.read(lo, n)
	for at := 0; at < n; at += vector.Block {
		to := min(at+vector.Block, n)
		selectFrom(s, keys[at:to], vals[at:to])
	}
}

func (e *soloMoment[C]) About() about {
	return about{layout.Stats{Kind: chunkedName, Fanout: 256}, e.where, e.at.Kept(), e.at}
}

func (e *soloMoment[C]) Release() error { return e.at.Release() }

var (
	_ Moment      = (*soloMoment[uint64])(nil)
	_ valueMoment = (*soloMoment[uint64])(nil)
	_ runMoment   = (*soloMoment[uint64])(nil)
)

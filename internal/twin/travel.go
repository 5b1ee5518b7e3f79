package twin

import (
	"slices"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/chunked"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
)

// A batch travels in one of two ways. Operations that are few enough, or that are
// in page-locked memory already, travel all together: nobody waits for a copy
// alone. Others travel in buckets (staging.go).

// Columns is operations of a batch, one behind the other in memory.
type Columns[C order.Code] struct {
	Keys, Vals []C
	Kinds      []uint8
}

// slice returns operations [lo, hi).
func (c *Columns[C]) slice(lo, hi int) Columns[C] {
	return Columns[C]{part(c.Keys, lo, hi), part(c.Vals, lo, hi), part(c.Kinds, lo, hi)}
}

// applyMany does a batch that travels in buckets.
func (g *onDevice[C]) applyMany(b *batch[C], ops *chunked.Ops) error {
	if err := g.staging.ensure(b.n, sizeOf[C]()); err != nil {
		return err
	}
	g.answerMany(b, ops)
	first := &sending[C]{course: g.staging.course(b.n), fill: b.fill, keys: ops.Keys}
	if b.n < g.staging.bring {
		first.vals, first.kinds = ops.Vals, ops.Kinds
	} else if b.sets() {
		ops.Bring = func() error {
			rest := &sending[C]{course: g.staging.course(b.n), fill: b.fill, vals: ops.Vals, kinds: ops.Kinds}
			return g.staging.run(rest, b.n, b.workers)
		}
	}
	if err := g.staging.run(first, b.n, b.workers); err != nil {
		return err
	}
	return g.tree.Apply(ops)
}

// answerMany lets answers travel in buckets, for which there is room.
func (g *onDevice[C]) answerMany(b *batch[C], ops *chunked.Ops) {
	if b.answer != nil {
		ops.Fetch = func() error {
			j := &receiving[C]{course: g.staging.course(b.n), answer: b.answer, had: ops.Had}
			if b.old {
				j.old = ops.Old
			}
			return g.staging.run(j, b.n, b.workers)
		}
	}
}

// applyTogether does a batch that travels in one piece, or in two: keys, and then
// values and kinds while these are sorted.
func (g *onDevice[C]) applyTogether(b *batch[C], ops *chunked.Ops) error {
	j := &together[C]{g: g, b: b, ops: ops, st: g.tree.Stream(), column: device.Aligned(b.n * sizeOf[C]())}
	if b.n >= g.staging.direct && (b.n > g.staging.few || b.direct()) {
		j.ownKeys, j.ownRest = b.own.Keys != nil, b.ownRest()
	}
	if err := j.open(); err != nil {
		return err
	}
	err := j.send()
	if err == nil {
		err = g.tree.Apply(ops)
	}
	if err != nil { // nothing may be under way when the memory is used again
		j.st.Synchronize()
		if j.stage == nil {
			g.side.Synchronize()
		}
		return err
	}
	j.handOut()
	return nil
}

// together is a batch that travels all at once.
type together[C order.Code] struct {
	g      *onDevice[C]
	b      *batch[C]
	ops    *chunked.Ops
	st     device.Stream
	column int    // bytes of keys, and of vals, up to where the next begin
	stage  []byte // keys, vals, kinds, and behind them the results: old, had; nil where they are too many for it
	// Columns that travel from the caller's memory: keys, and the rest.
	ownKeys, ownRest bool
}

// open takes all memory, and says how answers come back.
func (j *together[C]) open() (err error) {
	g, b := j.g, j.b
	if b.n > g.staging.together {
		if err := g.openSide(); err != nil {
			return err
		}
		if b.answer != nil {
			g.answerMany(b, j.ops)
			return g.staging.ensure(b.n, sizeOf[C]())
		}
		return nil
	}
	if j.stage, err = g.stage(); err == nil && b.answer != nil {
		j.ops.Early = func() error {
			if !b.old {
				return j.st.CopyOut(j.found()[j.column:], j.ops.Had)
			}
			return j.st.CopyOut(j.found(), j.ops.Old)
		}
	}
	return err
}

// found returns where answers are.
func (j *together[C]) found() []byte { return j.stage[3*j.column:][:j.column+j.b.n] }

// handOut hands answers out that have come back.
func (j *together[C]) handOut() {
	if j.b.answer == nil || j.stage == nil {
		return
	}
	var old []C
	if j.b.old {
		old = arena.As[C](j.found()[:j.column])
	}
	had := j.found()[j.column:]
	j.pieces(func(from, to int) { j.b.answer(from, part(old, from, to), had[from:to]) })
}

// pieces runs f for all operations, on several goroutines where they are many.
func (j *together[C]) pieces(f func(from, to int)) {
	n, piece := j.b.n, j.g.staging.piece
	if n <= j.g.staging.few {
		f(0, n)
		return
	}
	par.Run(min(n/j.g.staging.few, j.b.workers), (n+piece-1)/piece, par.Func(func(p int) { f(p*piece, min((p+1)*piece, n)) }))
}

// send puts operations on their way: all of them if they are few, or keys alone.
func (j *together[C]) send() error {
	b := j.b
	if b.n <= j.g.staging.few && !j.ownKeys {
		end := j.fill(true, true)
		j.looksSorted(arena.As[C](j.stage[:b.n*sizeOf[C]()]))
		return j.st.CopyIn(j.ops.Keys, j.stage[:end])
	}
	if b.sets() {
		j.ops.Bring = j.bring
	}
	if !j.ownKeys {
		end := j.fill(true, false)
		return j.st.CopyIn(j.ops.Keys, j.stage[:end])
	}
	if b.n <= j.g.staging.few {
		j.looksSorted(b.own.Keys)
	}
	return j.beside(func(st device.Stream) error { return st.CopyIn(j.ops.Keys, arena.Bytes(b.own.Keys)) })
}

// looksSorted notes whether keys ascend: a few of them often do.
func (j *together[C]) looksSorted(keys []C) { j.ops.Sorted = j.ops.Sorted || slices.IsSorted(keys) }

// fill sets the stage to keys, or the other columns, or both, and returns where
// they end.
func (j *together[C]) fill(first, rest bool) (end int) {
	var to Columns[C]
	n, bytes := j.b.n, j.b.n*sizeOf[C]()
	if first {
		to.Keys, end = arena.As[C](j.stage[:bytes]), bytes
	}
	if rest && j.ops.Vals != 0 {
		to.Vals, end = arena.As[C](j.stage[j.column:][:bytes]), j.column+bytes
	}
	if rest && j.ops.Kinds != 0 {
		to.Kinds, end = j.stage[2*j.column:][:n], 2*j.column+n
	}
	j.pieces(func(from, upTo int) {
		j.b.fill(from, part(to.Keys, from, upTo), part(to.Vals, from, upTo), part(to.Kinds, from, upTo))
	})
	return end
}

// bring brings the columns beside the keys. The tree's stream waits for it.
func (j *together[C]) bring() error {
	b, ops := j.b, j.ops
	if !j.ownRest {
		end := j.fill(false, true)
		return j.st.CopyIn(ops.Vals, j.stage[j.column:end])
	}
	return j.beside(func(st device.Stream) error {
		if err := st.CopyIn(ops.Vals, arena.Bytes(b.own.Vals)); err != nil || !b.kinds {
			return err
		}
		return st.CopyIn(ops.Kinds, b.own.Kinds)
	})
}

// beside runs f, which copies the caller's memory: in the tree's stream where that
// does not take long, or in the one beside it, and lets the tree's wait for it. So
// keys come while the batch before is written, values while keys are sorted.
func (j *together[C]) beside(f func(device.Stream) error) error {
	g := j.g
	if j.stage != nil {
		return f(j.st)
	}
	if err := f(g.side); err != nil {
		return err
	}
	if err := g.side.Record(g.brought); err != nil {
		return err
	}
	return j.st.Wait(g.brought)
}

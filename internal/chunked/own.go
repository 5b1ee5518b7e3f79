package chunked

import (
	"errors"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
)

// own makes the changes leaf by leaf. The writes are queued at once if there seems
// to be room, and the kernels skip them if there is not: so the GPU does not idle
// until the host knows.
func (t *Tree[C]) own(a *applying) error {
	next, err := t.plan(a)
	if err != nil {
		return err
	}
	ahead, err := t.ahead(a, next)
	if err != nil {
		return err
	}
	told, err := t.decide(a, 0, toldEffects+1, ahead)
	if err != nil {
		return err
	}
	leaves, chunks := told[kernel.ToldLeaves], told[kernel.ToldNewChunks]
	known := &outcome{entries: t.entries + int(int32(told[kernel.ToldGrowth]))}
	if ahead != nil && a.owned.Goes(told) {
		b := t.making
		b.version.Count = uint32(told[kernel.ToldChunks])
		return t.publish(a, b, &kernel.Freed{}, leaves, chunks, known)
	}
	if err := t.queued(StepPlan); err != nil {
		return err
	}
	// From here on the need is known; nothing has been written.
	if err := t.reserve(leaves, chunks); err != nil {
		return err
	}
	b, freed, err := t.newVersion(a, told[kernel.ToldChunks], told[kernel.ToldTouched], int(t.now.version.Count))
	if err != nil {
		return err
	}
	if told[kernel.ToldFreed] != 0 {
		known = nil
		if err := t.run.Give(&t.now.version, a.owned, told[kernel.ToldTouched], next, freed); err != nil {
			return err
		}
	}
	a.owned.Certain = 1
	if err := t.write(a, told[kernel.ToldTouched], next, b); err != nil {
		return err
	}
	return t.publish(a, b, freed, leaves, chunks, known)
}

// ahead returns a function that queues all writes of the batch, before its need
// is known; nil where there is likely too little room, or where a number must be
// known first.
func (t *Tree[C]) ahead(a *applying, next *kernel.Next) (func() error, error) {
	n, o := int(a.N), a.owned
	o.Leaves, o.Chunks, o.Room = uint32(t.leaves.free()), uint32(t.chunks.free()), uint32(t.roomAhead())
	likely := n/16 + 4 // new leaves: half of a leaf's entries are new before it splits
	if t.careful || o.Copy != 0 || int(o.Leaves) < likely || int(o.Chunks) < likely/64+2 {
		return nil, nil
	}
	b, err := t.newTable(int(o.Room))
	if errors.Is(err, device.ErrOutOfMemory) {
		return nil, nil // there may be room for the actual need
	}
	if err != nil {
		return nil, err
	}
	return func() error {
		if err := t.queued(StepPlan); err != nil {
			return err
		}
		return t.write(a, min(n, t.now.leaves), next, b)
	}, nil
}

// roomAhead returns the chunks that a table has room for which is queued ahead.
func (t *Tree[C]) roomAhead() int {
	count := int(t.now.version.Count)
	return count + count/64 + 8
}

// plan answers a batch, and finds out what it needs, leaf by leaf and chunk by
// chunk.
func (t *Tree[C]) plan(a *applying) (*kernel.Next, error) {
	w, n, v := &t.work, int(a.N), &t.now.version
	o := a.owned
	if o == nil { // it was to be a flat merge
		from := w.Used
		o = t.newOwned(a)
		a.owned = o
		if err := t.clearWork(from); err != nil {
			return nil, err
		}
	}
	o.Homes, o.Acts = w.Words(n), a.acts
	if err := t.run.Probe(v, &a.Batch, o.Homes, a.acts); err != nil {
		return nil, err
	}
	if len(t.held) > 0 {
		o.Copy = 1
	}
	o.Heads, o.Inserts, o.Home, o.Begin = w.Words(n+1), w.Words(n+1), w.Words(n), w.Words(n+1)
	o.Refs, o.Counts, o.Base, o.Size, o.Need = w.Words(n), w.Words(n), w.Words(n), w.Words(n), w.Words(n)
	next := &kernel.Next{Become: w.Words(int(v.Count) + 1), Fresh: w.Words(int(v.Count) + 1)}
	if n <= t.few {
		return next, t.planFew(a, next)
	}
	if err := t.listEffects(a); err != nil {
		return nil, err
	}
	if err := t.run.Owns(o, t.scans.next(n)); err != nil {
		return nil, err
	}
	if err := t.run.Plan(v, o); err != nil {
		return nil, err
	}
	return next, t.run.Sums(v, o, next, t.scans.next(n), t.scans.next(int(v.Count)))
}

// planFew is the rest of plan for a few operations, with what they come to.
func (t *Tree[C]) planFew(a *applying, next *kernel.Next) error {
	if err := t.queued(StepProbe); err != nil {
		return err
	}
	e, v := a.effects, &t.now.version
	if e == nil {
		e = &Effects{}
	}
	err := t.run.PlanFew(v, &a.Batch, a.owned, next, e.Keys, e.Vals, e.Kinds, t.told+4*toldEffects, t.scans.next(int(a.N)), t.scans.next(int(v.Count)))
	if err != nil || a.effects == nil {
		return err
	}
	return t.queued(StepEffects)
}

// write queues the planned writes, of at most touched leaves, and a table.
func (t *Tree[C]) write(a *applying, touched int, next *kernel.Next, b *table) error {
	v, o, leaves, chunks := &t.now.version, a.owned, t.leaves.slots(), t.chunks.slots()
	to := b.next()
	to.Become, to.Fresh, to.Totals = next.Become, next.Fresh, t.work.Words(int(b.version.Count)+1)
	if err := t.move(a, touched, leaves); err != nil {
		return begun(err)
	}
	if err := t.queued(StepWrite); err != nil {
		return begun(err)
	}
	if err := t.run.Rechunk(v, o, leaves, chunks, &to); err != nil {
		return begun(err)
	}
	return begun(t.run.FinishOwn(&b.version, o, to.Totals, a.freed, t.told+4*toldEntries, t.scans.next(int(b.version.Count))))
}

// move writes the leaves that are touched.
func (t *Tree[C]) move(a *applying, touched int, leaves *kernel.Slots) error {
	v, o := &t.now.version, a.owned
	if int(a.N) <= t.few {
		return t.run.MoveFew(v, &a.Batch, o, touched, leaves)
	}
	if err := t.run.Move(v, &a.Batch, o, touched, leaves); err != nil {
		return err
	}
	return t.run.Store(v, &a.Batch, o, leaves)
}

// newOwned takes memory for what must be 0 before a batch is done leaf by leaf.
func (t *Tree[C]) newOwned(a *applying) *kernel.Owned {
	w, count := &t.work, int(t.now.version.Count)
	o := &kernel.Owned{Told: t.told, Removed: w.Words(int(a.N)), N: a.N}
	o.ChunkBegin, o.ChunkEnd, o.Grow, o.Changed = w.Words(count), w.Words(count), w.Words(count), w.Words(count)
	return o
}

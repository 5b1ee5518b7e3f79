package chunked

import (
	"github.com/pando-index/pando/internal/device/kernel"
)

// crowdedFrom is the number of operations on a chunk from which on a flat merge,
// where a block does them all, takes too long.
const crowdedFrom = 32 << 10

// cut gives each chunk its operations, and reports whether none has too many for
// a flat merge.
func (t *Tree[C]) cut(a *applying) (bool, error) {
	a.cuts = t.work.Words(int(t.now.version.Count))
	if err := t.run.Cut(&t.now.version, &a.Batch, a.cuts, t.told+4*toldOver, t.crowded); err != nil {
		return false, err
	}
	told, err := t.ask(toldFailed, 2)
	if err == nil && told[0] != 0 {
		err = errUnsorted
	}
	return err == nil && told[toldOver-toldFailed] == 0, err
}

// merge makes the changes by writing all of the tree anew.
func (t *Tree[C]) merge(a *applying) error {
	w, n, v := &t.work, int(a.N), &t.now.version
	f := &kernel.Flat{Cuts: a.cuts, Ends: w.Words(int(v.Count) * kernel.ChunkLeaves), Acts: a.acts, Shifts: w.Words(n + 1)}
	if err := t.run.Weigh(v, &a.Batch, f); err != nil {
		return err
	}
	if err := t.listEffects(a); err != nil {
		return err
	}
	if err := t.run.Deltas(f, n, t.told+4*toldGrowth, t.scans.next(n)); err != nil {
		return err
	}
	if err := t.answered(a); err != nil {
		return err
	}
	told, err := t.ask(toldEffects, toldGrowth-toldEffects+1)
	if err != nil {
		return err
	}
	if err := t.queued(StepPlan); err != nil {
		return err
	}
	if a.effects != nil {
		a.effects.N = told[0]
	}
	entries := t.entries + int(int32(told[toldGrowth-toldEffects]))
	leaves := max(1, (entries+kernel.LeafFill-1)/kernel.LeafFill)
	chunks := (leaves + kernel.ChunkFill - 1) / kernel.ChunkFill
	f.Leaves, f.Entries = uint32(leaves), uint32(entries)
	if err := t.reserve(leaves, chunks); err != nil {
		return err
	}
	b, freed, err := t.newVersion(a, chunks, t.now.leaves, int(v.Count))
	if err != nil {
		return err
	}
	to := b.next()
	to.Totals = w.Words(chunks)
	if err := t.writeFlat(a, f, &to, b, freed); err != nil {
		return err
	}
	return t.publish(a, b, to.Totals, freed, leaves, chunks, &outcome{entries, t.now.leaves, int(v.Count)})
}

func (t *Tree[C]) writeFlat(a *applying, f *kernel.Flat, next *kernel.Next, b *table, freed *kernel.Freed) error {
	v, leaves, chunks := &t.now.version, t.leaves.slots(), t.chunks.slots()
	if err := t.run.FlatWrite(v, &a.Batch, f, leaves); err != nil {
		return err
	}
	if err := t.queued(StepWrite); err != nil {
		return err
	}
	if err := t.run.FlatChunks(v, int(b.version.Count), f, leaves, chunks, next); err != nil {
		return err
	}
	return t.run.GiveAll(v, freed)
}

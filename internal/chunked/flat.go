package chunked

import (
	"errors"

	"github.com/pando-index/pando/internal/device/kernel"
)

// crowdedFrom is the number of operations from which on one block takes too long for those on
// a chunk.
const crowdedFrom = 32 << 10

// flatBlocks is the most blocks of a flat merge, unless there are more chunks.
const flatBlocks = 8 << 10

// blocksEach returns how many blocks do the operations on each chunk, of a batch of n. Where
// chunks have few on average it is one: a tree that is small beside its batch, an empty one
// above all, has too few chunks for all multiprocessors otherwise.
func (t *Tree[C]) blocksEach(n int) int {
	chunks := max(1, int(t.now.version.Count)) // none, if a device is broken
	return max(1, min(n/(chunks*max(t.crowded/4, 1)), flatBlocks/chunks))
}

// errCrowded is the error for a batch with too many operations on a chunk for a flat
// merge, of which nothing has been done.
var errCrowded = errors.New("chunked: a chunk has too many operations")

// merge makes the changes by writing all of the tree anew.
func (t *Tree[C]) merge(a *applying) error {
	w, n, v := &t.work, int(a.N), &t.now.version
	blocks := t.blocksEach(n)
	f := &kernel.Flat{Cuts: w.Words(int(v.Count)), Ends: w.Words(int(v.Count) * kernel.ChunkLeaves), Acts: a.acts, Shifts: w.Words(n + 1), Blocks: uint32(blocks)}
	if err := t.run.Cut(v, &a.Batch, f.Cuts, t.told+4*toldOver, blocks*t.crowded); err != nil {
		return err
	}
	if err := t.run.Weigh(v, &a.Batch, f, t.told+4*toldFailed); err != nil {
		return err
	}
	if err := t.listEffects(a); err != nil {
		return err
	}
	if err := t.run.Deltas(f, n, t.told+4*toldGrowth, t.scans.next(n)); err != nil {
		return err
	}
	told, err := t.decide(a, toldFailed, toldGrowth-toldFailed+1, nil)
	if err != nil {
		return err
	}
	if told[toldOver-toldFailed] != 0 {
		return errCrowded
	}
	if err := t.queued(StepPlan); err != nil {
		return err
	}
	entries := t.entries + int(int32(told[toldGrowth-toldFailed]))
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
	if err := t.run.Finish(&b.version, to.Totals, freed.Counts, t.told+4*toldEntries, t.scans.next(chunks)); err != nil {
		return err
	}
	return t.publish(a, b, freed, leaves, chunks, &outcome{entries, t.now.leaves, int(v.Count)})
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

package live

import (
	"github.com/pando-index/pando/internal/order"
)

// waiting is a Tree in host memory that has a twin on a GPU, where large batches run. Its
// methods, which read the tree, wait until all accepted batches are there.
type waiting struct {
	Tree
	on copied
}

// copied is the twin on the GPU.
type copied interface {
	OnGPU
	// Wait waits until all accepted batches are in the tree in host memory.
	Wait()
	// Len returns the number of entries, those of accepted batches among them.
	Len() int
	// Close waits for batches under way, and gives the GPU back. The tree stays open.
	Close() error
}

func (t *waiting) Down() error        { return t.on.Down() }
func (t *waiting) DeviceBytes() int64 { return t.on.DeviceBytes() }
func (t *waiting) Len() int           { return t.on.Len() }
func (t *waiting) CountsDeleted()     {}

func (t *waiting) Rank(key order.Probe, after bool) int {
	t.on.Wait()
	return t.Tree.Rank(key, after)
}

func (t *waiting) RankBatch(keys order.Keys, after bool, ranks []int) {
	t.on.Wait()
	t.Tree.RankBatch(keys, after, ranks)
}

func (t *waiting) At(i int) (order.Probe, uint64, bool) {
	t.on.Wait()
	return t.Tree.At(i)
}

func (t *waiting) Freeze() (Moment, error) {
	t.on.Wait()
	return t.Tree.Freeze()
}

func (t *waiting) Check() error {
	t.on.Wait()
	return t.Tree.Check()
}

func (t *waiting) Close() {
	t.on.Close() // errors of a GPU that is given back do not matter
	t.Tree.Close()
}

func (t *waiting) Cursor() TreeCursor {
	t.on.Wait()
	return waitingCursor{t.Tree.Cursor(), t.on}
}

// waitingCursor reads one entry at a time, each after everything that was
// accepted before.
type waitingCursor struct {
	TreeCursor
	on copied
}

func (c waitingCursor) Next() (order.Probe, uint64, bool) {
	c.on.Wait()
	return c.TreeCursor.Next()
}

package live

import (
	"sync/atomic"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/cuart"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/packing"
)

// followed is a Tree of strings with a copy on a GPU, where large batches run.
// Methods that read the tree in host memory wait until all accepted batches are
// there.
type followed struct {
	*texts
	copy *cuart.Follower
}

// leastTextChanges is leastChanges for strings, which have to be gathered, and which the
// CPU folds one by one.
const leastTextChanges = 4 << 10

// Attach gives a tree of strings a copy on a GPU.
func (t *texts) Attach(cfg index.Config, valSize int) (Tree, index.Device, string, error) {
	asked := cfg.Device
	if t.digits != 0 {
		return t, index.OnCPU, reasonOnCPU, nil
	}
	switch asked.Kind {
	case index.CPU:
		return t, asked, index.ReasonAsked, nil
	case index.Auto:
		return t, index.OnCPU, "a tree of strings is on the CPU unless a GPU is asked for", nil
	case index.Hybrid:
		return t, index.OnCPU, "a tree of strings is on the CPU, or all of it on a GPU as well", nil
	}
	return attachTree(t, cfg, valSize)
}

// followTexts is Attach where a driver is linked.
func followTexts(t *texts, size int, cfg index.Config) (Tree, index.Device, string, error) {
	asked := cfg.Device
	dev, free, err := index.OpenWithin(asked.Ordinal, cfg.Room)
	if err != nil {
		where, why, err := index.WithoutGPU(asked, err)
		return t, where, why, err
	}
	opts := cuart.FollowOptions{Workers: t.workers, Least: leastElsewhere, Changes: leastTextChanges, Room: free, ValBits: 64}
	if size <= 4 {
		opts.ValBits = 32
	}
	if cfg.Limit > 0 { // which counts no page-locked memory
		opts.HostRoom = -1
	}
	if !index.PreferCPU {
		opts.Least, opts.Changes = 1, 1
	}
	if cfg.Limit > 0 {
		opts.Changes = 0 // host memory knows the limit
	}
	c, err := cuart.Follow(t.tree, dev, opts)
	if err != nil {
		where, why, err := index.WithoutGPU(asked, err)
		return t, where, why, err
	}
	return &followed{t, c}, index.Device{Kind: index.GPU, Ordinal: asked.Ordinal}, index.ReasonAsked, nil
}

func (t *followed) Down() error        { return t.copy.Down() }
func (t *followed) DeviceBytes() int64 { return t.copy.DeviceBytes() }

func (t *followed) Get(key order.Probe) (uint64, bool) { return t.copy.Get(key.Text) }

func (t *followed) Set(key order.Probe, val uint64) (old uint64, had bool, err error) {
	t.copy.Single(key.Text, func() bool {
		old, had, err = t.texts.Set(key, val)
		return err == nil
	})
	return old, had, err
}

func (t *followed) Delete(key order.Probe) (old uint64, had bool, err error) {
	t.copy.Single(key.Text, func() bool {
		old, had, err = t.texts.Delete(key)
		return err == nil && had
	})
	return old, had, err
}

// update asks f without holding anything, since f may use the tree; the change is made
// if the value is still the same.
func (t *followed) Update(key order.Probe, f func(old uint64, had bool, gen uint64) (uint64, bool)) (old uint64, had bool, err error) {
	for done := false; !done && err == nil; {
		if t.Closed() {
			return 0, false, op.ErrClosed
		}
		old, had = t.Get(key)
		val, keep := f(old, had, 0)
		t.copy.Single(key.Text, func() (changed bool) {
			now, there := t.texts.Get(key)
			if done = now == old && there == had; !done {
				return false
			}
			switch {
			case keep:
				_, _, err = t.texts.Set(key, val)
			case had:
				_, _, err = t.texts.Delete(key)
			}
			return err == nil && (keep || had)
		})
	}
	return old, had, err
}

func (t *followed) Pop(greatest bool) (key order.Probe, val uint64, ok bool, err error) {
	t.copy.Alone(func() []string {
		if key, val, ok, err = t.texts.Pop(greatest); !ok || err != nil {
			return nil
		}
		return []string{key.Text}
	})
	return key, val, ok, err
}

// deleteRange deletes a few thousand keys at a time, and others have their turn between.
func (t *followed) DeleteRange(lo, hi order.Probe, gone func(uint64)) (n int, err error) {
	const most = 4096
	for open, more := false, true; more && err == nil; open = true {
		t.copy.Alone(func() (keys []string) {
			c := t.tree.Cursor()
			c.Move(lo.Text, open, false)
			for k, _, ok := c.Next(); ok && k <= hi.Text && len(keys) < most; k, _, ok = c.Next() {
				keys = append(keys, k)
			}
			if more = len(keys) > 0; more {
				last, deleted := order.Probe{Text: keys[len(keys)-1]}, 0
				deleted, err = t.texts.DeleteRange(order.Probe{Text: keys[0]}, last, gone)
				n, lo = n+deleted, last
			} else if t.Closed() {
				err = op.ErrClosed
			}
			return keys
		})
	}
	return n, err
}

func (t *followed) CountsDeleted() {}

func (t *followed) Apply(b *changes) error {
	return t.copy.Apply(&cuart.Batch{
		Keys: b.keys.Strings(), Vals: b.vals, Kinds: arena.As[uint8](arena.Bytes(b.kinds)), Kind: uint32(b.kind),
		Old: b.old, Found: b.found, Deleted: b.deleted,
	})
}

func (t *followed) GetBatch(keys order.Keys, vals []byte, size int, found []bool, use func(lo, hi int)) int {
	if use == nil {
		if hits, ok := t.GetPacked(packing.Strings{Keys: keys.Strings()}, vals, size, found); ok {
			return hits
		}
	}
	t.copy.Wait()
	return t.texts.GetBatch(keys, vals, size, found, use)
}

func (t *followed) GetPacked(keys packing.Strings, vals []byte, size int, found []bool) (hits int, ok bool) {
	n := keys.Len()
	if n == 0 || !t.copy.Takes(n) && !t.copy.Pending() {
		return 0, false
	}
	if found == nil {
		found = make([]bool, n)
	}
	var sum atomic.Int64
	var into []byte
	if size > 0 && device.Shared(vals) {
		into = vals
	}
	ok = t.copy.Find(cuart.Queries{
		Keys: keys, Into: into,
		Take: func(lo int, column, bits []byte) {
			k := len(column) / t.copy.ValBytes()
			if into == nil {
				copy(part(vals, size, lo, lo+k), column)
			}
			sum.Add(int64(exec.SpreadBits(found[lo:lo+k], bits)))
		},
		CPU: func(lo, hi int) {
			for i := lo; i < hi; i++ {
				v, there := t.copy.Get(keys.At(i))
				if storeVals(part(vals, size, i, i+1), size, []uint64{v}); there {
					sum.Add(1)
				}
				found[i] = there
			}
		},
	})
	return int(sum.Load()), ok
}

func (t *followed) Rank(key order.Probe, after bool) int {
	t.copy.Wait()
	return t.texts.Rank(key, after)
}

func (t *followed) RankBatch(keys order.Keys, after bool, ranks []int) {
	t.copy.Wait()
	t.texts.RankBatch(keys, after, ranks)
}

func (t *followed) At(i int) (order.Probe, uint64, bool) {
	t.copy.Wait()
	return t.texts.At(i)
}

func (t *followed) Cursor() TreeCursor {
	t.copy.Wait()
	return waitingCursor{t.texts.Cursor(), t.copy.Wait}
}

// Len returns the number of entries.
func (t *followed) Len() int { return t.copy.Len() }

func (t *followed) Freeze() (Moment, error) {
	t.copy.Wait()
	return t.texts.Freeze()
}

// Check looks at the tree in host memory, and at its copy.
func (t *followed) Check() error {
	if err := t.texts.Check(); err != nil {
		return err
	}
	return t.copy.Check()
}

// Close waits for batches under way.
func (t *followed) Close() {
	t.copy.Close() // errors of a GPU that is given back do not matter
	t.texts.Close()
}

var (
	_ Tree         = (*followed)(nil)
	_ PackedGetter = (*followed)(nil)
)

package live

import (
	"sync/atomic"

	"github.com/pando-index/pando/internal/cuart"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/packing"
	"github.com/pando-index/pando/internal/twin"
)

// followed is a Tree of strings with a copy on a GPU, where large batches run.
type followed struct {
	waiting
	texts *texts // in host memory
	copy  *twin.Strings
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
	opts := twin.StringsOptions{Workers: t.workers, Least: leastElsewhere, Changes: leastTextChanges, Room: free, ValBits: 64}
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
	c, err := twin.NewStrings(t.tree, dev, opts)
	if err != nil {
		where, why, err := index.WithoutGPU(asked, err)
		return t, where, why, err
	}
	return &followed{waiting{t, c}, t, c}, index.Device{Kind: index.GPU, Ordinal: asked.Ordinal}, index.ReasonAsked, nil
}

func (t *followed) Get(key order.Probe) (uint64, bool) { return t.copy.Get(key.Text) }

func (t *followed) Set(key order.Probe, val uint64) (uint64, bool, error) {
	return t.copy.Set(key.Text, val)
}

func (t *followed) Delete(key order.Probe) (uint64, bool, error) { return t.copy.Delete(key.Text) }

func (t *followed) Update(key order.Probe, f func(uint64, bool, uint64) (uint64, bool)) (uint64, bool, error) {
	return t.copy.Update(key.Text, func(old uint64, had bool) (uint64, bool) { return f(old, had, 0) })
}

func (t *followed) Pop(greatest bool) (order.Probe, uint64, bool, error) {
	k, v, ok, err := t.copy.Pop(greatest)
	return order.Probe{Text: k}, v, ok, err
}

func (t *followed) DeleteRange(lo, hi order.Probe, gone func(uint64)) (int, error) {
	return t.copy.DeleteRange(lo.Text, hi.Text, gone)
}

func (t *followed) Apply(b *changes) error {
	return t.copy.Apply(&twin.StringBatch{
		Keys: b.keys.Strings(), Vals: b.vals, Kinds: b.kinds, Kind: b.kind,
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

// Check looks at the tree in host memory, and at its copy.
func (t *followed) Check() error {
	if err := t.waiting.Check(); err != nil {
		return err
	}
	return t.copy.Check()
}

var (
	_ Tree         = (*followed)(nil)
	_ PackedGetter = (*followed)(nil)
)

package live

import (
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/mirror"
	"github.com/pando-index/pando/internal/order"
)

// mirrored is a Tree whose inner nodes are mirrored on a GPU: large batches of
// searches go down there, and the CPU reads the leaves. All else runs on the
// CPU, and the mirror follows.
type mirrored[C order.Code] struct {
	*codes[C]
	mirror *mirror.Mirror[C]
}

// attachMirror gives a tree a mirror on the GPU that is asked for. It returns
// where batches run, and why.
func attachMirror[C order.Code](c *codes[C], cfg index.Config) (Tree, index.Device, string, error) {
	asked := cfg.Device
	dev, free, err := index.OpenWithin(asked.Ordinal, cfg.Room)
	if err != nil {
		where, why, err := index.WithoutGPU(asked, err)
		return c, where, why, err
	}
	opts := mirror.Options{Workers: c.workers, Least: leastElsewhere, Room: free}
	if !index.PreferCPU {
		opts.Least = 1
	}
	m, err := mirror.New(c.tree, dev, opts)
	if err != nil {
		where, why, err := index.WithoutGPU(asked, err)
		return c, where, why, err
	}
	return &mirrored[C]{c, m}, asked, reasonMirrored, nil
}

const reasonMirrored = "asked for: inner nodes on the GPU, leaves and changes on the CPU"

func (t *mirrored[C]) Down() error        { return t.mirror.Down() }
func (t *mirrored[C]) DeviceBytes() int64 { return t.mirror.DeviceBytes() }

func (t *mirrored[C]) GetBatch(keys order.Keys, vals []byte, size int, found []bool, use func(lo, hi int)) int {
	if use == nil && t.mirror.Takes(keys.Len()) {
		hits, ok := t.mirror.Find(mirror.Batch[C]{
			N:    keys.Len(),
			Fill: func(lo int, ks []C) { codesOf(ks, keys.Slice(lo, lo+len(ks))) },
			Answer: func(lo int, vs []C, had []bool) {
				storeVals(part(vals, size, lo, lo+len(vs)), size, vs)
				if found != nil {
					copy(found[lo:], had)
				}
			},
		})
		if ok {
			return hits
		}
	}
	return t.codes.GetBatch(keys, vals, size, found, use)
}

// Close waits for batches under way.
func (t *mirrored[C]) Close() {
	t.mirror.Close() // errors of a GPU that is given back do not matter
	t.codes.Close()
}

var _ Tree = (*mirrored[uint64])(nil)

// Package twin keeps a tree in host memory and its twin on a GPU the same: a Twin numbers,
// Strings strings.
//
// Large batches run on the GPU. Their effects, each key once and in order, are
// copied back to page-locked memory, the log; with that the batch is accepted,
// whatever becomes of the GPU. In the background the log is folded into the tree
// in host memory. Single operations and small batches run there; the keys that
// they have changed are noted, and reach the GPU with its next batch.
//
// Package backlog keeps the order.
package twin

import (
	"cmp"
	"errors"
	"runtime"
	"slices"

	"github.com/pando-index/pando/internal/backlog"
	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/chunked"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
)

// Twin is a tree of numbers in host memory and its twin on a GPU.
type Twin[C order.Code] struct {
	backlog.Pair[C, C]
	cpu     *bplus.Tree[C]
	workers int
	most    int // operations that the log holds

	gpu    onDevice[C] // has a lock of its own, which comes before all others
	spare  spareSegments[C]
	forget runtime.Cleanup
}

// Options are the settings of a twin.
type Options struct {
	Workers int
	// Least and Changes are the sizes from which on batches go to the GPU, as
	// backlog.Share has them.
	Least, Changes int
	// Log is the most operations that the log holds; 0 is a default.
	Log int
	// Room is the most device memory that the twin may take; 0 means all there is.
	Room int64
	// Flat is chunked.Options.Flat.
	Flat int
}

// defaultLog is the most operations that the log holds: 1.1 GB of 64 bits.
const defaultLog = 64 << 20

// New returns the twin of a tree. The device is the twin's from then on, also if
// there is an error.
func New[C order.Code](cpu *bplus.Tree[C], dev device.Device, opts Options) (*Twin[C], error) {
	t := &Twin[C]{cpu: cpu, workers: max(1, opts.Workers), most: cmp.Or(opts.Log, defaultLog)}
	t.Init(cpu, copied[C]{t}, backlog.Share{Least: opts.Least, Changes: opts.Changes}, dev.Info().Name, t.most)
	t.gpu.dev, t.spare.dev = dev, dev
	tree, err := chunked.New[C](dev, chunked.Options{Room: opts.Room, Flat: opts.Flat})
	if err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	t.gpu.tree = tree
	t.gpu.staging.open(dev)
	if err := t.load(); err != nil {
		return nil, errors.Join(err, t.gpu.close())
	}
	t.forget = runtime.AddCleanup(t, func(d device.Device) { d.Close() }, dev)
	return t, nil
}

// load copies the entries of the tree in host memory to the GPU. No other goroutine
// uses the tree.
func (t *Twin[C]) load() (err error) {
	keys, vals := make([]C, 0, loadPiece), make([]C, 0, loadPiece)
	send := func() {
		if len(keys) == 0 || err != nil {
			return
		}
		err = t.gpu.apply(&batch[C]{n: len(keys), kind: op.Set, sorted: true, workers: t.workers, fill: func(lo int, ks, vs []C, _ []uint8) {
			copy(ks, keys[lo:])
			copy(vs, vals[lo:])
		}})
		keys, vals = keys[:0], vals[:0]
	}
	t.cpu.Scan(0, ^C(0), true, func(ks, vs []C) {
		if keys, vals = append(keys, ks...), append(vals, vs...); len(keys) >= loadPiece-maxLeaf {
			send()
		}
	})
	send()
	return err
}

// maxLeaf is the most entries that Scan hands over at a time.
const maxLeaf = 512

// loadPiece is the number of entries that are loaded at a time.
const loadPiece = 4 << 20

// DeviceBytes returns the device memory in use.
func (t *Twin[C]) DeviceBytes() int64 {
	t.gpu.Lock()
	defer t.gpu.Unlock()
	if !t.Works() {
		return 0
	}
	return t.gpu.tree.Bytes()
}

// copied is the twin on the GPU, as backlog.Pair asks for it.
type copied[C order.Code] struct{ t *Twin[C] }

func (copied[C]) Hash(key C) uint64 { return uint64(key) }
func (copied[C]) Own([]C)           {}
func (copied[C]) Refresh()          {} // notes of numbers are small: their number is not bounded

func (c copied[C]) Keys(lo, hi C, open bool, most int) (keys []C) {
	if open {
		if lo++; lo == 0 {
			return nil
		}
	}
	cursor := c.t.cpu.Ascend(lo)
	defer cursor.Done()
	for k, _, ok := cursor.Next(); ok && k <= hi && len(keys) < most; k, _, ok = cursor.Next() {
		keys = append(keys, k)
	}
	return keys
}

func (c copied[C]) Send(keys []C) error {
	t := c.t
	slices.Sort(keys)
	keys = slices.Compact(keys)
	vals, found := make([]C, len(keys)), make([]bool, len(keys))
	t.cpu.GetBatch(keys, vals, found, t.workers, nil)
	return t.gpu.apply(&batch[C]{n: len(keys), kinds: true, sorted: true, fill: func(lo int, ks, vs []C, kinds []uint8) {
		copy(ks, keys[lo:])
		copy(vs, vals[lo:])
		for i := range kinds {
			kinds[i] = uint8(op.Delete)
			if found[lo+i] {
				kinds[i] = uint8(op.Set)
			}
		}
	}})
}

// Close waits for batches under way and for the log, and gives the device back.
// The tree in host memory stays open.
func (t *Twin[C]) Close() error {
	t.gpu.Lock()
	defer t.gpu.Unlock()
	t.Wait()
	t.forget.Stop()
	t.Ended()
	return errors.Join(t.spare.close(), t.gpu.close())
}

// Package twin keeps a tree in host memory and its twin on a GPU the same.
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
	"errors"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/pando-index/pando/internal/backlog"
	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/chunked"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
)

// Twin is a tree in host memory and its twin on a GPU.
type Twin[C order.Code] struct {
	cpu     *bplus.Tree[C]
	workers int
	opts    Options

	stripes backlog.Stripes[C]

	gpu  onDevice[C] // has a lock of its own, which comes before all others
	down atomic.Pointer[error]

	log    backlog.Log[C, C]
	spare  spareSegments[C]
	forget runtime.Cleanup
}

// Options are the settings of a twin.
type Options struct {
	Workers int
	// Least is the number of searches from which on a batch goes to the GPU.
	Least int
	// Changes is the number of operations from which on a batch that changes
	// something does; 0 is none: they run in host memory, which may be limited, and
	// the GPU only answers.
	Changes int
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
	t := &Twin[C]{cpu: cpu, workers: max(1, opts.Workers), opts: opts}
	if t.opts.Log == 0 {
		t.opts.Log = defaultLog
	}
	t.log.Init(&t.stripes, t.opts.Log)
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

// Down returns the reason why the GPU is no longer used, or nil.
func (t *Twin[C]) Down() error {
	if e := t.down.Load(); e != nil {
		return *e
	}
	return nil
}

// fail gives the GPU up, and says so the first time.
func (t *Twin[C]) fail(err error) {
	if t.down.CompareAndSwap(nil, &err) {
		device.Warn("pando: the GPU failed, the CPU does everything from now on", "device", t.gpu.dev.Info().Name, "error", err)
	}
}

// Takes reports whether a batch of n searches goes to the GPU.
func (t *Twin[C]) Takes(n int) bool { return n >= t.opts.Least && n > 0 && t.down.Load() == nil }

// Share sets from which size on batches go to the GPU: see Options. Nobody else
// may use the twin meanwhile.
func (t *Twin[C]) Share(least, changes int) { t.opts.Least, t.opts.Changes = least, changes }

// Single runs f, which changes one key of the tree in host memory and reports
// whether it has.
func (t *Twin[C]) Single(key C, f func() (changed bool)) {
	t.stripes.One(uint64(key), func() (C, bool) { return key, f() && t.down.Load() == nil })
}

// Alone runs f, which changes any keys of the tree in host memory and returns
// which. Nobody else changes it meanwhile.
func (t *Twin[C]) Alone(f func() (changed []C)) {
	t.stripes.All(func() []C {
		changed := f()
		if t.down.Load() != nil {
			return nil
		}
		return changed
	})
}

// Get returns the value of key, and reports whether there is one.
func (t *Twin[C]) Get(key C) (val C, ok bool) {
	if val, ok, known := t.log.Get(key); known {
		return val, ok
	}
	return t.cpu.Get(key)
}

// Wait waits until everything that was accepted is in the tree in host memory.
func (t *Twin[C]) Wait() { t.log.Wait() }

// Pending reports whether there is something that is not.
func (t *Twin[C]) Pending() bool { return t.log.Pending() }

// Len returns the number of entries: exactly, if nobody writes meanwhile.
func (t *Twin[C]) Len() int {
	if n, known := t.log.Entries(); known {
		return n
	}
	return t.cpu.Len()
}

// DeviceBytes returns the device memory in use.
func (t *Twin[C]) DeviceBytes() int64 {
	t.gpu.Lock()
	defer t.gpu.Unlock()
	if t.down.Load() != nil {
		return 0
	}
	return t.gpu.tree.Bytes()
}

// catchUp brings the GPU up to date. All stripes are held, the log is empty.
func (t *Twin[C]) catchUp() error {
	keys := t.stripes.Noted()
	slices.Sort(keys)
	keys = slices.Compact(keys)
	if len(keys) == 0 {
		return nil
	}
	vals, found := make([]C, len(keys)), make([]bool, len(keys))
	t.cpu.GetBatch(keys, vals, found, t.workers, nil)
	b := &batch[C]{n: len(keys), kinds: true, sorted: true, fill: func(lo int, ks, vs []C, kinds []uint8) {
		copy(ks, keys[lo:])
		copy(vs, vals[lo:])
		for i := range kinds {
			kinds[i] = uint8(op.Delete)
			if found[lo+i] {
				kinds[i] = uint8(op.Set)
			}
		}
	}}
	if err := t.gpu.apply(b); err != nil {
		return err
	}
	t.stripes.Clear()
	return nil
}

// Close waits for batches under way and for the log, and gives the device back.
// The tree in host memory stays open.
func (t *Twin[C]) Close() error {
	t.gpu.Lock()
	defer t.gpu.Unlock()
	t.log.Wait()
	t.forget.Stop()
	closed := errors.New("twin: closed")
	t.down.CompareAndSwap(nil, &closed)
	return errors.Join(t.spare.close(), t.gpu.close())
}

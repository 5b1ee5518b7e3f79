package twin

import (
	"cmp"
	"errors"
	"hash/maphash"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/backlog"
	"github.com/pando-index/pando/internal/cuart"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/packing"
	"github.com/pando-index/pando/internal/radix"
)

// Strings is a tree of strings in host memory and its twin on a GPU.
//
// Large batches run on the GPU. Their operations are packed into page-locked memory, a
// run of the log; when the GPU has done them, the batch is accepted, whatever becomes
// of the GPU, and in the background the run is folded into the tree in host memory.
// Single operations and small batches run there; the keys that they have changed are
// noted, and their values sent before the next search or batch. Package backlog keeps
// the order.
//
// Keys that are too long for the GPU are in host memory alone, and never in the log: a
// batch does its operations on them there, at once. No other operation of the batch is
// on the same keys.
type Strings struct {
	backlog.Pair[string, uint64]
	cpu  *radix.Tree
	opts StringsOptions
	dev  device.Device
	tree *cuart.Tree
	port *cuart.Port

	locked locked      // memory of runs
	piece  int         // operations that a worker packs at a time
	long   int         // keys that are in host memory alone, while the log is not empty
	busy   atomic.Bool // a large batch changes the tree in host memory: the CPU answers

	changing sync.Mutex   // held to change the copy by way of the log; comes before stripes
	using    sync.RWMutex // held for reading by searches, for writing by changes of the copy; comes after stripes
	forget   runtime.Cleanup
	closed   bool
	end      func() error // gives all memory back, once
}

// StringsOptions are the settings of a twin.
type StringsOptions struct {
	Workers int
	// Least and Changes are the sizes from which on batches go to the GPU, and Notes is how
	// many keys are noted at most, 0 for a default: as backlog.Share has them. Where Changes
	// is 0, host memory is changed first, and the copy then.
	Least, Changes, Notes int
	// Log is about the most bytes of page-locked memory that the log takes; 0 is a
	// default.
	Log int
	// Room is the most device memory that the copy may take; 0 means all there is.
	Room int64
	// HostRoom is the most host memory that its leaves may take, as in Options.
	HostRoom int64
	// ValBits is the size of values, 32 or 64.
	ValBits int
}

const (
	mostNotes    = 64 << 10
	stringsLog   = 1 << 30
	stringsPiece = 256 << 10 // entries that are loaded at a time
)

// NewStrings returns a copy of a tree. The device is the twin's from then on, also if
// there is an error. Nobody changes the tree meanwhile.
func NewStrings(cpu *radix.Tree, dev device.Device, opts StringsOptions) (f *Strings, err error) {
	f = &Strings{cpu: cpu, dev: dev, opts: opts, piece: packPiece}
	f.opts.Workers = max(1, opts.Workers)
	f.opts.Log = cmp.Or(opts.Log, stringsLog)
	share := backlog.Share{Least: opts.Least, Changes: opts.Changes, Notes: cmp.Or(opts.Notes, mostNotes)}
	f.Init(cpu, copiedStrings{f}, share, dev.Info().Name, f.opts.Log)
	f.locked.dev, f.locked.most = dev, f.opts.Log
	f.tree, err = cuart.New(dev, cuart.Options{Room: cuart.ForPools(opts.Room), HostRoom: opts.HostRoom, ValBits: opts.ValBits, Entries: cpu.Len(), Longest: packing.Longest, Long: cuart.LongKeys})
	if err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	f.port = cuart.NewPort(f.tree, opts.Workers)
	if err := f.load(); err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	f.end = sync.OnceValue(f.giveBack)
	f.forget = runtime.AddCleanup(f, func(d device.Device) { d.Close() }, dev)
	return f, nil
}

// load copies all entries.
func (f *Strings) load() error {
	c := f.cpu.Cursor()
	var keys []string
	var vals []uint64
	for {
		k, v, ok := c.Next()
		if ok {
			keys, vals = append(keys, k), append(vals, v)
		}
		if len(keys) == stringsPiece || !ok && len(keys) > 0 {
			if err := f.port.Apply(&cuart.Changes{Keys: packing.Strings{Keys: keys}, Vals: f.column(vals), Kind: op.Set}); err != nil {
				return err
			}
			keys, vals = keys[:0], vals[:0]
		}
		if !ok {
			return nil
		}
	}
}

// column returns values as the copy has them.
func (f *Strings) column(vals []uint64) []byte {
	if f.ValBytes() == 8 {
		return arena.Bytes(vals)
	}
	narrow := make([]uint32, len(vals))
	for i, v := range vals {
		narrow[i] = uint32(v)
	}
	return arena.Bytes(narrow)
}

// fail gives the GPU up. Its memory, and the memory page-locked for it, is given back as
// soon as it is out of use.
func (f *Strings) fail(err error) {
	if f.Fail(err) {
		go f.end() // the caller may hold locks, and accepted runs are to be folded
	}
}

// ValBytes returns the size of a value in the copy.
func (f *Strings) ValBytes() int { return f.tree.ValBytes() }

// copiedStrings is the copy, as backlog.Pair asks for it.
type copiedStrings struct{ f *Strings }

var stripeSeed = maphash.MakeSeed()

func (copiedStrings) Hash(key string) uint64 { return maphash.String(stripeSeed, key) }

func (copiedStrings) Own(keys []string) {
	for i, k := range keys {
		keys[i] = strings.Clone(k)
	}
}

func (c copiedStrings) Refresh()                 { c.f.refresh() }
func (c copiedStrings) Send(keys []string) error { return c.f.sendValues(keys) }

func (c copiedStrings) Keys(lo, hi string, open bool, most int) (keys []string) {
	cursor := c.f.cpu.Cursor()
	cursor.Move(lo, open, false)
	for k, _, ok := cursor.Next(); ok && k <= hi && len(keys) < most; k, _, ok = cursor.Next() {
		keys = append(keys, k)
	}
	return keys
}

// refresh brings the copy up to date.
func (f *Strings) refresh() {
	if f.Stripes.Dirty() == 0 || !f.Works() {
		return
	}
	f.changing.Lock()
	defer f.changing.Unlock()
	if err := f.Renew(); err != nil {
		f.fail(err)
	}
}

// sendValues sets keys of the copy to their values in the tree in host memory.
func (f *Strings) sendValues(keys []string) error {
	vals, found, kinds := make([]uint64, len(keys)), make([]bool, len(keys)), make([]op.Kind, len(keys))
	f.cpu.GetBatch(keys, vals, found, f.opts.Workers, nil)
	for i, there := range found {
		if kinds[i] = op.Delete; there {
			kinds[i] = op.Set
		}
	}
	f.using.Lock()
	defer f.using.Unlock()
	if err := f.Down(); err != nil {
		return err
	}
	return f.port.Apply(&cuart.Changes{Keys: packing.Strings{Keys: keys}, Vals: f.column(vals), Kinds: kinds})
}

// Find looks strings up, as Port.Find does, and reports whether the GPU could. Those
// that it could not the CPU has answered.
func (f *Strings) Find(q cuart.Queries) bool {
	if f.busy.Load() && !f.Pending() {
		return false
	}
	f.refresh()
	f.using.RLock()
	defer f.using.RUnlock()
	if !f.Works() || f.closed {
		return false
	}
	f.port.Find(q)
	if err := f.port.Down(); err != nil {
		f.fail(err)
	}
	return true
}

// DeviceBytes returns the device memory that the copy takes.
func (f *Strings) DeviceBytes() int64 {
	f.using.RLock()
	defer f.using.RUnlock()
	if !f.Works() || f.closed {
		return 0
	}
	return f.tree.Bytes()
}

// Check looks at the copy, and compares it with the tree in host memory. Nobody changes that
// meanwhile.
func (f *Strings) Check() error {
	f.Wait()
	f.refresh()
	if !f.Works() || f.closed {
		return nil
	}
	all, err := f.tree.Entries()
	if err != nil {
		return err
	}
	for _, e := range all {
		if v, ok := f.cpu.Get(e.Key); !ok || string(f.column([]uint64{v})) != string(f.column([]uint64{e.Val})) {
			return errors.New("cuart: the GPU's tree has another entry than the tree in host memory")
		}
	}
	long := 0
	c := f.cpu.Cursor()
	for k, _, ok := c.Next(); ok; k, _, ok = c.Next() {
		if len(k) > f.tree.Longest() {
			long++
		}
	}
	if len(all)+long != f.cpu.Len() {
		return errors.New("cuart: the GPU's tree lacks entries of the tree in host memory")
	}
	return nil
}

// Close waits for batches under way and for the log, and gives the device back. The
// tree in host memory stays open.
func (f *Strings) Close() error { return f.end() }

// giveBack closes the twin. From then on the copy, and the memory that is
// page-locked for it, are out of use. No lock is held while the driver is called: that
// of a GPU that is lost may take long, and others need not wait for it.
func (f *Strings) giveBack() error {
	f.changing.Lock()
	f.Wait()
	f.using.Lock()
	f.closed = true
	f.Ended()
	f.using.Unlock()
	f.changing.Unlock()
	f.forget.Stop()
	return errors.Join(f.locked.close(), f.port.Close(), f.tree.Close(), f.dev.Close())
}

package cuart

import (
	"errors"
	"hash/maphash"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/backlog"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/packing"
	"github.com/pando-index/pando/internal/radix"
)

// Follower is a copy of a radix.Tree on a GPU, kept the same.
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
type Follower struct {
	cpu  *radix.Tree
	opts FollowOptions
	dev  device.Device
	tree *Tree
	desk *Desk
	down atomic.Pointer[error]

	stripes backlog.Stripes[string]
	log     backlog.Log[string, uint64]
	locked  locked      // memory of runs
	piece   int         // operations that a worker packs at a time
	long    int         // keys that are in host memory alone, while the log is not empty
	busy    atomic.Bool // a large batch changes the tree in host memory: the CPU answers

	changing sync.Mutex   // held to change the copy by way of the log; comes before stripes
	using    sync.RWMutex // held for reading by searches, for writing by changes of the copy; comes after stripes
	forget   runtime.Cleanup
	closed   bool
	end      func() error // gives all memory back, once
}

// FollowOptions are the settings of a follower.
type FollowOptions struct {
	Workers int
	// Least is the number of keys from which on a batch of searches goes to the GPU.
	Least int
	// Changes is the number of operations from which on a batch that changes something
	// does; 0 is none: host memory, which may be limited, is changed first, and the copy
	// then.
	Changes int
	// Log is about the most bytes of page-locked memory that the log takes; 0 is a
	// default.
	Log int
	// Room is the most device memory that the copy may take; 0 means all there is.
	Room int64
	// HostRoom is the most host memory that its leaves may take, as in Options.
	HostRoom int64
	// ValBits is the size of values, 32 or 64.
	ValBits int
	// Notes is how many keys are noted at most; 0 is a default.
	Notes int
}

const (
	mostNotes  = 64 << 10
	defaultLog = 1 << 30
	loadPiece  = 256 << 10 // entries that are loaded at a time
)

// Follow returns a copy of a tree. The device is the follower's from then on, also if
// there is an error. Nobody changes the tree meanwhile.
func Follow(cpu *radix.Tree, dev device.Device, opts FollowOptions) (f *Follower, err error) {
	f = &Follower{cpu: cpu, dev: dev, opts: opts, piece: packPiece}
	f.opts.Workers = max(1, opts.Workers)
	if f.opts.Notes == 0 {
		f.opts.Notes = mostNotes
	}
	if f.opts.Log == 0 {
		f.opts.Log = defaultLog
	}
	f.log.Init(&f.stripes, f.opts.Log)
	f.locked.dev, f.locked.most = dev, f.opts.Log
	f.tree, err = New(dev, Options{Room: forPools(opts.Room), HostRoom: opts.HostRoom, ValBits: opts.ValBits, Entries: cpu.Len(), Longest: packing.Longest, Long: longKeys})
	if err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	f.desk = NewDesk(f.tree, opts.Workers)
	if err := f.load(); err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	f.end = sync.OnceValue(f.giveBack)
	f.forget = runtime.AddCleanup(f, func(d device.Device) { d.Close() }, dev)
	return f, nil
}

// load copies all entries.
func (f *Follower) load() error {
	c := f.cpu.Cursor()
	var keys []string
	var vals []uint64
	for {
		k, v, ok := c.Next()
		if ok {
			keys, vals = append(keys, k), append(vals, v)
		}
		if len(keys) == loadPiece || !ok && len(keys) > 0 {
			if err := f.desk.Apply(&Changes{Keys: packing.Strings{Keys: keys}, Vals: f.column(vals), Kind: Set}); err != nil {
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
func (f *Follower) column(vals []uint64) []byte {
	if f.tree.run.Bits == 64 {
		return arena.Bytes(vals)
	}
	narrow := make([]uint32, len(vals))
	for i, v := range vals {
		narrow[i] = uint32(v)
	}
	return arena.Bytes(narrow)
}

// Down returns the reason why the GPU is no longer used, or nil.
func (f *Follower) Down() error {
	if e := f.down.Load(); e != nil {
		return *e
	}
	return nil
}

// fail gives the GPU up, and says so the first time. Its memory, and the memory
// page-locked for it, is given back as soon as it is out of use.
func (f *Follower) fail(err error) {
	if f.down.CompareAndSwap(nil, &err) {
		device.Warn("pando: the GPU failed, the CPU does everything from now on", "device", f.dev.Info().Name, "error", err)
		go f.end() // the caller may hold locks, and accepted runs are to be folded
	}
}

// Takes reports whether a batch of n searches goes to the GPU.
func (f *Follower) Takes(n int) bool { return n > 0 && n >= f.opts.Least && f.down.Load() == nil }

// ValBytes returns the size of a value in the copy.
func (f *Follower) ValBytes() int { return f.tree.run.Bits / 8 }

var stripeSeed = maphash.MakeSeed()

// Single runs change, which changes one key of the tree in host memory and reports
// whether it has.
func (f *Follower) Single(key string, change func() (changed bool)) {
	f.stripes.One(maphash.String(stripeSeed, key), func() (string, bool) {
		if !change() || f.down.Load() != nil {
			return "", false
		}
		return strings.Clone(key), true
	})
	f.bound()
}

// Alone runs change, which changes any keys of the tree in host memory and returns
// which. Nobody else changes it meanwhile.
func (f *Follower) Alone(change func() (keys []string)) {
	f.stripes.All(func() []string {
		keys := change()
		if f.down.Load() != nil {
			return nil
		}
		own := make([]string, len(keys))
		for i, k := range keys {
			own[i] = strings.Clone(k)
		}
		return own
	})
	f.bound()
}

// bound sends the noted keys if they are many.
func (f *Follower) bound() {
	if f.stripes.Dirty() >= f.opts.Notes {
		f.refresh()
	}
}

// refresh brings the copy up to date.
func (f *Follower) refresh() {
	if f.stripes.Dirty() == 0 || f.down.Load() != nil {
		return
	}
	f.changing.Lock()
	defer f.changing.Unlock()
	f.log.Begin(0)
	defer f.log.End()
	if f.log.Pending() { // the stripes are held since before: nothing was noted
		return
	}
	if err := f.catchUp(); err != nil {
		f.fail(err)
	}
}

// catchUp sends the values of noted keys. All stripes are held, the log is empty or
// nothing is noted.
func (f *Follower) catchUp() error {
	keys := f.stripes.Noted()
	if len(keys) == 0 {
		return nil
	}
	if err := f.sendValues(keys); err != nil {
		return err
	}
	f.stripes.Clear()
	return nil
}

// sendValues sets keys of the copy to their values in the tree in host memory.
func (f *Follower) sendValues(keys []string) error {
	vals, found, kinds := make([]uint64, len(keys)), make([]bool, len(keys)), make([]uint8, len(keys))
	f.cpu.GetBatch(keys, vals, found, f.opts.Workers, nil)
	for i, there := range found {
		if kinds[i] = Delete; there {
			kinds[i] = Set
		}
	}
	f.using.Lock()
	defer f.using.Unlock()
	if err := f.Down(); err != nil {
		return err
	}
	return f.desk.Apply(&Changes{Keys: packing.Strings{Keys: keys}, Vals: f.column(vals), Kinds: kinds})
}

// Get returns the value of a key, and reports whether there is one.
func (f *Follower) Get(key string) (val uint64, ok bool) {
	if val, ok, known := f.log.Get(key); known {
		return val, ok
	}
	return f.cpu.Get(key)
}

// Wait waits until everything that was accepted is in the tree in host memory.
func (f *Follower) Wait() { f.log.Wait() }

// Pending reports whether there is something that is not.
func (f *Follower) Pending() bool { return f.log.Pending() }

// Len returns the number of entries. It is exact if no writer runs meanwhile.
func (f *Follower) Len() int {
	if n, known := f.log.Entries(); known {
		return n
	}
	return f.cpu.Len()
}

// Find looks strings up, as Desk.Find does, and reports whether the GPU could. Those
// that it could not the CPU has answered.
func (f *Follower) Find(q Queries) bool {
	if f.busy.Load() && !f.Pending() {
		return false
	}
	f.refresh()
	f.using.RLock()
	defer f.using.RUnlock()
	if f.down.Load() != nil || f.closed {
		return false
	}
	f.desk.Find(q)
	if err := f.desk.Down(); err != nil {
		f.fail(err)
	}
	return true
}

// DeviceBytes returns the device memory that the copy takes.
func (f *Follower) DeviceBytes() int64 {
	f.using.RLock()
	defer f.using.RUnlock()
	if f.down.Load() != nil || f.closed {
		return 0
	}
	return f.tree.Bytes()
}

// Check looks at the copy, and compares it with the tree in host memory. Nobody changes that
// meanwhile.
func (f *Follower) Check() error {
	f.Wait()
	f.refresh()
	if f.down.Load() != nil || f.closed {
		return nil
	}
	all, err := f.tree.read()
	if err != nil {
		return err
	}
	for _, e := range all {
		if v, ok := f.cpu.Get(e.key); !ok || string(f.column([]uint64{v})) != string(f.column([]uint64{e.val})) {
			return errors.New("cuart: the GPU's tree has another entry than the tree in host memory")
		}
	}
	long := 0
	c := f.cpu.Cursor()
	for k, _, ok := c.Next(); ok; k, _, ok = c.Next() {
		if len(k) > f.tree.longest {
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
func (f *Follower) Close() error { return f.end() }

// giveBack closes the follower. From then on the copy, and the memory that is
// page-locked for it, are out of use. No lock is held while the driver is called: that
// of a GPU that is lost may take long, and others need not wait for it.
func (f *Follower) giveBack() error {
	f.changing.Lock()
	f.log.Wait()
	f.using.Lock()
	f.closed = true
	done := errors.New("cuart: closed")
	f.down.CompareAndSwap(nil, &done)
	f.using.Unlock()
	f.changing.Unlock()
	f.forget.Stop()
	return errors.Join(f.locked.close(), f.desk.Close(), f.tree.Close(), f.dev.Close())
}

package cuart

import (
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/packing"
	"github.com/pando-index/pando/internal/radix"
)

// Follower is a copy of a radix.Tree on a GPU that follows it: the tree in host memory
// is changed first, and has everything at any time. Large batches of changes are done
// to the copy as well before they return; the keys of single changes are noted, and
// their values sent before the next search. Large batches of searches run on the GPU.
//
// Who changes the tree holds a lock for that, and has noted what before it lets go: so
// a search that begins later finds it.
type Follower struct {
	cpu  *radix.Tree
	opts FollowOptions
	dev  device.Device
	tree *Tree
	desk *Desk
	down atomic.Pointer[error]

	writing sync.Mutex // held by who changes the tree in host memory
	noted   []string   // keys that the copy may have otherwise
	dirty   atomic.Bool
	busy    atomic.Bool // a large batch of changes is under way: the CPU answers

	using  sync.RWMutex // held for reading by searches, for writing by who changes the copy; comes after writing
	forget runtime.Cleanup
	closed bool
}

// FollowOptions are the settings of a follower.
type FollowOptions struct {
	Workers int
	// Least is the number of keys from which on a batch goes to the GPU.
	Least int
	// Room is the most device memory that the copy may take; 0 is what there is.
	Room int64
	// HostRoom is the most host memory that its leaves may take, as in Options.
	HostRoom int64
	// ValBits is the size of values, 32 or 64.
	ValBits int
	// Notes is how many keys are noted at most; 0 is a default.
	Notes int
}

const (
	mostNotes = 64 << 10
	loadPiece = 256 << 10 // entries that are loaded at a time
)

// Follow returns a copy of a tree that follows it. The device is the follower's from
// then on, also if there is an error. Nobody changes the tree meanwhile.
func Follow(cpu *radix.Tree, dev device.Device, opts FollowOptions) (f *Follower, err error) {
	f = &Follower{cpu: cpu, dev: dev, opts: opts}
	if f.opts.Notes == 0 {
		f.opts.Notes = mostNotes
	}
	f.tree, err = New(dev, Options{Room: forPools(opts.Room), HostRoom: opts.HostRoom, ValBits: opts.ValBits, Entries: cpu.Len(), Longest: packing.Longest, Long: longKeys})
	if err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	f.desk = NewDesk(f.tree, opts.Workers)
	if err := f.load(); err != nil {
		return nil, errors.Join(err, dev.Close())
	}
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

// fail gives the GPU up, and says so the first time.
func (f *Follower) fail(err error) {
	if f.down.CompareAndSwap(nil, &err) {
		slog.Warn("pando: the GPU failed, the CPU does everything from now on", "device", f.dev.Info().Name, "error", err)
	}
}

// Takes reports whether a batch of n strings goes to the GPU.
func (f *Follower) Takes(n int) bool { return n > 0 && n >= f.opts.Least && f.down.Load() == nil }

// ValBytes returns the size of a value in the copy.
func (f *Follower) ValBytes() int { return f.tree.run.Bits / 8 }

// Change runs change, which changes the tree in host memory, and returns the keys that
// it may have changed.
func (f *Follower) Change(change func() (keys []string)) {
	f.writing.Lock()
	defer f.writing.Unlock()
	f.dirty.Store(true) // before others can see the change
	keys := change()
	if f.down.Load() != nil {
		f.noted = nil
		return
	}
	for _, k := range keys {
		f.noted = append(f.noted, strings.Clone(k))
	}
	if len(f.noted) >= f.opts.Notes {
		f.catchUp()
	}
}

// Apply runs change, which does operations to the tree in host memory and reports
// whether it could, and does them to the copy.
func (f *Follower) Apply(c *Changes, change func() bool) {
	f.writing.Lock()
	defer f.writing.Unlock()
	f.busy.Store(true)
	defer f.busy.Store(false)
	f.dirty.Store(true)
	if !change() || f.down.Load() != nil {
		return
	}
	f.using.Lock()
	defer f.using.Unlock()
	if err := f.desk.Apply(c); err != nil {
		f.fail(err)
	}
}

// catchUp sends the values of noted keys. The caller holds the lock of writers.
func (f *Follower) catchUp() {
	f.using.Lock()
	defer f.using.Unlock()
	keys := f.noted
	f.noted = f.noted[:0]
	f.dirty.Store(false)
	if len(keys) == 0 || f.down.Load() != nil {
		return
	}
	vals, found, kinds := make([]uint64, len(keys)), make([]bool, len(keys)), make([]uint8, len(keys))
	f.cpu.GetBatch(keys, vals, found, f.opts.Workers, nil)
	for i, there := range found {
		if kinds[i] = Delete; there {
			kinds[i] = Set
		}
	}
	err := f.desk.Apply(&Changes{Keys: packing.Strings{Keys: keys}, Vals: f.column(vals), Kinds: kinds})
	clear(keys) // their strings are nobody's
	if err != nil {
		f.fail(err)
	}
}

// Find looks strings up, as Desk.Find does, and reports whether the GPU could. Those
// that it could not the CPU has answered.
func (f *Follower) Find(q Queries) bool {
	if f.busy.Load() {
		return false
	}
	if f.dirty.Load() {
		f.writing.Lock()
		f.catchUp()
		f.writing.Unlock()
	}
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
	f.writing.Lock()
	f.catchUp()
	f.writing.Unlock()
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

// Close waits for what is under way, and gives the device back.
func (f *Follower) Close() error {
	f.writing.Lock()
	defer f.writing.Unlock()
	f.using.Lock()
	defer f.using.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	f.forget.Stop()
	done := errors.New("cuart: closed")
	f.down.CompareAndSwap(nil, &done)
	return errors.Join(f.desk.Close(), f.tree.Close(), f.dev.Close())
}

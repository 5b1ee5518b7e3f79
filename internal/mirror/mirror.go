// Package mirror is the HB+-tree paper's hybrid for a tree that changes: the
// inner nodes of a bplus.Tree, upper nodes and pilots, are mirrored on a GPU, the
// leaves' blocks stay in host memory. The GPU takes keys down to a line of a
// leaf; the CPU reads that line.
//
// The mirror is always behind a tree that changes, and needs not be up to date
// for answers to be right. Each mirrored pilot has the word that its leaf had;
// the GPU returns it with the line, and the CPU takes the line only while the
// leaf still has that word, before and after. Then the pilot is as it was
// mirrored, and the GPU has seen that the key is between its low key and its
// high key. All else is repeated on the CPU from the root. Upper nodes may be of
// any age, or nonsense: they only decide how many are repeated.
//
// How many that were decides when the mirror is brought up to date (section 5.6):
// synchronously, before the next batch, by the nodes that have changed; or
// asynchronously, all of it, while the CPU answers alone.
package mirror

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/flow"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
)

// Way is how a mirror is brought up to date.
type Way uint8

const (
	Measured     Way = iota // one of the others, by what they have taken
	Synchronous             // changed nodes, before the next batch
	Asynchronous            // all nodes, while the CPU answers alone
	Never                   // not at all: for tests
)

// Options are the settings of a mirror.
type Options struct {
	Workers int
	// Least is the number of keys from which on a batch goes to the GPU.
	Least int
	// Room is the most device memory that may be taken; 0 means all there is.
	Room int64
	Way  Way
	// Bucket is the number of keys that travel together; 0 is a default.
	Bucket int
}

// Mirror is a tree in host memory with its inner nodes on a GPU.
type Mirror[C order.Code] struct {
	cpu  *bplus.Tree[C]
	opts Options
	flow.Schedule[bucket]
	dev   device.Device
	down  atomic.Pointer[error]
	jobs  par.Pool[search[C]]
	rooms par.Pool[room[C]]

	// using is held for reading by batches on the GPU, for writing by updates.
	using sync.RWMutex
	seg   segment[C]

	updating sync.Mutex // guards the fields below
	closed   bool
	busy     bool    // an asynchronous update is under way
	stale    float64 // share of the last batch that had to be repeated
	walk     time.Duration
	perNode  time.Duration
	all      time.Duration
	updates  [2]int // synchronous, asynchronous
	behind   sync.WaitGroup
}

// defaultBucket is that of Frozen's hybrid (docs/hybrid.md).
const defaultBucket = 256 << 10

// New returns a mirror of a tree. The device is the mirror's from then on, also
// if there is an error.
func New[C order.Code](cpu *bplus.Tree[C], dev device.Device, opts Options) (*Mirror[C], error) {
	m := &Mirror[C]{cpu: cpu, opts: opts, dev: dev, jobs: par.NewPool[search[C]](), rooms: par.NewPool[room[C]]()}
	m.opts.Workers = max(1, opts.Workers)
	if m.opts.Bucket == 0 {
		m.opts.Bucket = defaultBucket
	}
	m.Schedule.Down = func() bool { return m.down.Load() != nil }
	m.Schedule.Fail = m.fail
	m.Slots.Init(dev, flow.MaxSlots, func(device.Stream) {})
	if err := m.prepare(); err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	return m, nil
}

// prepare takes the memory it needs, and copies all inner nodes.
func (m *Mirror[C]) prepare() (err error) {
	m.seg = segment[C]{cpu: m.cpu, dev: m.dev, room: m.opts.Room}
	if m.seg.room > 0 { // beside the buckets under way
		if m.seg.room -= int64(flow.MaxSlots * m.opts.Bucket * (inBytes[C]() + outBytes)); m.seg.room <= 0 {
			return device.ErrOutOfMemory
		}
	}
	if m.seg.set, err = kernel.LoadOnly(m.dev, kernel.MirrorSource); err != nil {
		return err
	}
	if m.Serial, err = m.dev.NewStream(); err != nil {
		return err
	}
	m.seg.stream = m.Serial
	if err := m.seg.init(); err != nil {
		return err
	}
	return m.update(Asynchronous)
}

// Down returns the reason why the GPU is no longer used, or nil.
func (m *Mirror[C]) Down() error {
	if e := m.down.Load(); e != nil {
		return *e
	}
	return nil
}

// fail gives the GPU up, and says so the first time.
func (m *Mirror[C]) fail(err error) {
	if m.down.CompareAndSwap(nil, &err) {
		device.Warn("pando: the GPU failed, the CPU answers from now on", "device", m.dev.Info().Name, "error", err)
	}
}

// Takes reports whether a batch of n keys goes to the GPU.
func (m *Mirror[C]) Takes(n int) bool { return n > 0 && n >= m.opts.Least && m.down.Load() == nil }

// DeviceBytes returns the device memory that the mirror takes.
func (m *Mirror[C]) DeviceBytes() int64 {
	m.using.RLock()
	defer m.using.RUnlock()
	if m.down.Load() != nil {
		return 0
	}
	return int64(m.seg.bytes)
}

// Updates returns how often the mirror was brought up to date in either way.
func (m *Mirror[C]) Updates() (synchronous, asynchronous int) {
	m.updating.Lock()
	defer m.updating.Unlock()
	return m.updates[0], m.updates[1]
}

// Stale returns the share of the last batch that had to be repeated on the CPU.
func (m *Mirror[C]) Stale() float64 {
	m.updating.Lock()
	defer m.updating.Unlock()
	return m.stale
}

// Update brings the mirror up to date now, in one way or the other.
func (m *Mirror[C]) Update(way Way) error {
	m.using.Lock()
	defer m.using.Unlock()
	if err := m.Down(); err != nil {
		return err
	}
	err := m.update(way)
	if err != nil {
		m.fail(err)
	}
	return err
}

// update is Update for a caller that has the mirror to itself. It notes the time it
// took.
func (m *Mirror[C]) update(way Way) error {
	begun := time.Now()
	if err := m.seg.update(way == Asynchronous); err != nil {
		return err
	}
	took := time.Since(begun)
	m.updating.Lock()
	defer m.updating.Unlock()
	m.stale = 0
	if way == Asynchronous {
		m.all = took
		m.updates[1]++
		return nil
	}
	m.walk, m.perNode = took-m.seg.took, m.seg.took/time.Duration(max(m.seg.moved, 1))
	m.updates[0]++
	return nil
}

// staleShare is the part of a batch that may be repeated without the mirror
// being updated: to repeat a search takes some 50 ns, to look for changed nodes
// some ns a leaf.
const staleShare = 1. / 64

// note notes how many of n answers were stale.
func (m *Mirror[C]) note(stale, n int) {
	m.updating.Lock()
	defer m.updating.Unlock()
	m.stale = float64(stale) / float64(max(n, 1))
}

// refresh brings the mirror up to date before a batch, or begins to, if enough
// answers of the last one were stale.
func (m *Mirror[C]) refresh() error {
	switch m.choose() {
	case Synchronous:
		return m.Update(Synchronous)
	case Asynchronous:
		m.begin()
	}
	return nil
}

// choose returns how the mirror is to be brought up to date now: Never for not at
// all.
func (m *Mirror[C]) choose() Way {
	_, _, leaves := m.cpu.NodesInUse()
	m.updating.Lock()
	defer m.updating.Unlock()
	if m.busy || m.stale <= staleShare || m.opts.Way == Never {
		return Never
	}
	if m.opts.Way != Measured {
		return m.opts.Way
	}
	changed := time.Duration(m.stale * float64(leaves))
	if m.walk+changed*m.perNode > m.all {
		return Asynchronous
	}
	return Synchronous
}

// begin begins an asynchronous update.
func (m *Mirror[C]) begin() {
	m.updating.Lock()
	defer m.updating.Unlock()
	if m.busy || m.closed {
		return
	}
	m.busy = true
	m.behind.Go(func() {
		m.Update(Asynchronous) // an error is noted: the CPU goes on
		m.updating.Lock()
		m.busy = false
		m.updating.Unlock()
	})
}

// Close waits for batches under way and gives the device back. The tree stays
// open.
func (m *Mirror[C]) Close() error {
	m.updating.Lock()
	closed := m.closed
	m.closed = true
	m.updating.Unlock()
	if closed {
		return nil
	}
	m.behind.Wait()
	m.using.Lock()
	defer m.using.Unlock()
	gone := errors.New("mirror: closed")
	m.down.CompareAndSwap(nil, &gone)
	m.Slots.Close()
	return m.dev.Close()
}

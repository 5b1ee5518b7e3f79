package blob

import (
	"math"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/stall"
)

// Store is the values of one tree and of its snapshots. Any number of goroutines may put and
// free values at once.
//
// A value is put before its Ref is in the tree. It is retired when its Ref has left the tree,
// and freed when nobody can come across its Ref any more: no reader that has found it in the
// tree, and no snapshot. The store does not know when that is; trees have generations and
// epochs for it.
type Store struct {
	*memory
	hold   *hold
	limit  atomic.Int64 // 0 is none
	counts bool         // there is a limit, or will be
	beside func() int64
	taken  atomic.Int64 // bytes that count against the limit
}

// memory is what a store has taken. It is a part of its own, so that it can be given back when
// nobody refers to the store any more.
type memory struct {
	id      uint64
	shelves [classCount]shelf
	shards  [mostShards]atomic.Pointer[shard]
	count   atomic.Int32 // of shards
	adding  sync.Mutex   // held to add a shard
	runs    runList
	held    atomic.Int64 // bytes of slabs and runs
	tally   *arena.Block // counts them
	closed  bool         // changes while all shards are locked, and nobody fills a run

	moving sync.Mutex   // held while slabs are emptied
	tried  atomic.Int64 // bytes that were free when that was last done
}

// mostShards is the most goroutines that can put values at the very same time without waiting.
const mostShards = 16

// shard is where one goroutine at a time puts and frees values.
type shard struct {
	mu     sync.Mutex
	stash  [classCount]stash
	live   amount // values that were put, less those that were retired; below 0 where others have put them
	kept   amount // values that were retired, less those that were freed
	inRuns amount // of both, those that have runs
	_      [64]byte
}

// amount is a number of values and their bytes.
type amount struct {
	values int64
	bytes  int64 // of the values themselves
	room   int64 // of the slots and pages that they have
}

func (a *amount) add(b amount, times int64) {
	a.values += b.values * times
	a.bytes += b.bytes * times
	a.room += b.room * times
}

var stores atomic.Uint64

// New returns an empty store. Its values, and whatever beside returns the bytes of, take at
// most limit bytes; a limit of 0 is none.
func New(limit int64, beside func() int64) *Store {
	m := &memory{id: stores.Add(1), tally: arena.NewTally()}
	for i := range m.shelves {
		m.shelves[i].open = -1
	}
	m.addShard(0)
	s := &Store{memory: m, hold: newHold(m), counts: limit > 0, beside: beside}
	s.limit.Store(limit)
	return s
}

// SetLimit changes the limit of a store that was made with one; 0 is none for the time being.
// The store may take more already: then it takes no value until others were freed.
func (s *Store) SetLimit(bytes int64) { s.limit.Store(bytes) }

// hold keeps memory from being given back: a store has it.
type hold struct{ memory *memory }

func newHold(m *memory) *hold {
	h := &hold{m}
	runtime.AddCleanup(h, (*memory).close, m)
	return h
}

// who returns the mark of slabs of a class.
func (m *memory) who(cl int) uint64 { return m.id<<8 | uint64(cl) }

// enter returns a shard, locked: the same for a goroutine most of the time, and another one
// where that is in use. There are as many as goroutines have met.
func (m *memory) enter() *shard {
	var here byte
	mine := uint32(uintptr(unsafe.Pointer(&here)) >> 12 * 0x9E3779B1 >> 16) // stacks of goroutines lie apart
	for {
		n := uint32(m.count.Load())
		for i := range n {
			if x := m.shards[(mine+i)%n].Load(); x.mu.TryLock() {
				return x
			}
		}
		if n == mostShards || int(n) >= runtime.GOMAXPROCS(0) || !m.addShard(int(n)) {
			x := m.shards[mine%n].Load()
			x.mu.Lock()
			return x
		}
	}
}

// addShard adds shard n, unless another goroutine has. It reports false if all shards are
// locked, and stay so for a while.
func (m *memory) addShard(n int) bool {
	if !m.adding.TryLock() {
		return false
	}
	defer m.adding.Unlock()
	if int(m.count.Load()) == n {
		m.shards[n].Store(new(shard))
		m.count.Store(int32(n + 1))
	}
	return true
}

// lockAll locks all shards, and keeps others from being added.
func (m *memory) lockAll() (all []*shard) {
	m.adding.Lock()
	for i := range m.count.Load() {
		x := m.shards[i].Load()
		x.mu.Lock()
		all = append(all, x)
	}
	return all
}

func (m *memory) unlockAll(all []*shard) {
	for _, x := range all {
		x.mu.Unlock()
	}
	m.adding.Unlock()
}

// roomOf returns the bytes that n bytes take in a slot or in pages.
func roomOf(n int) int64 {
	switch {
	case n <= mostShort:
		return 0
	case n <= mostSlot:
		return int64(classes[classOf(n)].size)
	}
	return (int64(n) + pageBytes - 1) &^ (pageBytes - 1)
}

// charge counts bytes against the limit, or returns an error if they are over it.
func (s *Store) charge(bytes int64) error {
	if !s.counts || bytes == 0 {
		return nil
	}
	room := s.limit.Load()
	if room == 0 {
		room = math.MaxInt64
	} else if s.beside != nil {
		room -= s.beside()
	}
	for { // counted only if it fits: others must not be refused for what is refused itself
		taken := s.taken.Load()
		if taken+bytes > room {
			return op.ErrLimit
		}
		if s.taken.CompareAndSwap(taken, taken+bytes) {
			return nil
		}
	}
}

// Charged returns the bytes that count against the limit; 0 if the store was made without one.
func (s *Store) Charged() int64 { return s.taken.Load() }

// refund takes bytes back that were counted against the limit.
func (s *Store) refund(bytes int64) {
	if s.counts && !(mutant.On && mutant.Is("blob: refund")) {
		s.taken.Add(-bytes)
	}
}

// Put returns the Ref of a copy of a value, for a tree that is in the given epoch, or was when
// it was last asked. If memory runs out, or the store was closed, nothing has changed.
func (s *Store) Put(val []byte, epoch uint64) (Ref, error) {
	switch {
	case len(val) <= mostShort:
		return shortRef(val), nil
	case uint64(len(val)) > MostBytes:
		return 0, ErrTooLong
	}
	if err := s.charge(roomOf(len(val))); err != nil {
		return 0, err
	}
	r, err := s.put(val, epoch)
	if err != nil {
		s.refund(roomOf(len(val)))
	}
	return r, err
}

// put is Put for values that are not short, without a look at the limit.
func (s *Store) put(val []byte, epoch uint64) (r Ref, err error) {
	if len(val) > mostSlot {
		return s.putRun(val, epoch)
	}
	x := s.enter()
	r, err = s.putIn(x, val, epoch)
	x.mu.Unlock()
	return r, err
}

// putIn puts a value into a slot. The bytes are copied while the shard is locked: Close waits
// for that, since the slab is another store's afterwards.
func (s *Store) putIn(x *shard, val []byte, epoch uint64) (Ref, error) {
	if s.closed {
		return 0, op.ErrClosed
	}
	cl := classOf(len(val))
	st := &x.stash[cl]
	if st.bits == 0 {
		if err := s.refill(st, cl, epoch); err != nil {
			return 0, err
		}
	}
	slot := int(st.word)*64 + bits.TrailingZeros64(st.bits)
	st.bits &= st.bits - 1
	r := slabRef(st.slab, slot, len(val))
	stall.At("held: slot taken")
	if st.bits != 0 { // the next value's
		simd.Fetch(headerOf(st.slab).slot(&classes[cl], int(st.word)*64+bits.TrailingZeros64(st.bits)), 1)
	}
	copy(r.bytes(), val)
	x.live.add(amount{1, int64(len(val)), int64(classes[cl].size)}, 1)
	return r, nil
}

// atOnce is how many values are put or freed before the shard is left for a moment.
const atOnce = 256

// PutBatch sets refs to those of copies of values, of which value returns number i. If it
// fails, nothing has changed. value is called twice for each, and must not use the store.
func (s *Store) PutBatch(refs []Ref, value func(i int) []byte, epoch uint64) error {
	room := int64(0)
	for i := range refs {
		n := len(value(i))
		if uint64(n) > MostBytes {
			return ErrTooLong
		}
		room += roomOf(n)
	}
	if err := s.charge(room); err != nil {
		return err
	}
	for lo := 0; lo < len(refs); lo += atOnce {
		part := refs[lo:min(lo+atOnce, len(refs))]
		if n, err := s.putPart(part, lo, value, epoch); err != nil {
			s.unput(refs[:lo+n])
			s.refund(room)
			clear(refs)
			return err
		}
	}
	return nil
}

// putPart puts values from number lo on, and returns how many it has.
func (s *Store) putPart(refs []Ref, lo int, value func(i int) []byte, epoch uint64) (n int, err error) {
	x := s.enter()
	defer func() { x.mu.Unlock() }()
	for i := range refs {
		switch val := value(lo + i); {
		case len(val) <= mostShort:
			refs[i] = shortRef(val)
		case len(val) <= mostSlot:
			refs[i], err = s.putIn(x, val, epoch)
		default:
			x.mu.Unlock()
			refs[i], err = s.putRun(val, epoch)
			x = s.enter()
		}
		if err != nil {
			return i, err
		}
	}
	return len(refs), nil
}

// unput takes values back that were put and count no more against the limit.
func (s *Store) unput(refs []Ref) {
	s.Retire(refs)
	s.free(refs)
}

// Drop frees values whose Refs nobody but the caller has seen.
func (s *Store) Drop(refs ...Ref) {
	s.Retire(refs)
	s.Free(refs)
}

// Retire takes the Refs of values that are no longer in the tree. It only counts them: from
// now on they are kept for readers and snapshots.
func (s *Store) Retire(refs []Ref) {
	var all amount
	for _, r := range refs {
		all.add(r.amount(), 1)
	}
	x := s.enter()
	defer x.mu.Unlock()
	if !s.closed {
		x.live.add(all, -1)
		x.kept.add(all, 1)
	}
}

// amount returns what a Ref counts for.
func (r Ref) amount() amount {
	n := r.Len()
	if n <= mostShort {
		return amount{}
	}
	return amount{1, int64(n), roomOf(n)}
}

// Free frees values that were retired, and that no reader and no snapshot can find any more.
func (s *Store) Free(refs []Ref) { s.refund(s.free(refs)) }

// free is Free without a word to the limit. It returns the bytes that it has freed.
func (s *Store) free(refs []Ref) (room int64) {
	for lo := 0; lo < len(refs); lo += atOnce {
		room += s.freePart(refs[lo:min(lo+atOnce, len(refs))])
	}
	return room
}

func (s *Store) freePart(refs []Ref) (room int64) {
	x := s.enter()
	defer x.mu.Unlock()
	if s.closed {
		return 0
	}
	var all amount
	for _, r := range refs {
		switch r.kind() {
		case kindSlab:
			s.freeSlot(r.slab(), r.slot(), classOf(r.slabLen()))
		case kindRun:
			x.inRuns.add(r.amount(), -1)
			s.freeRun(r)
		}
		all.add(r.amount(), 1)
	}
	x.kept.add(all, -1)
	return all.room
}

// Born returns the epoch in which a value was put, or an earlier one. The value must not have
// been freed.
func (s *Store) Born(r Ref) uint64 {
	switch r.kind() {
	case kindSlab:
		return headerOf(r.slab()).born(&classes[classOf(r.slabLen())], r.slot())
	case kindRun:
		return s.runs.born(r.chunk())
	}
	return 0
}

// Close gives all memory back. Values of a store that was closed are zeros, or another's; it
// takes no more, and freeing them does nothing. The garbage collector closes a store that
// nobody refers to: a Ref alone does not.
func (s *Store) Close() {
	s.memory.close()
	runtime.KeepAlive(s.hold)
}

func (m *memory) close() {
	if mutant.On && mutant.Is("blob: close waits") {
		m.adding.Lock()
		m.closed = true
		m.adding.Unlock()
		m.release()
		return
	}
	m.runs.filling.Lock()
	defer m.runs.filling.Unlock()
	all := m.lockAll()
	defer m.unlockAll(all)
	if m.closed {
		return
	}
	m.closed = true
	for _, x := range all {
		x.stash = [classCount]stash{}
		x.live, x.kept, x.inRuns = amount{}, amount{}, amount{}
	}
	m.release()
}

// release gives slabs and runs back.
func (m *memory) release() {
	for i := range m.shelves {
		f := &m.shelves[i]
		f.mu.Lock()
		for _, slab := range f.slabs {
			headerOf(slab).who.Store(0)
			slabs.Give(int(slab))
			m.account(-slabBytes)
		}
		f.slabs, f.list, f.open = nil, nil, -1
		f.mu.Unlock()
	}
	for _, r := range m.runs.takeAll() {
		m.giveRun(r)
	}
	m.dropSpare()
}

// account counts bytes that were taken, or given back.
func (m *memory) account(bytes int64) {
	m.held.Add(bytes)
	m.tally.Account(bytes)
}

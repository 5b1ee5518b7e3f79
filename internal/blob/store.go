package blob

import (
	"fmt"
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
	limit  int64
	beside func() int64
	taken  atomic.Int64 // bytes that count against the limit, if there is one
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
	return &Store{memory: m, hold: newHold(m), limit: limit, beside: beside}
}

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
	if s.limit == 0 || bytes == 0 {
		return nil
	}
	n := s.taken.Add(bytes)
	if s.beside != nil {
		n += s.beside()
	}
	if n > s.limit {
		s.refund(bytes)
		return op.ErrLimit
	}
	return nil
}

// refund takes bytes back that were counted against the limit.
func (s *Store) refund(bytes int64) {
	if s.limit > 0 && !(mutant.On && mutant.Is("blob: refund")) {
		s.taken.Add(-bytes)
	}
}

// Put returns the Ref of a copy of a value, for a tree that is in the given epoch, or was when
// it was last asked. If memory runs out, or the store was closed, nothing has changed.
func (s *Store) Put(val []byte, epoch uint64) (Ref, error) {
	if len(val) <= mostShort {
		return shortRef(val), nil
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

// put is Put without a look at the limit.
func (s *Store) put(val []byte, epoch uint64) (r Ref, err error) {
	if len(val) <= mostShort {
		return shortRef(val), nil
	}
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
// fails, nothing has changed.
func (s *Store) PutBatch(refs []Ref, value func(i int) []byte, epoch uint64) error {
	room := int64(0)
	for i := range refs {
		room += roomOf(len(value(i)))
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
	var slots, inRuns amount
	for _, r := range refs {
		if a := r.amount(); r.kind() == kindRun {
			inRuns.add(a, 1)
		} else {
			slots.add(a, 1)
		}
	}
	x := s.enter()
	defer x.mu.Unlock()
	x.live.add(slots, -1)
	x.live.add(inRuns, -1)
	x.kept.add(slots, 1)
	x.kept.add(inRuns, 1)
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

// Stats describes the memory of a store. Held is all of it, and the sum of the others.
type Stats struct {
	Values int64 // values that take memory here: short ones are in their Refs
	Live   int64 // bytes of these values
	Slack  int64 // bytes around them: ends of slots and pages, and what describes them
	Kept   int64 // slots and pages of values that were retired and not freed yet
	Free   int64 // free slots, and free pages that are kept for long values
	Held   int64
}

// Stats returns the memory of the store.
func (m *memory) Stats() Stats {
	all := m.lockAll()
	defer m.unlockAll(all)
	return m.stats(all)
}

func (m *memory) stats(all []*shard) Stats {
	var live, kept, inRuns amount
	for _, x := range all {
		live.add(x.live, 1)
		kept.add(x.kept, 1)
		inRuns.add(x.inRuns, 1)
	}
	st := Stats{Values: live.values, Live: live.bytes, Kept: kept.room, Held: m.held.Load()}
	for i := range m.shelves {
		f := &m.shelves[i]
		f.mu.Lock()
		st.Free += int64(len(f.slabs)) * int64(classes[i].slots) * int64(classes[i].size)
		f.mu.Unlock()
	}
	st.Free += m.runs.unused() - (live.room + kept.room - inRuns.room)
	st.Slack = st.Held - st.Live - st.Kept - st.Free
	return st
}

// Bytes returns the bytes of slots and pages that have values, retired ones among them.
func (m *memory) Bytes() (n int64) {
	for i := range m.count.Load() {
		x := m.shards[i].Load()
		x.mu.Lock()
		n += x.live.room + x.kept.room
		x.mu.Unlock()
	}
	return n
}

// Holds reports whether a Ref stands for a value that was put and not freed. It is for checks
// of a tree that nobody changes.
func (m *memory) Holds(r Ref) bool {
	switch r.kind() {
	case kindShort:
		return r.shortLen() >= 0 && r.shortLen() <= mostShort
	case kindSlab:
		if at, _ := r.place(); at == nil {
			return false
		}
		h := headerOf(r.slab())
		return h.who.Load() == m.who(classOf(r.slabLen())) && h.free(r.slot()/64).Load()>>(r.slot()%64)&1 == 0
	case kindRun:
		return m.runs.has(r.chunk(), int(r.runLen()))
	}
	return false
}

// Check looks whether the store is what it must be while nobody changes it.
func (m *memory) Check() error {
	all := m.lockAll()
	defer m.unlockAll(all)
	used, stashed := 0, 0
	for cl := range m.shelves {
		n, err := m.shelves[cl].check(m.who(cl), cl)
		if err != nil {
			return fmt.Errorf("blob: slots of %d bytes: %w", classes[cl].size, err)
		}
		used += n
	}
	for _, x := range all {
		for cl, st := range x.stash {
			stashed += bits.OnesCount64(st.bits)
			if st.bits != 0 && headerOf(st.slab).free(int(st.word)).Load()&st.bits != 0 {
				return fmt.Errorf("blob: slots of %d bytes are in a stash, and free", classes[cl].size)
			}
		}
	}
	n, inUse, idle, held := m.runs.sum()
	if inUse+idle != held {
		return fmt.Errorf("blob: runs have %d bytes, and %d that are free; %d were counted", inUse, idle, held)
	}
	for i := range m.shelves {
		held += int64(len(m.shelves[i].slabs)) * slabBytes
	}
	var count, inRuns int64
	for _, x := range all {
		count += x.live.values + x.kept.values
		inRuns += x.inRuns.values
	}
	if int64(used-stashed+n) != count || int64(n) != inRuns || held != m.held.Load() {
		return fmt.Errorf("blob: %d slots are in use and %d runs, %d slots are in stashes; there are %d values, %d of them in runs; %d bytes are held, %d counted",
			used, n, stashed, count, inRuns, held, m.held.Load())
	}
	if st := m.stats(all); st.Free < 0 || st.Slack < 0 || st.Live < 0 || st.Kept < 0 {
		return fmt.Errorf("blob: %+v", st)
	}
	return nil
}

// check looks at the slabs of a class, and returns how many of their slots are not free.
func (f *shelf) check(who uint64, cl int) (used int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, listed := &classes[cl], 0
	for i, slab := range f.slabs {
		h, free := headerOf(slab), 0
		for w := range (c.slots + 63) / 64 {
			free += bits.OnesCount64(h.free(w).Load())
		}
		live, state := int(h.live.Load()), h.state.Load()
		switch {
		case h.who.Load() != who || int(h.at) != i:
			return 0, fmt.Errorf("slab %d is another's: it has mark %#x and number %d, not %#x and %d", slab, h.who.Load(), h.at, who, i)
		case live+free != c.slots:
			return 0, fmt.Errorf("slab %d: %d slots are in use and %d free, of %d", slab, live, free, c.slots)
		case (state == stateOpen) != (f.open == int64(slab)):
			return 0, fmt.Errorf("slab %d is in state %d, and slab %d is open", slab, state, f.open)
		case state == stateFull && live <= c.list, state == stateListed && live > c.list, state != stateOpen && live == 0:
			return 0, fmt.Errorf("slab %d is in state %d with %d slots in use", slab, state, live)
		case (state == stateListed) != (h.listed >= 0), h.listed >= 0 && f.list[h.listed] != slab:
			return 0, fmt.Errorf("slab %d is in state %d and number %d of the list", slab, state, h.listed)
		}
		if state == stateListed {
			listed++
		}
		used += live
	}
	if listed != len(f.list) {
		return 0, fmt.Errorf("%d slabs are listed, the list has %d", listed, len(f.list))
	}
	return used, nil
}

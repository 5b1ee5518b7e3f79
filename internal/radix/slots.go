package radix

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/stall"
)

// memory is the slots that a tree has taken from the pools. Its snapshots share it.
type memory struct {
	mu    sync.Mutex // guards slots, used and tally
	slots [classes]arena.Slots
	long  longKeys
	used  int64        // bytes in use, and at hand
	tally *arena.Block // counts them, about
	about atomic.Int64 // slots that it knows of
}

func newMemory() *memory {
	reserve()
	m := &memory{tally: arena.NewTally()}
	for class := node2; class < classes; class++ {
		m.slots[class].Pool = pools[min(class, inners)]
		m.slots[class].Stride = max(class-inners, 1)
	}
	return m
}

// lock is for work of some hundred nanoseconds. It spins for some microseconds before it
// sleeps: being woken usually takes longer.
func (m *memory) lock() {
	for range 128 {
		if m.mu.TryLock() {
			return
		}
		simd.Pause()
	}
	m.mu.Lock()
}

// take appends slots of a class to dst, up to n and one at least. They are not over a
// limit, unless that is 0.
func (m *memory) take(dst []link, class, n int, promised bool, limit int64) ([]link, error) {
	m.lock()
	defer m.mu.Unlock()
	size := int64(sizeOf(class))
	if limit > 0 && m.used+size > limit {
		return dst, op.ErrLimit
	}
	first := link(leafBit)
	if class < inners {
		first = linkTo(class, 0)
	}
	start, taken := m.slots[class].TakeFresh(n, promised)
	for i := range taken {
		dst = append(dst, first|link(start+i*m.slots[class].Stride))
	}
	for ; taken < n; taken++ {
		slot, _, err := m.slots[class].Take(promised)
		if err != nil && taken == 0 {
			return dst, err
		}
		if err != nil {
			break
		}
		dst = append(dst, first|link(slot))
	}
	m.account(int64(taken) * size)
	return dst, nil
}

// claim adds bytes to those in use, with room for some more, or returns an error if
// that is over a limit, which is not 0.
func (m *memory) claim(bytes, more, limit int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if limit > 0 && m.used+bytes+more > limit {
		return op.ErrLimit
	}
	m.account(bytes)
	return nil
}

// give takes slots back that nobody can be reading.
func (m *memory) give(ls ...link) {
	m.lock()
	defer m.mu.Unlock()
	for _, l := range ls {
		m.giveOne(l)
	}
}

// giveRefs takes back the slots of references that were in a limbo.
func (m *memory) giveRefs(refs []uint64) {
	if len(refs) == 0 {
		return
	}
	m.lock()
	defer m.mu.Unlock()
	for _, ref := range refs {
		m.giveOne(link(ref))
	}
}

// untake takes back a slot that was just taken. If it was promised, it still is.
func (m *memory) untake(l link, promised bool) {
	m.lock()
	defer m.mu.Unlock()
	if promised {
		m.slots[l.class()].Repromise()
	}
	m.giveOne(l)
}

func (m *memory) giveOne(l link) {
	class := l.class()
	if l.isLeaf() && l.leaf().length() == longLength {
		x := (*longLeaf)(unsafe.Pointer(l.leaf()))
		m.long.drop(x.handle)
		m.account(-int64(x.length))
	}
	m.giveSlot(class, l.slot())
}

// giveSlot takes one slot back.
func (m *memory) giveSlot(class, slot int) {
	m.slots[class].Give(slot)
	m.account(-int64(sizeOf(class)))
}

// inUse returns the bytes in use.
func (m *memory) inUse() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// tallyStep is by how many bytes the count of all memory may be wrong: to tell it
// each time takes longer than to fill a leaf.
const tallyStep = 64 << 10

func (m *memory) account(delta int64) {
	m.used += delta
	if off := m.used - m.about.Load(); off >= tallyStep || off <= -tallyStep {
		m.tell()
	}
}

// tell adds the bytes in use to the count of all memory.
func (m *memory) tell() {
	m.tally.Account(m.used - m.about.Load())
	m.about.Store(m.used)
}

// release gives everything back.
func (m *memory) release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for class := node2; class < classes; class++ {
		m.slots[class].Release()
	}
	m.long.clear()
	m.used = 0
	m.tell()
}

// stockSlots is how many slots a writer takes at a time: the memory of all has one
// lock. In a small tree that only one has changed so far it takes fewer, one for each
// stockEach entries.
const (
	stockSlots = 64
	stockEach  = 128
)

// stock is memory at hand, by class.
type stock [classes][]link

// empty gives a stock back.
func (m *memory) empty(s *stock) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for class := node2; class < classes; class++ {
		for _, l := range s[class] {
			m.giveSlot(class, l.slot())
		}
		s[class] = s[class][:0]
	}
}

// take returns memory for a node or leaf.
func (w *writer) take(class int) (l link, err error) {
	if s := w.stock; s != nil && len(s[class]) > 0 {
		n := len(s[class]) - 1
		l, s[class] = s[class][n], s[class][:n]
	} else if l, err = w.restock(class); err != nil {
		if !errors.Is(err, op.ErrLimit) || !w.alone || !w.t.makeRoom(w, int64(sizeOf(class))) {
			return 0, err
		}
		if l, err = w.restock(class); err != nil {
			return 0, err
		}
	}
	if w.t.forked {
		w.fork.made = append(w.fork.made, l)
	}
	return l, nil
}

// restock returns memory of a class, and takes some more to have at hand.
func (w *writer) restock(class int) (link, error) {
	t := w.t
	n := stockSlots
	if len(*t.desks.Load()) == 1 {
		n = int(min(w.entries.Load()/stockEach, stockSlots))
	}
	if t.limit.Load() > 0 || n <= 1 {
		var one [1]link
		_, err := t.memory.take(one[:0], class, 1, w.prepaid, w.bound())
		return one[0], err
	}
	if w.stock == nil {
		w.stock = new(stock)
	}
	all, err := t.memory.take(w.stock[class], class, n, w.prepaid, 0)
	if err != nil {
		return 0, err
	}
	w.stock[class] = all[:len(all)-1]
	return all[len(all)-1], nil
}

// bound returns the limit for memory of nodes; 0 if there is none.
func (w *writer) bound() int64 {
	t := w.t
	if t.limit.Load() == 0 || w.free || w.prepaid {
		return 0
	}
	return max(t.limit.Load()-t.besides(), 1)
}

// untake gives back a slot that take has returned and no other goroutine has seen.
func (w *writer) untake(l link) {
	if made := w.fork.made; w.t.forked {
		i := len(made) - 1
		for made[i] != l {
			i--
		}
		w.fork.made = slices.Delete(made, i, i+1)
	}
	if class := l.class(); w.stock != nil && (l.isInner() || l.leaf().length() != longLength) {
		w.stock[class] = append(w.stock[class], l)
		return
	}
	w.t.memory.untake(l, w.prepaid)
}

// unstock gives back the writers' stocks. The caller has all desks.
func (t *Tree) unstock() {
	for _, d := range *t.desks.Load() {
		if d.stock != nil {
			t.memory.empty(d.stock)
			d.stock = nil
		}
	}
}

// tryUnstock is unstock if no writer is there. It gives back nodes that were
// retired long enough ago as well. It waits for a sweep at a desk, which would look like a writer.
func (t *Tree) tryUnstock() {
	if !t.tend.TryLock() {
		stall.At("radix: count of bytes waits")
		t.tend.Lock()
	}
	defer t.tend.Unlock()
	if !t.mu.TryLock() {
		return
	}
	defer t.mu.Unlock()
	all := *t.desks.Load()
	for i, d := range all {
		if !d.mu.TryLock() {
			all = all[:i]
			break
		}
		defer d.mu.Unlock()
	}
	if len(all) < len(*t.desks.Load()) {
		return
	}
	for _, d := range all { // it may be long until a writer comes there, which would do it
		d.limbo.ReapAll(&t.Clock, d.giveAll)
	}
	t.unstock()
}

// releaseIfOver gives everything back if the tree is closed, and all its snapshots. The
// caller has all desks.
func (t *Tree) releaseIfOver() {
	if t.over() {
		for _, d := range *t.desks.Load() {
			d.stock = nil
			d.limbo.Forget()
		}
		t.values.Load().Forget()
		t.memory.release()
	}
}

// makeRoom makes room for bytes more, if it can: it waits for nothing. The caller has
// all desks.
func (t *Tree) makeRoom(w *writer, bytes int64) bool {
	t.advance(w)
	for _, d := range *t.desks.Load() {
		if t.fits(bytes) {
			return true
		}
		d.limbo.ReapAll(&t.Clock, d.giveAll)
	}
	if !t.fits(bytes) && t.short.Load() != nil {
		t.bare.Store(true)
		t.setShort(nil)
	}
	return t.fits(bytes)
}

// fits reports whether bytes more are not over the limit.
func (t *Tree) fits(bytes int64) bool {
	limit := t.limit.Load()
	return limit == 0 || t.inUse()+t.besides()+bytes <= limit
}

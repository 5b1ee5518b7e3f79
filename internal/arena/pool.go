package arena

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Pool hands out memory for nodes of trees that grow and shrink. A node is a
// slot, known by a number of 32 bits; a slot has one or more parts, each in a
// range of addresses of its own:
//
//	part 0   │ slot 0 │ slot 1 │ …                  Base(0) + number · size of part 0
//	part 1   │ slot 0 │ slot 1 │ …                  Base(1) + number · size of part 1
//
// The ranges are reserved once for the whole process, since a range can neither
// grow nor move while it is read: an address follows from a number without a
// table. Slots are taken and given back by the chunk. What is not taken, or was
// given back, takes no memory and reads as zeros, so that a reader who is late
// never faults.
type Pool struct {
	want  int // slots to reserve addresses for
	slots int // of a chunk
	parts []int
	once  sync.Once
	bases []unsafe.Pointer
	err   error
	deny  atomic.Pointer[func() bool] // for tests

	mu   sync.Mutex
	next int   // first chunk that was never taken
	most int   // chunks that the ranges hold
	free []int // chunks given back
	huge []bool
}

// mostSlots is the number of slots that a pool tries to reserve addresses for:
// 2^26 leaves of a tree of 64-bit pairs are 17 billion entries.
const mostSlots = 1 << 26

// spareBytes is how much of a range lies behind its last slot: a late reader may
// take a slot for a longer one.
const spareBytes = 4096

// NewPool returns a pool of chunks of some slots, whose parts have these sizes.
// A chunk of each part must be a multiple of the page size.
func NewPool(slots int, parts ...int) *Pool { return NewPoolOf(mostSlots, slots, parts...) }

// NewPoolOf is NewPool for at most so many slots in all.
func NewPoolOf(most, slots int, parts ...int) *Pool {
	for _, size := range parts {
		if slots*size%4096 != 0 {
			panic(fmt.Sprintf("arena: chunks of %d slots of %d bytes are no whole pages", slots, size))
		}
	}
	return &Pool{want: most, slots: slots, parts: parts}
}

// Slots returns the number of slots of a chunk. Chunk c has the slots from
// c·Slots() on.
func (p *Pool) Slots() int { return p.slots }

// Base returns the address of a part of slot 0.
func (p *Pool) Base(part int) unsafe.Pointer {
	p.once.Do(p.reserve)
	return p.bases[part]
}

// Most returns the number of slots that addresses are reserved for: what is
// behind must not be read.
func (p *Pool) Most() int {
	p.once.Do(p.reserve)
	return p.most * p.slots
}

// SlotBytes returns the size of a slot, all parts together.
func (p *Pool) SlotBytes() (n int) {
	for _, size := range p.parts {
		n += size
	}
	return n
}

// reserve takes the addresses: as many as the system gives.
func (p *Pool) reserve() {
	for most := firstReserve(p.want, p.SlotBytes()) / p.slots; ; most /= 2 {
		if most == 0 {
			p.err = fmt.Errorf("cannot reserve addresses for nodes: %w", p.err)
			p.bases = make([]unsafe.Pointer, len(p.parts))
			return
		}
		if p.bases, p.err = p.reserveRanges(most); p.err == nil {
			p.most = most
			return
		}
	}
}

// firstReserve returns the number of slots to try first.
func firstReserve(n, slotBytes int) int {
	for uint64(n)*uint64(slotBytes) > reserveBytes {
		n /= 2
	}
	return n
}

func (p *Pool) reserveRanges(chunks int) (bases []unsafe.Pointer, err error) {
	var done []*mapping
	for _, size := range p.parts {
		m, err := reserveLater(uintptr(chunks)*uintptr(p.slots)*uintptr(size) + spareBytes)
		if err != nil {
			for _, m := range done {
				unreserve(m)
			}
			return nil, err
		}
		done, bases = append(done, m), append(bases, m.addr)
	}
	return bases, nil
}

// Take returns the number of a chunk for the caller alone. Its memory is zero,
// or what whoever had it before has left there. huge asks for huge pages.
func (p *Pool) Take(huge bool) (chunk int, err error) {
	p.once.Do(p.reserve)
	if deny := p.deny.Load(); deny != nil && (*deny)() {
		return 0, fmt.Errorf("%w: denied by a test", ErrLimit)
	}
	if p.err != nil {
		return 0, p.err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch n := len(p.free); {
	case n > 0:
		chunk, p.free = p.free[n-1], p.free[:n-1]
	case p.next < p.most:
		chunk = p.next
		p.next++
		p.huge = append(p.huge, false)
	default:
		return 0, fmt.Errorf("%w: all %d nodes that addresses are reserved for are in use", ErrLimit, p.most*p.slots)
	}
	for part, size := range p.parts {
		if huge && !p.huge[chunk] {
			from, to := hugeAround(uintptr(chunk), uintptr(p.slots*size))
			adviseHuge(&mapping{addr: unsafe.Add(p.bases[part], from), length: to - from}, to-from)
		}
	}
	p.huge[chunk] = p.huge[chunk] || huge
	return chunk, nil
}

// hugeAround returns where the huge pages that a chunk of some bytes lies in
// begin and end, relative to the first chunk. A chunk may be smaller than a page,
// and the page is only a huge one if all of it was asked for before its first use.
func hugeAround(chunk, bytes uintptr) (from, to uintptr) {
	return chunk * bytes &^ (HugeSize - 1), ((chunk+1)*bytes + HugeSize - 1) &^ (HugeSize - 1)
}

// Give gives a chunk back. Its memory goes to the system at once.
func (p *Pool) Give(chunk int) {
	for part, size := range p.parts {
		n := uintptr(p.slots * size)
		decommit(unsafe.Add(p.bases[part], uintptr(chunk)*n), n)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, chunk)
}

// Taken returns the number of chunks that are in use.
func (p *Pool) Taken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.next - len(p.free)
}

// Deny makes Take fail whenever f returns true; nil ends that. It is for tests.
func (p *Pool) Deny(f func() bool) {
	if f == nil {
		p.deny.Store(nil)
		return
	}
	p.deny.Store(&f)
}

package arena

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// Pool hands out memory for nodes of trees that grow and shrink. A node is a
// slot, known by a number of 32 bits; a slot has one or more parts, each in a
// range of addresses of its own:
//
//	part 0   │ slot 0 │ slot 1 │ …                  Base(0) + number · size of part 0
//	part 1   │ slot 0 │ slot 1 │ …                  Base(1) + number · size of part 1
//
// The ranges are reserved once for the whole process, since a range cannot move
// while it is read: an address follows from a number without a table. Slots are
// taken and given back by the chunk. A chunk that is not taken, or was given
// back, takes no memory and reads as zeros, so that a late reader never faults.
//
// Where the system limits addresses (ulimit -v), a reservation would leave none to
// the rest of the program. There a range has a place, far from everything else, and
// is mapped as its chunks are taken: see growth.go.
type Pool struct {
	want  int // slots to reserve addresses for
	slots int // of a chunk
	parts []int
	once  sync.Once
	bases []unsafe.Pointer
	err   error
	deny  atomic.Pointer[func() bool] // for tests
	step  *Pool                       // that grows with this one; nil for none
	ready atomic.Int64                // slots that may be read
	ends  []uintptr                   // bytes of each part that are mapped, where ranges grow; nil elsewhere

	mu   sync.Mutex
	next int   // first chunk that was never taken
	most int   // chunks that the ranges hold, or may grow to
	free []int // chunks given back
	rows int   // chunks of rows given back: see Rows
	huge []bool

	until time.Duration // since started: chunks that a collection has found have come back by then
}

// started is when the program began. A time.Time in a Pool would link the formatting of
// times into every program, as interfaces hold Pools.
var started = time.Now()

// mostSlots is the number of slots that a pool tries to reserve addresses for:
// 2^26 leaves of a tree of 64-bit pairs are 17 billion entries.
const mostSlots = 1 << 26

// poolShare is the share of the addresses that are left which a pool takes at once
// where they are limited and there is no place for a range that grows.
const poolShare = 32

// spareBytes is how much of a range lies behind its last slot: a late reader may
// take a slot for a longer one.
const spareBytes = 4096

// NewPool returns a pool of chunks of some slots, whose parts have these sizes.
// A chunk of each part must be a multiple of the page size.
func NewPool(slots int, parts ...int) *Pool { return NewPoolOf(mostSlots, slots, parts...) }

// NewPoolOf is NewPool for at most most slots in all.
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

// Most returns the number of slots that may be read: slots behind must not be.
// Where ranges grow, it does.
func (p *Pool) Most() int {
	p.once.Do(p.reserve)
	return int(p.ready.Load())
}

// SlotBytes returns the size of a slot, all parts together.
func (p *Pool) SlotBytes() (n int) {
	for _, size := range p.parts {
		n += size
	}
	return n
}

// reserve takes the addresses: all, where the system gives them freely, the first
// ones of ranges that grow where it does not, and as many as there are where such
// have no place.
func (p *Pool) reserve() {
	most, left := firstReserve(p.want, p.SlotBytes())/p.slots, addressesLeft()
	if left == math.MaxInt64 && p.reserveAll(most) {
		return
	}
	if p.reserveFirst(most, addressLimit()) {
		return
	}
	if left < math.MaxInt64 {
		most = min(most, int(left/poolShare/int64(p.slots*p.SlotBytes())))
	}
	for ; most > 0; most /= 2 {
		if p.reserveAll(most) {
			return
		}
	}
	p.bases = make([]unsafe.Pointer, len(p.parts))
	p.err = fmt.Errorf("cannot reserve addresses for nodes: %w", p.err)
}

// firstReserve returns the number of slots to try first.
func firstReserve(n, slotBytes int) int {
	for uint64(n)*uint64(slotBytes) > reserveBytes {
		n /= 2
	}
	return n
}

// reserveAll takes the addresses of some chunks, and reports whether it got them.
func (p *Pool) reserveAll(chunks int) bool {
	var bases []unsafe.Pointer
	for i := range p.parts {
		base, err := reserveLater(partEnd(chunks*p.slots, p.parts[i]))
		if err != nil {
			for i, base := range bases {
				unreserveAt(base, partEnd(chunks*p.slots, p.parts[i]))
			}
			p.err = err
			return false
		}
		bases = append(bases, base)
	}
	p.bases, p.most, p.err = bases, chunks, nil
	p.ready.Store(int64(chunks) * int64(p.slots))
	return true
}

// Take returns the number of a chunk for the caller alone. Its memory is zero,
// or as its last user has left it. huge asks for huge pages.
func (p *Pool) Take(huge bool) (chunk int, err error) {
	p.once.Do(p.reserve)
	if deny := p.deny.Load(); deny != nil && (*deny)() {
		return 0, fmt.Errorf("%w: denied by a test", ErrLimit)
	}
	if p.err != nil {
		return 0, p.err
	}
	if chunk, err = p.take(huge); err != nil && p.reclaim() {
		chunk, err = p.take(huge)
	}
	return chunk, err
}

func (p *Pool) take(huge bool) (chunk int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch n := len(p.free); {
	case n > 0:
		chunk, p.free = p.free[n-1], p.free[:n-1]
	case p.next < p.most:
		if err := p.grow((p.next + 1) * p.slots); err != nil {
			return 0, err
		}
		chunk = p.next
		p.next++
		p.huge = append(p.huge, false)
	default:
		return 0, fmt.Errorf("%w: all %d nodes that addresses are reserved for are in use", ErrMemory, p.most*p.slots)
	}
	for part, size := range p.parts {
		if huge && !p.huge[chunk] {
			from, to := hugeAround(uintptr(chunk), uintptr(p.slots*size))
			if p.ends != nil { // addresses behind are not mapped yet, or are another's
				to = min(to, p.endOf(part))
			}
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
	return p.next - p.spare()
}

// spare returns the number of chunks that were given back. mu is held.
func (p *Pool) spare() int { return len(p.free) + p.rows }

// Deny makes Take fail whenever f returns true; nil ends that. It is for tests.
func (p *Pool) Deny(f func() bool) {
	if f == nil {
		p.deny.Store(nil)
		return
	}
	p.deny.Store(&f)
}

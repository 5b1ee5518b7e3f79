package arena

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"sync"
	"time"
	"unsafe"
)

// Where the system limits the addresses of a process (ulimit -v), every mapping
// takes addresses from all others: from Go's heap, which ends the program where it
// cannot grow, from the stacks of threads that cgo starts, from libraries. So blocks
// and pools take addresses when they need them, and leave room: see leave.
//
// The range of a pool begins at a place in the middle of the addresses, where no
// system puts anything by itself, and the ranges are as far from each other as
// all addresses that were left. So each can grow where it is, and numbers become
// addresses as they do without a limit.

// growing is held by goroutines that look how many addresses are left and map some.
var growing sync.Mutex

// middle is where the next range is tried; 0 before the first. growing guards it.
var middle uintptr

// placeTries is at how many places a range is tried.
const placeTries = 16

// InStep returns two pools whose ranges grow together: a late reader may take the
// number of a slot of one for the number of a slot of the other.
func InStep(a, b *Pool) (*Pool, *Pool) {
	a.step, b.step = b, a
	return a, b
}

// reserveFirst finds places for ranges that grow up to most chunks, or as far as the
// limit of addresses allows, and maps their first slot, which links of zeros lead to.
// Others may give back the addresses that they have now, so that the limit counts,
// and not the number of addresses left. It reports whether there are such places.
func (p *Pool) reserveFirst(most int, limit int64) bool {
	if limit < math.MaxInt64 {
		most = min(most, int(limit/int64(p.slots*p.SlotBytes()))+1)
	}
	growing.Lock()
	defer growing.Unlock()
	var bases []unsafe.Pointer
	var ends []uintptr
	undo := func() {
		for i, base := range bases {
			unreserveAt(base, ends[i])
		}
	}
	for _, size := range p.parts {
		first := pagesOf(uintptr(size) + spareBytes)
		base, err := placeRange(first, pagesOf(uintptr(most)*uintptr(p.slots*size)+spareBytes))
		if err != nil {
			undo()
			p.err = err
			return false
		}
		bases, ends = append(bases, base), append(ends, first)
	}
	p.bases, p.ends, p.most, p.err = bases, ends, most, nil
	p.ready.Store(1)
	return true
}

// placeRange maps the first bytes of a range at a place where it may become as
// long as most. growing is held.
func placeRange(first, most uintptr) (unsafe.Pointer, error) {
	if middle == 0 {
		high, err := reserveLater(first) // where the system puts things by itself
		if err != nil {
			return nil, err
		}
		unreserveAt(high, first)
		middle = uintptr(high) / 2
	}
	for range placeTries {
		middle = (middle + HugeSize - 1) &^ (HugeSize - 1)
		at := middle
		middle += most + HugeSize
		base, err := reserveAt(unsafe.Add(nil, at), first)
		if base != nil || err != nil {
			return base, err
		}
	}
	return nil, fmt.Errorf("%w: there is no place for them", ErrMemory)
}

// grow makes the given number of slots readable, where ranges grow; elsewhere
// they are. mu is held.
func (p *Pool) grow(slots int) error {
	if p.ends == nil || int64(slots) <= p.ready.Load() {
		return nil
	}
	pools := []*Pool{p}
	if q := p.step; q != nil {
		if q.once.Do(q.reserve); q.err != nil {
			return q.err
		}
		if q.ends != nil {
			pools = append(pools, q)
		}
	}
	growing.Lock()
	defer growing.Unlock()
	more := int64(0)
	for _, q := range pools {
		more += q.lacks(slots)
	}
	if err := leave(more); err != nil {
		return err
	}
	for _, q := range pools {
		if err := q.extend(slots); err != nil {
			return err
		}
	}
	return nil
}

// lacks returns the bytes of addresses that the given number of slots takes
// beyond those that are mapped. growing is held.
func (p *Pool) lacks(slots int) (bytes int64) {
	for part, size := range p.parts {
		bytes += max(0, int64(partEnd(slots, size))-int64(p.ends[part]))
	}
	return bytes
}

// extend maps the addresses that the given number of slots lacks. growing is held.
func (p *Pool) extend(slots int) error {
	for part, size := range p.parts {
		end, to := p.ends[part], partEnd(slots, size)
		if to <= end {
			continue
		}
		base, err := reserveAt(unsafe.Add(p.bases[part], end), to-end)
		if err != nil {
			return err
		}
		if base == nil {
			return fmt.Errorf("%w: something else lies behind the nodes", ErrMemory)
		}
		p.ends[part] = to
		pooled += int64(to - end)
	}
	p.ready.Store(max(p.ready.Load(), int64(slots)))
	return nil
}

// endOf returns the bytes of a part that are mapped.
func (p *Pool) endOf(part int) uintptr {
	growing.Lock()
	defer growing.Unlock()
	return p.ends[part]
}

// partEnd returns the bytes of a part for the given number of slots.
func partEnd(slots, size int) uintptr { return pagesOf(uintptr(slots)*uintptr(size) + spareBytes) }

// pagesOf returns bytes as those of whole pages.
func pagesOf(bytes uintptr) uintptr {
	page := uintptr(os.Getpagesize())
	return (bytes + page - 1) &^ (page - 1)
}

// reclaim collects, if trees have grown since the last collection, and reports
// whether a chunk of one that nobody uses has come back. Trees give their chunks
// back a little after the collection, one after the other: reclaim waits for that, also
// where another has collected just now, but not for long.
func (p *Pool) reclaim() bool {
	worth := func() bool {
		state.Lock()
		defer state.Unlock()
		return inUse.Load()-state.live >= leastUnder()
	}
	if onHeap {
		return false
	}
	if worth() {
		collect(worth)
		p.mu.Lock()
		p.until = time.Since(started) + reclaimTime
		p.mu.Unlock()
	}
	for {
		p.mu.Lock()
		free, over := p.spare(), time.Since(started) >= p.until
		p.mu.Unlock()
		if free > 0 || over {
			return free > 0
		}
		time.Sleep(time.Millisecond)
	}
}

// reclaimTime is how long chunks may take to come back after a collection; tests, on
// machines that others keep busy, wait for longer.
var reclaimTime = 100 * time.Millisecond

// Addresses to leave to the rest of the program.
const (
	// heapGrowth is for Go's heap, which grows by 64 MiB at a time and ends the
	// program where there are none.
	heapGrowth = 256 << 20

	// leastRoom is for one such growth, and the stacks of some threads.
	leastRoom = 96 << 20

	// moreThreads is how many threads a program has beside one for each of GOMAXPROCS,
	// and lateThreads how many it may start when it has all of them.
	moreThreads = 4
	lateThreads = 2
)

// atFirst is the addresses that were left, and those that blocks and pools had, when
// that was first asked for. growing guards it.
var atFirst struct{ left, ours int64 }

// pooled is the bytes of addresses that ranges have grown by. growing guards it.
var pooled int64

// leave returns an error if taking bytes of addresses would leave too few to the
// rest of the program. growing is held.
func leave(bytes int64) error {
	left := addressesLeft()
	if left == math.MaxInt64 {
		return nil
	}
	ours := addresses.Load() + pooled
	if atFirst.left == 0 {
		atFirst.left, atFirst.ours = max(left, 1), ours
	}
	others := atFirst.left - left - (ours - atFirst.ours) // bytes that others have taken since
	if room := roomOf(atFirst.left, others, readGo().total, threads(), runtime.GOMAXPROCS(0)); bytes > left-room {
		return fmt.Errorf("%w: %d MiB of addresses are left (ulimit -v), of which the rest of the program needs %d; raise the limit",
			ErrMemory, max(left, 0)>>20, room>>20)
	}
	return nil
}

// roomOf returns the bytes of addresses to leave to the rest of a program, which has
// taken some of the first ones that were left, and has a Go heap, which may double
// before it is collected, and threads. Together with taken they are at most half of
// first, but at least leastRoom, as long as that is no more than two thirds of first.
func roomOf(first, taken, heap int64, threads, procs int) int64 {
	room := max(heapGrowth, heap) + int64(max(procs+moreThreads-threads, lateThreads))*threadBytes
	return min(room, max(first/2-taken, min(leastRoom, first/3*2)))
}

// leaving calls take, which maps the given bytes, unless these would leave too
// few addresses to the rest of the program.
func leaving(bytes int64, take func() (*mapping, error)) (*mapping, error) {
	if onHeap || addressesLeft() == math.MaxInt64 {
		return take()
	}
	growing.Lock()
	defer growing.Unlock()
	if err := leave(bytes); err != nil {
		return nil, err
	}
	return take()
}

package arena

import (
	"fmt"
	"math/bits"
	"slices"
	"unsafe"
)

// Rows hands out rows of chunks that lie next to each other, of a pool that nobody
// else takes chunks of: memory for things of any size. It is a buddy system of
// addresses: a row takes the addresses of a power of two of chunks, and rows that are given
// back are joined to larger ones. Only addresses are lost by that: chunks that were not
// asked for, and pages that nobody has written to, take no memory. The pool has one part.
type Rows struct {
	Pool *Pool

	// The mutex of the pool guards these.
	free  [rowOrders][]int32 // rows that were given back, by the logarithm of their length; some are so no longer
	count [rowOrders]int     // of these, how many still are
	order []uint8            // of each chunk that begins such a row, that logarithm and 1; else 0
}

// rowOrders is the number of lengths: the longest row has 2^(rowOrders-1) chunks.
const rowOrders = 16

// Take returns the first chunk of a row of n chunks, for the caller alone. Its memory is
// zero, or as its last user has left it.
func (r *Rows) Take(n int) (chunk int, err error) {
	p := r.Pool
	p.once.Do(p.reserve)
	if deny := p.deny.Load(); deny != nil && (*deny)() {
		return 0, fmt.Errorf("%w: denied by a test", ErrLimit)
	}
	if p.err != nil {
		return 0, p.err
	}
	if chunk, err = r.take(n); err != nil && p.reclaim() {
		chunk, err = r.take(n)
	}
	return chunk, err
}

func (r *Rows) take(n int) (chunk int, err error) {
	p, want := r.Pool, orderOf(n)
	p.mu.Lock()
	defer p.mu.Unlock()
	for k := want; k < rowOrders; k++ {
		c, ok := r.pop(k)
		if !ok {
			continue
		}
		for ; k > want; k-- { // the upper half is another row
			r.push(c+1<<(k-1), k-1)
		}
		return c, nil
	}
	first := (p.next + 1<<want - 1) >> want << want
	end := first + 1<<want
	if want >= rowOrders || end > p.most {
		return 0, fmt.Errorf("%w: no %d of the %d chunks that addresses are reserved for are free in a row", ErrMemory, n, p.most)
	}
	if err := p.grow(end * p.slots); err != nil {
		return 0, err
	}
	for from := p.next; from < first; { // rows before, as long as they may be where they lie
		k := bits.TrailingZeros(uint(from))
		r.push(from, k)
		from += 1 << k
	}
	p.next = end
	return first, nil
}

// Give gives a row back. Its memory goes to the system at once.
func (r *Rows) Give(chunk, n int) {
	p := r.Pool
	r.Trim(chunk, n, 0)
	p.mu.Lock()
	defer p.mu.Unlock()
	k := orderOf(n)
	for ; k < rowOrders-1; k++ {
		other := chunk ^ 1<<k
		if other >= len(r.order) || r.order[other] != uint8(k+1) {
			break
		}
		r.drop(other, k)
		chunk = min(chunk, other)
	}
	r.push(chunk, k)
}

// Trim gives the memory of a row back but for its first bytes, which are whole pages. The row
// stays its owner's.
func (r *Rows) Trim(chunk, n int, bytes int64) {
	p := r.Pool
	if all := int64(n) * int64(p.slots*p.parts[0]); bytes < all {
		decommit(unsafe.Add(p.bases[0], uintptr(chunk)*uintptr(p.slots*p.parts[0])+uintptr(bytes)), uintptr(all-bytes))
	}
}

// orderOf returns the logarithm of the length of a row that has n chunks.
func orderOf(n int) int { return bits.Len(uint(n - 1)) }

// push lists a free row.
func (r *Rows) push(chunk, k int) {
	if more := chunk + 1 - len(r.order); more > 0 {
		r.order = append(r.order, make([]uint8, more)...)
	}
	r.order[chunk] = uint8(k + 1)
	if len(r.free[k]) > 2*r.count[k]+64 { // most of them are free no longer
		r.free[k] = slices.DeleteFunc(r.free[k], func(c int32) bool { return r.order[c] != uint8(k+1) || c == int32(chunk) })
	}
	r.free[k] = append(r.free[k], int32(chunk))
	r.count[k]++
	r.Pool.rows += 1 << k
}

// pop takes a row out of the list, if there is one.
func (r *Rows) pop(k int) (chunk int, ok bool) {
	for n := len(r.free[k]); n > 0; n-- {
		chunk, r.free[k] = int(r.free[k][n-1]), r.free[k][:n-1]
		if r.order[chunk] == uint8(k+1) {
			r.drop(chunk, k)
			return chunk, true
		}
	}
	return 0, false
}

// drop notes that a row is not free any more.
func (r *Rows) drop(chunk, k int) {
	r.order[chunk] = 0
	r.count[k]--
	r.Pool.rows -= 1 << k
}

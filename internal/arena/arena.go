// Package arena allocates memory off the Go heap, in the page sizes that the
// HB+-tree paper compares. The garbage collector neither scans nor moves it.
//
// A Block is one range of addresses cut into segments, in the order requested:
// an index puts its inner nodes into the first, its leaves into the second,
// and columns of values into further ones.
//
//	base                    2 MiB aligned where huge pages are used
//	│ segment 0 │ segment 1 │ … │ slack │
//	            each starts on a cache line; if only segment 0 is on huge
//	            pages, segment 1 starts on the next of them
//
// A block is freed in two steps. Release returns the memory to the system at
// once but keeps the addresses readable, as zeros: a reader that was in the
// middle of the block when another goroutine closed the index reads garbage
// and then notices, but never faults. The addresses are unmapped once the
// Block is unreachable and the garbage collector has noticed, which runs in
// time for that: see pressure.go.
//
// With the build tag guard each block lies directly before a page that cannot
// be read, and behind another, so that a read past the end of the block and its
// slack faults. It is for tests: huge pages are not used then.
package arena

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync/atomic"
	"unsafe"
)

// Align is the minimum alignment of every segment: a cache line.
const Align = 64

// HugeSize is the size of the huge pages that the system provides
// transparently.
const HugeSize = 2 << 20

// Pages selects the segments that are put on huge pages.
type Pages uint8

const (
	Small     Pages = iota // 4 KiB pages for all
	HugeInner              // huge pages for segment 0, small for the others
	HugeAll                // huge pages for all
)

func (p Pages) String() string {
	switch p {
	case Small:
		return "small pages"
	case HugeInner:
		return "huge pages for inner nodes"
	case HugeAll:
		return "huge pages"
	}
	return fmt.Sprintf("Pages(%d)", uint8(p))
}

// ErrLimit is the error for a block that would exceed its limit, or what a
// machine can address.
var ErrLimit = errors.New("over the limit")

// ErrMemory is the error for a block that the system refuses, even after all
// blocks that nobody uses were collected.
var ErrMemory = errors.New("the system has no more memory or addresses")

// Block is memory off the Go heap. New and Map make one.
type Block struct {
	segments [][]byte
	memory   []byte // all segments, and the gaps between them
	pages    Pages
	bytes    int64
	mem      *mapping
	released atomic.Bool
}

// mapping is memory from the system: the part of a Block that its cleanup
// needs.
type mapping struct {
	addr   unsafe.Pointer
	length uintptr
	lead   uintptr // bytes before addr on the same page; 0 but with the tag guard
	huge1G bool
	bytes  atomic.Int64 // counted in inUse; below 0 once released
}

var inUse, mostInUse atomic.Int64

// InUse returns the number of bytes held by all blocks not yet released.
func InUse() int64 { return inUse.Load() }

// MostInUse returns the greatest InUse since it was last called: with it, tests
// compare the memory of a build with its estimate.
func MostInUse() int64 { return mostInUse.Swap(inUse.Load()) }

// count counts bytes as held.
func count(bytes int64) {
	now := inUse.Add(bytes)
	for most := mostInUse.Load(); now > most && !mostInUse.CompareAndSwap(most, now); most = mostInUse.Load() {
	}
}

// Need returns the number of bytes that New would count for these segments.
func Need(sizes []int, pages Pages) (int64, error) {
	_, total, err := place(sizes, pages)
	return total, err
}

// New makes a block of zeroed segments of the given sizes. slack more bytes
// stay readable after the last segment; they take up addresses, not memory. If
// limit is above 0 and the block would take more, New allocates nothing and
// returns an error that wraps ErrLimit.
func New(sizes []int, slack int, pages Pages, limit int64) (*Block, error) {
	offsets, total, err := place(sizes, pages)
	if err != nil {
		return nil, err
	}
	if limit > 0 && total > limit {
		return nil, fmt.Errorf("%w: needs %d bytes, the limit is %d", ErrLimit, total, limit)
	}
	length := int(total)
	if guard > 0 && len(sizes) > 0 { // no more than asked for, so that the guard is next to it
		last := len(sizes) - 1
		length = roundUp(offsets[last]+sizes[last], Align)
	}
	m, err := take(total, int64(length)+int64(slack), pages)
	if err != nil {
		return nil, err
	}
	b := &Block{pages: pages, bytes: total, mem: m, memory: unsafe.Slice((*byte)(m.addr), length)}
	for i, size := range sizes {
		b.segments = append(b.segments, unsafe.Slice((*byte)(unsafe.Add(m.addr, offsets[i])), size))
	}
	switch {
	case pages == HugeAll:
		adviseHuge(m, uintptr(total))
	case pages == HugeInner && len(sizes) > 0:
		adviseHuge(m, uintptr(roundUp(sizes[0], HugeSize)))
	}
	add(b)
	return b, nil
}

// NewTally returns a block without memory of its own, for users that take
// memory from a Pool: Account counts that, as long as the block is not released
// or forgotten.
func NewTally() *Block {
	prepare(0, 0)
	b := &Block{mem: new(mapping)}
	add(b)
	return b
}

// take maps length bytes of zeros, and counts bytes of them.
func take(bytes, length int64, pages Pages) (*mapping, error) {
	prepare(bytes, length)
	m, err := orCollect(length, func() (*mapping, error) { return reserve(uintptr(length), pages) })
	if err != nil {
		return nil, fmt.Errorf("cannot take %d bytes: %w", length, err)
	}
	m.bytes.Store(bytes)
	count(bytes)
	return m, nil
}

// Account adds delta to the bytes that the block's user has in use; it is
// negative for bytes returned. It is cheap. The bytes counted at the end are
// subtracted when the block is released or collected.
func (b *Block) Account(delta int64) {
	m := b.mem
	for n := m.bytes.Load(); n >= 0; n = m.bytes.Load() {
		if m.bytes.CompareAndSwap(n, n+delta) {
			count(delta)
			took()
			return
		}
	}
}

// Segment returns segment i. It must not be used after the Block is gone.
func (b *Block) Segment(i int) []byte { return b.segments[i] }

// Base returns the address of segment 0. The others lie at fixed distances
// from it.
func (b *Block) Base() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b.memory)) }

// Offset returns the byte of the block's memory where a segment begins.
func (b *Block) Offset(segment []byte) int {
	return int(uintptr(unsafe.Pointer(unsafe.SliceData(segment))) - uintptr(b.Base()))
}

// Memory returns all segments as they lie, with the gaps between them.
func (b *Block) Memory() []byte { return b.memory }

// Bytes returns the memory that the block was made with, padding included; for
// a file, its size.
func (b *Block) Bytes() int64 { return b.bytes }

// Pages returns which pages the block was asked to use.
func (b *Block) Pages() Pages { return b.pages }

// Release returns the memory to the system. From then on it reads as zeros. A
// second Release does nothing.
func (b *Block) Release() {
	if b.released.Swap(true) {
		return
	}
	b.mem.account()
	if b.mem.length > 0 {
		discard(b.mem)
	}
	reckon()
	runtime.KeepAlive(b)
}

// Released reports whether Release was called.
func (b *Block) Released() bool { return b.released.Load() }

// account stops counting the memory.
func (m *mapping) account() {
	if n := m.bytes.Swap(-1); n > 0 {
		inUse.Add(-n)
	}
}

func (m *mapping) unmap() {
	m.account()
	if m.length > 0 {
		unreserve(m)
	}
	addresses.Add(-int64(m.length))
}

// place computes each segment's offset, and the total size.
func place(sizes []int, pages Pages) (offsets []int, total int64, err error) {
	end := 0
	for i, size := range sizes {
		if size < 0 || size > math.MaxInt/4 || end > math.MaxInt/4 {
			return nil, 0, fmt.Errorf("%w: more than a machine can address", ErrLimit)
		}
		if pages == HugeInner && i == 1 {
			end = roundUp(end, HugeSize)
		}
		end = roundUp(end, Align)
		offsets = append(offsets, end)
		end += size
	}
	return offsets, int64(roundUp(end, 4096)), nil
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// Bytes returns the memory of a slice, whose elements must not hold pointers.
func Bytes[T any](s []T) []byte {
	var v T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(v)))
}

// As returns memory as a slice of a type without pointers, with as many
// elements as fit.
func As[T any](b []byte) []T {
	var v T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(v)))
}

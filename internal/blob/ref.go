// Package blob holds values of any length off the Go heap, for trees whose own values are
// words of 8 bytes: the word is a Ref, and the bytes lie here.
//
// A Ref has the value's length, and the value itself if it has at most 7 bytes. Up to 32 KiB
// it lies in a slot of a slab with others of about its length, in all longer cases in pages of
// its own.
//
//	Ref     0                                                     no value
//	        00 |   | length+1 (4 bits) | 7 bytes                  short: the value itself
//	        01 | length (26 bits) | slab (21) | slot (15)         slot of a slab
//	        10 | length (32 bits) | chunk (30)                    run of chunks
//
//	slab, 256 KiB
//	  0     header: owner, class, slots in use, epoch that tags begin at
//	  64    a bit for each slot: it is free
//	  …     a byte for each slot, its tag: the epoch in which it was taken
//	  …     slots of one size, on a line of their own if that divides them
//
// A Ref is all that a reader needs: nothing before the bytes has to be read, and a batch can
// prefetch values as soon as it has their Refs. Slabs and runs lie in two ranges of
// addresses that are reserved for the whole process, so that any 64 bits can be taken for a
// Ref: bytes may be nonsense, but reading them never faults. So readers need no lock: they
// copy bytes, and then find out from the tree whether the Ref was still in it, or its memory
// could not have been used again. That is for the tree to decide: see Store.Retire.
//
// docs/values.md says how trees use it, and why that is right.
package blob

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/simd"
)

// Ref stands for a value. The zero Ref stands for none.
type Ref uint64

// MostBytes is the length of the longest value: a byte less than 4 GiB.
const MostBytes = 1<<32 - 1

// ErrTooLong says that a value is longer than that.
var ErrTooLong = errors.New("a value has less than 4 GiB")

const (
	kindShift = 62
	kindShort = 0
	kindSlab  = 1
	kindRun   = 2

	mostShort  = 7
	shortShift = 56 // of the length of a short value and 1
	shortMask  = 15

	slabLengthShift = 36
	slabLengthBits  = kindShift - slabLengthShift
	slotBits        = 15

	runLengthShift = 30
)

// Refs returns words that a tree holds as Refs.
func Refs(words []uint64) []Ref {
	return unsafe.Slice((*Ref)(unsafe.Pointer(unsafe.SliceData(words))), len(words))
}

// kind returns how a Ref stands for its value.
func (r Ref) kind() uint64 { return uint64(r) >> kindShift }

// Len returns the length of the value; 0 where there is none, and for what is no Ref.
func (r Ref) Len() int {
	if r.kind() == kindShort {
		if n := r.shortLen(); n >= 0 && n <= mostShort {
			return n
		}
		return 0
	}
	_, n := r.place()
	return n
}

func (r Ref) shortLen() int { return int(r>>shortShift&shortMask) - 1 }
func (r Ref) slabLen() int  { return int(r >> slabLengthShift & (1<<slabLengthBits - 1)) }
func (r Ref) slab() uint32  { return uint32(r & (1<<slabLengthShift - 1) >> slotBits) }
func (r Ref) slot() int     { return int(r & (1<<slotBits - 1)) }
func (r Ref) runLen() uint  { return uint(r >> runLengthShift & MostBytes) }
func (r Ref) chunk() int    { return int(r & (1<<runLengthShift - 1)) }

// shortRef returns the Ref of a value of at most mostShort bytes.
func shortRef(val []byte) Ref {
	var b [8]byte
	copy(b[:mostShort], val)
	return Ref(binary.LittleEndian.Uint64(b[:])) | Ref(len(val)+1)<<shortShift
}

func slabRef(slab uint32, slot, length int) Ref {
	return kindSlab<<kindShift | Ref(length)<<slabLengthShift | Ref(slab)<<slotBits | Ref(slot)
}

func runRef(chunk, length int) Ref {
	return kindRun<<kindShift | Ref(length)<<runLengthShift | Ref(chunk)
}

// The memory of all stores. A chunk is a slab, or a part of a run.
var (
	slabs = arena.NewPoolOf(1<<(slabLengthShift-slotBits), 1, slabBytes)
	runs  = arena.Rows{Pool: arena.NewPoolOf(1<<21, 1, slabBytes)}
)

// place returns where the bytes of a value lie that is not a short one, and their number. Of
// any other 64 bits it returns nil, or memory that can be read.
func (r Ref) place() (at unsafe.Pointer, n int) {
	switch r.kind() {
	case kindSlab:
		n = r.slabLen()
		if n < leastSlot || n > mostSlot {
			return nil, 0
		}
		c := &classes[classOf(n)]
		slab, slot := int(r.slab()), r.slot()
		if slot >= c.slots || slab >= slabs.Most() {
			return nil, 0
		}
		return unsafe.Add(slabs.Base(0), slab<<slabShift+c.first+slot*c.size), n
	case kindRun:
		length := uint64(r.runLen())
		if chunk := r.chunk(); length <= mostSlot || uint64(chunk)<<slabShift+length > uint64(runs.Pool.Most())<<slabShift {
			return nil, 0
		}
		return unsafe.Add(runs.Pool.Base(0), uintptr(r.chunk())<<slabShift), int(length)
	}
	return nil, 0
}

// bytes returns the memory of a value that is not a short one.
func (r Ref) bytes() []byte {
	at, n := r.place()
	return unsafe.Slice((*byte)(at), n)
}

// Append appends a copy of the value's bytes to dst. The Ref may be any 64 bits: then it
// appends any bytes. What it appends is the value if the caller finds out afterwards that the
// value could not have been freed meanwhile.
//
// A Ref that is none may claim to be 4 GiB long. So the caller finds out before it calls
// Append, too, that it has a Ref.
func (r Ref) Append(dst []byte) []byte {
	if r.kind() == kindShort {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], uint64(r))
		return append(dst, b[:r.Len()]...)
	}
	src := r.bytes()
	dst = append(dst, src...)
	copied(len(src))
	return dst
}

// Copy copies the value's bytes to dst, as Append does, and returns their number. dst must be
// long enough.
func (r Ref) Copy(dst []byte) int {
	if r.kind() == kindShort {
		return len(r.Append(dst[:0]))
	}
	src := r.bytes()
	n := copy(dst, src)
	copied(n)
	return n
}

// manyBytes is the length from which on a copy may be made by instructions that load many
// bytes at once, of which no rule says that they come before later loads.
const manyBytes = 256

// copied makes the loads of a copy come before those that the caller makes next, where
// readers go without a lock: short copies are plain loads, which amd64 keeps in order.
func copied(n int) {
	if n >= manyBytes || runtime.GOARCH != "amd64" {
		var fence uint32
		atomic.AddUint32(&fence, 1)
	}
}

// Fetch prefetches the first lines of values that are soon to be read. Their Refs may be any
// words.
func Fetch(refs []uint64) {
	for _, r := range refs {
		if at, n := Ref(r).place(); at != nil {
			simd.Fetch(at, min((n+simd.LineBytes-1)/simd.LineBytes, mostFetch))
		}
	}
}

// mostFetch is how many lines of a value are prefetched: the processor finds the rest by
// itself.
const mostFetch = 4

// Slots have sizes with a distance of an eighth or less: from leastSlot bytes on by 1, from 16
// on by 2, and so on up to mostSlot.
const (
	leastSlot = 8
	mostSlot  = 32 << 10
	classBits = 3

	slabShift = 18
	slabBytes = 1 << slabShift
)

// class describes slabs of slots of one size.
type class struct {
	size  int
	slots int // of a slab
	tags  int // where the tags begin
	first int // where the slots begin
	batch int // slots that a shard takes at a time
	list  int // a slab that has this many slots in use, or fewer, is listed as one with free slots
}

// classes are the classes of slots, by size.
var classes = makeClasses()

const classCount = (15-classBits)<<classBits + 1

// classOf returns the class of slots for n bytes, from leastSlot to mostSlot.
func classOf(n int) int {
	e := bits.Len(uint(n-1)) - 1 - classBits // n-1 is from 8<<e to 16<<e, but for the least
	if e < 0 {
		return 0
	}
	return e<<classBits + (n-1)>>e - leastSlot + 1
}

func makeClasses() (all [classCount]class) {
	for i := range all {
		size := leastSlot
		if i > 0 {
			size = (leastSlot + (i-1)&(1<<classBits-1) + 1) << ((i - 1) >> classBits)
		}
		c := class{size: size, batch: min(max(stashBytes/size, 1), 64)}
		align := size & -size // slots of 32 bytes lie on 32, and so on up to a line
		for c.slots = slabBytes / size; ; c.slots-- {
			c.tags = headerBytes + (c.slots+63)/64*8
			c.first = roundUp(c.tags+c.slots, min(align, simd.LineBytes))
			if c.first+c.slots*size <= slabBytes {
				break
			}
		}
		c.list = c.slots - max(c.slots/listShare, 1)
		all[i] = c
	}
	return all
}

// listShare is the share of free slots from which on a slab is used again: to go through one
// with fewer takes longer than it saves.
const listShare = 16

// stashBytes is how much free memory of a class a shard keeps at most.
const stashBytes = 4 << 10

func roundUp(n, to int) int { return (n + to - 1) / to * to }

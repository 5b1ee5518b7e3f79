// Package vector computes vector operations over values in key order: sums,
// extremes, histograms, conditions and changes. It knows no index: values come
// from a Source, piece by piece, and run through the routines of package simd a
// block at a time, on all workers.
//
// # The order of additions
//
// A sum of floats depends on the order of its additions. Pando's is defined by
// the entries alone, so that every layout, every instruction set, any number of
// workers and a GPU come to the same bits:
//
//  1. The n values of a range, in key order, are cut into blocks of 1024 from
//     the first on; the last may be shorter. A float32 becomes a float64.
//  2. A block has 32 lanes, which begin with 0. Value i of the block is added to
//     lane i mod 32, in the order of i. Then lane j becomes lane j plus lane j+16
//     for j below 16, then plus lane j+8 for j below 8, and so on: lane 0 is the
//     block's sum (simd.Summarize).
//  3. While there are several sums, they are values of a range, which is summed
//     up by rules 1 and 2. Of no values, the sum is 0.
//  4. The last sum is rounded to the type of the values. A NaN is math.NaN().
//
// Every addition is one of float64s, rounded to nearest even, without flushing
// small numbers to 0 and without fusing. A warp of a GPU is a block's 32 lanes,
// reads 32 values next to each other at a time, and adds the lanes up by shuffles
// (device/kernel/tally.h). The sums of many blocks are joined by a second launch;
// the CPU adds up the few that are left (OnDevice).
//
// Integers have no such trouble: their sum is exact, and cut to their type at the
// end, as if each addition had wrapped.
package vector

import (
	"reflect"
	"unsafe"

	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
)

// Type is a type of numbers: how its values lie in memory, and as what they are
// computed with.
type Type struct {
	simd.NumberKind
	Size int // bytes of a value as it lies: 1, 2, 4 or 8; those below 4 are widened
}

// TypeOf returns the Type of a Go type, and false if it is not a number.
func TypeOf(t reflect.Type) (Type, bool) {
	size := int(t.Size())
	wide := size == 8
	pick := func(narrow, broad simd.NumberKind) (Type, bool) {
		if wide {
			return Type{broad, size}, true
		}
		return Type{narrow, size}, true
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return pick(simd.Int32, simd.Int64)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return pick(simd.Uint32, simd.Uint64)
	case reflect.Float32, reflect.Float64:
		return pick(simd.Float32, simd.Float64)
	}
	return Type{}, false
}

const (
	// Block is the number of values that are summed up together.
	Block = simd.BlockValues
	// Piece is the number of values that a worker takes at a time, a multiple of
	// Block: half a megabyte, so that its parts take longer than to hand it out.
	Piece = 64 * Block
)

// Pieces returns the number of pieces of n values.
func Pieces(n int) int { return (n + Piece - 1) / Piece }

// Source is the values of a range in key order, to be read by several workers at
// once. Piece i begins with value i·Piece, where nobody changes the values
// meanwhile.
type Source interface {
	Pieces() int
	// Read hands the values of a piece to r, in order.
	Read(piece int, r *Reader)
}

// Summarizer is a source that may be able to sum up its values where they lie, on
// a device: to the same bits that Summarize would. It returns false if it is the
// CPU's work after all.
type Summarizer interface {
	Summarize(t Type) (s Summary, ok bool)
}

// Counter is a source that may be able to count its values between bounds where
// they lie: see Histogram. It reports whether it has.
type Counter interface {
	Histogram(t Type, bounds []uint64, counts []int) bool
}

// sink takes the values of a piece, Block at a time but for the last. at is valid
// during the call alone.
type sink interface {
	block(at unsafe.Pointer, n int)
}

// Reader takes values in runs of any length and hands them on in blocks. It
// copies values that do not come in blocks.
type Reader struct {
	t    Type
	to   sink
	n    int // values in the buffer
	kept [Block]uint64
	own  tally // for a source of one piece
}

var readers = par.NewPool[Reader]()

// each reads all pieces of a source, each into the sink that it is told.
func each(src Source, t Type, workers int, to func(piece int) sink) {
	par.Run(workers, src.Pieces(), par.Func(func(p int) {
		r := par.Get(readers)
		r.read(src, p, t, to(p))
		par.Put(readers, r)
	}))
}

// read reads a piece of a source into a sink.
func (r *Reader) read(src Source, piece int, t Type, to sink) {
	r.t, r.to, r.n = t, to, 0
	src.Read(piece, r)
	r.end()
	r.to = nil
}

// Take takes n values that lie one behind the other.
func (r *Reader) Take(at unsafe.Pointer, n int) {
	if r.t.Size < 4 {
		r.takeNarrow(at, n)
		return
	}
	size := r.t.Size
	for n > 0 {
		k := min(Block-r.n, n)
		if k == Block {
			r.to.block(at, Block)
		} else {
			copy(r.Room(k), unsafe.Slice((*byte)(at), k*size))
			r.Took(k)
		}
		if n -= k; n > 0 { // a pointer must not point behind its memory
			at = unsafe.Add(at, k*size)
		}
	}
}

// takeNarrow takes values of 1 or 2 bytes.
func (r *Reader) takeNarrow(at unsafe.Pointer, n int) {
	for n > 0 {
		k := min(Block-r.n, n)
		to := unsafe.Slice((*int32)(unsafe.Add(unsafe.Pointer(&r.kept), 4*r.n)), k)
		switch {
		case r.t.Size == 1 && r.t.NumberKind == simd.Int32:
			widen(to, unsafe.Slice((*int8)(at), k))
		case r.t.Size == 1:
			widen(to, unsafe.Slice((*uint8)(at), k))
		case r.t.NumberKind == simd.Int32:
			widen(to, unsafe.Slice((*int16)(at), k))
		default:
			widen(to, unsafe.Slice((*uint16)(at), k))
		}
		r.Took(k)
		if n -= k; n > 0 {
			at = unsafe.Add(at, k*r.t.Size)
		}
	}
}

func widen[T int8 | uint8 | int16 | uint16](to []int32, from []T) {
	for i, v := range from {
		to[i] = int32(v)
	}
}

// Left returns the number of values that Room has room for.
func (r *Reader) Left() int { return Block - r.n }

// Room returns memory for n more values of 4 or 8 bytes, at most Left, to be
// filled before Took is called. Others go by Take.
func (r *Reader) Room(n int) []byte {
	size := r.t.Bytes()
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(&r.kept), r.n*size)), n*size)
}

// Took says that n values are in the room.
func (r *Reader) Took(n int) {
	if r.n += n; r.n == Block {
		r.end()
	}
}

// end hands on the last, incomplete block.
func (r *Reader) end() {
	if r.n > 0 {
		r.to.block(unsafe.Pointer(&r.kept), r.n)
		r.n = 0
	}
}

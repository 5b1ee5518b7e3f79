package kernel

import (
	_ "embed"
	"fmt"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/simd"
)

//go:generate clang-19 -x cuda --cuda-gpu-arch=sm_70 --cuda-device-only -nocudainc -nocudalib --cuda-feature=+ptx70 -O3 -S vector.cu -o vector.ptx
//go:generate clang-19 -x cuda --cuda-gpu-arch=sm_70 --cuda-device-only -nocudainc -nocudalib --cuda-feature=+ptx70 -O3 -S vectorchunked.cu -o vectorchunked.ptx

//go:generate clang-19 -x cuda --cuda-gpu-arch=sm_70 --cuda-device-only -nocudainc -nocudalib --cuda-feature=+ptx70 -O3 -S histogram.cu -o histogram.ptx
//go:generate clang-19 -x cuda --cuda-gpu-arch=sm_70 --cuda-device-only -nocudainc -nocudalib --cuda-feature=+ptx70 -O3 -S histogramchunked.cu -o histogramchunked.ptx

//go:embed vector.ptx
var vectorPTX string

//go:embed vectorchunked.ptx
var vectorChunkedPTX string

//go:embed histogram.ptx
var histogramPTX string

//go:embed histogramchunked.ptx
var histogramChunkedPTX string

// FrozenVectors is the kernels of vector.cu: sums of values that do not change.
var FrozenVectors = Source{&vectorPTX, []string{
	"sumColumnI32", "sumColumnU32", "sumColumnF32", "sumColumnI64", "sumColumnU64", "sumColumnF64",
	"sumPairsI32", "sumPairsU32", "sumPairsF32", "sumPairsI64", "sumPairsU64", "sumPairsF64",
	"joinIntegers", "joinFloats",
}}

// ChunkedVectors is the kernels of vectorchunked.cu: sums of a chunked tree.
var ChunkedVectors = Source{&vectorChunkedPTX, []string{
	"sumChunked32I32", "sumChunked32U32", "sumChunked32F32",
	"sumChunked64I32", "sumChunked64U32", "sumChunked64F32", "sumChunked64I64", "sumChunked64U64", "sumChunked64F64",
	"joinIntegers", "joinFloats",
}}

// FrozenHistograms is the kernels of histogram.cu.
var FrozenHistograms = Source{&histogramPTX, []string{
	"binColumnI32", "binColumnU32", "binColumnF32", "binColumnI64", "binColumnU64", "binColumnF64",
	"binPairsI32", "binPairsU32", "binPairsF32", "binPairsI64", "binPairsU64", "binPairsF64",
}}

// ChunkedHistograms is the kernels of histogramchunked.cu.
var ChunkedHistograms = Source{&histogramChunkedPTX, []string{
	"binChunked32I32", "binChunked32U32", "binChunked32F32",
	"binChunked64I32", "binChunked64U32", "binChunked64F32", "binChunked64I64", "binChunked64U64", "binChunked64F64",
}}

// Units is the parts of ranges that are worked on, each by a warp: struct Units of
// vector.h, field by field. Unit u is the Count[u] entries from First[u] on (both
// u32). Where First is 0, they are one range of N entries, Size in each but the
// last. None is empty.
type Units struct {
	First, Count         device.Ptr
	From, N, Size, Units uint32
}

// OneRange returns the units of n entries, at least one, from one on.
func OneRange(from, n, size int) Units {
	return Units{From: uint32(from), N: uint32(n), Size: uint32(size), Units: uint32((n + size - 1) / size)}
}

// MaxUnit is the most entries of a unit.
const MaxUnit = 1 << 24

// Parts is the results of units: struct Parts of tally.h. Base has four arrays
// of Room numbers of 64 bits, one behind the other: sums, bits of a float64 or
// modulo 2^64; of integers of 64 bits the sums of upper halves, as
// simd.UpperWord takes them; least and greatest as simd.Ordered has them.
type Parts struct {
	Base device.Ptr
	Room uint64
}

// PartBytes is the size of a part.
const PartBytes = 32

// Bins is a histogram: struct Histogram of bins.h. Bounds (i64) ascend, as
// simd.Ordered has them but with -0 as 0; Counts (u64), of which there is one more,
// are added to.
type Bins struct {
	Bounds, Counts device.Ptr
	Count          uint64 // of bounds, at most MaxBounds
}

// MaxBounds is the most bounds of a histogram.
const MaxBounds = 1023

// Vectors is an operation on units of values: they are summed up by kernels of
// FrozenVectors or ChunkedVectors, or counted by those of FrozenHistograms or
// ChunkedHistograms.
type Vectors struct {
	Kind  simd.NumberKind
	Units Units
	Parts Parts // results of units,
	Bins  *Bins // unless they are counted
}

// name returns the kernel for values in a layout.
func (v *Vectors) name(layout string) string {
	if v.Bins != nil {
		return "bin" + layout + kindNames[v.Kind]
	}
	return "sum" + layout + kindNames[v.Kind]
}

var kindNames = [...]string{simd.Int32: "I32", simd.Uint32: "U32", simd.Float32: "F32", simd.Int64: "I64", simd.Uint64: "U64", simd.Float64: "F64"}

// flatParams are the arguments of kernels for columns and pairs, where parts are
// the result, and binParams where a histogram is.
type flatParams struct {
	at    device.Ptr
	units Units
	to    Parts
}

type binParams struct {
	at    device.Ptr
	units Units
	to    Bins
}

// joinParams are the arguments of joinIntegers and joinFloats.
type joinParams struct {
	from  Parts
	units Units
	to    Parts
}

// Column works on values that lie one behind the other.
func (s *Set) Column(st device.Stream, p *Params, v *Vectors, column device.Ptr) error {
	return s.flat(st, p, v, v.name("Column"), column)
}

// PairValues works on the values of a tree whose leaves hold pairs.
func (s *Set) PairValues(st device.Stream, p *Params, v *Vectors, t *Tree) error {
	return s.flat(st, p, v, v.name("Pairs"), t.Base+device.Ptr(t.Leaves)*simd.LineBytes)
}

func (s *Set) flat(st device.Stream, p *Params, v *Vectors, name string, at device.Ptr) error {
	if v.Bins != nil {
		p.bin = binParams{at, v.Units, *v.Bins}
		return s.units(st, name, &v.Units, v.Bins, argsOf(&p.bin))
	}
	p.flat = flatParams{at, v.Units, v.Parts}
	return s.units(st, name, &v.Units, nil, argsOf(&p.flat))
}

// Values works on values of the tree, with kernels of another set.
func (c *Chunked) Values(set *Set, t *Version, v *Vectors) error {
	if v.Kind.Bytes()*8 > c.Bits {
		return fmt.Errorf("%w: values of %d bytes in a tree of %d bits", ErrBadJob, v.Kind.Bytes(), c.Bits)
	}
	name := v.name(pick(c.Bits, "Chunked32", "Chunked64"))
	if v.Bins != nil {
		p := struct {
			v     Version
			units Units
			to    Bins
		}{*t, v.Units, *v.Bins}
		return set.units(c.Stream, name, &v.Units, v.Bins, argsOf(&p))
	}
	p := struct {
		v     Version
		units Units
		to    Parts
	}{*t, v.Units, v.Parts}
	return set.units(c.Stream, name, &v.Units, nil, argsOf(&p))
}

// JoinParts sums up units of parts.
func (s *Set) JoinParts(st device.Stream, p *Params, floats bool, from Parts, u *Units, to Parts) error {
	name := "joinIntegers"
	if floats {
		name = "joinFloats"
	}
	p.join = joinParams{from, *u, to}
	return s.units(st, name, u, nil, argsOf(&p.join))
}

// units starts a kernel with a warp for each unit.
func (s *Set) units(st device.Stream, name string, u *Units, b *Bins, args []byte) error {
	const warp = 32
	switch {
	case u.Units == 0 || u.Size > MaxUnit:
		return fmt.Errorf("%w: %d units of %d entries", ErrBadJob, u.Units, u.Size)
	case b != nil && b.Count > MaxBounds:
		return fmt.Errorf("%w: %d bounds", ErrBadJob, b.Count)
	}
	return st.Launch(s.kernels[name], GridOf(int(u.Units)*warp), args)
}

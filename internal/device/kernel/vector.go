package kernel

import (
	_ "embed"
	"fmt"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/simd"
)

//go:generate clang-19 -x cuda --cuda-gpu-arch=sm_70 --cuda-device-only -nocudainc -nocudalib --cuda-feature=+ptx70 -O3 -S vector.cu -o vector.ptx
//go:generate clang-19 -x cuda --cuda-gpu-arch=sm_70 --cuda-device-only -nocudainc -nocudalib --cuda-feature=+ptx70 -O3 -S vectorchunked.cu -o vectorchunked.ptx

//go:embed vector.ptx
var vectorPTX string

//go:embed vectorchunked.ptx
var vectorChunkedPTX string

// FrozenVectors is the kernels of vector.cu: sums of what does not change.
var FrozenVectors = Source{vectorPTX, []string{
	"sumColumnI32", "sumColumnU32", "sumColumnF32", "sumColumnI64", "sumColumnU64", "sumColumnF64",
	"sumPairsI32", "sumPairsU32", "sumPairsF32", "sumPairsI64", "sumPairsU64", "sumPairsF64",
	"joinIntegers", "joinFloats",
}}

// ChunkedVectors is the kernels of vectorchunked.cu: sums of a chunked tree.
var ChunkedVectors = Source{vectorChunkedPTX, []string{
	"sumChunked32I32", "sumChunked32U32", "sumChunked32F32",
	"sumChunked64I32", "sumChunked64U32", "sumChunked64F32", "sumChunked64I64", "sumChunked64U64", "sumChunked64F64",
	"joinIntegers", "joinFloats",
}}

// Units is the parts of ranges that are summed up, each by a warp: struct Units of
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

// Parts is what units come to: struct Parts of vector.h. Base has four arrays of
// Room numbers of 64 bits, one behind the other: sums, bits of a float64 or
// modulo 2^64; of integers of 64 bits the sums of upper halves, as
// simd.UpperWord takes them; least and greatest as simd.Ordered has them.
type Parts struct {
	Base device.Ptr
	Room uint64
}

// PartBytes is the size of a part.
const PartBytes = 32

var kindNames = [...]string{simd.Int32: "I32", simd.Uint32: "U32", simd.Float32: "F32", simd.Int64: "I64", simd.Uint64: "U64", simd.Float64: "F64"}

// sumFlatParams are the arguments of sumColumn and sumPairs.
type sumFlatParams struct {
	at    device.Ptr
	units Units
	to    Parts
}

// joinParams are the arguments of joinIntegers and joinFloats.
type joinParams struct {
	from  Parts
	units Units
	to    Parts
}

// SumColumn sums up values that lie one behind the other.
func (s *Set) SumColumn(st device.Stream, p *Params, k simd.Kind, column device.Ptr, u *Units, to Parts) error {
	p.sumFlat = sumFlatParams{column, *u, to}
	return s.sumUnits(st, "sumColumn"+kindNames[k], u, argsOf(&p.sumFlat))
}

// SumPairs sums up the values of a tree whose leaves hold pairs.
func (s *Set) SumPairs(st device.Stream, p *Params, k simd.Kind, t *Tree, u *Units, to Parts) error {
	p.sumFlat = sumFlatParams{t.Base + device.Ptr(t.Leaves)*simd.LineBytes, *u, to}
	return s.sumUnits(st, "sumPairs"+kindNames[k], u, argsOf(&p.sumFlat))
}

// JoinParts sums up units of parts.
func (s *Set) JoinParts(st device.Stream, p *Params, floats bool, from Parts, u *Units, to Parts) error {
	name := "joinIntegers"
	if floats {
		name = "joinFloats"
	}
	p.join = joinParams{from, *u, to}
	return s.sumUnits(st, name, u, argsOf(&p.join))
}

// Sum sums up values of the tree, with kernels of ChunkedVectors.
func (c *Chunked) Sum(v *Version, k simd.Kind, u *Units, to Parts) error {
	if k.Bytes()*8 > c.Bits {
		return fmt.Errorf("%w: values of %d bytes in a tree of %d bits", ErrBadJob, k.Bytes(), c.Bits)
	}
	p := struct {
		v     Version
		units Units
		to    Parts
	}{*v, *u, to}
	return c.Set.sumUnits(c.Stream, pick(c.Bits, "sumChunked32", "sumChunked64")+kindNames[k], u, argsOf(&p))
}

// sumUnits starts a kernel with a warp for each unit.
func (s *Set) sumUnits(st device.Stream, name string, u *Units, args []byte) error {
	const warp = 32
	if u.Units == 0 || u.Size > MaxUnit {
		return fmt.Errorf("%w: %d units of %d entries", ErrBadJob, u.Units, u.Size)
	}
	return st.Launch(s.kernels[name], gridOf(int(u.Units)*warp), args)
}

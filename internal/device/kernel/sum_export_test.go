package kernel

import (
	_ "embed"
	"fmt"

	"github.com/pando-index/pando/internal/device"
)

//go:generate clang-19 -x cuda --cuda-gpu-arch=sm_70 --cuda-device-only -nocudainc -nocudalib --cuda-feature=+ptx70 -O3 -I. -S testdata/sum.cu -o testdata/sum.ptx

//go:embed testdata/sum.ptx
var sumPTX string

// Summing is the kernels of sum.cu: scan.h with nothing else around it, for tests.
var Summing = Source{&sumPTX, []string{"sum32", "sum64"}}

// MaxSum is the most numbers that Sum takes.
const MaxSum = MaxSort

// sumParams are the arguments of sum32 and sum64.
type sumParams struct {
	in, out, ticket, reports device.Ptr
	n                        uint32
}

// Sum sets out[i] to the sum of the numbers (u32) in[0] to in[i-1], for i from 0
// to n: n+1 sums, of which the last is that of all numbers. Sums have sumBits
// bits, 32 or 64; those of 32 bits are modulo 2^32, and out may be in then. temp
// is SumTemp bytes. Pointers are aligned to 16 bytes. It queues a fill and a
// launch.
func (s *Set) Sum(st device.Stream, sumBits int, in device.Ptr, n int, out, temp device.Ptr) error {
	switch {
	case sumBits != 32 && sumBits != 64:
		return fmt.Errorf("%w: sums of %d bits", ErrBadJob, sumBits)
	case n < 0 || n > MaxSum:
		return fmt.Errorf("%w: %d numbers", ErrBadJob, n)
	case (in|out|temp)%16 != 0:
		return fmt.Errorf("%w: arrays are not aligned to 16 bytes", ErrBadJob)
	}
	if err := st.Fill(temp, 0, SumTemp(n)); err != nil {
		return err
	}
	return s.SumCleared(st, sumBits, in, n, out, temp)
}

// SumCleared is Sum with temporary memory that is 0 already.
func (s *Set) SumCleared(st device.Stream, sumBits int, in device.Ptr, n int, out, temp device.Ptr) error {
	p := sumParams{in: in, out: out, ticket: temp, reports: temp + sumHead, n: uint32(n)}
	return st.Launch(s.kernels[pick(sumBits, "sum32", "sum64")], device.Grid{Blocks: sumTiles(n), Threads: blockThreads}, argsOf(&p))
}

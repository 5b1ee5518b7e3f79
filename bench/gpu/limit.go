// Package gpu holds what only benchmarks run on a GPU: a kernel that measures
// what the memory allows at best, and a peer from the CUDA toolkit. Both are
// embedded, so that a benchmark binary needs no source files.
package gpu

//go:generate clang-19 -x cuda --cuda-gpu-arch=sm_70 --cuda-device-only -nocudainc -nocudalib --cuda-feature=+ptx70 -O3 -S limit.cu -o limit.ptx

import (
	_ "embed"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"unsafe"

	"github.com/pando-index/pando/internal/device"
)

//go:embed limit.ptx
var limitPTX string

const (
	lineBytes = 64
	lineWords = lineBytes / 4

	blockThreads = 256 // THREADS of limit.cu
	// blocksPerProcessor is several times the number that run at once, so that
	// all processors finish at about the same time.
	blocksPerProcessor = 32
	blockTiles         = blockThreads / 4
)

// Depths are the numbers of reads that a thread can have in flight. More is
// better until registers run out: which is best depends on the GPU.
var Depths = []int{1, 2, 4, 8, 16}

// Limit reads random lines of a block of device memory.
type Limit struct {
	dev         device.Device
	module      device.Module
	gather      map[int]device.Kernel
	most        device.Grid // enough to fill the device
	used        int         // number of threads of the last Read
	words, sums device.Ptr
	lines       int
	seed        uint32
	params      params
}

// params is the parameter block of the gather kernels.
type params struct {
	words          device.Ptr
	lines, n, seed uint32
	_              uint32
	sums           device.Ptr
}

// NewLimit fills a block of about the given bytes, which is complete when the
// stream has been synchronized. The block must have fewer than 2^32 lines.
func NewLimit(d device.Device, st device.Stream, bytes int64, seed uint64) (*Limit, error) {
	lines := max(bytes/lineBytes, 1)
	if lines > math.MaxUint32 {
		return nil, fmt.Errorf("%d bytes have too many lines to number with 32 bits", bytes)
	}
	l := &Limit{dev: d, gather: map[int]device.Kernel{}, lines: int(lines), seed: uint32(seed)}
	l.most = device.Grid{Blocks: max(1, d.Info().Processors) * blocksPerProcessor, Threads: blockThreads}
	if err := l.prepare(st); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *Limit) prepare(st device.Stream) (err error) {
	if l.module, err = l.dev.Load(limitPTX); err != nil {
		return err
	}
	for _, depth := range Depths {
		if l.gather[depth], err = l.module.Kernel(fmt.Sprintf("gather%d", depth)); err != nil {
			return err
		}
	}
	if l.words, err = l.dev.Alloc(l.lines * lineBytes); err != nil {
		return err
	}
	if l.sums, err = l.dev.Alloc(4 * l.most.Blocks * l.most.Threads); err != nil {
		return err
	}
	mark, err := l.module.Kernel("mark")
	if err != nil {
		return err
	}
	p := struct {
		words device.Ptr
		n     uint64
	}{l.words, uint64(l.lines) * lineWords}
	return st.Launch(mark, l.gridFor(l.lines), bytesOf(&p))
}

// gridFor returns a grid with a tile of lanes for each of n lines, or as many
// as the device needs.
func (l *Limit) gridFor(n int) device.Grid {
	return device.Grid{Blocks: max(1, min(l.most.Blocks, (n+blockTiles-1)/blockTiles)), Threads: blockThreads}
}

func bytesOf[T any](v *T) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)) }

// Read queues n reads, n below 2^32, with depth of them in flight per thread.
func (l *Limit) Read(st device.Stream, depth, n int) error {
	l.params = params{words: l.words, lines: uint32(l.lines), n: uint32(n), seed: l.seed, sums: l.sums}
	g := l.gridFor(n)
	l.used = g.Blocks * g.Threads
	return st.Launch(l.gather[depth], g, bytesOf(&l.params))
}

// Wipe queues the wiping of what the last Read read.
func (l *Limit) Wipe(st device.Stream) error { return st.Fill(l.sums, math.MaxUint32, 4*l.used) }

// Sum waits for the last Read and returns the sum of all the words it read.
func (l *Limit) Sum(st device.Stream) (sum uint32, err error) {
	sums := make([]uint32, l.used)
	out := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(sums))), 4*len(sums))
	if err := errors.Join(st.CopyOut(out, l.sums), st.Synchronize()); err != nil {
		return 0, err
	}
	for _, s := range sums {
		sum += s
	}
	return sum, nil
}

// WantSum returns the sum that reads [from, to) must find: a line holds 16
// consecutive words, each its own number times a constant.
func (l *Limit) WantSum(from, to int) (sum uint32) {
	const mark = 0x9e3779b1 // MARK of limit.cu
	for i := from; i < to; i++ {
		hi, _ := bits.Mul32(scramble(uint32(i)+l.seed), uint32(l.lines))
		sum += lineWords*lineWords*hi + lineWords*(lineWords-1)/2
	}
	return sum * mark
}

// scramble is the same function as in limit.cu.
func scramble(x uint32) uint32 {
	x = (x ^ x>>16) * 0x85ebca6b
	x = (x ^ x>>13) * 0xc2b2ae35
	return x ^ x>>16
}

// Close frees the block.
func (l *Limit) Close() error {
	var errs []error
	for _, p := range []device.Ptr{l.words, l.sums} {
		if p != 0 {
			errs = append(errs, l.dev.Free(p))
		}
	}
	if l.module != nil {
		errs = append(errs, l.module.Unload())
	}
	return errors.Join(errs...)
}

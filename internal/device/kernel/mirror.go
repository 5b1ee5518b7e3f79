package kernel

import (
	_ "embed"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/simd"
)

//go:generate clang-19 -x cuda --cuda-gpu-arch=sm_70 --cuda-device-only -nocudainc -nocudalib --cuda-feature=+ptx70 -O3 -S mirror.cu -o mirror.ptx

//go:embed mirror.ptx
var mirrorPTX string

// MirrorSource is the kernels of mirror.cu.
var MirrorSource = Source{&mirrorPTX, []string{"mirrorFind32", "mirrorFind64", "mirrorScatter"}}

// Mirror is a mirror of a tree's inner nodes in a device's memory: struct Mirror
// of mirror.cu, field by field.
type Mirror struct {
	Uppers, Pilots         device.Ptr
	UpperCount, PilotCount uint32
	UpperLines, PilotLines uint32 // of a node
	Root, Height           uint32
}

// mirrorParams are the arguments of MirrorFind.
type mirrorParams struct {
	mirror        Mirror
	keys          device.Ptr
	n             uint32
	_             uint32
	places, words device.Ptr
}

// scatterParams are the arguments of MirrorScatter.
type scatterParams struct {
	to, from, moves                   device.Ptr
	n, pilots, upperLines, pilotLines uint32
}

// MirrorFind sets places (u64) to the leaf, times 256, and the line of its block
// that each of n keys belongs to, and words (u64) to the word that the leaf had
// when that was so; or to one that says that nothing is known.
func (s *Set) MirrorFind(st device.Stream, p *Params, m *Mirror, bits int, keys device.Ptr, n int, places, words device.Ptr) error {
	p.mirror = mirrorParams{mirror: *m, keys: keys, n: uint32(n), places: places, words: words}
	return st.Launch(s.kernels[pick(bits, "mirrorFind32", "mirrorFind64")], GridOf(n), argsOf(&p.mirror))
}

// MirrorScatter copies n nodes to their places in a mirror. moves has two
// numbers (u32) for each: the line of the mirror that it goes to, and its first
// line in from. The mirror's uppers come first in its memory, then its pilots.
func (s *Set) MirrorScatter(st device.Stream, p *Params, m *Mirror, from, moves device.Ptr, n int) error {
	p.scatter = scatterParams{
		to: m.Uppers, from: from, moves: moves, n: uint32(n),
		pilots: uint32((m.Pilots - m.Uppers) / simd.LineBytes), upperLines: m.UpperLines, pilotLines: m.PilotLines,
	}
	return st.Launch(s.kernels["mirrorScatter"], GridOf(n*32), argsOf(&p.scatter))
}

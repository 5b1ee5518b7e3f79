package kernel

import (
	_ "embed"
	"math/bits"
	"unsafe"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/simd"
)

//go:generate clang-19 -x cuda --cuda-gpu-arch=sm_70 --cuda-device-only -nocudainc -nocudalib --cuda-feature=+ptx70 -O3 -S signs.cu -o signs.ptx

//go:embed signs.ptx
var signsPTX string

// SignsSource has the kernels that make signs, and those that search by them.
var SignsSource = Source{&signsPTX, []string{"sign32", "sign64", "bucket32", "bucket64", "astray32", "astray64",
	"signRank32", "signRank64", "signFind32", "signFind64", "signPairs32", "signPairs64",
	"signApart32x32", "signApart32x64", "signApart64x32", "signApart64x64"}}

// bySigns names the kernels that do by signs what others do without.
var bySigns = map[string]string{
	"rank32": "signRank32", "rank64": "signRank64", "find32": "signFind32", "find64": "signFind64", "pairs32": "signPairs32", "pairs64": "signPairs64",
	"apart32x32": "signApart32x32", "apart32x64": "signApart32x64", "apart64x32": "signApart64x32", "apart64x64": "signApart64x64",
}

const (
	signChildren = 16
	signLevels   = 8 // of 16 children each: as many leaves as 32 bits can number
	signBytes    = simd.LineBytes / 2
	// lowerLevels have nodes of half a line. Those above are few, so that their bytes do not matter, and
	// the error of a search there would be many leaves: so they have separators of 32 bits.
	lowerLevels = 2

	bucketBytes = 16
	// mostBuckets bounds the table: it is to stay in the second-level cache, beside the lower levels.
	mostBuckets = 1 << 20
	// bucketsPerNode makes it rare that more nodes end in a bucket than it has room for.
	bucketsPerNode = 4
)

// Signs describes signs to the leaves of a tree in a device's memory: struct Signs of signs.cu,
// field by field. They lead to the leaf of a key, or to the left of it.
type Signs struct {
	Base          device.Ptr
	Low, High     uint64                 // the least and the greatest key of the tree
	At            [signLevels]uint32     // where levels begin, in lines of 32 bytes
	Last          [signLevels + 1]uint32 // the last node of each level, and the last leaf
	Levels, Upper uint32                 // as many have nodes of 64 bytes
	From          uint32                 // the level of the nodes in the table
	Buckets       uint32                 // of the table; 0: searches begin at the root
	Table         uint32                 // where it begins, in lines of 32 bytes
	Shift, Rest   uint32                 // a key's bucket is what is left of it after Shift bits, and Rest bits of it are not compared
}

// NewSigns describes the signs of a tree whose least and greatest key are low and high. They have yet to
// be made, at Base.
func NewSigns(t *simd.Tree, low, high uint64) Signs {
	s := Signs{Low: low, High: high}
	leaves := (t.LastLeaf-t.Leaves)/lineWords + 1
	for n := leaves; n > 1; n = (n + signChildren - 1) / signChildren {
		s.Levels++
	}
	s.Upper = s.Levels - min(s.Levels, lowerLevels)
	at, n := uint32(0), leaves
	s.Last[s.Levels] = uint32(n - 1)
	for l := int(s.Levels) - 1; l >= 0; l-- {
		n = (n + signChildren - 1) / signChildren
		s.Last[l] = uint32(n - 1)
	}
	for l := range s.Levels {
		if s.Last[l] < mostBuckets/bucketsPerNode {
			s.From = l
		}
	}
	if s.Levels > 0 {
		most := bits.Len32(bucketsPerNode*(s.Last[s.From]+1) - 1)
		s.Shift = uint32(max(0, bits.Len64(high-low)-most))
		s.Rest = max(s.Shift, 32) - 32
		s.Buckets = uint32((high-low)>>s.Shift) + 1
	}
	for l := range s.Levels {
		if l == s.From {
			s.Table = at
			at += (s.Buckets*bucketBytes + simd.LineBytes - 1) / simd.LineBytes * (simd.LineBytes / signBytes)
		}
		s.At[l] = at
		at += (s.Last[l] + 1) << s.upper(l)
	}
	return s
}

// upper returns 1 if a level has nodes of 64 bytes, and 0 if it has nodes of 32.
func (s *Signs) upper(level uint32) int {
	if level < s.Upper {
		return 1
	}
	return 0
}

// end returns where a level ends, in lines of 32 bytes.
func (s *Signs) end(level uint32) uint64 {
	return uint64(s.At[level]) + uint64(s.Last[level]+1)<<s.upper(level)
}

// Bytes returns the device memory that the signs take.
func (s *Signs) Bytes() int {
	if s.Levels == 0 {
		return 0
	}
	return int(s.end(s.Levels-1)) * signBytes
}

// Favor asks that as many upper levels of signs as fit stay in the device's cache for the kernels of a
// stream, as Favor does for those of a tree.
func (s *Signs) Favor(st device.Stream) {
	p, ok := st.(device.Persister)
	if !ok {
		return
	}
	fits := 0
	for l := range s.Levels {
		if end := int(s.end(l)) * signBytes; end <= p.Persistable() {
			fits = end
		}
	}
	if fits > 0 {
		p.Persist(s.Base, fits) // only a hint, as in Favor
	}
}

// signParams are the arguments of a search by signs.
type signParams struct {
	tree  Tree
	signs Signs
	keys  device.Ptr
	n     uint32
	_     uint32
	out   device.Ptr
	bits  device.Ptr // 0 for kernels without it
}

// makeParams are the arguments of Sign, for a level.
type makeParams struct {
	tree  Tree
	signs Signs
	level uint32
}

// tableParams are the arguments of the kernel that makes the table.
type tableParams struct {
	tree  Tree
	signs Signs
}

// countParams are the arguments of Astray.
type countParams struct {
	tree  Tree
	signs Signs
	count device.Ptr
}

// Sign makes the signs of a tree.
func (s *Set) Sign(st device.Stream, t *Tree, g *Signs, width int) error {
	for l := range g.Levels {
		p := makeParams{*t, *g, l}
		if err := st.Launch(s.kernels[pick(width, "sign32", "sign64")], GridOf((int(g.Last[l])+1)*signChildren), argsOf(&p)); err != nil {
			return err
		}
	}
	if g.Buckets == 0 {
		return nil
	}
	p := tableParams{*t, *g}
	return st.Launch(s.kernels[pick(width, "bucket32", "bucket64")], GridOf(int(g.Buckets)), argsOf(&p))
}

// Astray adds to count (u32) the number of leaves whose first key is farther than one leaf from where
// the signs lead.
func (s *Set) Astray(st device.Stream, t *Tree, g *Signs, width int, count device.Ptr) error {
	p := countParams{*t, *g, count}
	return st.Launch(s.kernels[pick(width, "astray32", "astray64")], GridOf(int(g.Last[g.Levels])+1), argsOf(&p))
}

// launchSigned is launch by signs.
func (s *Set) launchSigned(st device.Stream, name string, p *Params, t *Tree, g *Signs, keys device.Ptr, n int, out, found device.Ptr) error {
	a := &p.signed
	a.tree, a.signs, a.keys, a.n, a.out, a.bits = *t, *g, keys, uint32(n), out, found
	size := unsafe.Sizeof(*a)
	if found == 0 {
		size = unsafe.Offsetof(a.bits)
	}
	return s.start(st, name, n, unsafe.Slice((*byte)(unsafe.Pointer(a)), size))
}

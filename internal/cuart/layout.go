// Package cuart is the radix tree of strings in a GPU's memory, after the CuART
// paper: a pool for each type of inner node, one for all leaves, links of 32 bits
// that have the type of their target, and a table in the place of the root.
// Batches of searches and of changes run on the device; device/kernel/radix.cu has
// the kernels, docs/cuart.md the reasons.
//
//	table    a link for each slot                                     4 bytes a slot
//	key ──▶  place: 64 bits ──▶ slot: their uppermost bits ──▶ a radix tree of all keys of that slot
//
// The place of a key is the hash of up to 64 bytes behind those that all keys had in
// common when the table was made, or, in the paper's way, the next 8 of them as they
// are. It only selects the key's slot: the tree below is one of whole keys. So a
// table never becomes wrong, only uneven.
//
// Links are those of package radix, with the paper's types. 0 leads nowhere.
//
//	31 30                              0
//	│1│ place in units of 8 bytes       │   leaf
//	│0│ type │ number                   │   inner node
//	31 30  28 27                       0
//
// Inner nodes begin with depth, own and count. All begin at a multiple of 32 bytes,
// the unit of a GPU's reads.
//
//	 0  depth      bytes that all keys below begin with: the next one tells them apart
//	 4  own        link to the key that ends here, which has no next byte
//	 8  count      children, own not among them
//
//	node 4     32 bytes  12 keys[4]     16 links[4]      one sector
//	node 16    96 bytes  16 keys[16]    32 links[16]     two of three: keys, and the one with the link
//	node 48   256 bytes  32 bits[256]   64 links[48]     three of eight: head, bits, link
//	node 256 1056 bytes                 32 links[256]    two: head, link
//
// Keys of nodes 4 and 16 are in no order: nothing on the device asks for the next one.
// A node 48 has a bit for each byte that it has a link for, and links in their order.
// Links of a node 256 are 0 where there is no child. Depth counts from the key's first
// byte, so that a node above it may come or go without a change here.
//
// Leaves are units of 8 bytes, with values of V bytes, 4 or 8:
//
//	0    value
//	V    length of the key
//	V+4  key, and zeros up to the end of its last word of 4 bytes
//
// Up to 32 units a leaf has as many as it needs, longer ones a power of two: so
// those that are freed are of few classes, and fit the next one of their class.
package cuart

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"unsafe"

	"github.com/pando-index/pando/internal/device/kernel"
)

// link is a typed reference.
type link uint32

const (
	leafBit   = kernel.RadixLeaf
	typeShift = 28
	numberMax = 1<<typeShift - 1
	unit      = kernel.RadixUnit
)

// Types of inner nodes, which are also their classes.
const (
	node4 = iota
	node16
	node48
	node256
	nodeTypes
)

func (l link) isLeaf() bool  { return l&leafBit != 0 }
func (l link) isInner() bool { return l != 0 && l&leafBit == 0 }
func (l link) kind() int     { return int(l>>typeShift) - 1 }
func (l link) number() int   { return int(l & numberMax) }

func linkTo(kind, number int) link { return link((kind+1)<<typeShift | number) }

// header is the beginning of all inner nodes.
type header struct{ depth, own, count uint32 }

type inner4 struct {
	header
	keys  [4]uint8
	links [4]link
}

type inner16 struct {
	header
	_     uint32
	keys  [16]uint8
	links [16]link
}

type inner48 struct {
	header
	_     [5]uint32
	bits  [8]uint32
	links [48]link
}

type inner256 struct {
	header
	_     [5]uint32
	links [256]link
}

// The sizes that kernels know are those of these types.
var (
	_ [unsafe.Sizeof(inner4{})]byte   = [32]byte{}
	_ [unsafe.Sizeof(inner16{})]byte  = [96]byte{}
	_ [unsafe.Sizeof(inner48{})]byte  = [256]byte{}
	_ [unsafe.Sizeof(inner256{})]byte = [1056]byte{}
)

// capacity is the most children of each type, few with how many a node gives way to
// one of the type below: some fewer than that one has room for, so that a key that
// comes and goes does not make nodes do so, too.
var (
	capacity = [nodeTypes]int{4, 16, 48, 256}
	few      = [nodeTypes]int{-1, 3, 12, 36}
	nodeSize = [nodeTypes]int{32, 96, 256, 1056}
)

// Classes of memory are types of inner nodes, and behind them leaves by their units.
const (
	classes   = kernel.RadixClasses
	mostExact = 32 // units up to which a leaf has as many as it needs
)

// unitsOf returns the units of a leaf of a class.
func unitsOf(class int) int {
	if n := class - nodeTypes; n <= mostExact {
		return n
	} else {
		return mostExact << (n - mostExact)
	}
}

// leafClass returns the class of a leaf with a value of some bytes.
func leafClass(length, valBytes int) int {
	n := (valBytes + 4 + length + unit - 1) / unit
	if n <= mostExact {
		return nodeTypes + n
	}
	return nodeTypes + mostExact + bits.Len(uint(n-1)) - 5
}

// MaxKey is the longest key that a tree on a GPU may have.
const MaxKey = kernel.RadixMaxKey

// ErrKeyTooLong is the error for a key that is longer than MaxKey.
var ErrKeyTooLong = errors.New("cuart: a key is too long for the GPU's tree")

// Place is how keys are spread over the slots of a table.
type Place struct {
	seed   uint64
	skip   int  // bytes that all keys had in common
	direct bool // the 8 bytes that follow are the place as they are
	bits   int  // of a slot's number
}

const (
	hashed = 64 // bytes that are hashed at most
	odd1   = 0x9e3779b97f4a7c15
	odd2   = 0xff51afd7ed558ccd
	odd3   = 0xc4ceb9fe1a85ec53
)

// slot returns the slot of a key, as the kernels do.
func (p *Place) Slot(key string) int {
	return int(p.of(key) >> (64 - p.bits))
}

func (p *Place) of(key string) uint64 {
	key = key[min(p.skip, len(key)):]
	key = key[:min(len(key), hashed)]
	if p.direct {
		return bits.ReverseBytes64(eightOf(key))
	}
	h := p.seed + uint64(len(key))*odd1
	for i := 0; 8*i < len(key); i++ {
		x := eightOf(key[8*i:]) + uint64(i+1)*odd1
		x = (x ^ x>>31) * odd2
		h += (x ^ x>>29) * odd3
	}
	return (h ^ h>>32) * odd2
}

// eightOf returns the first 8 bytes of a string, and zeros behind its end.
func eightOf(s string) uint64 {
	var b [8]byte
	copy(b[:], s)
	return binary.LittleEndian.Uint64(b[:])
}

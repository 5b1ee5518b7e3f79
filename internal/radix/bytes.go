// Package radix is the adaptive radix tree of the CuART paper, in one pool of
// memory for each type of node, so that it can be read and changed by many
// goroutines at once. It maps strings of any bytes to values of 64 bits.
//
// A link is 32 bits: a leaf and where it lies, or the type of an inner node and its
// number in the pool of that type. 0 leads nowhere.
//
//	31 30                              0
//	│1│ place in units of 8 bytes       │   leaf
//	│0│ type │ number                   │   inner node
//	31 30  28 27                       0
//
// Inner nodes begin with a header of 20 bytes:
//
//	 0  word       locked | dead | sequence number
//	 4  meta       age (23 bits) | children (9 bits)
//	 8  entries    keys below, as of the last count; 0 if they have changed since
//	12  depth      bytes that all keys below begin with: the next one tells them apart
//	16  own        link to the key that ends here, which has no next byte
//
//	node 2     32 bytes  20 keys[2]     24 links[2]
//	node 5     48 bytes  20 keys[5]     28 links[5]
//	node 12    80 bytes  20 keys[12]    32 links[12]
//	node 21   128 bytes  20 keys[21]    44 links[21]
//	node 48   256 bytes  32 bits[256]   64 links[48]
//	node 256 1152 bytes  32 bits[256]   64 links[256]  1088 sums[16]
//
// The paper has nodes of 4, 16, 48 and 256 children. Three in four nodes have two or
// three, and nodes of 64 bytes would take most of the memory of inner nodes
// (docs/radix.md).
//
// Keys of the first four types ascend. A node 48 has a bit for each byte that it has a
// link for, and the links in order of their bytes: half the size of the paper's table
// of 256 places. sums[i] of a node 256 is the keys below bytes 16·i to 16·i+15, as of
// the last count, or all ones.
//
// The paper has the compressed path of a node as the bytes since its parent. Here
// depth is counted from the key's first byte: it does not change when a node is put
// above or taken away. The bytes themselves are found in any leaf below.
//
// Leaves are as long as their keys ask for, in units of 8 bytes:
//
//	 0  value
//	 8  head       age (23 bits) | length of the key (9 bits)
//	12  key        up to 244 bytes
//
// Longer keys are on the Go heap, and their leaf has their length and the number
// under which a table has them.
//
// Ages are small numbers of epochs; age.go has how they are used again.
package radix

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
)

// Types of inner nodes.
const (
	nothing = iota
	node2
	node5
	node12
	node21
	node48
	node256
	inners // how many types there are, and nothing
)

// Classes are kinds of memory: types of inner nodes, and behind them leaves by their
// units.
const (
	leafUnit  = 8
	headBytes = 12 // of a leaf, before its key
	mostShort = 244
	leafUnits = (headBytes + mostShort) / leafUnit // of the longest
	classes   = inners + leafUnits + 1
)

const (
	typeShift = 28
	numberMax = 1<<typeShift - 1
	leafBit   = 1 << 31
)

// link is a typed reference.
type link uint32

func (l link) kind() int     { return int(l >> typeShift) }
func (l link) number() int   { return int(l & numberMax) }
func (l link) isInner() bool { return l-1<<typeShift < node256<<typeShift }
func (l link) isLeaf() bool  { return l >= leafBit }

// slot returns the number of a node's slot in its pool, or of a leaf's.
func (l link) slot() int {
	if l.isLeaf() {
		return int(l &^ leafBit)
	}
	return l.number()
}

func linkTo(kind, number int) link { return link(kind<<typeShift | number) }

type header struct {
	word    uint32
	meta    uint32
	entries uint32
	depth   uint32
	own     link
}

type (
	inner48 struct {
		header
		_     [12]byte
		bits  bitmap
		links [48]link
	}
	inner256 struct {
		header
		_     [12]byte
		bits  bitmap
		links [256]link
		sums  [16]uint32
	}
)

// small is where the keys and links of nodes with sorted keys lie.
var small = [...]struct{ cap, links, size uintptr }{
	node2:  {2, 24, 32},
	node5:  {5, 28, 48},
	node12: {12, 32, 80},
	node21: {21, 44, 128},
}

const smallKeys = unsafe.Sizeof(header{})

// leaf is a leaf; its key is behind it.
type leaf struct {
	value uint64
	head  uint32
}

// longLeaf is a leaf whose key is on the heap.
type longLeaf struct {
	value  uint64
	head   uint32
	handle uint32
	length uint64
}

const (
	lengthBits = 9
	lengthMax  = 1<<lengthBits - 1
	longLength = lengthMax // stands for a longer key
)

func (h *header) children() int { return int(h.meta & lengthMax) }
func (h *header) age() uint32   { return h.meta >> lengthBits }
func (h *header) load() uint32  { return atomic.LoadUint32(&h.word) }
func (l *leaf) age() uint32     { return l.head >> lengthBits }
func (l *leaf) length() int     { return int(l.head & lengthMax) }

// class returns the class of a link's target.
func (l link) class() int {
	if !l.isLeaf() {
		return l.kind()
	}
	n := l.leaf().length()
	if n == longLength {
		return longClass
	}
	return leafClass(n)
}

// leafClass returns the class of leaves for a key of a length.
func leafClass(length int) int {
	if length > mostShort {
		return longClass
	}
	return inners + (headBytes+length+leafUnit-1)/leafUnit
}

const longClass = inners + int(unsafe.Sizeof(longLeaf{}))/leafUnit

// sizeOf returns the bytes of a slot of a class.
func sizeOf(class int) int {
	switch {
	case class >= inners:
		return (class - inners) * leafUnit
	case class == node48:
		return int(unsafe.Sizeof(inner48{}))
	case class == node256:
		return int(unsafe.Sizeof(inner256{}))
	}
	return int(small[class].size)
}

// chunkBytes is about the memory of a chunk: a huge page.
const chunkBytes = 2 << 20

// The memory of all trees, and where it lies. That of leaves is one pool.
var (
	pools    [inners + 1]*arena.Pool
	places   [2 * inners]place // by the upper bits of a link
	leafBase unsafe.Pointer
)

type place struct {
	base unsafe.Pointer
	size uintptr
}

// reserve reserves addresses for all classes.
var reserve = sync.OnceFunc(func() {
	for kind := node2; kind < inners; kind++ {
		pools[kind] = newPool(sizeOf(kind), 1<<typeShift)
		places[kind] = place{pools[kind].Base(0), uintptr(sizeOf(kind))}
	}
	pools[inners] = newPool(leafUnit, leafBit-1)
	leafBase = pools[inners].Base(0)
	// A late reader may take any bits for a link: those of type 0 or 7 are read as a
	// node, too.
	places[nothing], places[inners] = places[node2], places[node2]
})

func newPool(size, most int) *arena.Pool {
	slots := chunkBytes / size / 512 * 512 // whole pages
	if arena.FewAddresses {
		most = max(16<<20/size, slots)
	}
	return arena.NewPoolOf(most, slots, size)
}

// Taken returns the number of chunks of nodes that trees have, for tests.
func Taken() (n int) {
	reserve()
	for _, p := range pools[node2:] {
		n += p.Taken()
	}
	return n
}

// at returns where the inner node that a link leads to lies.
func (l link) at() unsafe.Pointer {
	p := &places[l>>typeShift&7]
	return unsafe.Add(p.base, uintptr(l&numberMax)*p.size)
}

func (l link) header() *header { return (*header)(l.at()) }
func (l link) leaf() *leaf {
	return (*leaf)(unsafe.Add(leafBase, uintptr(l&^leafBit)*leafUnit))
}

// age returns the age of a node or leaf.
func (l link) age() uint32 {
	if l.isInner() {
		return l.header().age()
	}
	return l.leaf().age()
}

// load reads a link that others may be changing.
func load(at *link) link { return link(atomic.LoadUint32((*uint32)(at))) }

// store writes a link that others may be reading, into a node whose word is locked
// or that nobody has seen yet. Stores to nodes are plain ones: the writer has the
// node's lock, readers of words of 32 and 64 bits see them whole, and where readers take
// no lock the machine keeps stores in order. An atomic store would empty the store
// buffer each time, a fifth of the time of an insert.
func store(at *link, to link) { *at = to }

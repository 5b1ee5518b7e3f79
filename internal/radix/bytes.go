// Package radix is the adaptive radix tree of the CuART paper, in one pool of
// memory for each type of node, so that it can be read and changed by many
// goroutines at once. It maps strings of any bytes to values of 64 bits.
//
// A link is 32 bits: the type of what it leads to, and its number in the pool of
// that type. 0 leads nowhere.
//
//	31  28 27                          0
//	│ type │ number                    │
//
// Inner nodes begin with a header of half a cache line:
//
//	 0  word       locked | dead | sequence number
//	 8  birth      epoch in which the node was made (48 bits) | children (16 bits)
//	16  entries    keys below
//	24  depth      bytes that all keys below begin with: the next one tells them apart
//	28  own        link to the key that ends here, which has no next byte
//
//	node 4    64 bytes   32 keys[4]    36 tail[12]   48 links[4]
//	node 16  128 bytes   32 keys[16]   48 tail[12]   64 links[16]
//	node 48  320 bytes   32 bits[256]  64 links[48]                       256 tail[12]
//	node 256 1280 bytes  32 bits[256]  64 links[256]  1088 sums[16]      1216 tail[12]
//
// Keys of a node 4 or 16 ascend. A node 48 has a bit for each byte that it has a
// link for, and the links in order of their bytes: half of what the paper's table
// of 256 places takes. sums[i] of a node 256 is the keys below bytes 16·i to 16·i+15.
//
// The paper has the compressed path of a node as the bytes since its parent. Here
// depth is counted from the key's first byte, and tail is the last bytes before it,
// as many as there are up to 12: neither changes when a node is put above or taken
// away. What does not fit the tail is found in any leaf below.
//
// Leaves are of eleven types, each for keys up to a length:
//
//	 0  head       epoch in which the leaf was made (55 bits) | length of the key (9 bits)
//	 8  value
//	16  key        8, 16, 24, 32, 40, 56, 72, 88, 120 or 248 bytes
//
// Longer keys are on the Go heap, and their leaf has their length and the number
// under which a table has them.
package radix

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
)

// Types of links.
const (
	nothing = iota
	node4
	node16
	node48
	node256
	firstLeaf // of keys up to 8 bytes
	lastShort = firstLeaf + 9
	leafLong  = lastShort + 1
	types     = leafLong + 1
)

const (
	typeShift = 28
	numberMax = 1<<typeShift - 1
)

// leafRoom is the longest key of each type of short leaf.
var leafRoom = [...]int{8, 16, 24, 32, 40, 56, 72, 88, 120, 248}

// link is a typed reference.
type link uint32

func (l link) kind() int     { return int(l >> typeShift) }
func (l link) number() int   { return int(l & numberMax) }
func (l link) isInner() bool { return l-1<<typeShift < node256<<typeShift }
func (l link) isLeaf() bool  { return l >= firstLeaf<<typeShift }

func linkTo(kind, number int) link { return link(kind<<typeShift | number) }

// tailBytes is the bytes of the path before its depth that a node has.
const tailBytes = 12

type header struct {
	word    uint64
	birth   uint64
	entries int64
	depth   uint32
	own     link
}

type (
	inner4 struct {
		header
		keys  [4]byte
		tail  [tailBytes]byte
		links [4]link
	}
	inner16 struct {
		header
		keys  [16]byte
		tail  [tailBytes]byte
		_     [4]byte
		links [16]link
	}
	inner48 struct {
		header
		bits  bitmap
		links [48]link
		tail  [tailBytes]byte
		_     [52]byte
	}
	inner256 struct {
		header
		bits  bitmap
		links [256]link
		sums  [16]int64
		tail  [tailBytes]byte
		_     [52]byte
	}
)

// leaf is a leaf; its key is behind it.
type leaf struct {
	head  uint64
	value uint64
}

// longLeaf is a leaf whose key is on the heap.
type longLeaf struct {
	leaf
	length uint64
	handle uint64
}

const lengthBits = 9

func (h *header) children() int { return int(h.birth & (1<<16 - 1)) }
func (h *header) born() uint64  { return h.birth >> 16 }
func (h *header) load() uint64  { return atomic.LoadUint64(&h.word) }
func (l *leaf) born() uint64    { return l.head >> lengthBits }
func (l *leaf) length() int     { return int(l.head & (1<<lengthBits - 1)) }

// sizeOf returns the bytes of a slot of a type.
func sizeOf(kind int) int {
	switch {
	case kind == node4:
		return int(unsafe.Sizeof(inner4{}))
	case kind == node16:
		return int(unsafe.Sizeof(inner16{}))
	case kind == node48:
		return int(unsafe.Sizeof(inner48{}))
	case kind == node256:
		return int(unsafe.Sizeof(inner256{}))
	case kind == leafLong:
		return int(unsafe.Sizeof(longLeaf{}))
	}
	return int(unsafe.Sizeof(leaf{})) + leafRoom[kind-firstLeaf]
}

// leafKinds has the types of leaves by the length of the key, in units of 8 bytes.
var leafKinds = func() (kinds [32]uint8) {
	i := 0
	for n := range kinds {
		if 8*n > leafRoom[i] {
			i++
		}
		kinds[n] = uint8(firstLeaf + i)
	}
	return kinds
}()

// leafKind returns the type of leaf for a key of a length.
func leafKind(length int) int {
	if n := (length + 7) / 8; n < len(leafKinds) {
		return int(leafKinds[n])
	}
	return leafLong
}

// chunkBytes is about the memory of a chunk: a huge page.
const chunkBytes = 2 << 20

// The memory of all trees, and where it lies.
var (
	pools  [types]*arena.Pool
	places [types]place
)

type place struct {
	base unsafe.Pointer
	size uintptr
}

// reserve reserves addresses for all types of nodes.
var reserve = sync.OnceFunc(func() {
	for kind := node4; kind < types; kind++ {
		size := sizeOf(kind)
		slots := chunkBytes / size / 512 * 512 // whole pages
		most := 1 << typeShift
		if arena.FewAddresses {
			most = max(16<<20/size, slots)
		}
		pools[kind] = arena.NewPoolOf(most, slots, size)
		places[kind] = place{pools[kind].Base(0), uintptr(size)}
	}
	// What a late reader takes for a link of type 0 is read as a node, too.
	places[nothing] = places[node4]
})

// Taken returns the number of chunks of nodes that trees have, for tests.
func Taken() (n int) {
	reserve()
	for _, p := range pools[node4:] {
		n += p.Taken()
	}
	return n
}

// at returns where what a link leads to lies.
func (l link) at() unsafe.Pointer {
	p := &places[l>>typeShift]
	return unsafe.Add(p.base, uintptr(l&numberMax)*p.size)
}

func (l link) header() *header { return (*header)(l.at()) }
func (l link) leaf() *leaf     { return (*leaf)(l.at()) }

// born returns the epoch in which a node or leaf was made.
func (l link) born() uint64 {
	if l.isInner() {
		return l.header().born()
	}
	return l.leaf().born()
}

// load reads a link that others may be changing.
func load(at *link) link { return link(atomic.LoadUint32((*uint32)(at))) }

// store writes a link that others may be reading, into a node whose word is locked
// or that nobody has seen yet. Stores to nodes are plain ones: the writer is alone,
// readers of words of 32 and 64 bits see them whole, and where readers take no lock
// the machine keeps stores in order. An atomic store would empty the store buffer
// each time, which took a fifth of an insert.
func store(at *link, to link) { *at = to }

// entriesOf returns the keys below a link.
func entriesOf(l link) int64 {
	switch {
	case l.isInner():
		return atomic.LoadInt64(&l.header().entries)
	case l.isLeaf():
		return 1
	}
	return 0
}

package trie

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/files"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/shortcut"
	"github.com/pando-index/pando/internal/simd"
)

// A trie is a radix tree that is built once from sorted keys and then only read:
// Layout(Radix) of a Frozen. Keys lie in order beside it, so that a leaf is nothing
// but the rank of its key, a scan is that of a sorted list, and equal keys need no
// leaves of their own: a leaf has the rank of the first.
//
//	31 30                              0
//	│1│ rank of the first such key      │   leaf
//	│0│ type │ number                   │   inner node
//	31 30  28 27                       0
//
// An inner node begins with
//
//	0  first   rank of the first key below
//	4  depth   bytes that all keys below begin with: the next one tells them apart
//	8  count   children by a byte; 0 in a node 256
//	9  own     1 if a key ends here: it is the first
//
// and is as large as its children ask for, since none will be added:
//
//	node 4      32 bytes  10 keys[4]    16 links[4]
//	node 10     64 bytes  10 keys[10]   20 links[10]
//	node 23    128 bytes  10 keys[23]   36 links[23]
//	node 48    256 bytes  10 keys[48]   60 links[48]
//	node 256  1088 bytes  64 links[256]
//	wide                  wide.go has it
//
// Keys of a node ascend. All nodes are in one segment behind a line that says how
// many there are of each type; those of a type are one array, the largest type first,
// so that no node crosses a cache line that it need not. The nodes above the spans of
// keys that workers build come first in each array: they are read most.
//
//	segment 0  head │ wide nodes │ nodes 256 │ nodes 48 │ nodes 23 │ nodes 10 │ nodes 4
//	segment 1  the root table (package shortcut)
//	behind     the keys: offsets and bytes of strings, or codes of numbers
type trie struct {
	n      int
	head   *trieHead // the first line of segment 0
	root   link
	places [8]trieArray    // by type; numbers behind the last have none
	short  *shortcut.Table // nil for none
	keys   trieKeys
	nodes  []byte
	table  []byte
	block  *arena.Block

	vals    unsafe.Pointer // values to prefetch; nil for none
	valSize int
}

// Types of inner nodes of a trie.
const (
	trie4 = 1 + iota
	trie10
	trie23
	trie48
	trie256
	trieTypes
	trieWide = trieTypes // counted in lines: its number is that of its first
)

// trieForm is how a type of node lies in memory.
type trieForm struct{ most, links, size int }

// Links of a damaged file may have types that there are none of, which have no children.
var trieForms = [8]trieForm{
	trie4:   {4, 16, 32},
	trie10:  {10, 20, 64},
	trie23:  {23, 36, 128},
	trie48:  {48, 60, 256},
	trie256: {256, 64, trieLargest},

	trieWide: {size: lineBytes},
}

const (
	trieKeysAt  = 10 // of a node
	trieLargest = 64 + 4*256
)

// trieType returns the smallest type with room for the given children.
func trieType(children int) int {
	kind := trie4
	for trieForms[kind].most < children {
		kind++
	}
	return kind
}

// trieHead is the first line of the nodes' segment.
type trieHead struct {
	counts [trieTypes]uint32 // nodes of each type; that of type 0 is 0
	root   link
	depth  uint32 // bytes that lead to a top of the root table,
	skip   uint32 // of these, the ones that all keys have in common
	lines  uint32 // of the root table
	height uint32 // nodes on the longest way
	wide   uint32 // lines of wide nodes
	zero   [16]byte
}

// trieNode is the head of a node. Its keys and links are behind it.
type trieNode struct {
	first uint32
	depth uint32
	count uint8
	own   uint8
}

// trieArray is the nodes of a type.
type trieArray struct {
	base  unsafe.Pointer
	size  uintptr
	count uint32
}

// nowhere is the target of links that no tree has: those of a damaged file, or of
// memory that was given back.
var nowhere [trieLargest]byte

// trieKeys is the keys of a trie, in order.
type trieKeys interface {
	sortedKeys
	// compare returns how many bytes key and key i begin with alike, and -1, 0 or 1
	// for a key below it, equal, or above.
	compare(i int, key string) (alike, order int)
	// lies returns the cache lines that compare will read of key i at a stage, of which there
	// are stages(): those of one stage tell where the next one's are.
	lies(i, stage int) (at unsafe.Pointer, lines int)
	stages() int
	// text returns key i where it lies, or in buf.
	text(i int, buf *[8]byte) string
}

// sizeOfNodes returns the bytes of the segment of nodes.
func (h *trieHead) sizeOfNodes() (n int64) {
	n = int64(unsafe.Sizeof(*h)) + int64(h.wide)*lineBytes
	for kind, count := range h.counts {
		n += int64(count) * int64(trieForms[kind].size)
	}
	return n
}

// openTrie makes a trie of n keys over the first two segments of a block. Nothing is
// read but the head: even if the bytes are damaged, no search leaves the block.
func openTrie(n int, keys trieKeys, b *arena.Block) (*trie, error) {
	t := &trie{n: n, keys: keys, nodes: b.Segment(0), table: b.Segment(1), block: b}
	const line = int(unsafe.Sizeof(trieHead{}))
	if len(t.nodes) < line {
		return nil, fmt.Errorf("%d bytes of nodes", len(t.nodes))
	}
	t.head = (*trieHead)(unsafe.Pointer(&t.nodes[0]))
	h := *t.head
	if h.counts[nothing] != 0 || h.sizeOfNodes() != int64(len(t.nodes)) {
		return nil, fmt.Errorf("%d nodes by type in %d bytes", h.counts, len(t.nodes))
	}
	t.root = h.root
	t.places[trieWide] = trieArray{unsafe.Pointer(unsafe.SliceData(t.nodes[line:])), lineBytes, h.wide}
	at := line + int(h.wide)*lineBytes
	for kind := trieTypes - 1; kind > nothing; kind-- {
		f := trieForms[kind]
		t.places[kind] = trieArray{unsafe.Pointer(unsafe.SliceData(t.nodes[at:])), uintptr(f.size), h.counts[kind]}
		at += int(h.counts[kind]) * f.size
	}
	const slot = int(unsafe.Sizeof(shortcut.Line{}))
	switch {
	case int64(len(t.table)) != int64(h.lines)*int64(slot) || h.skip > h.depth || h.depth-h.skip > deepest:
		return nil, fmt.Errorf("a root table of %d bytes for bytes %d to %d of a key", len(t.table), h.skip, h.depth)
	case len(t.table) > 0:
		t.short = &shortcut.Table{Depth: int(h.depth), Skip: int(h.skip), Lines: arena.As[shortcut.Line](t.table)}
	}
	return t, nil
}

// at returns the inner node that a link leads to.
func (t *trie) at(l link) *trieNode {
	p := &t.places[l>>typeShift&7]
	if i := uint32(l & numberMax); i < p.count {
		return (*trieNode)(unsafe.Add(p.base, uintptr(i)*p.size))
	}
	return (*trieNode)(unsafe.Pointer(&nowhere))
}

// below returns the rank of the first key below a link.
func (t *trie) below(l link) int {
	first := uint32(l &^ leafBit)
	if l.isInner() {
		first = t.at(l).first
	}
	return int(min(uint(first), uint(t.n)))
}

// children returns how many keys and links a node with sorted keys has.
func (h *trieNode) children(kind int) int { return min(int(h.count), trieForms[kind].most) }

// key returns key i of a node.
func (h *trieNode) key(i int) byte {
	return *(*byte)(unsafe.Add(unsafe.Pointer(h), trieKeysAt+i))
}

// link returns link i of a node.
func (h *trieNode) link(kind, i int) link {
	return *(*link)(unsafe.Add(unsafe.Pointer(h), trieForms[kind].links+4*i))
}

// find returns the link for a byte, 0 if there is none.
func (h *trieNode) find(kind int, b byte) link {
	if kind == trie256 {
		return h.link(kind, int(b))
	}
	n := h.children(kind)
	for i := 0; i < n; i += 8 {
		if j := simd.EqualByte(simd.EightAt(unsafe.Pointer(h), trieKeysAt+uintptr(i)), b); j < 8 {
			if i+j < n {
				return h.link(kind, i+j)
			}
			return 0
		}
	}
	return 0
}

// from returns the first link for byte b or a greater one, that byte, and the link
// that follows it; 0 where there is none.
func (h *trieNode) from(kind, b int) (at int, l, next link) {
	if kind == trie256 {
		for ; b < 256; b++ {
			if to := h.link(kind, b); to != 0 {
				if l != 0 {
					return at, l, to
				}
				at, l = b, to
			}
		}
		return at, l, 0
	}
	n := h.children(kind)
	for i := range n {
		if k := int(h.key(i)); k >= b {
			if i+1 < n {
				next = h.link(kind, i+1)
			}
			return k, h.link(kind, i), next
		}
	}
	return 0, 0, 0
}

// stats describes the trie; leaves is the bytes of its keys.
func (t *trie) stats(leaves int) layout.Stats {
	return layout.Stats{
		Kind: Name, Levels: int(t.head.height), Fanout: 256,
		InnerBytes: int64(len(t.nodes) + len(t.table)), LeafBytes: int64(leaves),
		TotalBytes: t.block.Bytes(),
	}
}

// Name is the layout's name.
const Name layout.Name = "radix"

// The sections of a trie in a file, before its keys.
var (
	sectionNodes = files.SectionKind{Number: 13, Name: "radix nodes"}
	sectionTable = files.SectionKind{Number: 14, Name: "root table"}
)

// bigEndian returns a code of width bytes as the string that a trie has it as.
func bigEndian(code uint64, width int, buf *[8]byte) string {
	binary.BigEndian.PutUint64(buf[:], code<<(64-8*uint(width)))
	return unsafe.String(&buf[0], width)
}

package hbplus

import (
	"math/bits"
	"unsafe"

	"github.com/pando-index/pando/internal/simd"
)

// Method is a way to search one node: the three that the HB+-tree paper
// compares (section 4.2, appendix A).
type Method uint8

const (
	Linear       Method = iota // compare the whole node at once
	Hierarchical               // compare boundary keys first, then the part they point to
	Sequential                 // one key after the other, until one is not below
)

func (m Method) String() string {
	return [...]string{"linear", "hierarchical", "sequential"}[m]
}

// Methods lists all ways to search a node.
func Methods() []Method { return []Method{Sequential, Linear, Hierarchical} }

// CountLess returns the number of keys in a sorted node that are below key. All
// methods agree on every sorted node; they are written out here as the
// definition of what the assembly does.
func CountLess[C simd.Code](m Method, node []C, key C) int {
	switch m {
	case Sequential:
		return sequential(node, key)
	case Hierarchical:
		return hierarchical(node, key)
	}
	return linear(node, key)
}

func linear[C simd.Code](node []C, key C) (n int) {
	for _, k := range node {
		if k < key {
			n++
		}
	}
	return n
}

func sequential[C simd.Code](node []C, key C) int {
	for i, k := range node {
		if k >= key {
			return i
		}
	}
	return len(node)
}

// hierarchical cuts a node of 8 into parts of 3, 3 and 2, and one of 16 into
// four parts of 4: the last key of each part but the last tells the part.
func hierarchical[C simd.Code](node []C, key C) int {
	part := 3
	if len(node) == 16 {
		part = 4
	}
	first := 0
	for first+part < len(node) && node[first+part-1] < key {
		first += part
	}
	return first + linear(node[first:min(first+part, len(node))], key)
}

// RankBy is simd.Rank with a choice of how nodes are searched: ranks[i] becomes the
// number of entries with a key below keys[i]. The assembly is that of Rank but for
// the search of a node.
func RankBy[C simd.Code](t *simd.Tree, m Method, keys []C, ranks []int) {
	_ = ranks[:len(keys)]
	switch {
	case len(keys) == 0:
	case m == Linear:
		simd.Rank(t, keys, ranks)
	case simd.Active() == simd.Go:
		rankByGo(t, m, keys, ranks)
	default:
		rankByAsm((*byte)(unsafe.Pointer(t)), m, unsafe.Sizeof(keys[0]) == 8, (*byte)(unsafe.Pointer(&keys[0])), len(keys), &ranks[0])
	}
}

// group is the number of queries that plain Go takes through a level together, as
// simd.Rank does.
const group = 16

// rankByGo is RankBy in plain Go.
func rankByGo[C simd.Code](t *simd.Tree, m Method, keys []C, ranks []int) {
	var nodes [group]uint64
	for len(keys) > 0 {
		n := min(len(keys), group)
		descendBy(t, m, keys[:n], ranks, &nodes)
		for i, key := range keys[:n] {
			ranks[i] = rankInLeaf(t, nodes[i], key)
		}
		keys, ranks = keys[n:], ranks[n:]
	}
}

// descendBy takes up to group queries down to their leaves, from the root or from the
// places in start.
func descendBy[C simd.Code](t *simd.Tree, m Method, keys []C, start []int, nodes *[group]uint64) {
	clear(nodes[:])
	if t.From > 0 {
		for i := range keys {
			nodes[i] = uint64(start[i])
		}
	}
	for l := t.From; l < t.Levels; l++ {
		for i, key := range keys {
			nodes[i] = t.Fanout*nodes[i] + 8*uint64(CountLess(m, nodeAt[C](t, nodes[i]), key)) + uint64(t.Next[l])
		}
	}
	for i := range keys {
		nodes[i] = min(nodes[i], t.LastLeaf)
	}
}

func rankInLeaf[C simd.Code](t *simd.Tree, leaf uint64, key C) int {
	keys := nodeAt[C](t, leaf)[:bits.OnesCount64(t.LeafMask)]
	return int(min((leaf-t.Leaves)<<t.LeafShift>>3+uint64(linear(keys, key)), t.Len))
}

// nodeAt returns the keys of the node at a place.
func nodeAt[C simd.Code](t *simd.Tree, place uint64) []C {
	var c C
	return unsafe.Slice((*C)(unsafe.Add(t.Base, place*8)), simd.LineBytes/unsafe.Sizeof(c))
}

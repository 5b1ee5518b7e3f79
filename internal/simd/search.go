package simd

import "math/bits"

// Method is a way to search one node: one of the three that the HB+-tree paper
// compares (section 4.2, appendix A).
type Method uint8

const (
	Linear       Method = iota // compare the whole node at once
	Hierarchical               // compare boundary keys first, then the part they select
	Sequential                 // compare one key after the other, until one is not below
)

func (m Method) String() string {
	return [...]string{"linear", "hierarchical", "sequential"}[m]
}

// Methods returns all ways to search a node.
func Methods() []Method { return []Method{Sequential, Linear, Hierarchical} }

// CountLess returns the number of keys in a sorted node that are below key.
// All methods agree on every sorted node; they are spelled out here to define
// what the assembly does.
func CountLess[C Code](m Method, node []C, key C) int {
	switch m {
	case Sequential:
		return sequential(node, key)
	case Hierarchical:
		return hierarchical(node, key)
	}
	return linear(node, key)
}

func sequential[C Code](node []C, key C) int {
	for i, k := range node {
		if k >= key {
			return i
		}
	}
	return len(node)
}

func linear[C Code](node []C, key C) int {
	n := 0
	for _, k := range node {
		if k < key {
			n++
		}
	}
	return n
}

// hierarchical cuts a node of 8 keys into parts of 3, 3 and 2, and one of 16
// keys into four parts of 4. The last key of each part but the last selects
// the part.
func hierarchical[C Code](node []C, key C) int {
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

// group is the number of queries that plain Go takes through a level together.
// Without prefetch instructions, memory accesses overlap only as far as
// out-of-order execution reaches over neighboring queries.
const group = 16

// rankGo is Rank in plain Go.
func rankGo[C Code](t *Tree, m Method, keys []C, ranks []int) {
	var nodes [group]uint64
	for len(keys) > 0 {
		n := min(len(keys), group)
		descendGo(t, m, keys[:n], ranks, &nodes)
		for i, key := range keys[:n] {
			ranks[i] = rankInLeaf(t, nodes[i], key)
		}
		keys, ranks = keys[n:], ranks[n:]
	}
}

// downGo is Descend in plain Go.
func downGo[C Code](t *Tree, keys []C, places []int) {
	var nodes [group]uint64
	for len(keys) > 0 {
		n := min(len(keys), group)
		descendGo(t, Linear, keys[:n], places, &nodes)
		for i := range n {
			places[i] = int(nodes[i])
		}
		keys, places = keys[n:], places[n:]
	}
}

// findGo is Find in plain Go.
func findGo[C Code](t *Tree, keys []C, ranks []int) {
	var nodes [group]uint64
	for len(keys) > 0 {
		n := min(len(keys), group)
		descendGo(t, Linear, keys[:n], ranks, &nodes)
		for i, key := range keys[:n] {
			ranks[i] = -1
			if at := placeInLeaf(t, nodes[i], key); at >= 0 {
				ranks[i] = int(t.entry(nodes[i], at))
			}
		}
		keys, ranks = keys[n:], ranks[n:]
	}
}

// getGo is GetPairs in plain Go.
func getGo[C Code](t *Tree, keys, vals []C, found []bool) (hits int) {
	var nodes [group]uint64
	for len(keys) > 0 {
		n := min(len(keys), group)
		descendGo(t, Linear, keys[:n], vals, &nodes)
		for i, key := range keys[:n] {
			at := placeInLeaf(t, nodes[i], key)
			vals[i] = 0
			if at >= 0 {
				vals[i] = nodeAt[C](t, nodes[i])[nodeKeys[C]()/2+at]
				hits++
			}
			if found != nil {
				found[i] = at >= 0
			}
		}
		keys, vals = keys[n:], vals[n:]
		if found != nil {
			found = found[n:]
		}
	}
	return hits
}

// seekGo is Seek in plain Go.
func seekGo[C Code](t *Tree, key C) (rank int, equal bool) {
	x := uint64(0)
	for l := range t.Levels {
		x = t.child(l, x, linear(nodeAt[C](t, x), key))
	}
	x = min(x, t.LastLeaf)
	return rankInLeaf(t, x, key), placeInLeaf(t, x, key) >= 0
}

// descendGo takes up to group queries down to their leaves, from the root or
// from the places in start.
func descendGo[C Code, P int | uint32 | uint64](t *Tree, m Method, keys []C, start []P, nodes *[group]uint64) {
	clear(nodes[:])
	if t.From > 0 {
		for i := range keys {
			nodes[i] = uint64(start[i])
		}
	}
	for l := t.From; l < t.Levels; l++ {
		for i, key := range keys {
			x := nodes[i]
			nodes[i] = t.child(l, x, CountLess(m, nodeAt[C](t, x), key))
		}
	}
	for i := range keys {
		nodes[i] = min(nodes[i], t.LastLeaf)
	}
}

func rankInLeaf[C Code](t *Tree, leaf uint64, key C) int {
	keys := nodeAt[C](t, leaf)[:bits.OnesCount64(t.LeafMask)]
	return int(min(t.entry(leaf, linear(keys, key)), t.Len))
}

// placeInLeaf returns the rank of the first entry in a leaf that holds key, or
// -1.
func placeInLeaf[C Code](t *Tree, leaf uint64, key C) int {
	keys := nodeAt[C](t, leaf)[:bits.OnesCount64(t.LeafMask)]
	for i, k := range keys {
		if k == key {
			return i
		}
	}
	return -1
}

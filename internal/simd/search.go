package simd

import "math/bits"

// linear returns the number of keys in a node that are below key: the definition
// of what the assembly does.
func linear[C Code](node []C, key C) int {
	n := 0
	for _, k := range node {
		if k < key {
			n++
		}
	}
	return n
}

// group is the number of queries that plain Go takes through a level
// together. Without a prefetch instruction at hand, the overlap comes from
// out-of-order execution over neighbouring queries alone.
const group = 16

// rankGo is Rank in plain Go.
func rankGo[C Code](t *Tree, keys []C, ranks []int) {
	var nodes [group]uint64
	for len(keys) > 0 {
		n := min(len(keys), group)
		descendGo(t, keys[:n], ranks, &nodes)
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
		descendGo(t, keys[:n], places, &nodes)
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
		descendGo(t, keys[:n], ranks, &nodes)
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
		descendGo(t, keys[:n], vals, &nodes)
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
func descendGo[C Code, P int | uint32 | uint64](t *Tree, keys []C, start []P, nodes *[group]uint64) {
	clear(nodes[:])
	if t.From > 0 {
		for i := range keys {
			nodes[i] = uint64(start[i])
		}
	}
	for l := t.From; l < t.Levels; l++ {
		for i, key := range keys {
			x := nodes[i]
			nodes[i] = t.child(l, x, linear(nodeAt[C](t, x), key))
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

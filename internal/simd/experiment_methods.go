package simd

// The files named experiment_* are for bench experiment node-search and for the
// tests of trees alone: nothing of the product uses them. They are here since
// their assembly is that of Rank but for how a node is searched.

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

// hierarchical cuts a node of 8 into parts of 3, 3 and 2, and one of 16 into
// four parts of 4: the last key of each part but the last tells the part.
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

// RankBy is Rank with a choice of how nodes are searched.
func RankBy[C Code](t *Tree, m Method, keys []C, ranks []int) {
	_ = ranks[:len(keys)]
	switch {
	case len(keys) == 0:
	case m == Linear:
		Rank(t, keys, ranks)
	case active == Go:
		rankByGo(t, m, keys, ranks)
	default:
		rankByAsm(bytes(t), m, wide[C](), bytes(&keys[0]), len(keys), &ranks[0])
	}
}

// rankByGo is RankBy in plain Go.
func rankByGo[C Code](t *Tree, m Method, keys []C, ranks []int) {
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

// descendBy is descendGo with a choice of how nodes are searched.
func descendBy[C Code](t *Tree, m Method, keys []C, start []int, nodes *[group]uint64) {
	clear(nodes[:])
	if t.From > 0 {
		for i := range keys {
			nodes[i] = uint64(start[i])
		}
	}
	for l := t.From; l < t.Levels; l++ {
		for i, key := range keys {
			nodes[i] = t.child(l, nodes[i], CountLess(m, nodeAt[C](t, nodes[i]), key))
		}
	}
	for i := range keys {
		nodes[i] = min(nodes[i], t.LastLeaf)
	}
}

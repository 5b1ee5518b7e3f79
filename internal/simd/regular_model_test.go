package simd

import (
	"math/rand/v2"
	"slices"
	"unsafe"
)

// grown is a regular tree put together for a test, and what is known of it
// without any of the package's search code.
type grown[C Code] struct {
	Regular
	rng     *rand.Rand
	fans    []int           // used children of the nodes of each upper level, root first
	uppers  []uint32        // numbers not yet given to a node
	pilots  []uint32        // numbers not yet given to a leaf
	leaves  []*grownLeaf[C] // in key order
	regions [3][]uint64     // keep the memory alive
}

// grownLeaf is a leaf of such a tree.
type grownLeaf[C Code] struct {
	number uint32
	bound  C // the greatest key that leads to it
	word   uint64
	seps   [RegularFanout]C
	vals   map[C]C
}

// regularForms returns trees of every height, with full nodes on every level
// and others with gaps.
func regularForms() [][]int {
	return [][]int{{}, {64}, {5}, {1}, {64, 3}, {3, 64}, {2, 2}, {3, 2, 4}, {64, 1, 2}, {2, 2, 64}, {2, 1, 2, 3}}
}

// grow makes a tree of a form over n random keys. Its nodes are numbered at
// random, and room returns memory for them, all of which they need.
func grow[C Code](fans []int, n int, rng *rand.Rand, room func(words int) []uint64) *grown[C] {
	g := &grown[C]{rng: rng, fans: fans}
	uppers, leaves := 0, 1
	for _, fan := range fans {
		uppers += leaves
		leaves *= fan
	}
	g.uppers, g.pilots = numbers(uppers, rng), numbers(leaves, rng)
	behind := RegularUpper[C]() - regularRefs[C]() - 4*RegularFanout // of an upper node, what is not read
	for i, bytes := range []int{max(uppers*RegularUpper[C]()-behind, LineBytes), leaves * RegularPilot[C](), leaves * RegularBlock} {
		g.regions[i] = room(bytes / 8)
	}
	g.Uppers, g.Pilots, g.Blocks = unsafe.Pointer(&g.regions[0][0]), unsafe.Pointer(&g.regions[1][0]), unsafe.Pointer(&g.regions[2][0])
	g.Height, g.Distance = uint64(len(fans)), uint64(1+rng.IntN(20))
	n = min(n, leaves*RegularFanout*pairsPerLine[C]()/2)
	g.Root = uint64(g.node(0, sortedKeys[C](max(n, 2*leaves), rng), ^C(0)))
	return g
}

func numbers(n int, rng *rand.Rand) (out []uint32) {
	for _, x := range rng.Perm(n) {
		out = append(out, uint32(x))
	}
	return out
}

func pairsPerLine[C Code]() int { return nodeKeys[C]() / 2 }

// sortedKeys returns n different keys, the least and the greatest among them.
func sortedKeys[C Code](n int, rng *rand.Rand) []C {
	top := ^C(0)
	keys := []C{0, 1, top, top - 1, top / 2, top/2 + 1}
	for len(keys) < n {
		for len(keys) < n {
			keys = append(keys, C(rng.Uint64()))
		}
		slices.Sort(keys)
		keys = slices.Compact(keys)
	}
	slices.Sort(keys)
	return keys
}

// between returns a separator of two keys, often one next to them.
func between[C Code](below, above C, rng *rand.Rand) C {
	switch rng.IntN(3) {
	case 0:
		return below
	case 1:
		return above - 1
	}
	return below + C(rng.Uint64())%(above-below)
}

// node makes the subtree at a depth for keys, and returns its number. bound is
// the greatest key that leads there.
func (g *grown[C]) node(depth int, keys []C, bound C) (x uint32) {
	if depth == len(g.fans) {
		return g.leaf(keys, bound)
	}
	x, g.uppers = g.uppers[0], g.uppers[1:]
	at := unsafe.Add(g.Uppers, int(x)*RegularUpper[C]())
	seps, refs := RegularSeps[C](at), RegularRefs[C](at)
	fan := g.fans[depth]
	for j := range RegularFanout {
		if j >= fan { // a gap
			seps[j], refs[j] = ^C(0), refs[j-1]
			continue
		}
		from, to := len(keys)*j/fan, len(keys)*(j+1)/fan
		seps[j] = bound
		if j < fan-1 {
			seps[j] = between(keys[to-1], keys[to], g.rng)
		}
		refs[j] = g.node(depth+1, keys[from:to], seps[j])
	}
	setIndex(at, seps)
	*RegularWord(at) = g.rng.Uint64() // searches do not look at it
	return x
}

// setIndex sets the index line of a node from its separators.
func setIndex[C Code](node unsafe.Pointer, seps *[RegularFanout]C) {
	index, per := RegularIndex[C](node), nodeKeys[C]()
	for s := range index {
		index[s] = ^C(0)
		if s < RegularFanout/per-1 {
			index[s] = seps[(s+1)*per-1]
		}
	}
}

// leaf makes a leaf, and returns its number. Some are locked, dead, sealed, or
// have been split, so that keys above what they hold lead to them.
func (g *grown[C]) leaf(keys []C, bound C) (x uint32) {
	x, g.pilots = g.pilots[0], g.pilots[1:]
	word := g.rng.Uint64() &^ WordBusy
	if g.rng.IntN(4) == 0 {
		word |= 1 << g.rng.IntN(3)
	}
	l := &grownLeaf[C]{number: x, bound: bound, word: word, vals: map[C]C{}}
	end := bound
	if len(keys) > 1 && g.rng.IntN(4) == 0 {
		keys = keys[:1+g.rng.IntN(len(keys)-1)]
		end = keys[len(keys)-1]
	}
	for _, k := range keys {
		l.vals[k] = C(g.rng.Uint64())
	}
	pilot, block := g.pilot(x), g.block(x)
	fillLeaf(pilot, block, keys, end, func(k C) C { return l.vals[k] }, g.rng)
	l.seps = *RegularSeps[C](pilot)
	*RegularWord(pilot) = word
	g.leaves = append(g.leaves, l)
	return x
}

func (g *grown[C]) pilot(x uint32) unsafe.Pointer {
	return unsafe.Add(g.Pilots, int(x)*RegularPilot[C]())
}

func (g *grown[C]) block(x uint32) unsafe.Pointer { return unsafe.Add(g.Blocks, int(x)*RegularBlock) }

// fillLeaf distributes keys over a random number of the lines of a leaf that
// may hold keys up to end. Gaps repeat the pair before. It does not set the
// word.
func fillLeaf[C Code](pilot, block unsafe.Pointer, keys []C, end C, val func(C) C, rng *rand.Rand) {
	per := pairsPerLine[C]()
	least := max(1, (len(keys)+per-1)/per)
	lines := least + rng.IntN(RegularFanout-least+1)
	seps := RegularSeps[C](pilot)
	for j := range RegularFanout {
		from, to := len(keys)*min(j, lines)/lines, len(keys)*min(j+1, lines)/lines
		line := unsafe.Slice((*C)(unsafe.Add(block, j*LineBytes)), 2*per)
		for i := range per {
			k := keys[max(min(from+i, to-1), 0)]
			line[i], line[per+i] = k, val(k)
		}
		switch {
		case j >= lines-1:
			seps[j] = end
		case to == 0:
			seps[j] = keys[0] - min(keys[0], 1) // an empty line before all keys
		default:
			below := keys[to-1]
			if j > 0 {
				below = max(below, seps[j-1])
			}
			seps[j] = between(below, max(keys[to], below+1), rng)
		}
	}
	setIndex(pilot, seps)
}

// regularAnswer is everything that can be asked about a key.
type regularAnswer[C Code] struct {
	leaf   uint32
	line   int
	word   uint64
	val    C
	found  bool
	repeat bool
}

// ask answers by going through all leaves from left to right.
func (g *grown[C]) ask(key C) regularAnswer[C] {
	at := slices.IndexFunc(g.leaves, func(l *grownLeaf[C]) bool { return key <= l.bound })
	l := g.leaves[at]
	a := regularAnswer[C]{leaf: l.number, word: l.word}
	for a.line < RegularFanout && l.seps[a.line] < key {
		a.line++
	}
	if a.line == RegularFanout || l.word&WordLocked != 0 || l.word&WordDead != 0 {
		a.repeat = true
		return a
	}
	a.val, a.found = l.vals[key]
	return a
}

// asks returns n keys to search for, most of them equal or next to a key or a
// separator of the tree.
func (g *grown[C]) asks(n int) (keys []C) {
	fixed := []C{0, 1, ^C(0), ^C(0) - 1, ^C(0) / 2, ^C(0)/2 + 1}
	for len(keys) < n {
		l := g.leaves[g.rng.IntN(len(g.leaves))]
		switch g.rng.IntN(6) {
		case 0:
			keys = append(keys, fixed[g.rng.IntN(len(fixed))])
		case 1:
			keys = append(keys, C(g.rng.Uint64()))
		case 2:
			keys = append(keys, l.seps[g.rng.IntN(RegularFanout)]+C(g.rng.IntN(3))-1)
		case 3:
			keys = append(keys, l.bound+C(g.rng.IntN(3))-1)
		default:
			line := unsafe.Slice((*C)(unsafe.Add(g.block(l.number), g.rng.IntN(RegularFanout)*LineBytes)), pairsPerLine[C]())
			keys = append(keys, line[g.rng.IntN(len(line))]+C(g.rng.IntN(3))-1)
		}
	}
	return keys
}

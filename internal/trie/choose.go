package trie

import (
	"math/bits"

	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/par"
)

// A model of the cache lines that a lookup waits for decides where wide nodes are. One
// pass over the keys of a sub-tree counts all that the model needs, exactly: the lines
// that lookups of its keys read in nodes of each depth, and the nodes that would be left
// if only the upper bits of their byte told keys apart. So the cost of every wide node
// that may take the place of the root of the sub-tree, for each number of bytes and
// bits, is known, and the cheapest is taken, if it is cheaper than the nodes.
//
// The root of all keys is asked: if it is wide, it takes the place of the root table,
// too. Below the tops of a root table wide nodes bring nothing (experiment radix-wide:
// URLs), since the nodes that they would replace are read so often that they are in
// the core's cache; so they are made there for experiments alone. There is no wide
// node below a wide one.

// Wide says where wide nodes may be. The zero Wide is the best that is known; others
// are for experiments (radix-wide) and tests.
type Wide struct {
	Off         bool
	Below       bool    // below the tops of the root table, too, if the root is not wide
	Price       float64 // in place of widePrice
	Least       int     // in place of leastWideKeys
	Bytes, Bits int     // of the root, or of all below: bytes, and bits of the last one, if that can be
}

// The costs in the model: the time that a lookup waits, in cache lines that come from
// memory. Measured by experiment radix-wide.
const (
	// hotLine is a line that is in the core's own cache, as those are that the most
	// lookups read, hotLines of them.
	hotLine  = 0.25
	hotLines = 1 << 14
	// beside is a line more that is asked for at the same time.
	beside = 0.15
	// hashing is the hash for the root table, slotByShift and slotAByte the slot of a wide
	// node.
	hashing     = 0.3
	slotByShift = 0.35
	slotAByte   = 0.08

	// widePrice is how many lines a byte more for an entry must save a lookup, and
	// mostMore how many bytes more for an entry there may be at all.
	widePrice = 0.02
	mostMore  = 1
	// leastWideKeys is how many keys a wide node must have.
	leastWideKeys = 128
)

func (w Wide) price() float64 {
	if w.Price > 0 {
		return w.Price
	}
	return widePrice
}

func (w Wide) least() int {
	if w.Least > 0 {
		return w.Least
	}
	return leastWideKeys
}

// cost is the lines that lookups of all keys wait for, once each, and bytes of nodes.
type cost struct{ lines, bytes float64 }

// node adds a node for some keys.
func (c *cost) node(children, keys, hot int) {
	kind := trieType(min(children, 256)) // a key that ends there may be one more
	k := float64(keys)
	wait := waits(k, hot)
	switch kind {
	case trie23:
		wait += beside
	case trie48, trie256:
		wait = waits(k*lineBytes/4/float64(min(children, 256)), hot) + 2*beside
	}
	c.lines += wait * k
	c.bytes += float64(trieForms[kind].size)
}

// waits returns how long a lookup waits for a line that the given keys have in
// common: the more they are, the more such lines are in the core's cache.
func waits(keys float64, hot int) float64 {
	return 1 - (1-hotLine)*min(1, keys/float64(hot))
}

func (c *cost) add(o cost) {
	c.lines += o.lines
	c.bytes += o.bytes
}

// tally is the counts of a sub-tree.
type tally struct {
	common int // bytes that all its keys begin with
	hot    int // how many keys have a line in common that is in the core's cache
	values values
	nodes  [deepest + 1]cost   // by depth behind the common bytes
	upper  [mostWide][8]cost   // nodes of depth i that are left without the j upper bits
	pairs  [mostWide][9]uint32 // neighbours that a byte tells apart, by the bits from the first that does on
}

func (t *tally) add(o *tally) {
	for p := range t.values {
		for i := range t.values[p] {
			t.values[p][i] |= o.values[p][i]
		}
	}
	for i := range t.nodes {
		t.nodes[i].add(o.nodes[i])
	}
	for i := range t.upper {
		for s := range t.upper[i] {
			t.upper[i][s].add(o.upper[i][s])
		}
		for s := range t.pairs[i] {
			t.pairs[i][s] += o.pairs[i][s]
		}
	}
}

// pair counts key k. bytes is how many it has in common with the one before it; -1
// if it is the first.
func (t *tally) pair(keys sortedKeys, k, bytes int) {
	p := max(bytes-t.common, 0)
	if p >= mostWide {
		return
	}
	t.values.note(keys, k, t.common, p)
	if bytes < 0 {
		return
	}
	if x, y := keys.byteAt(k-1, bytes), keys.byteAt(k, bytes); x >= 0 {
		t.pairs[p][bits.Len8(byte(x)^byte(y))]++
	} else {
		t.pairs[p][8]++
	}
}

// node counts a node that ends before key end.
func (t *tally) node(keys sortedKeys, b *branching, end int) {
	p, kids := b.depth-t.common, b.kids
	t.nodes[min(p, deepest)].node(len(kids), end-int(kids[0].first), t.hot)
	if p < 1 || p >= mostWide {
		return
	}
	var room [257]int
	bytes := room[:len(kids)]
	for i, k := range kids {
		bytes[i] = keys.byteAt(int(k.first), b.depth)
	}
	for s := 1; s < 8; s++ {
		for i, j := 0, 0; i < len(kids); i = j {
			for j = i + 1; j < len(kids) && bytes[j]>>s == bytes[i]>>s; j++ {
			}
			if j-i == 1 {
				continue
			}
			to := end
			if j < len(kids) {
				to = int(kids[j].first)
			}
			t.upper[p][s].node(j-i, to-int(kids[i].first), t.hot)
		}
	}
}

// below returns the cost of all nodes from a depth on.
func (t *tally) below(depth int) (c cost) {
	for i := min(depth, deepest); i <= deepest; i++ {
		c.add(t.nodes[i])
	}
	return c
}

// of returns the cost of a wide node for the root of n keys and of the nodes below it; ok is
// false if it would be larger than nodes of two children each that tell the same keys apart, the
// largest a tree can be.
func (t *tally) of(n, bytes, shift int) (c cost, ok bool) {
	slots, head, whole := fitWide(&t.values, bytes, shift)
	c = t.below(bytes)
	if shift > 0 {
		c.add(t.upper[bytes-1][shift])
	}
	parted := 0.0
	for p := range bytes {
		for n, pairs := range t.pairs[p] {
			if p < bytes-1 || n > shift {
				parted += float64(pairs)
			}
		}
	}
	size := float64(head) + lineBytes + 4*slots
	c.bytes += size
	slotting := slotByShift
	if !whole {
		slotting = slotAByte * float64(bytes)
	}
	wait := slotting + (waits(float64(n), t.hot)-hotLine)*float64(min(head/lineBytes, 2)) + waits(float64(n)/slots*lineBytes/4, t.hot)
	c.lines += wait * float64(n)
	return c, slots > 0 && size <= parted*float64(trieForms[trie4].size) && slots < mostWideKeys
}

// pick returns the cheapest wide node for the root of n keys, 0 bytes for none. plain is
// the cost without.
func (t *tally) pick(n int, plain cost, price float64) (bytes, shift int) {
	least, most := plain.lines+price*plain.bytes, plain.bytes+mostMore*float64(n)
	for m := 2; m <= mostWide; m++ {
		for s := range 8 {
			c, ok := t.of(n, m, s)
			if x := c.lines + price*c.bytes; ok && x < least && c.bytes <= most {
				bytes, shift, least = m, s, x
			}
		}
	}
	return bytes, shift
}

// pick returns the wide node for the root of n keys, 0 bytes for none.
func (w Wide) pick(t *tally, n int, plain cost) (bytes, shift int) {
	if w.Bytes == 0 {
		return t.pick(n, plain, w.price())
	}
	shift = (8 - w.Bits) & 7
	if _, ok := t.of(n, w.Bytes, shift); !ok {
		return 0, 0
	}
	return w.Bytes, shift
}

// choose decides where wide nodes are. behind is the bytes that lead to a top of the
// root table of the given lines, which is left out if the root is wide.
func (g *growth) choose(w Wide, behind, lines int) (table bool, err error) {
	if w.Off || g.n < w.least() || int64(g.n) >= mostWideKeys {
		return true, nil
	}
	all := g.tally
	for i := range g.spans {
		all.add(&g.spans[i].tally)
	}
	plain := all.below(0)
	if lines > 0 {
		plain.lines = all.below(behind).lines + (hashing+waits(float64(g.n)/float64(lines), all.hot))*float64(g.n)
		plain.bytes += float64(lines) * lineBytes
	}
	if m, s := w.pick(&all, g.n, plain); m > 0 && (w.Bytes == 0 || !w.Below) {
		g.wides = []*wide{newWide(g.keys, 0, g.n, g.common, m, s, &all.values)}
		return false, g.recount()
	}
	if !w.Below {
		return true, nil
	}
	found := make([][]*wide, len(g.spans))
	par.Run(g.workers, len(g.spans), par.Func(func(i int) {
		if g.stop != nil && g.stop() {
			return
		}
		lo, hi := i*spanKeys, min((i+1)*spanKeys, g.n)
		g.runs(lo, hi, g.common+behind, w.least(), func(lo, hi int) {
			found[i] = g.chooseBelow(found[i], lo, hi, w)
		})
	}))
	for _, f := range found {
		g.wides = append(g.wides, f...)
	}
	if len(g.wides) == 0 {
		return true, nil
	}
	return true, g.recount()
}

// hot returns how many keys have a line in common that is in the core's cache.
func (g *growth) hot() int { return max(1, g.n/hotLines) }

// recount counts nodes again, now that there are wide ones.
func (g *growth) recount() error {
	next := int64(0)
	for _, w := range g.wides {
		w.number = uint32(next)
		if next += w.units(); next > numberMax {
			return layout.ErrTooLarge
		}
	}
	if err := g.grow(nil); err != nil {
		return err
	}
	g.head.wide = uint32(next)
	return nil
}

// runs calls f with runs of keys that have depth bytes in common: those that begin
// among keys [lo, hi). Of runs with less than twice as many keys as least some may be
// left out.
func (g *growth) runs(lo, hi, depth, least int, f func(lo, hi int)) {
	for k := lo; k < hi; {
		to := k + least
		if to > g.n {
			return
		}
		if n, _ := g.keys.alike(k, to-1); n < depth {
			k = to
			continue
		}
		from := g.first(max(k-least, 0), k, k, depth)
		end := g.end(k, depth)
		if from >= lo {
			f(from, end)
		}
		k = end
	}
}

// first returns the first key from lo on that has depth bytes in common with key k.
func (g *growth) first(lo, hi, k, depth int) int {
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if n, _ := g.keys.alike(mid, k); n >= depth {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// end returns the first key behind key k that has fewer bytes in common with it.
func (g *growth) end(k, depth int) int {
	step := 1
	for ; k+step < g.n; step *= 2 {
		if n, _ := g.keys.alike(k, k+step); n < depth {
			break
		}
	}
	lo, hi := k+step/2, min(k+step, g.n)
	for lo+1 < hi {
		mid := int(uint(lo+hi) / 2)
		if n, _ := g.keys.alike(k, mid); n >= depth {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// chooseBelow settles where wide nodes are for keys [lo, hi), which are a sub-tree.
func (g *growth) chooseBelow(found []*wide, lo, hi int, w Wide) []*wide {
	keys := g.keys.span(lo, hi)
	t := tally{hot: g.hot()}
	t.common, _ = keys.alike(lo, hi-1)
	if _, order := keys.alike(lo, hi-1); order == 0 {
		return found
	}
	small := grower{keys: keys, tally: &t}
	for k := lo; k < hi; k++ {
		bytes, order := -1, -1
		if k > lo {
			bytes, order = keys.alike(k-1, k)
		}
		if order != 0 {
			t.pair(keys, k, bytes)
			small.add(bough{to: link(leafBit | uint32(k)), first: uint32(k), alike: bytes})
		}
	}
	small.finish(hi, -1)
	if m, s := w.pick(&t, hi-lo, t.below(0)); m > 0 {
		return append(found, newWide(keys, lo, hi, t.common, m, s, &t.values))
	}
	g.runs(lo, hi, t.common+1, w.least(), func(from, to int) { found = g.chooseBelow(found, from, to, w) })
	return found
}

package cuart

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/pando-index/pando/internal/simd"
)

// entry is a key with its value.
type entry struct {
	key string
	val uint64
}

// checking is an image that is being looked at.
type checking struct {
	*image
	seen    [nodeTypes]map[int]bool
	leaves  map[int]int // units of leaves, and of those that are free, by where they begin
	entries []entry
}

// check looks at all of an image, and returns its entries in the order of slots. free
// has the slots that are not in use, by class.
func (im *image) check(free *[classes][]uint32) ([]entry, error) {
	c := &checking{image: im, leaves: map[int]int{}}
	for i := range c.seen {
		c.seen[i] = map[int]bool{}
	}
	if len(im.table) != 1<<im.place.bits {
		return nil, fmt.Errorf("cuart: a table of %d slots, not %d", len(im.table), 1<<im.place.bits)
	}
	for s, l := range im.table {
		if l == 0 {
			continue
		}
		first := len(c.entries)
		if err := c.below(l, -1); err != nil {
			return nil, fmt.Errorf("slot %d: %w", s, err)
		}
		for _, e := range c.entries[first:] {
			if at := im.place.Slot(e.key); at != s {
				return nil, fmt.Errorf("cuart: key %q is in slot %d, not %d", e.key, s, at)
			}
		}
	}
	return c.entries, c.free(free)
}

// below looks at all that a link leads to, from a node of some depth.
func (c *checking) below(l link, depth int) error {
	if l.isLeaf() {
		return c.leaf(l)
	}
	kind, n := l.kind(), l.number()
	if !l.isInner() || kind >= nodeTypes || n >= c.nodes()[kind] || c.seen[kind][n] {
		return fmt.Errorf("cuart: link %x leads nowhere, or another does so, too", l)
	}
	c.seen[kind][n] = true
	h, all, err := c.children(l)
	if err != nil {
		return err
	}
	if int(h.depth) <= depth || len(all) < 2 || int(h.count) > capacity[kind] || int(h.count) <= few[kind] {
		return fmt.Errorf("cuart: node %x has depth %d below %d, and %d links", l, h.depth, depth, len(all))
	}
	return c.node(l, int(h.depth), all)
}

// node looks at the links of a node: keys below each have its byte behind the
// common prefix.
func (c *checking) node(l link, depth int, all []child) error {
	first, bytes := len(c.entries), map[int]bool{}
	for _, x := range all {
		if bytes[x.b] || x.b < 0 && !x.to.isLeaf() {
			return fmt.Errorf("cuart: node %x has two links for byte %d, or a node for its own key", l, x.b)
		}
		bytes[x.b] = true
		from := len(c.entries)
		if err := c.below(x.to, depth); err != nil {
			return err
		}
		for _, e := range c.entries[from:] {
			if x.b < 0 && len(e.key) != depth || x.b >= 0 && (len(e.key) <= depth || int(e.key[depth]) != x.b) || simd.CommonPrefix(e.key, c.entries[first].key) < depth {
				return fmt.Errorf("cuart: key %q is below byte %d of node %x, of depth %d", e.key, x.b, l, depth)
			}
		}
	}
	return nil
}

// leaf looks at a leaf.
func (c *checking) leaf(l link) error {
	v := c.valBytes
	x, far := c.leafAt(l)
	if v+4 > len(x) {
		return fmt.Errorf("cuart: leaf %x is outside of memory", l)
	}
	length := int(*(*uint32)(unsafe.Pointer(&x[v])))
	class := leafClass(min(length, MaxKey), v)
	if length > MaxKey || unitsOf(class)*unit > len(x) || far != (class >= c.farClass) {
		return fmt.Errorf("cuart: leaf %x has a key of %d bytes", l, length)
	}
	for _, b := range x[v+4+length : v+4+(length+3)&^3] {
		if b != 0 {
			return fmt.Errorf("cuart: leaf %x ends with byte %d", l, b)
		}
	}
	val := uint64(*(*uint32)(unsafe.Pointer(&x[0])))
	if v == 8 {
		val = *(*uint64)(unsafe.Pointer(&x[0]))
	}
	c.entries = append(c.entries, entry{string(x[v+4:][:length]), val})
	return c.take(int(l&^leafBit), unitsOf(class))
}

// take notes units that are a leaf, or free.
func (c *checking) take(at, units int) error {
	if c.leaves[at] != 0 {
		return fmt.Errorf("cuart: two leaves, or free ones, at unit %d", at)
	}
	c.leaves[at] = units
	return nil
}

// free checks the free slots: with those in use they are all slots.
func (c *checking) free(free *[classes][]uint32) error {
	for kind, n := range c.nodes() {
		for _, x := range free[kind] {
			if int(x) >= n || c.seen[kind][int(x)] {
				return fmt.Errorf("cuart: node %d of type %d is free, and in use, or free twice", x, kind)
			}
			c.seen[kind][int(x)] = true
		}
		if len(c.seen[kind]) != n {
			return fmt.Errorf("cuart: %d nodes of type %d are in use or free, of %d", len(c.seen[kind]), kind, n)
		}
	}
	for class := nodeTypes; class < classes; class++ {
		for _, x := range free[class] {
			if err := c.take(int(x), unitsOf(class)); err != nil {
				return err
			}
		}
	}
	starts := make([]int, 0, len(c.leaves))
	for at := range c.leaves {
		starts = append(starts, at)
	}
	slices.Sort(starts)
	near, _ := slices.BinarySearch(starts, c.split)
	if err := c.dense(starts[:near], 0, len(c.units)); err != nil {
		return err
	}
	return c.dense(starts[near:], c.split, c.split+len(c.far))
}

// dense looks whether leaves, by where they begin, are all units from first to last.
func (c *checking) dense(starts []int, first, last int) error {
	end := first
	for _, at := range starts {
		if at != end {
			return fmt.Errorf("cuart: a leaf at unit %d, where the one before ends at %d", at, end)
		}
		end += c.leaves[at]
	}
	if end != last {
		return fmt.Errorf("cuart: leaves end at unit %d of %d", end, last)
	}
	return nil
}

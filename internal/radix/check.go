package radix

import (
	"fmt"
	"sync/atomic"

	"github.com/pando-index/pando/internal/epoch"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/shortcut"
	"github.com/pando-index/pando/internal/simd"
)

// Check looks through the whole tree and its snapshots for anything that cannot
// be: keys out of order, wrong counts, nodes that are lost or in two places.
func (t *Tree) Check() error {
	t.batch.Lock()
	defer t.batch.Unlock()
	t.lockWrite()
	defer t.unlockWrite()
	t.unstock()
	if t.Closed() {
		return op.ErrClosed
	}
	c := checker{t: t, seen: map[link]int64{}}
	n, err := c.tree(t.top.link)
	if err != nil {
		return err
	}
	if n != t.entries() {
		return fmt.Errorf("radix: %d entries, and the tree says %d", n, t.entries())
	}
	live := len(c.seen)
	if err := c.shortcuts(); err != nil {
		return err
	}
	for _, m := range t.moments {
		c.shared = true
		c.last, c.some = "", false
		if n, err = c.tree(m.root); err != nil {
			return fmt.Errorf("snapshot of epoch %d: %w", m.epoch, err)
		}
		if n != m.entries {
			return fmt.Errorf("radix: %d entries in the snapshot of epoch %d, which says %d", n, m.epoch, m.entries)
		}
	}
	return c.slots(live)
}

type checker struct {
	t      *Tree
	seen   map[link]int64 // entries below
	shared bool           // nodes may have been seen before
	last   string
	some   bool
}

func (c *checker) tree(l link) (int64, error) {
	if l == 0 {
		return 0, nil
	}
	return c.node(l, 0)
}

// node checks the target of a link, and returns the number of entries there.
func (c *checker) node(l link, from int) (n int64, err error) {
	if n, ok := c.seen[l]; ok {
		if c.shared {
			return n, nil
		}
		return 0, fmt.Errorf("radix: link %#x is in two places", uint32(l))
	}
	if !l.isInner() {
		n, err = 1, c.leaf(l)
	} else {
		n, err = c.inner(l, from)
	}
	c.seen[l] = n
	return n, err
}

func (c *checker) leaf(l link) error {
	k := c.t.key(l)
	if x := l.leaf(); !l.isLeaf() || x.length() != min(len(k), longLength) && len(k) <= mostShort || len(k) > mostShort && x.length() != longLength {
		return fmt.Errorf("radix: link %#x leads to a key of %d bytes", uint32(l), len(k))
	}
	if c.some && !c.shared && c.last >= k {
		return fmt.Errorf("radix: key %.40q comes before %.40q", c.last, k)
	}
	c.last, c.some = k, true
	return nil
}

func (c *checker) inner(l link, from int) (n int64, err error) {
	h := l.header()
	d := int(h.depth)
	if d < from || h.word&locked != 0 || h.word&dead != 0 && !c.shared {
		return 0, fmt.Errorf("radix: node %#x below depth %d has depth %d and word %#x", uint32(l), from, d, h.word)
	}
	path := c.t.key(anyLeaf(l))
	if len(path) < d {
		return 0, fmt.Errorf("radix: node %#x of depth %d is above key %.40q", uint32(l), d, path)
	}
	if h.age() > c.t.age || h.age() < ageHalf != (c.t.age < ageHalf) {
		return 0, fmt.Errorf("radix: node %#x has age %d, and the tree %d", uint32(l), h.age(), c.t.age)
	}
	// A snapshot may be counted meanwhile, from below.
	counts := counted{entries: atomic.LoadUint32(&h.entries)}
	if l.kind() == node256 {
		counts.sums = (*inner256)(l.at()).sums
	}
	links := 0
	var found [16]uint32
	for b, to := atOrAfter(l, -1); to != 0; b, to = atOrAfter(l, b+1) {
		links++
		k, err := c.node(to, d+1)
		if err != nil {
			return 0, err
		}
		if k := c.t.key(anyLeaf(to)); len(k) < d || k[:d] != path[:d] || simd.ByteAt(k, d) != b {
			return 0, fmt.Errorf("radix: key %.40q is below byte %d of node %#x, of depth %d", k, b, uint32(l), d)
		}
		if n += k; b >= 0 {
			found[b>>4] += uint32(k)
		}
		if _, ok := entriesOf(to); !ok && (counts.entries != 0 || l.kind() == node256 && counts.sums[b>>4] != unknown) {
			return 0, fmt.Errorf("radix: node %#x is counted, and %#x below it is not", uint32(l), uint32(to))
		}
	}
	if err := c.counts(l, links, n, counts, found); err != nil {
		return 0, err
	}
	return n, nil
}

// counted is the counts of a node.
type counted struct {
	entries uint32
	sums    [16]uint32
}

// counts checks the counts in a node.
func (c *checker) counts(l link, links int, n int64, counts counted, sums [16]uint32) error {
	h := l.header()
	have := h.children()
	if h.own != 0 {
		have++
	}
	kind := l.kind()
	if have != links || links < 2 || h.children() > capacity(kind) {
		return fmt.Errorf("radix: node %#x has %d links and says %d", uint32(l), links, have)
	}
	if counts.entries != 0 && n != int64(counts.entries) {
		return fmt.Errorf("radix: node %#x has %d entries and says %d", uint32(l), n, counts.entries)
	}
	for i, sum := range counts.sums {
		if kind == node256 && sum != sums[i] && (sum != unknown || counts.entries != 0) {
			return fmt.Errorf("radix: node %#x has %d entries below bytes %d to %d, and says %d", uint32(l), sums[i], 16*i, 16*i+15, sum)
		}
	}
	return nil
}

// shortcuts checks that each one is the top of the keys below it.
func (c *checker) shortcuts() error {
	s := c.t.short.Load()
	if s == nil {
		return nil
	}
	for i := range s.Lines {
		for j, l := range s.Lines[i].Links() {
			if err := c.shortcut(s, &s.Lines[i], link(l)); err != nil {
				return fmt.Errorf("radix: shortcut %d of line %d: %w", j, i, err)
			}
		}
	}
	return nil
}

func (c *checker) shortcut(s *shortcut.Table, line *shortcut.Line, l link) error {
	if l == 0 {
		return nil
	}
	if _, ok := c.seen[l]; !ok {
		return fmt.Errorf("it leads to %#x, which is not in the tree", uint32(l))
	}
	key := c.t.key(anyLeaf(l))
	if at, _ := s.Place(key); at != line || c.t.topOf(s, key) != l {
		return fmt.Errorf("it leads to %#x, which is not the top of %.40q", uint32(l), key)
	}
	return nil
}

// slots checks that all memory in use is accounted for.
func (c *checker) slots(live int) error {
	used := 0
	for class := node2; class < classes; class++ {
		s := &c.t.memory.slots[class]
		used += s.Used()
		if !s.Balanced() || s.Promised() != 0 {
			return fmt.Errorf("radix: class %d: %d slots in use, %d promised, %d chunks", class, s.Used(), s.Promised(), s.Chunks())
		}
	}
	kept, lost := 0, link(0)
	for _, m := range c.t.moments {
		m.dead.Each(func(k *epoch.Kept) {
			kept++
			if _, ok := c.seen[link(k.Ref)]; !ok {
				lost = link(k.Ref)
			}
		})
	}
	if lost != 0 {
		return fmt.Errorf("radix: node %#x is kept for a snapshot that does not have it", uint32(lost))
	}
	handed := 0 // part of closed snapshots: older ones may have it
	for _, m := range c.t.ending {
		m.dead.Each(func(k *epoch.Kept) {
			if _, ok := c.seen[link(k.Ref)]; ok {
				kept++
			} else {
				handed++
			}
		})
	}
	limbo := 0
	for _, d := range *c.t.desks.Load() {
		for ref := range d.limbo.All {
			limbo++
			if _, ok := c.seen[link(ref)]; ok {
				return fmt.Errorf("radix: node %#x is in use, and retired", ref)
			}
		}
	}
	if len(c.seen) != live+kept || used != len(c.seen)+limbo+handed {
		return fmt.Errorf("radix: %d slots in use; the tree has %d, snapshots %d more, %d of them noted, %d are retired", used, live, len(c.seen)-live, kept, limbo)
	}
	return nil
}

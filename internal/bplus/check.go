package bplus

import (
	"fmt"

	"github.com/pando-index/pando/internal/simd"
)

// Check returns an error for the first thing that is not as it must be. Nobody
// may write meanwhile.
func (t *Tree[C]) Check() error {
	t.structure.Lock()
	defer t.structure.Unlock()
	c := checking[C]{t: t, next: t.first}
	root := t.root.Load()
	if err := c.node(uint32(root), int(root>>32), ^C(0), nil); err != nil {
		return err
	}
	if err := c.links(^C(0)); err != nil {
		return err
	}
	if c.next != nothing {
		return fmt.Errorf("the last leaf has a leaf to its right")
	}
	if n := t.Len(); c.entries != n {
		return fmt.Errorf("%d entries in leaves, %d counted", c.entries, n)
	}
	return c.memory()
}

// checking is the state of a Check.
type checking[C Code] struct {
	t       *Tree[C]
	entries int
	leaves  int
	uppers  int
	next    uint32 // leaf that must come next
	low     C      // keys up to here have been seen
	any     bool   // a leaf has been seen
}

// node checks a node whose keys go up to high.
func (c *checking[C]) node(x uint32, height int, high C, count *int64) error {
	if height == 0 {
		return c.leavesTo(x, high, count)
	}
	c.uppers++
	u, sum := c.t.upper(x), int64(0)
	n := int(u.info().children)
	if n < 1 || n > fanout {
		return fmt.Errorf("upper node %d has %d children", x, n)
	}
	if err := checkIndex[C](u.seps(), simd.RegularIndex[C](u.node)); err != nil {
		return fmt.Errorf("upper node %d: %w", x, err)
	}
	for i := range fanout {
		sep := u.seps()[i]
		if i >= n && sep != ^C(0) {
			return fmt.Errorf("upper node %d: unused separator %d is %d", x, i, sep)
		}
		if i < n && (i > 0 && sep <= u.seps()[i-1] || i == n-1 && sep != high) {
			return fmt.Errorf("upper node %d: separator %d of %d is %d, the node ends with %d", x, i, n, sep, high)
		}
		if i < n {
			if err := c.node(u.refs()[i], height-1, sep, &u.counts()[i]); err != nil {
				return err
			}
			sum += u.counts()[i]
		}
	}
	if count != nil && sum != *count {
		return fmt.Errorf("upper node %d counts %d entries, its parent %d", x, sum, *count)
	}
	return nil
}

// leavesTo checks leaf x, which must come next, and those to its right that no
// parent knows of yet, up to high.
func (c *checking[C]) leavesTo(x uint32, high C, count *int64) error {
	if x != c.next {
		return fmt.Errorf("leaf %d is below a parent, side links lead to %d", x, c.next)
	}
	counted := int64(0)
	for {
		l := c.t.leaf(c.next)
		counted += int64(l.info().counted)
		end := l.high()
		if err := c.leaf(c.next); err != nil {
			return fmt.Errorf("leaf %d: %w", c.next, err)
		}
		if end == high {
			break
		}
		if end > high || c.next == nothing {
			return fmt.Errorf("leaves below a parent end with %d, its separator is %d", end, high)
		}
	}
	if count != nil && *count != counted {
		return fmt.Errorf("leaf %d has been counted with %d entries, its parent says %d", x, counted, *count)
	}
	return nil
}

// links checks that side links lead to the end.
func (c *checking[C]) links(high C) error {
	if c.low != high {
		return fmt.Errorf("leaves end with %d", c.low)
	}
	return nil
}

// leaf checks one leaf.
func (c *checking[C]) leaf(x uint32) error {
	l := c.t.leaf(x)
	word, in, seps := l.loadWord(), l.info(), l.seps()
	if word&simd.WordBusy != 0 {
		return fmt.Errorf("word is %#x", word)
	}
	if in.owner != c.t.id {
		return fmt.Errorf("belongs to tree %d, not to %d", in.owner, c.t.id)
	}
	if first := !c.any; first != (in.first == 1) || !first && C(in.low) != c.low {
		return fmt.Errorf("low key %d (first %d), the leaf before ends with %d", in.low, in.first, c.low)
	}
	if err := checkIndex[C](seps, simd.RegularIndex[C](l.pilot)); err != nil {
		return err
	}
	n := 0
	for j := range lines {
		lo, bounded, hi := l.lineRange(j)
		if bounded && hi < lo {
			return fmt.Errorf("separator %d is %d, below %d", j, hi, lo)
		}
		m, err := checkLine(l.line(j), lo, bounded, hi)
		if err != nil {
			return fmt.Errorf("line %d: %w", j, err)
		}
		if full := m == linePairs[C](); full != (in.full>>j&1 == 1) {
			return fmt.Errorf("line %d has %d entries, full lines are %#x", j, m, in.full)
		}
		n += m
	}
	if n != simd.Entries(word) {
		return fmt.Errorf("%d entries, its word says %d", n, simd.Entries(word))
	}
	if in.dirty == 0 && int(in.counted) != n {
		return fmt.Errorf("%d entries, %d have been counted, and it is not noted", n, in.counted)
	}
	c.entries += n
	c.leaves++
	c.low, c.any, c.next = l.high(), true, in.next
	return nil
}

// checkLine checks a line, and returns the number of its entries.
func checkLine[C Code](line []C, lo C, bounded bool, hi C) (int, error) {
	half := len(line) / 2
	ks := line[:half]
	m := entriesIn(ks, lo, bounded, hi)
	for i := 1; i < half; i++ {
		switch {
		case m == 0 && ks[i] != ks[0]:
			return 0, fmt.Errorf("without entries, but %d differs from %d", ks[i], ks[0])
		case i < m && ks[i] <= ks[i-1]:
			return 0, fmt.Errorf("entry %d is %d, behind %d", i, ks[i], ks[i-1])
		case m > 0 && i >= m && (ks[i] != ks[m-1]):
			return 0, fmt.Errorf("place %d is %d, the last entry %d", i, ks[i], ks[m-1])
		}
	}
	if m > 0 && ks[m-1] > hi {
		return 0, fmt.Errorf("entry %d is above separator %d", ks[m-1], hi)
	}
	return m, nil
}

// checkIndex checks an index line against its separators.
func checkIndex[C Code](seps *[fanout]C, index []C) error {
	perLine := simd.LineBytes / width[C]()
	for i, k := range index {
		want := ^C(0)
		if at := (i+1)*perLine - 1; at < fanout-1 {
			want = seps[at]
		}
		if k != want {
			return fmt.Errorf("index %d is %d, want %d", i, k, want)
		}
	}
	return nil
}

// memory checks that no node is lost or used twice.
func (c *checking[C]) memory() error {
	t := c.t
	limbo, limboUppers := 0, 0
	for ref := range t.limbo.All {
		if ref&upperRef != 0 {
			limboUppers++
		} else {
			limbo++
		}
	}
	if kept := int(t.snapshots.kept.Load()); c.leaves+limbo+kept != t.leaves.inUse() {
		return fmt.Errorf("%d leaves in the tree, %d retired, %d kept for snapshots, %d in use", c.leaves, limbo, kept, t.leaves.inUse())
	}
	n, err := t.pieces()
	if err != nil {
		return err
	}
	if n != t.keeps.inUse() {
		return fmt.Errorf("%d pieces of kept states, %d in use", n, t.keeps.inUse())
	}
	if c.uppers+limboUppers != t.uppers.inUse() {
		return fmt.Errorf("%d upper nodes in the tree, %d retired, %d in use", c.uppers, limboUppers, t.uppers.inUse())
	}
	return nil
}

// pieces returns the number of pieces that incomplete states have, and an error
// if a leaf may be written anew of which the newest snapshot has no more than that.
func (t *Tree[C]) pieces() (n int, err error) {
	h := &t.snapshots
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, m := range h.all {
		m.mu.Lock()
		for x, st := range m.saved.all {
			for y := st.at; !st.whole && y != nothing; y = t.piece(y).more {
				n++
			}
			if in := t.leaf(x).info(); !st.whole && m == h.newest.Load() && !h.mustTakeOver(x) && in.epoch > m.epoch && in.missing == 0 && t.leaf(x).loadWord()&simd.WordDead == 0 {
				err = fmt.Errorf("leaf %d: nothing is missing of a state that is not whole", x)
			}
		}
		m.mu.Unlock()
	}
	return n, err
}

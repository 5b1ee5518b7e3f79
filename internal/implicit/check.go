package implicit

import (
	"fmt"
)

// Check walks through the whole tree and returns an error for the first thing
// that is not as it must be: order, separators, padding.
func (t *Tree[C]) Check() error {
	for i := 1; i < int(t.Tree.Len); i++ {
		if t.Key(i-1) > t.Key(i) {
			return fmt.Errorf("keys %d and %d are out of order: %d, %d", i-1, i, t.Key(i-1), t.Key(i))
		}
	}
	if err := t.checkLastLeaf(); err != nil {
		return err
	}
	children, under := t.leaves, 1 // nodes of the level below, leaves under each
	for l := t.Levels - 1; l >= 0; l-- {
		if want := (children + t.cfg.Fanout - 1) / t.cfg.Fanout; t.counts[l] != want {
			return fmt.Errorf("level %d has %d nodes, want %d", l, t.counts[l], want)
		}
		for x := range t.counts[l] {
			if err := t.checkNode(l, x, children, under); err != nil {
				return err
			}
		}
		children, under = t.counts[l], under*t.cfg.Fanout
	}
	if children != 1 && t.cfg.Inner == 0 {
		return fmt.Errorf("the root level has %d nodes", children)
	}
	return nil
}

func (t *Tree[C]) checkLastLeaf() error {
	if t.Tree.Len == 0 {
		return nil
	}
	last := t.line(t.Levels, t.leaves-1)
	greatest := t.Key(int(t.Tree.Len) - 1)
	for i := int(t.Tree.Len) - (t.leaves-1)*t.perLeaf(); i < t.perLeaf(); i++ {
		if last[i] != greatest {
			return fmt.Errorf("place %d of the last leaf is padded with %d, want %d", i, last[i], greatest)
		}
	}
	return nil
}

// checkNode compares the separators of a node with the greatest key under
// each child.
func (t *Tree[C]) checkNode(l, x, children, under int) error {
	for j, s := range t.line(l, x) {
		want := ^C(0)
		child := x*t.cfg.Fanout + j
		if j < t.cfg.Fanout-1 && child < children-1 {
			want = t.Key((child+1)*under*t.perLeaf() - 1)
		}
		if s != want {
			return fmt.Errorf("level %d, node %d: separator %d is %d, want %d", l, x, j, s, want)
		}
	}
	return nil
}

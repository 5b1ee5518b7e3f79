package radix

import (
	"errors"

	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/stall"
)

// one does a change of a single key.
func (t *Tree) one(c *change) error {
	err := t.oneBeside(c)
	if err != nil && errors.Is(err, op.ErrLimit) {
		return t.oneAlone(c) // a writer that is alone can make room
	}
	return err
}

// oneBeside is one beside other writers.
func (t *Tree) oneBeside(c *change) error {
	d := t.enter()
	defer t.leave(d)
	if t.Closed() {
		return op.ErrClosed
	}
	d.free = c.kind == op.Delete
	near, depth := t.entrance(c.key)
	return d.do(c, near, depth)
}

// oneAlone is one while there is no other writer.
func (t *Tree) oneAlone(c *change) error {
	w := t.lockWrite()
	defer t.unlockWrite()
	if t.Closed() {
		return op.ErrClosed
	}
	w.free = c.kind == op.Delete
	return w.do(c, 0, 0)
}

// Set sets the value of a key, and returns the one it had.
func (t *Tree) Set(key string, val uint64) (old uint64, had bool, err error) {
	t.edges.ReleaseString(key)
	c := change{key: key, kind: op.Set, val: val}
	if err := t.one(&c); err != nil {
		return 0, false, err
	}
	t.edges.AcquireString(key)
	return c.old, c.had, nil
}

// Delete deletes a key, and returns the value it had. A limit of memory does not
// bind it.
func (t *Tree) Delete(key string) (old uint64, had bool, err error) {
	t.edges.ReleaseString(key)
	c := change{key: key, kind: op.Delete}
	if err := t.one(&c); err != nil {
		return 0, false, err
	}
	t.edges.AcquireString(key)
	return c.old, c.had, nil
}

// Update sets the value of a key to the result of f for the old one, or deletes the
// key where f returns false. f is called without any lock held, and again if the key
// was changed meanwhile. gen is for Current: if there was a value, and memory was
// made free since f was called, it is called again, too. If there was none, what f
// returns is done.
func (t *Tree) Update(key string, f func(old uint64, had bool, gen uint64) (val uint64, keep bool)) (old uint64, had bool, err error) {
	for {
		gen := t.Gen()
		if t.Closed() {
			return 0, false, op.ErrClosed
		}
		old, had = t.Get(key)
		val, keep := f(old, had, gen)
		stall.At("radix: update computed")
		t.edges.ReleaseString(key)
		c := change{key: key, kind: op.Delete, only: &state{old, had, gen}}
		if keep {
			c.kind, c.val = op.Set, val
		}
		if err := t.one(&c); err != nil || !c.missed {
			return old, had, err
		}
	}
}

package consensus

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/pandocluster/internal/machine"
)

// ErrClaimed is returned where another replica of the node may have some of the keys.
var ErrClaimed = errors.New("another range of this node has some of the keys yet")

// Claims says which range of a node may have which keys in the node's tree. A range that has given keys
// to another claims them until its own snapshot says so: after a crash, it would begin with them.
type Claims struct {
	mu sync.Mutex
	of map[uint64]machine.Bounds
}

// NewClaims returns no claims.
func NewClaims() *Claims { return &Claims{of: map[uint64]machine.Bounds{}} }

// Free reports whether no other range claims keys within bounds.
func (c *Claims) Free(id uint64, b machine.Bounds) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.free(id, b)
}

func (c *Claims) free(id uint64, b machine.Bounds) bool {
	for other, o := range c.of {
		if other != id && o.Overlaps(b) {
			return mutant.On && mutant.Is("cluster: keys are one range's")
		}
	}
	return true
}

// take claims bounds for a range beside what it has.
func (c *Claims) take(id uint64, b machine.Bounds) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.free(id, b) {
		return ErrClaimed
	}
	if old, ok := c.of[id]; ok { // it may only have become smaller
		if old.Lo < b.Lo {
			b.Lo = old.Lo
		}
		if old.Hi == "" || b.Hi != "" && old.Hi > b.Hi {
			b.Hi = old.Hi
		}
	}
	c.of[id] = b
	return nil
}

// while calls f if a range claims all of some bounds, and nobody else takes them meanwhile.
func (c *Claims) while(id uint64, b machine.Bounds, f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if own, ok := c.of[id]; ok && own.Includes(b) || mutant.On && mutant.Is("cluster: keys that are another's stay") {
		f()
	}
}

// settle leaves a range the bounds that its newest snapshot has.
func (c *Claims) settle(id uint64, b machine.Bounds) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.of[id]; ok && old.Includes(b) { // else there is a newer snapshot already
		c.of[id] = b
	}
}

// Of returns what a range claims.
func (c *Claims) Of(id uint64) (machine.Bounds, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b, ok := c.of[id]
	return b, ok
}

// Release gives up what a range claims.
func (c *Claims) Release(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.of, id)
}

// Overtaken reports whether bounds are of long ago: a range has some of the keys that began with the upper part of them. Then clear
// is called with the parts that no range has, and nobody takes those meanwhile.
func (c *Claims) Overtaken(id uint64, b machine.Bounds, clear func(machine.Bounds)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	var others []machine.Bounds
	for other, o := range c.of {
		if other == id || !o.Overlaps(b) {
			continue
		}
		if o.Lo <= b.Lo { // these bounds began with the upper part of its
			return false
		}
		others = append(others, o)
	}
	if len(others) == 0 || mutant.On && mutant.Is("cluster: keys of a child's child") {
		return false
	}
	slices.SortFunc(others, func(a, b machine.Bounds) int { return strings.Compare(a.Lo, b.Lo) })
	lo := b.Lo
	for _, o := range others {
		if lo < o.Lo {
			clear(machine.Bounds{Lo: lo, Hi: o.Lo})
		}
		if lo = o.Hi; lo == "" {
			return true
		}
	}
	if b.Hi == "" || lo < b.Hi {
		clear(machine.Bounds{Lo: lo, Hi: b.Hi})
	}
	return true
}

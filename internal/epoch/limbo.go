package epoch

import (
	"sync/atomic"

	"github.com/pando-index/pando/internal/mutant"
)

// Limbo is references that are part of no tree and no snapshot any more, but that readers may
// still come across: they are free two generations after they were retired. A limbo has an owner,
// who guards it: a lock, or one writer.
type Limbo struct {
	// Added is the number of references that were added since the owner set it to 0.
	Added int

	tag  atomic.Uint64 // generation in which refs[0] were retired; refs[1] were before
	refs [2][]uint64
	ripe []uint64 // have waited long enough, and are many
}

// limboRoom is the number of references that a limbo keeps memory for, and that it frees at a
// time: some tens of microseconds, for which others wait for its owner.
const limboRoom = 1024

// Open prepares a limbo for Add: references that were taken out of the tree by now are then known
// to be retired in the present generation or before. free is called with references that have
// waited long enough, and may not keep the slice.
func (l *Limbo) Open(c *Clock, free func(refs []uint64)) {
	// The store that took a reference out of the tree comes before the look at the
	// generation, and with an exchange the machine keeps to that.
	l.tag.Store(l.tag.Load())
	l.Reap(c, free)
}

// Add adds a reference. The limbo was opened after it was taken out of the tree.
func (l *Limbo) Add(ref uint64) {
	l.refs[0] = append(l.refs[0], ref)
	l.Added++
}

// Reap calls free with references that were retired two generations ago. If they are many, the
// next calls get the others.
func (l *Limbo) Reap(c *Clock, free func(refs []uint64)) {
	if gen := c.Gen(); gen != l.tag.Load() {
		l.turn(gen, free)
	}
	if len(l.ripe) > 0 {
		l.pick(free)
	}
}

// turn is Reap for another generation than the last.
func (l *Limbo) turn(gen uint64, free func(refs []uint64)) {
	if gen-l.tag.Load() > 1 || mutant.On && mutant.Is("epoch: two generations") {
		l.ripen(0, free)
	}
	l.ripen(1, free)
	l.refs[0], l.refs[1] = l.refs[1], l.refs[0]
	l.tag.Store(gen)
}

// ripen frees the references of a list, or those that pick will.
func (l *Limbo) ripen(i int, free func(refs []uint64)) {
	refs := l.refs[i]
	switch {
	case len(refs) == 0:
	case len(refs) <= limboRoom:
		free(refs)
		l.refs[i] = refs[:0]
	case len(l.ripe) == 0:
		l.ripe, l.refs[i] = refs, nil
	default:
		l.ripe, l.refs[i] = append(l.ripe, refs...), nil
	}
}

// pick frees some of the many references that have waited long enough.
func (l *Limbo) pick(free func(refs []uint64)) {
	rest := max(0, len(l.ripe)-limboRoom)
	free(l.ripe[rest:])
	if l.ripe = l.ripe[:rest]; rest == 0 {
		l.ripe = nil
	}
}

// Ripe reports whether a limbo has references that have waited long enough.
func (l *Limbo) Ripe() bool { return len(l.ripe) > 0 }

// ReapAll is Reap for all such references.
func (l *Limbo) ReapAll(c *Clock, free func(refs []uint64)) {
	for l.Reap(c, free); l.Ripe(); {
		l.pick(free)
	}
}

// Empty reports whether a limbo has no references.
func (l *Limbo) Empty() bool { return len(l.refs[0])+len(l.refs[1])+len(l.ripe) == 0 }

// All yields the references.
func (l *Limbo) All(yield func(ref uint64) bool) {
	for _, refs := range [...][]uint64{l.refs[0], l.refs[1], l.ripe} {
		for _, ref := range refs {
			if !yield(ref) {
				return
			}
		}
	}
}

// Forget drops all references: their memory was given back as a whole.
func (l *Limbo) Forget() { l.refs, l.ripe = [2][]uint64{}, nil }

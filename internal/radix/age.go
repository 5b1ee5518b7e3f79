package radix

import (
	"github.com/pando-index/pando/internal/epoch"
)

// An epoch is counted by 64 bits, and goes up with each snapshot and each fork. Nodes
// and leaves have but 23 bits for the epoch in which they were made, as an age. An age
// is only ever compared with that of a snapshot: is it the same or before? So when
// ages have come to their end, they are dealt out anew: nodes not younger than the
// oldest snapshot get the least age, nodes between two snapshots the next one, and so
// on.
//
// Ages are either all in the lower half of the 23 bits or all in the upper one, and go
// to the other half when they are dealt out: so that shows which nodes have theirs.

// ageHalf is how many ages a half has. It is a variable for tests.
var ageHalf = uint32(1 << 22)

// nextAge begins an epoch, and returns the age of the last one.
func (t *Tree) nextAge() (last uint32) {
	t.NextEpoch()
	last = t.age
	if t.age++; t.age%ageHalf == 0 {
		t.age-- // still of the half that ends
		t.dealAges()
		last = t.age - 1
	}
	return last
}

// dealAges gives ages of the other half to all that has one, and to the present epoch
// one that is younger than all.
func (t *Tree) dealAges() {
	d := dealer{lower: t.age < ageHalf}
	if d.lower {
		d.first = ageHalf
	}
	for _, m := range t.moments {
		d.ages = append(d.ages, m.age)
	}
	d.deal(t.top.link)
	for i, m := range t.moments {
		d.deal(m.root)
		m.dead.Each(func(k *epoch.Kept) { k.Born = uint64(link(k.Ref).age()) })
		m.age = d.first + uint32(i) + 1
	}
	// A closed snapshot may have nodes that are not handed over yet, and that no other
	// has.
	for _, m := range t.ending {
		m.dead.Each(func(k *epoch.Kept) { k.Born = uint64(d.of(uint32(k.Born))) })
	}
	t.age = d.first + uint32(len(t.moments)) + 2
	t.thaw()
}

// dealer is how ages are dealt out anew.
type dealer struct {
	lower bool     // old ages are in the lower half
	first uint32   // age of the new half
	ages  []uint32 // old ones of snapshots
}

// of returns the new age for an old one: greater than those of snapshots that were
// before it.
func (d *dealer) of(age uint32) uint32 {
	n := d.first + 1
	for _, a := range d.ages {
		if a < age {
			n++
		}
	}
	return n
}

// deal gives new ages to all that a link leads to.
func (d *dealer) deal(l link) {
	switch {
	case l == 0 || l.age() < ageHalf != d.lower: // or others have come there
	case l.isLeaf():
		x := l.leaf()
		x.head = d.of(x.age())<<lengthBits | x.head&lengthMax
	default:
		h := l.header()
		h.meta = d.of(h.age())<<lengthBits | h.meta&lengthMax
		for b, to := atOrAfter(l, -1); to != 0; b, to = atOrAfter(l, b+1) {
			d.deal(to)
		}
	}
}

package bplus

import (
	"fmt"
	"sync/atomic"

	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
)

// Look returns the tree, level by level, as its upper nodes know it: some
// milliseconds per million leaves. Nobody waits for it: it is repeated where
// nodes were reused meanwhile, and made under the lock for structure if that
// happens again and again.
func (t *Tree[C]) Look() layout.Look {
	t.rw.RLock()
	defer t.rw.RUnlock()
	for range 8 {
		gen := t.Gen()
		if k := t.lookNow(); t.Current(gen) || t.Closed() {
			return k
		}
	}
	t.structure.Lock()
	defer t.structure.Unlock()
	return t.lookNow()
}

// look is the numbers of a tree's nodes, in order.
type look[C Code] struct {
	t     *Tree[C]
	refs  [][]uint32 // nodes of each level, the root's first
	first [][]int    // first child of each node of a level, and the number of all
}

func (t *Tree[C]) lookNow() *look[C] {
	root := t.root.Load()
	k := &look[C]{t: t, refs: [][]uint32{{uint32(root)}}}
	for range root >> 32 {
		here, first := k.refs[len(k.refs)-1], []int{0}
		var below []uint32
		for _, y := range here {
			u := t.upper(y)
			for i := range childrenOf(u) {
				below = append(below, atomic.LoadUint32(&u.refs()[i]))
			}
			first = append(first, len(below))
		}
		k.first, k.refs = append(k.first, first), append(k.refs, below)
	}
	return k
}

// childrenOf returns the number of an upper node's children: at least one, even
// if a late reader finds garbage there.
func childrenOf[C Code](u upper[C]) int { return max(1, min(int(u.info().children), fanout)) }

func (k *look[C]) height() int { return len(k.refs) - 1 }

func (k *look[C]) Levels() []layout.Level {
	var out []layout.Level
	for level, refs := range k.refs {
		l := layout.Level{Name: "upper", Nodes: len(refs), Bytes: simd.RegularUpper[C](), Room: fanout}
		if level == k.height() {
			l.Name, l.Bytes, l.Room = "leaves", simd.RegularBlock+simd.RegularPilot[C](), capacity[C]()
		}
		out = append(out, l)
	}
	return out
}

// span returns the leaves below nodes [from, to) of a level.
func (k *look[C]) span(level, from, to int) (first, end int) {
	for ; level < k.height(); level++ {
		from, to = k.first[level][from], k.first[level][to]
	}
	return from, to
}

func (k *look[C]) Node(level, i int) layout.Node {
	n := layout.Node{Entry: -1, Entries: -1, Link: -1}
	n.First, n.End = k.span(level, i, i+1)
	x := k.refs[level][i]
	if level == k.height() {
		k.leaf(&n, x, i)
		return n
	}
	n.Child = k.first[level][i]
	n.Children = k.first[level][i+1] - n.Child
	n.Used, n.Room, n.Name = n.Children, fanout, fmt.Sprint("upper node ", x)
	n.Entries = 0
	for _, c := range k.t.upper(x).counts()[:n.Children] {
		n.Entries += int(c) // as of the last count
	}
	return n
}

// leaf describes leaf x, which is the one numbered i.
func (k *look[C]) leaf(n *layout.Node, x uint32, i int) {
	l := k.t.leaf(x)
	word := l.loadWord()
	n.Used, n.Room, n.Name = min(simd.Entries(word), capacity[C]()), capacity[C](), fmt.Sprint("leaf ", x)
	n.Entries, n.State, n.Version = n.Used, stateOf(word), word>>simd.WordSequence
	right, leaves := uint32(nothing), k.refs[k.height()]
	if i+1 < len(leaves) {
		right, n.Link = leaves[i+1], i+1
	}
	const most = 16 // more are hardly ever on their way to the parent
	at := l.info().next
	for hops := 0; at != right && at != nothing && hops < most; hops++ {
		if !k.t.told(at) { // a leaf that came since the look is most often known by now
			n.Hops++
		}
		at = k.t.leaf(at).info().next
	}
}

// told reports whether upper nodes lead to leaf x.
func (t *Tree[C]) told(x uint32) bool {
	in := t.leaf(x).info()
	if in.first == 1 {
		return true
	}
	root := t.root.Load()
	at, key := uint32(root), C(in.low)+1
	for range root >> 32 {
		u := t.upper(at)
		at = atomic.LoadUint32(&u.refs()[below(u.seps()[:], key)])
	}
	return at == x
}

func stateOf(word uint64) layout.State {
	switch {
	case word&simd.WordDead != 0:
		return layout.Dead
	case word&simd.WordLocked != 0:
		return layout.Locked
	case word&simd.WordSealed != 0:
		return layout.Sealed
	}
	return layout.Free
}

func (k *look[C]) Over(level, i int) int {
	lo, hi := 0, len(k.refs[level])-1
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if first, _ := k.span(level, mid, mid+1); first <= i {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo
}

func (k *look[C]) Inside(level, i int) layout.Inside {
	x := k.refs[level][i]
	if level == k.height() {
		return k.t.insideLeaf(x)
	}
	u := k.t.upper(x)
	in := layout.Inside{PerLine: simd.LineBytes / width[C]()}
	for _, s := range u.seps()[:childrenOf(u)] {
		in.Keys = append(in.Keys, order.Probe{Code: uint64(s)})
	}
	return in
}

// insideLeaf returns the keys of leaf x as they are at one moment.
func (t *Tree[C]) insideLeaf(x uint32) layout.Inside {
	s := par.Get(t.scratches).ready()
	defer par.Put(t.scratches, s)
	t.rw.RLock()
	defer t.rw.RUnlock()
	l := t.leaf(x)
	for try := 0; ; try++ {
		word := l.loadWord()
		s.load(l)
		if word&simd.WordLocked == 0 && l.loadWord() == word || t.Closed() {
			return insideOf(s.copy)
		}
		simd.Wait(try)
	}
}

// insideOf returns the keys of a leaf that no writer can change.
func insideOf[C Code](l leaf[C]) layout.Inside {
	in := layout.Inside{Entries: true, PerLine: linePairs[C]()}
	var r run[C]
	l.unpack(&r)
	for _, key := range r.keys {
		in.Keys = append(in.Keys, order.Probe{Code: uint64(key)})
	}
	for j := range lines {
		in.Lines = append(in.Lines, l.entries(j))
	}
	i := l.info()
	in.Notes = append(in.Notes, fmt.Sprintf("Last changed in epoch %d, made in epoch %d.", i.changed(), i.born))
	if i.dirty == 1 {
		in.Notes = append(in.Notes, "Changed since its entries were last counted; the next rank counts them.")
	}
	return in
}

// mostHops is the greatest number of side links that are followed where the
// generation is not checked: links of memory that is used again may lead in
// circles.
const mostHops = 1 << 16

func (k *look[C]) Way(key order.Probe) []layout.Visit {
	var way []layout.Visit
	c, at := C(key.Code), 0
	for level := range k.height() {
		u := k.t.upper(k.refs[level][at])
		first := k.first[level]
		i := min(below(u.seps()[:], c), first[at+1]-first[at]-1)
		way = append(way, layout.Visit{Level: level, Node: at, Slot: i})
		at = first[at] + i
	}
	v := layout.Visit{Level: k.height(), Node: at}
	x := k.refs[k.height()][at]
	for hops := 0; k.t.leaf(x).high() < c && hops < mostHops; hops++ {
		next := k.t.leaf(x).info().next
		if next == nothing {
			break
		}
		x = next
		v.Note = fmt.Sprintf("the side link leads to leaf %d, which no parent knows of yet", x)
	}
	keys := k.t.insideLeaf(x).Keys
	for v.Slot < len(keys) && keys[v.Slot].Code < key.Code {
		v.Slot++
	}
	v.Found = v.Slot < len(keys) && keys[v.Slot].Code == key.Code
	return append(way, v)
}

// Pulse returns the tree's counts, and a sample of its leaves evenly over the
// keys. Writers pay nothing for it: a leaf's word counts its changes anyway.
func (t *Tree[C]) Pulse(sample int) layout.Pulse {
	k := t.Look().(*look[C])
	leaves := k.refs[k.height()]
	p := layout.Pulse{
		Entries: int64(t.Len()), Bytes: t.Bytes(), Kept: t.Kept(), Height: k.height(), Epoch: t.Epoch(), Generation: t.Gen(),
		Leaves: t.leaves.inUse(), Uppers: t.uppers.inUse(),
	}
	t.structure.Lock()
	p.Pending = len(t.pending)
	for range t.limbo.All {
		p.Retired++
	}
	t.structure.Unlock()
	for i := range t.dirty {
		d := &t.dirty[i]
		d.mu.Lock()
		p.Dirty += len(d.leaves)
		d.mu.Unlock()
	}
	n := min(sample, len(leaves))
	for i := range n {
		x := leaves[i*len(leaves)/n]
		word := t.leaf(x).loadWord()
		p.Sample = append(p.Sample, layout.Beat{ID: x, Version: word >> simd.WordSequence, Used: simd.Entries(word), State: stateOf(word)})
	}
	return p
}

// Look returns the snapshot, level by level: its directory over the leaves of its
// moment.
func (v *View[C]) Look() layout.Look {
	return layout.Stack(v.dir.(layout.Shown).Look(), func(i int) int { return i }, keptLeaves[C]{v})
}

// keptLeaves is a look at a snapshot's leaves alone.
type keptLeaves[C Code] struct{ v *View[C] }

func (k keptLeaves[C]) Levels() []layout.Level {
	return []layout.Level{{Name: "leaves", Nodes: len(k.v.refs), Bytes: simd.RegularBlock + simd.RegularPilot[C](), Room: capacity[C]()}}
}

func (k keptLeaves[C]) Node(_, i int) layout.Node {
	n := k.v.first[i+1] - k.v.first[i]
	return layout.Node{
		First: i, End: i + 1, Link: -1, Used: n, Room: capacity[C](), Entry: k.v.first[i], Entries: n,
		Name: fmt.Sprint("leaf ", k.v.refs[i]),
	}
}

func (k keptLeaves[C]) Over(_, i int) int { return i }

func (k keptLeaves[C]) Inside(_, i int) (in layout.Inside) {
	k.v.read(k.v.refs[i], func(l leaf[C], _ int) { in = insideOf(l) })
	return in
}

func (k keptLeaves[C]) Way(key order.Probe) []layout.Visit {
	at, _ := k.v.dir.Seek(C(key.Code))
	at = min(at, len(k.v.refs)-1)
	rank, _, equal := k.v.Seek(C(key.Code))
	return []layout.Visit{{Node: at, Slot: rank - k.v.first[at], Found: equal}}
}

package bplus

import (
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/simd"
)

// This file serves a mirror of the inner nodes: it has a walk over them while
// the tree changes, copies of single nodes, and searches that go on from places
// that the mirror has found. The inner nodes of the HB+-tree paper are upper
// nodes and pilots.
//
// A mirror may be of any age: the copy of a pilot has the leaf's word, and while
// the leaf has that word it has neither changed nor moved. Pilots are copied
// under the lock for structure, and only those that an upper node refers to: so
// a leaf that is still being filled is never among them.

// MirrorInfo is the second line of a mirrored pilot.
type MirrorInfo struct {
	Word, Low   uint64
	Leaf, First uint32
}

// Visitor gets the inner nodes that a walk comes to. It must not use the tree
// but for CopyUpper and CopyPilot.
type Visitor interface {
	// Upper is called with an upper node; bottom reports whether its children are
	// leaves.
	Upper(number uint32, bottom bool)
	Pilot(number uint32)
}

// Root returns the number of the root node and the levels of upper nodes.
func (t *Tree[C]) Root() (number, height uint32) {
	root := t.root.Load()
	return uint32(root), uint32(root >> 32)
}

// NodesInUse returns the number of chunks of upper nodes and of leaves that the
// tree has, and the number of leaves.
func (t *Tree[C]) NodesInUse() (upperChunks, leafChunks, leaves int) {
	return t.uppers.chunks(), t.leaves.chunks(), t.leaves.inUse()
}

// ChunkNodes returns the number of upper nodes, and of leaves, in a chunk: their
// numbers follow each other.
func ChunkNodes[C Code]() (uppers, leaves int) {
	l, u := pools[C]()
	return u.Slots(), l.Slots()
}

// Walk visits the leaves whose keys are from key on, some of them, and the upper
// nodes on the way to them, with the structure locked. It returns the key to go
// on from, and false if there is none.
func (t *Tree[C]) Walk(key C, most int, v Visitor) (next C, more bool) {
	t.structure.Lock()
	defer t.structure.Unlock()
	if t.Closed() {
		return 0, false
	}
	seen := make([]uint32, 0, 8) // the way that was visited last
	for n := 0; n < most; {
		path := t.path(key)
		if len(path) == 0 {
			v.Pilot(uint32(t.root.Load()))
			return 0, false
		}
		for d, s := range path {
			if d >= len(seen) || seen[d] != s.node {
				v.Upper(s.node, d == len(path)-1)
				seen = append(seen[:d], s.node)
			}
		}
		last := t.upper(path[len(path)-1].node)
		children := int(last.info().children)
		for _, x := range last.refs()[:children] {
			v.Pilot(x)
		}
		n += children
		if key = last.seps()[children-1]; key == ^C(0) {
			return 0, false
		}
		key++
	}
	return key, true
}

// UpperImage returns the size of a mirrored upper node in bytes, PilotImage that
// of a pilot.
func UpperImage[C Code]() int { return simd.RegularPilot[C]() + 4*fanout }
func PilotImage[C Code]() int { return simd.RegularPilot[C]() }

// CopyUpper copies the parts that a search reads of upper node y, which a walk
// has reported, and returns its references for the caller to change.
func (t *Tree[C]) CopyUpper(y uint32, dst []byte) (refs []uint32) {
	copy(dst[:UpperImage[C]()], unsafe.Slice((*byte)(t.upper(y).node), UpperImage[C]()))
	to := upper[C]{unsafe.Pointer(&dst[0])}
	*simd.RegularWord(to.node) = ^uint64(0) // no separators: they are below nothing
	*(*[simd.LineBytes / 8]uint64)(unsafe.Add(to.node, simd.LineBytes)) = [simd.LineBytes / 8]uint64{}
	return to.refs()[:]
}

// PilotWord returns the word of a leaf.
func (t *Tree[C]) PilotWord(x uint32) uint64 { return t.leaf(x).loadWord() }

// CopyPilot copies the parts that a search reads of pilot x, which a walk has
// reported, and returns the leaf's word. It returns false if the leaf is being
// changed.
func (t *Tree[C]) CopyPilot(x uint32, dst []byte) (word uint64, ok bool) {
	l := t.leaf(x)
	word = l.loadWord()
	if word&simd.WordBusy != 0 {
		return word, false
	}
	src := unsafe.Slice((*uint64)(l.pilot), PilotImage[C]()/8)
	to := unsafe.Slice((*uint64)(unsafe.Pointer(&dst[0])), len(src))
	for i := range src {
		to[i] = atomic.LoadUint64(&src[i])
	}
	if l.loadWord() != word {
		return word, false
	}
	copied := leaf[C]{pilot: unsafe.Pointer(&dst[0])}
	in := *copied.info()
	*copied.word() = ^uint64(0)
	*(*[simd.LineBytes / 8]uint64)(unsafe.Pointer(copied.info())) = [simd.LineBytes / 8]uint64{}
	*(*MirrorInfo)(unsafe.Pointer(copied.info())) = MirrorInfo{Word: word, Low: in.low, Leaf: x, First: in.first}
	return word, true
}

// GetPlaced sets vals[i] to the value of keys[i], or to 0, and found[i] to
// whether there is one: from the places that a mirror has found, and the words
// that leaves had then (simd.GetPlaced). Queries whose leaves have changed since
// begin at the root again. It returns the number of keys found, and of those
// that had to be repeated.
func (t *Tree[C]) GetPlaced(keys []C, places, words []uint64, vals []C, found []bool) (hits, stale int) {
	for lo := 0; lo < len(keys); lo += bucketKeys {
		hi := min(lo+bucketKeys, len(keys))
		h, s := t.getPlaced(keys[lo:hi], places[lo:hi], words[lo:hi], vals[lo:hi], found[lo:hi])
		hits, stale = hits+h, stale+s
	}
	return hits, stale
}

// getPlaced is GetPlaced for a bucket.
func (t *Tree[C]) getPlaced(keys []C, places, words []uint64, vals []C, found []bool) (hits, stale int) {
	t.rw.RLock()
	var again [bucketKeys]int32
	r := t.at
	r.Leaves = uint64(t.leaves.pool.Most()) // more than when the tree was made, if addresses are few
	hits, stale = simd.GetPlaced(&r, keys, places, words, vals, found, again[:])
	t.rw.RUnlock()
	t.edges.AcquireAll()
	if stale == 0 {
		return hits, 0
	}
	ks, vs, fs := make([]C, stale), make([]C, stale), make([]bool, stale)
	for j, i := range again[:stale] {
		ks[j] = keys[i]
	}
	hits += t.GetBatch(ks, vs, fs, 1, nil)
	for j, i := range again[:stale] {
		vals[i], found[i] = vs[j], fs[j]
	}
	return hits, stale
}

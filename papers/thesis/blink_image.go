package thesis

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/pando-index/pando/internal/simd"
)

// BlinkImage is a latched tree as it lies in memory (blink.h).
type BlinkImage[C simd.Code] struct {
	Order  int // pairs of a node
	Used   int // nodes
	Memory []byte
	NoRoom bool // an insert found no memory
	Lost   int  // nodes at the end at most, that were asked for when there was memory for others only
}

// blinkNode is one of its nodes.
type blinkNode[C simd.Code] struct {
	latch     bool
	level     int
	count     int
	low, high C
	next      int
	keys, val []C
}

const blinkHead = 32

// node decodes a node.
func (im *BlinkImage[C]) node(at int) (n blinkNode[C], err error) {
	var c C
	size := int(unsafe.Sizeof(c))
	bytes := blinkHead + 2*im.Order*size
	if at < 0 || at >= im.Used || len(im.Memory) < (at+1)*bytes {
		return n, fmt.Errorf("node %d of %d", at, im.Used)
	}
	m := im.Memory[at*bytes : (at+1)*bytes]
	word := binary.LittleEndian.Uint64(m)
	n.latch, n.level, n.count = word&1 != 0, int(word>>1&31), int(word>>6&1023)
	if n.latch || n.count > im.Order {
		return n, fmt.Errorf("node %d: latched %v, %d pairs", at, n.latch, n.count)
	}
	read := func(at int) C {
		if size == 4 {
			return C(binary.LittleEndian.Uint32(m[at:]))
		}
		return C(binary.LittleEndian.Uint64(m[at:]))
	}
	n.low, n.high, n.next = read(24), read(8), int(binary.LittleEndian.Uint32(m[16:]))
	for i := range n.count {
		n.keys = append(n.keys, read(blinkHead+i*size))
		n.val = append(n.val, read(blinkHead+(im.Order+i)*size))
	}
	return n, nil
}

// blinkWalk is a walk over a tree in key order.
type blinkWalk[C simd.Code] struct {
	im         *BlinkImage[C]
	due        [32]int  // by level: the node that the last one links to
	seen       [32]bool // by level: there is a last one
	met        int      // nodes
	begun      bool     // low counts
	low        C        // the high key of the last leaf
	keys, vals []C
}

// Check looks at every node that can be reached, and returns all entries in
// order: no latch is taken, keys ascend and stay between those of the parents,
// side links lead to the neighbour on each level, and no node is lost that need
// not be.
func (im *BlinkImage[C]) Check() (keys, vals []C, err error) {
	w := &blinkWalk[C]{im: im}
	root, err := im.node(0)
	if err != nil {
		return nil, nil, err
	}
	if err := w.visit(0, root.level, 0, ^C(0)); err != nil {
		return nil, nil, err
	}
	for level, at := range w.due {
		if at != 0 {
			return nil, nil, fmt.Errorf("level %d: the last node links to %d", level, at)
		}
	}
	if w.met > im.Used || w.met < im.Used-im.Lost {
		return nil, nil, fmt.Errorf("%d nodes of %d are in the tree", w.met, im.Used)
	}
	return w.keys, w.vals, nil
}

// visit walks over a node and the nodes below it.
func (w *blinkWalk[C]) visit(at, level int, low, high C) error {
	n, err := w.im.node(at)
	if err != nil {
		return err
	}
	if w.seen[level] && w.due[level] != at {
		return fmt.Errorf("node %d: the one before it links to %d", at, w.due[level])
	}
	w.met++
	w.seen[level], w.due[level] = true, n.next
	if n.level != level || n.low != low || n.high != high {
		return fmt.Errorf("node %d: level %d, keys from %d to %d, want %d, %d and %d", at, n.level, n.low, n.high, level, low, high)
	}
	if level == 0 {
		return w.leaf(at, n)
	}
	if n.count == 0 || n.keys[n.count-1] != high {
		return fmt.Errorf("node %d: %d separators %v, want %d as the last", at, n.count, n.keys, high)
	}
	for i, child := range n.val {
		if i > 0 && n.keys[i] <= n.keys[i-1] {
			return fmt.Errorf("node %d: separators %v", at, n.keys)
		}
		if err := w.visit(int(child), level-1, low, n.keys[i]); err != nil {
			return err
		}
		low = n.keys[i] + 1
	}
	return nil
}

func (w *blinkWalk[C]) leaf(at int, n blinkNode[C]) error {
	for i, k := range n.keys {
		if w.begun && k <= w.low || k > n.high || i > 0 && k <= n.keys[i-1] {
			return fmt.Errorf("leaf %d: keys %v, want them above %d and up to %d", at, n.keys, w.low, n.high)
		}
	}
	w.begun, w.low = true, n.high
	w.keys, w.vals = append(w.keys, n.keys...), append(w.vals, n.val...)
	return nil
}

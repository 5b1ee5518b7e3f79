package radix

import (
	"sync"

	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/par"
)

// promise makes sure that there is memory for a batch: a leaf for each key, and
// for each a node that is put above others or in the place of a full one. Of these
// no more can be than there are nodes that may become full, unless others write beside
// it: w is nil then.
func (t *Tree) promise(w *writer, o *Ops) error {
	if o.Kinds == nil && o.Kind == op.Delete {
		return nil
	}
	want, bytes := t.wanted(o, w == nil)
	if !t.fits(bytes) && (w == nil || !t.makeRoom(w, bytes)) {
		return op.ErrLimit
	}
	m := t.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	for class := node2; class < classes; class++ {
		if want[class] == 0 {
			continue
		}
		if err := m.slots[class].Promise(want[class]); err != nil {
			m.unpromise()
			return err
		}
	}
	return nil
}

// wanted returns how many slots a batch may take, and how many bytes with its long keys.
func (t *Tree) wanted(o *Ops, beside bool) (want [classes]int, bytes int64) {
	n, want, bytes := o.leaves()
	for kind := node2; kind <= node256; kind++ {
		switch {
		case o.Kinds != nil:
			want[kind] = len(o.Keys) // a delete may take one, too
		case kind == node2 || beside:
			want[kind] = n
		default:
			want[kind] = min(n, t.usedOf(kind-1)+n/opsToGrow[kind-1])
		}
	}
	for class := node2; class < classes; class++ {
		if want[class] > 0 && t.limit.Load() == 0 {
			want[class] += stockSlots * mostDesks() // that the batch may have at hand
		}
		bytes += int64(want[class]) * int64(sizeOf(class))
	}
	return want, bytes
}

// leaves returns how many keys a batch sets, how many leaves of each class that takes, and
// the bytes of its long keys.
func (o *Ops) leaves() (n int, want [classes]int, bytes int64) {
	const piece = 1 << 14
	var mu sync.Mutex
	par.Run(o.Workers, (len(o.Keys)+piece-1)/piece, par.Func(func(p int) {
		var some [classes]int
		sets, long := 0, int64(0)
		for i := p * piece; i < min((p+1)*piece, len(o.Keys)); i++ {
			if o.kind(i) != op.Set {
				continue
			}
			sets++
			key := o.Keys[i]
			if some[leafClass(len(key))]++; len(key) > mostShort {
				long += int64(len(key))
			}
		}
		mu.Lock()
		defer mu.Unlock()
		n += sets
		bytes += long
		for class, count := range some {
			want[class] += count
		}
	}))
	return n, want, bytes
}

func (m *memory) usedOf(class int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.slots[class].Used()
}

// opsToGrow is how many inserts at least it takes to make a node of a type that
// was not there, and to make it give way to a larger one.
var opsToGrow = [...]int{node2: 2, node5: 4, node12: 8, node21: 10, node48: 28}

// unpromise takes back the rest of a promise.
func (t *Tree) unpromise() {
	t.memory.mu.Lock()
	defer t.memory.mu.Unlock()
	t.memory.unpromise()
}

func (m *memory) unpromise() {
	for class := range m.slots {
		if n := m.slots[class].Promised(); n > 0 {
			m.slots[class].Unpromise(n)
		}
	}
}

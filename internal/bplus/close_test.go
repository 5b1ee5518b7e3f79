package bplus

import (
	"testing"
	"time"

	"github.com/pando-index/pando/internal/op"
)

// A reader who begins after Close, because it looked whether the tree is open a
// moment before, ends: what was the tree's memory may lead in circles, and the
// generation that the reader has taken does not change any more.
func TestReadAfterClose(t *testing.T) {
	t.Run("32", readAfterClose[uint32])
	t.Run("64", readAfterClose[uint64])
}

func readAfterClose[C Code](t *testing.T) {
	tree, err := New[C](0)
	if err != nil {
		t.Fatal(err)
	}
	for i := C(0); i < 3000; i++ {
		if _, _, err := tree.Set(i*7, i); err != nil {
			t.Fatal(err)
		}
	}
	tree.Close()
	// The first leaf becomes what zeroed memory can be: one without keys of its
	// own, whose side link leads to itself.
	x, l, err := tree.takeLeaf(false)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.freeLeaf(x)
	*l.info() = info{next: x}
	l.pack(run[C]{}, 0)
	tree.revive(l, 0)
	tree.root.Store(uint64(x))

	const key = 77
	tree.Get(key)
	tree.GetBatch([]C{key, key + 1}, make([]C, 2), nil, 1, nil)
	tree.Rank(key, false)
	tree.At(5)
	for _, down := range []bool{false, true} {
		c := tree.cursor(key, down)
		if k, v, ok := c.Next(); ok {
			t.Errorf("a cursor returns %d, %d after Close", k, v)
		}
		c.Done()
	}
	tree.Scan(0, key, true, func(keys, vals []C) {})
	tree.Look()
	if _, _, err := tree.Set(key, 1); err != op.ErrClosed {
		t.Errorf("Set returns %v after Close", err)
	}
	if _, _, err := tree.Delete(key); err != op.ErrClosed {
		t.Errorf("Delete returns %v after Close", err)
	}
}

// A batch that has begun is done whole before the tree is closed.
func TestBatchBesideClose(t *testing.T) {
	tree, err := New[uint64](0)
	if err != nil {
		t.Fatal(err)
	}
	tree.Set(0, 7)
	closed := make(chan bool)
	// The first operation is a Get, during which somebody closes the tree.
	const n = 3 * pieceOps
	ops := &Ops[uint64]{Keys: make([]uint64, n), Vals: make([]uint64, n), Old: make([]uint64, n), Found: make([]bool, n), Kinds: make([]op.Kind, n)}
	for i := range uint64(n) {
		ops.Keys[i], ops.Kinds[i] = i, op.Set
	}
	ops.Kinds[0] = op.Get
	ops.Seen = func(int, uint64) {
		go func() {
			tree.Close()
			close(closed)
		}()
		for end := time.Now().Add(100 * time.Millisecond); !tree.Closed() && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
	}
	if err := tree.Apply(ops, 1); err != nil {
		t.Errorf("a batch that has begun returns %v", err)
	}
	<-closed
	if err := tree.Apply(ops, 1); err != op.ErrClosed {
		t.Errorf("after Close a batch returns %v", err)
	}
}

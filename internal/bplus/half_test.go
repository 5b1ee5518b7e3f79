package bplus

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/epoch"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/stall"
)

// A batch in whose midst a snapshot is taken, and for which memory fails then, says that it is
// half done.
func TestHalfBatch(t *testing.T) {
	if !stall.On {
		t.Skip("needs the build tag stalls")
	}
	t.Cleanup(epoch.SetPace(time.Hour))
	tree, err := New[uint64](0)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	const n = 40000
	ops := &Ops[uint64]{Kind: op.Set}
	for i := range uint64(n) {
		ops.Keys, ops.Vals = append(ops.Keys, 4*i), append(ops.Vals, 1)
	}
	if err := tree.Apply(ops, 1); err != nil {
		t.Fatal(err)
	}
	var done atomic.Bool
	var snap *Snapshot[uint64]
	t.Cleanup(stall.Use(func(p string) {
		if p == "batch: leaf read" && !done.Swap(true) {
			snap, _ = tree.Snapshot()
			tree.leaves.deny = func() bool { return true }
			tree.keeps.deny = func() bool { return true }
		}
	}))
	more := &Ops[uint64]{Kind: op.Set}
	for i := uint64(0); i < n; i += 2 {
		more.Keys, more.Vals = append(more.Keys, 4*i+1), append(more.Vals, 2)
	}
	more.Old, more.Found = make([]uint64, len(more.Keys)), make([]bool, len(more.Keys))
	err = tree.Apply(more, 1)
	if set := tree.Len() - n; err == nil || !more.Half || set == 0 || set == len(more.Keys) {
		t.Errorf("%v, half: %t; %d keys of %d are set", err, more.Half, set, len(more.Keys))
	}
	tree.leaves.deny, tree.keeps.deny = nil, nil
	if err := tree.Apply(more, 1); err != nil || more.Half || tree.Len() != n+len(more.Keys) {
		t.Errorf("%v, half: %t; %d keys are set", err, more.Half, tree.Len()-n)
	}
	snap.Close()
}

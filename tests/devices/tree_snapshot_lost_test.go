package devices_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/index/indextest"
	"github.com/pando-index/pando/internal/seed"
)

// said is what a method said of its GPU: the error that it returned, or what it
// panicked with.
type said struct {
	panicked any
	err      error
}

func saidBy(f func() error) (s said) {
	defer func() { s.panicked = recover() }()
	return said{err: f()}
}

// askAll calls methods of a tree on a GPU alone, and of its snapshot. Those that
// can return an error must not panic; the others may, and say then that the GPU
// is lost, or short of memory.
func askAll(t *testing.T, tree *pando.Tree[uint64, uint64], snap *pando.Frozen[uint64, uint64]) (failures int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tree")
	vals, found := make([]uint64, 2), make([]bool, 2)
	returning := map[string]func() error{
		"Tree.Set":         func() error { return tree.Set(1, 2) },
		"Tree.Update":      func() error { return tree.Update(1, func(old uint64, _ bool) (uint64, bool) { return old + 1, true }) },
		"Tree.SetBatch":    func() error { return tree.SetBatch([]uint64{5, 6}, []uint64{7, 8}) },
		"Tree.Apply":       func() error { return tree.Apply([]pando.Op{pando.OpGet, pando.OpSet}, []uint64{3, 4}, vals, found) },
		"Tree.Save":        func() error { return tree.Save(path) },
		"Tree.WriteTo":     func() error { _, err := tree.WriteTo(io.Discard); return err },
		"Tree.Freeze":      func() error { f, err := tree.Freeze(); return closed(f, err) },
		"Snapshot.Save":    func() error { return snap.Save(path) },
		"Snapshot.WriteTo": func() error { _, err := snap.WriteTo(io.Discard); return err },
	}
	for name, f := range returning {
		s := saidBy(f)
		if s.panicked != nil {
			t.Errorf("%s panics: %v", name, s.panicked)
		}
		if s.err != nil {
			failures++
			if !errors.Is(s.err, pando.ErrDeviceLost) && !errors.Is(s.err, pando.ErrOutOfMemory) {
				t.Errorf("%s: %v", name, s.err)
			}
		}
	}
	for name, f := range map[string]func(){
		"Tree.GetBatch":     func() { tree.GetBatch([]uint64{1, 2}, vals, found) },
		"Snapshot.Get":      func() { snap.Get(1) },
		"Snapshot.GetBatch": func() { snap.GetBatch([]uint64{1, 2}, vals, found) },
		"Snapshot.Rank":     func() { snap.Rank(7) },
		"Snapshot.All":      func() { snap.All()(func(uint64, uint64) bool { return true }) },
	} {
		if s := saidBy(func() error { f(); return nil }); s.panicked != nil {
			failures++
			if text := fmt.Sprint(s.panicked); !strings.Contains(text, "pando: ") || !strings.Contains(text, "GPU") {
				t.Errorf("%s panics: %v", name, text)
			}
		}
	}
	return failures
}

func closed(f *pando.Frozen[uint64, uint64], err error) error {
	if err != nil {
		return err
	}
	return f.Close()
}

// Whatever operation fails of a GPU that alone holds a tree and its snapshots:
// methods return an error where they can, and Close works for both, in either
// order.
func TestSnapshotsOfALostGPU(t *testing.T) {
	indextest.Quiet(t)
	first := seed.Of(t)
	eachFault(t, first, 4, 12, func(dev device.Device, at, all int, lose bool) {
		indextest.PreferCPU(t, false)
		indextest.UseGPU(t, func(int) (device.Device, error) { return dev, nil })
		rng := rand.New(rand.NewPCG(first, 3))
		tree, err := pando.NewTree[uint64, uint64](pando.On(pando.GPU(0)), pando.DeviceOnly())
		if err != nil {
			return
		}
		keys := make([]uint64, 100)
		for i := range keys {
			keys[i] = rng.Uint64N(1000)
		}
		if err := tree.SetBatch(keys, keys); err != nil {
			tree.Close()
			return
		}
		var snap *pando.Frozen[uint64, uint64]
		if saidBy(func() error { snap = tree.Snapshot(); return nil }).panicked != nil {
			tree.Close()
			return
		}
		failures := askAll(t, tree, snap)
		if failures == 0 && at > 0 && lose && at < all/2 {
			t.Errorf("the GPU is lost at operation %d of %d, and nobody says so", at, all)
		}
		tree.Stats()
		snap.Stats()
		closers := []io.Closer{tree, snap}
		if at%2 == 0 {
			closers = []io.Closer{snap, tree}
		}
		for _, c := range closers {
			if s := saidBy(c.Close); s != (said{}) {
				t.Errorf("Close: %v, %v", s.err, s.panicked)
			}
		}
	})
}

package pando_test

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/seed"
)

// treeOfWords returns a tree of strings, and the model of it.
func treeOfWords(t *testing.T, n int) (*pando.Tree[string, uint64], *facetest.Model[string, uint64]) {
	t.Helper()
	rng := seed.Rand(t)
	m := &treeModel[string, uint64]{}
	keys, vals := make([]string, n), make([]uint64, n)
	for i := range keys {
		keys[i], vals[i] = fmt.Sprintf("%x/%c", rng.IntN(n), 'a'+rng.IntN(3)), rng.Uint64()
		m.set(keys[i], vals[i])
	}
	tree, err := pando.TreeOf(keys, vals, pando.Workers(2))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	return tree, &facetest.Model[string, uint64]{Keys: m.keys, Vals: m.vals, Same: same[uint64]}
}

func TestTreeOfStringsByBytes(t *testing.T) {
	tree, m := treeOfWords(t, 2000)
	snap := tree.Snapshot()
	defer snap.Close()
	for i, k := range m.Keys {
		if v, ok := tree.GetBytes([]byte(k)); v != m.Vals[i] || !ok || !tree.HasBytes([]byte(k)) || tree.RankBytes([]byte(k)) != i {
			t.Fatalf("%q: %d, %t", k, v, ok)
		}
		if v, ok := snap.GetBytes([]byte(k)); v != m.Vals[i] || !ok || snap.RankBytes([]byte(k)) != i {
			t.Fatalf("snapshot: %q: %d, %t", k, v, ok)
		}
	}
	var data []byte
	offsets := []int32{0}
	for _, k := range m.Keys {
		data = append(data, k...)
		offsets = append(offsets, int32(len(data)))
	}
	for name, get := range map[string]func([]byte, []int32, []uint64, []bool) int{"tree": tree.GetBatchBytes, "snapshot": snap.GetBatchBytes} {
		vals, found := make([]uint64, len(m.Keys)), make([]bool, len(m.Keys))
		if hits := get(data, offsets, vals, found); hits != len(vals) || !slices.Equal(vals, m.Vals) || slices.Contains(found, false) {
			t.Errorf("%s: %d of %d found by bytes", name, hits, len(vals))
		}
	}
	key := []byte("new")
	if err := tree.SetBytes(key, 7); err != nil {
		t.Fatal(err)
	}
	key[0] = 'x' // the tree has a copy
	if v, ok := tree.Get("new"); v != 7 || !ok {
		t.Errorf("Get = %d, %t", v, ok)
	}
	for _, ix := range []pando.Index[string, uint64]{tree, snap} {
		c := ix.Cursor()
		c.First()
		if got := c.AppendKey([]byte("> ")); string(got) != "> "+m.Keys[0] {
			t.Errorf("AppendKey = %q", got)
		}
	}
}

func TestTreeOfStringsPrefix(t *testing.T) {
	tree, m := treeOfWords(t, 2000)
	snap := tree.Snapshot()
	defer snap.Close()
	for _, p := range []string{"", "1", "12", "3f/", "3f/a", "3f/ab", "zz", "\xff"} {
		for _, ix := range []pando.Index[string, uint64]{tree, snap} {
			if err := facetest.CheckPrefix(ix, m, p); err != nil {
				t.Error(err)
			}
		}
	}
	if s := tree.Stats(); s.Layout != pando.Radix || s.Len != len(m.Keys) || s.TotalBytes == 0 {
		t.Errorf("%+v", s)
	}
	if s := snap.Stats(); s.Layout != pando.Radix {
		t.Errorf("%+v", s)
	}
}

func TestTreeOfStringsFile(t *testing.T) {
	tree, m := treeOfWords(t, 5000)
	path := filepath.Join(t.TempDir(), "tree")
	if err := tree.Save(path); err != nil {
		t.Fatal(err)
	}
	back, err := pando.OpenTree[string, uint64](path)
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	if err := m.Sequence(back.All(), 0, len(m.Keys), len(m.Keys)); err != nil {
		t.Error(err)
	}
	var buf bytes.Buffer
	if _, err := tree.WriteTo(&buf); err != nil {
		t.Fatal(err)
	}
	read, err := pando.ReadBytes[string, uint64](buf.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	if err := m.Sequence(read.All(), 0, len(m.Keys), len(m.Keys)); err != nil {
		t.Error(err)
	}
}

func TestTreeOfStringsRefuses(t *testing.T) {
	tree, err := pando.NewTree[string, uint64](pando.MemoryLimit(50_000), pando.Layout(pando.Radix))
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	keys := make([]string, 5000)
	for i := range keys {
		keys[i] = fmt.Sprint(i)
	}
	if err := tree.SetBatch(keys, make([]uint64, len(keys))); !errors.Is(err, pando.ErrMemoryLimit) || tree.Len() != 0 {
		t.Errorf("batch over the limit: %v, %d entries", err, tree.Len())
	}
	n := 0
	for err = nil; err == nil; n++ {
		err = tree.Set(keys[n], 1)
	}
	if !errors.Is(err, pando.ErrMemoryLimit) || tree.Len() != n-1 || n < 500 {
		t.Errorf("after %d of %d: %v", tree.Len(), n, err)
	}
	tree.Close()
	if err := tree.SetBytes([]byte("a"), 1); !errors.Is(err, pando.ErrClosed) {
		t.Errorf("SetBytes after Close: %v", err)
	}
	numbers, err := pando.NewTree[uint64, uint64]()
	if err != nil {
		t.Fatal(err)
	}
	defer numbers.Close()
	for _, call := range []func(){func() { numbers.Prefix(1) }, func() { numbers.GetBytes(nil) }, func() { numbers.PrefixCount(1) }} {
		if text := facetest.PanicOf(call); text == "" {
			t.Error("numbers taken for strings")
		}
	}
}

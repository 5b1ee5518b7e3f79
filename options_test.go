package pando_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pando-index/pando"
)

// A function that does not use an option refuses it, by its name, and makes nothing.
func TestOptionsThatAreNotUsed(t *testing.T) {
	keys := []uint64{1, 2, 3}
	path := filepath.Join(t.TempDir(), "index")
	f, err := pando.Freeze(keys, keys)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Save(path); err != nil {
		t.Fatal(err)
	}
	tree, err := pando.NewTree[uint64, uint64]()
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	type closer interface{ Close() error }
	doors := map[string]func(o pando.Option) (closer, error){
		"Freeze":       func(o pando.Option) (closer, error) { return pando.Freeze(keys, keys, o) },
		"FreezeSeq":    func(o pando.Option) (closer, error) { return pando.FreezeSeq(f.All(), o) },
		"FreezeMerge":  func(o pando.Option) (closer, error) { return pando.FreezeMerge[uint64, uint64](f, f, o) },
		"Tree.Freeze":  func(o pando.Option) (closer, error) { return tree.Freeze(o) },
		"Open":         func(o pando.Option) (closer, error) { return pando.Open[uint64, uint64](path, o) },
		"NewTree":      func(o pando.Option) (closer, error) { return pando.NewTree[uint64, uint64](o) },
		"TreeOf":       func(o pando.Option) (closer, error) { return pando.TreeOf(keys, keys, o) },
		"TreeOf, back": func(o pando.Option) (closer, error) { return pando.TreeOf([]uint64{2, 1}, keys[:2], o) },
		"OpenTree":     func(o pando.Option) (closer, error) { return pando.OpenTree[uint64, uint64](path, o) },
	}
	const freezing, opening, trees, treeOpening = "Freeze FreezeSeq FreezeMerge Tree.Freeze", "Open", "NewTree TreeOf", "OpenTree"
	for _, c := range []struct {
		name   string
		option pando.Option
		by     string // what uses it
	}{
		{"Verified", pando.Verified(), opening + " " + treeOpening},
		{"HugePages", pando.HugePages(pando.SmallPages), freezing},
		{"ResponseTime", pando.ResponseTime(time.Second), freezing + " " + opening},
		{"Context", pando.Context(context.Background()), freezing},
		{"Note", pando.Note("a"), freezing + " " + opening + " " + trees + " " + treeOpening},
		{"Workers", pando.Workers(2), freezing + " " + opening + " " + trees + " " + treeOpening},
		{"DeviceMemory", pando.DeviceMemory(1 << 20), freezing + " " + opening + " " + trees + " " + treeOpening},
		{"MemoryLimit", pando.MemoryLimit(1 << 30), freezing + " " + opening + " " + trees + " " + treeOpening},
		{"On", pando.On(pando.CPU), freezing + " " + opening + " " + trees + " " + treeOpening},
	} {
		for door, make := range doors {
			made, err := make(c.option)
			family, _, _ := strings.Cut(door, ",")
			switch uses := strings.Contains(" "+c.by+" ", " "+family+" "); {
			case uses && err != nil:
				t.Errorf("%s(%s): %v", door, c.name, err)
			case uses:
				made.Close()
			case !errors.Is(err, pando.ErrOption) || !strings.Contains(err.Error(), c.name):
				t.Errorf("%s(%s): %v", door, c.name, err)
			}
		}
	}
	for _, door := range []string{"Freeze", "FreezeSeq", "Open", "Tree.Freeze"} {
		if _, err := doors[door](pando.DeviceOnly()); !errors.Is(err, pando.ErrOption) {
			t.Errorf("%s(DeviceOnly): %v", door, err)
		}
	}
}

// The note of a tree is that of its snapshots, copies and files, and a tree that is
// opened has its file's, unless another is given.
func TestNoteOfATree(t *testing.T) {
	dir := t.TempDir()
	noted := func(s interface{ Save(string) error }) string {
		path := filepath.Join(dir, "noted")
		if err := s.Save(path); err != nil {
			t.Fatal(err)
		}
		info, err := pando.Inspect(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Note
	}
	must := func(tree *pando.Tree[string, uint64], err error) *pando.Tree[string, uint64] {
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { tree.Close() })
		return tree
	}
	tree := must(pando.NewTree[string, uint64](pando.Note("first")))
	tree.Set("a", 1)
	snap := tree.Snapshot()
	defer snap.Close()
	frozen, err := tree.Freeze()
	if err != nil {
		t.Fatal(err)
	}
	defer frozen.Close()
	other, err := tree.Freeze(pando.Note("second"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for want, s := range map[string][]interface{ Save(string) error }{"first": {tree, snap, frozen}, "second": {other}} {
		for i, s := range s {
			if got := noted(s); got != want {
				t.Errorf("file %d has the note %q, want %q", i, got, want)
			}
		}
	}
	path := filepath.Join(dir, "tree")
	if err := tree.Save(path); err != nil {
		t.Fatal(err)
	}
	if got := noted(must(pando.OpenTree[string, uint64](path))); got != "first" {
		t.Errorf("opened, and saved again, it has the note %q", got)
	}
	if got := noted(must(pando.OpenTree[string, uint64](path, pando.Note("third")))); got != "third" {
		t.Errorf("opened with another, and saved again, it has the note %q", got)
	}
}

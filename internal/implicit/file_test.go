package implicit

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/files"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
)

// mapped writes segments to a file, each on a page of its own behind a first
// page of something else, and maps it. change may spoil them.
func mapped(t *testing.T, segments [][]byte, slack int, change func([]byte)) *arena.Block {
	t.Helper()
	file := bytes.Repeat([]byte{0xee}, 4096)
	var parts []arena.Part
	for _, s := range segments {
		parts = append(parts, arena.Part{Offset: len(file), Size: len(s)})
		file = append(file, s...)
		file = append(file, make([]byte, -len(file)&4095)...)
	}
	change(file)
	path := filepath.Join(t.TempDir(), "tree")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := arena.Map(f, int64(len(file)), parts, slack, 0)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func untouched([]byte) {}

// A tree over a file is the tree that was written, at every fanout.
func TestOpenedTree(t *testing.T) {
	t.Run("32 bits", openedTree[uint32])
	t.Run("64 bits", openedTree[uint64])
}

func openedTree[C simd.Code](t *testing.T) {
	rng := seed.Rand(t)
	for _, cfg := range configs[C]() {
		for _, n := range sizes(simd.LineBytes/keyBytes[C]()/2, cfg.Fanout) {
			if n > 100 && rng.IntN(3) > 0 {
				continue
			}
			keys := keySets[C](n, rng)["random"]
			built := build(t, keys, cfg)
			plan, err := Plan[C](n, cfg)
			if err != nil || plan.Levels != built.Levels || plan.Fanout != cfg.Fanout {
				t.Fatalf("%+v, %v", plan, err)
			}
			b := mapped(t, built.Segments(), plan.Slack, untouched)
			tree, err := Open[C](n, cfg, b)
			if err != nil {
				t.Fatal(err)
			}
			if err := tree.Check(); err != nil {
				t.Fatal(err)
			}
			if err := compare(tree, keys, probes(keys, rng)); err != nil {
				t.Fatalf("%v, fanout %d, %d keys: %v", cfg.Leaves, cfg.Fanout, n, err)
			}
			all, vals := tree.Memory()
			if &all[0] != &b.Memory()[0] || tree.hasColumn() && n > 0 && !bytes.Equal(all[vals:vals+n*cfg.ValSize], built.Segments()[2]) {
				t.Fatalf("%d keys: the tree's memory is another", n)
			}
			tree.Release()
			built.Release()
		}
	}
}

// A block that is of another size is none of the tree's.
func TestOpenedTreeOfAnotherSize(t *testing.T) {
	cfg := Config{Leaves: Pairs, ValSize: 8}
	built := build(t, make([]uint64, 100), cfg)
	defer built.Release()
	b := mapped(t, built.Segments(), 0, untouched)
	defer b.Release()
	for _, n := range []int{0, 1, 90, 101, 100_000} {
		if _, err := Open[uint64](n, cfg, b); err == nil {
			t.Errorf("opened as a tree of %d keys", n)
		}
	}
}

// Whatever is in the file, searches end inside: places and ranks are those of
// entries that there are, or could be in the last leaf.
func TestOpenedGarbage(t *testing.T) {
	t.Run("32 bits", openedGarbage[uint32])
	t.Run("64 bits", openedGarbage[uint64])
}

func openedGarbage[C simd.Code](t *testing.T) {
	rng := seed.Rand(t)
	spoils := []func([]byte){
		func(b []byte) { clear(b) },
		func(b []byte) { copy(b, bytes.Repeat([]byte{0xff}, len(b))) },
		func(b []byte) {
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
		},
	}
	for _, cfg := range configs[C]() {
		for _, n := range []int{1, 10, 200, 3000, 20_000} {
			keys := keySets[C](n, rng)["random"]
			built := build(t, keys, cfg)
			plan, _ := Plan[C](n, cfg)
			for _, spoil := range spoils {
				tree, err := Open[C](n, cfg, mapped(t, built.Segments(), plan.Slack, spoil))
				if err != nil {
					t.Fatal(err)
				}
				for _, path := range simd.Paths() {
					undo := simd.Use(path)
					inside(t, tree, probes(keys, rng))
					undo()
				}
				tree.Release()
			}
			built.Release()
		}
	}
}

func inside[C simd.Code](t *testing.T, tree *Tree[C], asked []C) {
	t.Helper()
	places := make([]int, len(asked))
	room := tree.leaves * tree.perLeaf()
	tree.Rank(asked, places)
	for _, r := range places {
		if r < 0 || r > tree.Len() {
			t.Fatalf("rank %d of %d", r, tree.Len())
		}
	}
	tree.Find(asked, places)
	for i, r := range places {
		if r < -1 || r >= room {
			t.Fatalf("found at %d of %d", r, room)
		}
		if rank, _ := tree.Seek(asked[i]); rank < 0 || rank > tree.Len() {
			t.Fatalf("rank %d of %d", rank, tree.Len())
		}
	}
	if tree.cfg.Leaves == Pairs {
		Paired[C]{tree}.GetPairs(asked, make([]C, len(asked)), nil)
	}
}

// A tree whose inner nodes are another layout's has leaves and values alone.
func TestInnerLeftToAnother(t *testing.T) {
	before := arena.InUse()
	for _, n := range []int{1, 8, 1000} {
		keys := make([]uint64, n)
		for i := range keys {
			keys[i] = uint64(i) * 3
		}
		tree := build(t, keys, Config{Inner: 640, Slack: 100, ValSize: 8})
		plan, err := Plan[uint64](n, Config{Inner: 640, Slack: 100, ValSize: 8})
		if err != nil || plan.Levels != 0 || plan.Sizes[0] != 640 || plan.Slack != 100 {
			t.Errorf("%d keys: %+v, %v", n, plan, err)
		}
		for i, b := range tree.Segments()[0] {
			if b != 0 {
				t.Fatalf("byte %d of the inner nodes is written", i)
			}
		}
		if err := compareEntries(tree, keys); err != nil {
			t.Error(err)
		}
		tree.Release()
	}
	for _, cfg := range []Config{{Inner: -64}, {Inner: 65}, {Inner: 64, Slack: -1}} {
		if _, err := Plan[uint64](10, cfg); err == nil {
			t.Errorf("%+v: no error", cfg)
		}
	}
	if arena.InUse() > before { // less, where trees of other tests are gone meanwhile
		t.Errorf("%d bytes leaked", arena.InUse()-before)
	}
}

// docs/format.md gives these numbers; a file that was written once must be
// readable for ever.
func TestFormats(t *testing.T) {
	sections := []files.SectionKind{{Number: 1, Name: "inner"}, {Number: 2, Name: "leaves"}}
	want := []*files.Format{
		{Number: 1, Name: "pairs", Version: 1, Sections: sections, Pairs: true},
		{Number: 2, Name: "apart", Version: 1, Sections: sections},
	}
	if got := (Layout[uint32]{}).Formats(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

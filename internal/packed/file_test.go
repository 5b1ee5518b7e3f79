package packed

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/files"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
)

// mapped writes segments to a file, each on a page of its own behind a
// first page of something else, and maps it. change may spoil them.
func mapped(t *testing.T, segments [][]byte, slack int, change func([]byte)) *arena.Block {
	t.Helper()
	file := bytes.Repeat([]byte{0xee}, 4096)
	var parts []arena.Part
	for _, s := range segments {
		parts = append(parts, arena.Part{Offset: len(file), Size: len(s)})
		file = append(file, s...)
		file = append(file, make([]byte, -len(file)&4095)...)
	}
	change(file[4096:])
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

// planOf returns the outline of a tree that is there.
func planOf[C simd.Code](t *testing.T, tree *Tree[C]) layout.Outline {
	t.Helper()
	plan, err := Plan[C](tree.length, len(tree.Segments()[3]), tree.cfg)
	if err != nil || plan.Levels != tree.Depth() {
		t.Fatalf("%+v, %v", plan, err)
	}
	return plan
}

// A tree over a file is the tree that was written.
func TestOpenedTree(t *testing.T) {
	t.Run("32 bits", openedTree[uint32])
	t.Run("64 bits", openedTree[uint64])
}

func openedTree[C simd.Code](t *testing.T) {
	rng := seed.Rand(t)
	for _, n := range sizes() {
		for name, keys := range keySets[C](n, rng) {
			if rng.IntN(4) > 0 {
				continue
			}
			cfg := configs()[n%3]
			built := build(t, keys, cfg)
			b := mapped(t, built.Segments(), planOf(t, built).Slack, func([]byte) {})
			tree, err := Open[C](n, cfg, b)
			if err != nil {
				t.Fatal(err)
			}
			if err := tree.Check(); err != nil {
				t.Fatal(err)
			}
			if err := compare(tree, keys, probes(keys, rng)); err != nil {
				t.Fatalf("%d keys %s: %v", n, name, err)
			}
			checkImage(t, tree)
			built.Release()
			tree.Release()
		}
	}
}

// checkImage compares what Memory and Image say with the segments.
func checkImage[C simd.Code](t *testing.T, tree *Tree[C]) {
	t.Helper()
	all, vals := tree.Memory()
	image, segments := tree.Image(), tree.Segments()
	at := image.Resident.(*resident)
	if !bytes.Equal(image.Memory, all) || image.Depth() != tree.Depth() || image.Level(tree.Depth()) != at.table ||
		image.ValSize != tree.cfg.ValSize || image.Pairs {
		t.Fatalf("%+v", image)
	}
	if !bytes.Equal(all[at.table:][:len(segments[2])], segments[2]) || !bytes.Equal(all[at.words:][:len(segments[3])], segments[3]) {
		t.Fatal("table or pages are elsewhere")
	}
	if at.count != len(segments[2])/16 || at.end*8+tailBytes != len(segments[3]) || at.entries != tree.length || at.depth != tree.Depth() {
		t.Fatalf("%+v", at)
	}
	if vals != at.vals || (vals > 0) != (len(segments) > 4) || vals > 0 && !bytes.Equal(all[vals:][:len(segments[4])], segments[4]) {
		t.Fatal("values are elsewhere")
	}
}

// A block that is of another size is none of the tree's.
func TestOpenedTreeOfAnotherSize(t *testing.T) {
	cfg := implicit.Config{ValSize: 4}
	built := build(t, make([]uint64, 1000), cfg)
	defer built.Release()
	b := mapped(t, built.Segments(), planOf(t, built).Slack, func([]byte) {})
	defer b.Release()
	for _, n := range []int{-1, 0, 1, 999, 1001, 100_000} {
		if _, err := Open[uint64](n, cfg, b); err == nil {
			t.Errorf("opened as a tree of %d keys", n)
		}
	}
}

// Whatever is in the file, searches end inside, and Check does not fault.
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
		func(b []byte) {
			for range 20 {
				b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
			}
		},
	}
	for i, n := range []int{1, 10, 300, 3000, 20_000} {
		cfg := configs()[i%3]
		keys := keySets[C](n, rng)["any magnitude"]
		built := build(t, keys, cfg)
		for _, spoil := range spoils {
			tree, err := Open[C](n, cfg, mapped(t, built.Segments(), planOf(t, built).Slack, spoil))
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

func inside[C simd.Code](t *testing.T, tree *Tree[C], asked []C) {
	t.Helper()
	ranks, finds := make([]int, len(asked)), make([]int, len(asked))
	tree.Rank(asked, ranks)
	tree.Find(asked, finds)
	for i, k := range asked {
		rank, _ := tree.Seek(k)
		for _, r := range []int{rank, ranks[i], finds[i] + 1} {
			if r < 0 || r > tree.length {
				t.Fatalf("rank %d of %d", r, tree.length)
			}
		}
	}
	tree.CopyKeys(make([]C, tree.length), 0)
	tree.Prefetch(0, tree.length)
	tree.Stats()
	tree.Bits()
	_ = tree.Check()
}

// A reader that is overtaken by Release may get nonsense, but must come back.
func TestReleasedTreeDoesNotFault(t *testing.T) {
	rng := seed.Rand(t)
	for _, n := range []int{1, 100, 3000, 300_000} {
		keys := keySets[uint64](n, rng)["gaps"]
		tree := build(t, keys, implicit.Config{Pages: arena.HugeAll})
		tree.Release()
		for _, path := range simd.Paths() {
			undo := simd.Use(path)
			inside(t, tree, keys)
			undo()
		}
	}
}

// Every bit of a tree that is not a value is there for a reason: Check sees
// each change, but for one that makes a key another and leaves a whole tree of
// the keys that there are then.
func TestCheckFindsDamage(t *testing.T) {
	t.Run("32 bits", damaged[uint32])
	t.Run("64 bits", damaged[uint64])
}

func damaged[C simd.Code](t *testing.T) {
	rng := seed.Rand(t)
	for _, n := range []int{0, 1, 300, 5000} {
		for name, keys := range keySets[C](n, rng) {
			tree := build(t, keys, implicit.Config{})
			for i, segment := range tree.Segments() {
				for range min(60, len(segment)) {
					at, bit := rng.IntN(len(segment)), byte(1)<<rng.IntN(8)
					segment[at] ^= bit
					if err := tree.Check(); err == nil {
						is := make([]C, n)
						tree.CopyKeys(is, 0)
						err := compare(tree, is, probes(is, rng))
						if err != nil || i != 3 || slices.Equal(is, keys) {
							t.Fatalf("%d keys %s: byte %d of segment %d changed, not seen: %v", n, name, at, i, err)
						}
					}
					segment[at] ^= bit
				}
			}
			if err := tree.Check(); err != nil {
				t.Fatal(err)
			}
			tree.Release()
		}
	}
}

// docs/format.md gives these numbers; a file that was written once must be
// readable for ever.
func TestFormats(t *testing.T) {
	want := []*files.Format{{
		Number: 6, Name: "compressed", Version: 2, MostPerPage: 65536,
		Sections: []files.SectionKind{{Number: 1, Name: "inner"}, {Number: 2, Name: "leaves"}, {Number: 9, Name: "page table"}, {Number: 10, Name: "packed keys"}},
	}}
	if got := (Layout[uint32]{}).Formats(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

package blocked

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
)

// packedFile writes segments to a file, each on a page of its own behind a
// first page of something else, and maps it. change may spoil them.
func packedFile(t *testing.T, segments [][]byte, slack int, change func([]byte)) *arena.Block {
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

// packedPlan gives the outline of a tree that is there.
func packedPlan[C simd.Code](t *testing.T, tree *Packed[C]) implicit.Outline {
	t.Helper()
	plan, err := PlanPacked[C](tree.length, len(tree.Segments()[3]), tree.cfg)
	if err != nil || plan.Levels != tree.Depth() {
		t.Fatalf("%+v, %v", plan, err)
	}
	return plan
}

// A tree over a file is the tree that was written.
func TestPackedOpened(t *testing.T) {
	t.Run("32 bits", packedOpened[uint32])
	t.Run("64 bits", packedOpened[uint64])
}

func packedOpened[C simd.Code](t *testing.T) {
	rng := seed.Rand(t)
	for _, n := range packedSizes() {
		for name, keys := range packedSets[C](n, rng) {
			if rng.IntN(4) > 0 {
				continue
			}
			cfg := packedConfigs()[n%3]
			built := buildPacked(t, keys, cfg)
			b := packedFile(t, built.Segments(), packedPlan(t, built).Slack, func([]byte) {})
			tree, err := OpenPacked[C](n, cfg, b)
			if err != nil {
				t.Fatal(err)
			}
			if err := tree.Check(); err != nil {
				t.Fatal(err)
			}
			if err := comparePacked(tree, keys, packedProbes(keys, rng)); err != nil {
				t.Fatalf("%d keys %s: %v", n, name, err)
			}
			checkPlaces(t, tree)
			built.Release()
			tree.Release()
		}
	}
}

// checkPlaces compares what Memory and Places say with the segments.
func checkPlaces[C simd.Code](t *testing.T, tree *Packed[C]) {
	t.Helper()
	all, vals := tree.Memory()
	at, segments := tree.Places(), tree.Segments()
	if !bytes.Equal(all[at.Table:][:len(segments[2])], segments[2]) || !bytes.Equal(all[at.Words:][:len(segments[3])], segments[3]) {
		t.Fatal("table or pages are elsewhere")
	}
	if at.Last != len(segments[2])/16-1 || at.End*8+packedTail != len(segments[3]) || at.Len != tree.length {
		t.Fatalf("%+v", at)
	}
	if (vals > 0) != (len(segments) > 4) || vals > 0 && !bytes.Equal(all[vals:][:len(segments[4])], segments[4]) {
		t.Fatal("values are elsewhere")
	}
}

// A block that is of another size is none of the tree's.
func TestPackedOpenedOfAnotherSize(t *testing.T) {
	cfg := implicit.Config{ValSize: 4}
	built := buildPacked(t, make([]uint64, 1000), cfg)
	defer built.Release()
	b := packedFile(t, built.Segments(), packedPlan(t, built).Slack, func([]byte) {})
	defer b.Release()
	for _, n := range []int{-1, 0, 1, 999, 1001, 100_000} {
		if _, err := OpenPacked[uint64](n, cfg, b); err == nil {
			t.Errorf("opened as a tree of %d keys", n)
		}
	}
}

// Whatever is in the file, searches end inside, and Check does not fault.
func TestPackedOpenedGarbage(t *testing.T) {
	t.Run("32 bits", packedOpenedGarbage[uint32])
	t.Run("64 bits", packedOpenedGarbage[uint64])
}

func packedOpenedGarbage[C simd.Code](t *testing.T) {
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
		cfg := packedConfigs()[i%3]
		keys := packedSets[C](n, rng)["any magnitude"]
		built := buildPacked(t, keys, cfg)
		for _, spoil := range spoils {
			tree, err := OpenPacked[C](n, cfg, packedFile(t, built.Segments(), packedPlan(t, built).Slack, spoil))
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range simd.Paths() {
				undo := simd.Use(path)
				packedInside(t, tree, packedProbes(keys, rng))
				undo()
			}
			tree.Release()
		}
		built.Release()
	}
}

func packedInside[C simd.Code](t *testing.T, tree *Packed[C], asked []C) {
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
	_ = tree.Check()
}

// A reader that is overtaken by Release may get nonsense, but must come back.
func TestPackedReleasedDoesNotFault(t *testing.T) {
	rng := seed.Rand(t)
	for _, n := range []int{1, 100, 3000, 300_000} {
		keys := packedSets[uint64](n, rng)["gaps"]
		tree := buildPacked(t, keys, implicit.Config{Pages: arena.HugeAll})
		tree.Release()
		for _, path := range simd.Paths() {
			undo := simd.Use(path)
			packedInside(t, tree, keys)
			undo()
		}
	}
}

// Every bit of a tree that is not a value is there for a reason: Check sees
// each change, but for one that makes a key another and leaves a whole tree of
// the keys that there are then.
func TestPackedCheckFindsDamage(t *testing.T) {
	t.Run("32 bits", packedDamage[uint32])
	t.Run("64 bits", packedDamage[uint64])
}

func packedDamage[C simd.Code](t *testing.T) {
	rng := seed.Rand(t)
	for _, n := range []int{0, 1, 300, 5000} {
		for name, keys := range packedSets[C](n, rng) {
			tree := buildPacked(t, keys, implicit.Config{})
			for i, segment := range tree.Segments() {
				for range min(60, len(segment)) {
					at, bit := rng.IntN(len(segment)), byte(1)<<rng.IntN(8)
					segment[at] ^= bit
					if err := tree.Check(); err == nil {
						is := make([]C, n)
						tree.CopyKeys(is, 0)
						err := comparePacked(tree, is, packedProbes(is, rng))
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

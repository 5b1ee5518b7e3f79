package words

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/snapshot"
)

// mapped writes a list to a file and opens it there. change may spoil it.
func mapped(t *testing.T, x *Tree, change func(parts [][]byte)) *Tree {
	t.Helper()
	var parts []arena.Part
	var segments [][]byte
	size := 0
	for _, s := range x.Segments() {
		parts = append(parts, arena.Part{Offset: size, Size: len(s)})
		size += (len(s) + 4095) &^ 4095
		segments = append(segments, slices.Clone(s))
	}
	change(segments)
	file := make([]byte, size)
	for i, s := range segments {
		copy(file[parts[i].Offset:], s)
	}
	path := filepath.Join(t.TempDir(), "tree")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block, err := arena.Map(f, int64(size), parts, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := Open(x.Len(), block)
	if err != nil {
		block.Release()
		return nil
	}
	t.Cleanup(opened.Release)
	return opened
}

func untouched([][]byte) {}

func TestOpenedTree(t *testing.T) {
	eachKind(t, func(t *testing.T, rng *rand.Rand, keys []string) {
		if len(keys) > 3000 {
			return
		}
		x, err := Build(keys, nil, Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer x.Release()
		opened := mapped(t, x, untouched)
		if opened == nil {
			t.Fatal("not opened")
		}
		if err := opened.Check(); err != nil {
			t.Fatal(err)
		}
		if err := compare(opened, keys, strange(rng, keys, 300)); err != nil {
			t.Fatal(err)
		}
	})
}

// Whatever the bytes are, searches end and stay inside; Check finds out.
func TestSpoiledTree(t *testing.T) {
	rng := seed.Rand(t)
	for _, kind := range []string{"urls", "random", "2 values", "prefixes"} {
		keys := make([]string, 2000)
		for i := range keys {
			keys[i] = kinds[kind](rng, i)
		}
		slices.Sort(keys)
		x, err := Build(keys, nil, Config{})
		if err != nil {
			t.Fatal(err)
		}
		for round := range seed.Times(25, 100) {
			part := round % len(x.Segments())
			if len(x.Segments()[part]) == 0 {
				continue
			}
			wild := rng.IntN(8) == 0
			y := mapped(t, x, func(parts [][]byte) {
				b := parts[part]
				b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
				for i := 0; wild && i < len(b); i++ {
					b[i] = byte(rng.Uint32())
				}
			})
			if y == nil {
				continue
			}
			if y.Check() == nil && holds(y, keys) { // other strings may well be a list, too
				t.Fatalf("%s: Check does not see a change in segment %d", kind, part)
			}
			ranks := make([]int, len(keys))
			for _, path := range simd.Paths() {
				undo := simd.Use(path)
				for _, ask := range []func([]string, []int){y.Find, y.Rank} {
					if ask(keys, ranks); slices.Max(ranks) > len(keys) || slices.Min(ranks) < -1 {
						t.Fatalf("%s: ranks from %d to %d", kind, slices.Min(ranks), slices.Max(ranks))
					}
				}
				undo()
			}
			for i := range keys {
				y.Key(i)
			}
			prefix(y, keys[0])
			y.After(keys[1])
			_, _ = y.StringImage()
			y.Release()
		}
		x.Release()
	}
}

// holds reports whether a list has just these strings.
func holds(x *Tree, keys []string) bool {
	for i, k := range keys {
		if x.Key(i) != k {
			return false
		}
	}
	return true
}

// A device gets the tree as it is; not one in which something points outside,
// since kernels do not look.
func TestImageOfDamagedTree(t *testing.T) {
	keys := make([]string, 2000)
	for i := range keys {
		keys[i] = kinds["prefixes"](nil, i)
	}
	slices.Sort(keys)
	x, err := Build(keys, nil, Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Release()
	if x.Nodes() == 0 {
		t.Fatal("the directory has no nodes to damage")
	}
	image, err := x.StringImage()
	if err != nil {
		t.Fatal(err)
	}
	parts := append(image.Parts[1:], image.Strings)
	if !slices.EqualFunc(parts, x.Segments()[2:], bytes.Equal) {
		t.Error("the image has other memory than the tree")
	}
	for name, damage := range map[string]func(y *Tree){
		"link to a page":    func(y *Tree) { y.links[1] = uint32(y.count) },
		"link to a node":    func(y *Tree) { y.links[1] = linkNode | uint32(len(y.nodes)) },
		"words of a node":   func(y *Tree) { y.nodes[1].Words = uint32(len(y.words)) - y.nodes[1].Count + 1 },
		"number of words":   func(y *Tree) { y.nodes[1].Count = math.MaxUint32 },
		"begin of a page":   func(y *Tree) { y.page(3).Base = uint64(len(y.bytes)) + 1 },
		"sum that wraps":    func(y *Tree) { y.page(3).Base = math.MaxUint64 },
		"end of a page":     func(y *Tree) { y.page(3).End = uint32(len(y.bytes)) + 1 },
		"order of offsets":  func(y *Tree) { y.page(3).offsets[7] = math.MaxUint32 },
		"end before offset": func(y *Tree) { y.page(3).End = y.page(3).offsets[pageEntries-1] - 1 },
		"too many strings":  func(y *Tree) { y.n = kernel.MaxWords + 1 },
	} {
		y, err := Build(keys, nil, Config{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := y.StringImage(); err != nil {
			t.Fatal(err)
		}
		damage(y)
		if _, err := y.StringImage(); err == nil {
			t.Errorf("%s: damage not seen", name)
		}
		y.Release()
	}
}

// docs/format.md gives these numbers; a file that was written once must be
// readable for ever.
func TestFormats(t *testing.T) {
	want := []*snapshot.Format{{
		Number: 7, Name: "compressed", Version: 2, Strings: true,
		Sections: []snapshot.Kind{{Number: 1, Name: "inner"}, {Number: 2, Name: "leaves"}, {Number: 11, Name: "directory"}, {Number: 12, Name: "word pages"}, {Number: 6, Name: "key bytes"}},
	}}
	if got := (Layout{}).Formats(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

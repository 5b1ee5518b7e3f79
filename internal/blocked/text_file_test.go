package blocked

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
)

// mappedText writes a list to a file and opens it there. change may spoil it.
func mappedText(t *testing.T, x *Text, change func(parts [][]byte)) *Text {
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
	path := filepath.Join(t.TempDir(), "text")
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
	opened, err := OpenText(x.Len(), block)
	if err != nil {
		block.Release()
		return nil
	}
	t.Cleanup(opened.Release)
	return opened
}

func untouched([][]byte) {}

func TestOpenedText(t *testing.T) {
	eachText(t, func(t *testing.T, rng *rand.Rand, keys []string) {
		if len(keys) > 3000 {
			return
		}
		x, err := BuildText(keys, nil, TextConfig{})
		if err != nil {
			t.Fatal(err)
		}
		defer x.Release()
		opened := mappedText(t, x, untouched)
		if opened == nil {
			t.Fatal("not opened")
		}
		if err := opened.Check(); err != nil {
			t.Fatal(err)
		}
		if err := compareText(opened, keys, strange(rng, keys, 300)); err != nil {
			t.Fatal(err)
		}
	})
}

// Whatever the bytes are, searches end and stay inside; Check finds out.
func TestSpoiledText(t *testing.T) {
	rng := seed.Rand(t)
	for _, kind := range []string{"urls", "random", "2 values", "prefixes"} {
		keys := make([]string, 2000)
		for i := range keys {
			keys[i] = texts[kind](rng, i)
		}
		slices.Sort(keys)
		x, err := BuildText(keys, nil, TextConfig{})
		if err != nil {
			t.Fatal(err)
		}
		for round := range 100 {
			part := round % TextSegments
			if len(x.Segments()[part]) == 0 {
				continue
			}
			wild := rng.IntN(8) == 0
			y := mappedText(t, x, func(parts [][]byte) {
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
			y.Prefix(keys[0])
			y.After(keys[1])
			y.Release()
		}
		x.Release()
	}
}

// holds says whether a list has just these strings.
func holds(x *Text, keys []string) bool {
	for i, k := range keys {
		if x.Key(i) != k {
			return false
		}
	}
	return true
}

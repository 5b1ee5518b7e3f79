// Package layouttest is the test of every layout: one suite of properties, each
// tried against the simplest model that could be right, a sorted slice. A
// layout's package runs it in a file suite_test.go, and so does a new layout:
//
//	func TestSuite(t *testing.T) {
//		layouttest.Numbers(t, mine.Layout[uint32]{}, mine.Layout[uint64]{})
//	}
//
// The suite knows package layout alone. Abilities that only some layouts have
// are tried where a tree has the methods for them. Only tests import it.
package layouttest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/snapshot"
)

// Numbers tries every property of a layout of numbers, for codes of both
// widths.
func Numbers(t *testing.T, narrow layout.Numbers[uint32], wide layout.Numbers[uint64]) {
	t.Run("32 bits", func(t *testing.T) { numbers(t, narrow) })
	t.Run("64 bits", func(t *testing.T) { numbers(t, wide) })
}

func numbers[C layout.Code](t *testing.T, l layout.Numbers[C]) {
	run(t, map[string]func(*testing.T){
		"formats":       func(t *testing.T) { knownFormats(t, l.Kind(), l.Formats(), false) },
		"search":        func(t *testing.T) { newSuite(t, l).search() },
		"large":         func(t *testing.T) { newSuite(t, l).large() },
		"build":         func(t *testing.T) { newSuite(t, l).sameBytes() },
		"memory":        func(t *testing.T) { newSuite(t, l).memory() },
		"unsorted":      func(t *testing.T) { newSuite(t, l).unsorted() },
		"files":         func(t *testing.T) { newSuite(t, l).files() },
		"sizes":         func(t *testing.T) { newSuite(t, l).otherSizes() },
		"damage":        func(t *testing.T) { newSuite(t, l).damage() },
		"check":         func(t *testing.T) { newSuite(t, l).check() },
		"release":       func(t *testing.T) { newSuite(t, l).released() },
		"device":        func(t *testing.T) { newSuite(t, l).device() },
		"device damage": func(t *testing.T) { newSuite(t, l).deviceDamage() },
	})
}

// Strings tries every property of a layout of strings.
func Strings(t *testing.T, l layout.Strings) {
	run(t, map[string]func(*testing.T){
		"formats":  func(t *testing.T) { knownFormats(t, l.Kind(), l.Formats(), true) },
		"search":   func(t *testing.T) { newTexts(t, l).search() },
		"large":    func(t *testing.T) { newTexts(t, l).large() },
		"build":    func(t *testing.T) { newTexts(t, l).sameBytes() },
		"memory":   func(t *testing.T) { newTexts(t, l).memory() },
		"unsorted": func(t *testing.T) { newTexts(t, l).unsorted() },
		"files":    func(t *testing.T) { newTexts(t, l).files() },
		"sizes":    func(t *testing.T) { newTexts(t, l).otherSizes() },
		"damage":   func(t *testing.T) { newTexts(t, l).damage() },
		"check":    func(t *testing.T) { newTexts(t, l).check() },
		"release":  func(t *testing.T) { newTexts(t, l).released() },
		"device":   func(t *testing.T) { newTexts(t, l).device() },
	})
}

// run runs properties in the order of their names. None leaves memory behind.
func run(t *testing.T, properties map[string]func(*testing.T)) {
	names := make([]string, 0, len(properties))
	for name := range properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			before := arena.InUse()
			properties[name](t)
			leavesNothing(t, before, name)
		})
	}
}

// leavesNothing fails if more memory is in use than before. Less is in use where
// what other tests left to the garbage collector is gone meanwhile.
func leavesNothing(t *testing.T, before int64, what string) {
	t.Helper()
	if now := arena.InUse(); now > before {
		t.Errorf("%s: %d bytes are left behind", what, now-before)
	}
}

// A layout has a name, which its formats have, too, unless they say how values lie. Formats
// differ, and have sections that differ: a file says by numbers which they are.
func knownFormats(t *testing.T, kind layout.Kind, formats []*snapshot.Format, text bool) {
	if kind == "" || kind == layout.Auto || len(formats) == 0 {
		t.Errorf("the layout is called %q and has %d formats", kind, len(formats))
	}
	for i, f := range formats {
		if f.Number == 0 || f.Name == "" || f.Version < 1 || f.Version > snapshot.Version || f.Strings != text || len(f.Sections) == 0 {
			t.Errorf("format %d: %+v", i, f)
		}
		if name := layout.Kind(f.Name); name != kind && name != layout.Pairs && name != layout.Apart {
			t.Errorf("format %d of layout %v is called %v", i, kind, f)
		}
		for _, g := range formats[:i] {
			if f.Number == g.Number || f.Name == g.Name && f.Pairs == g.Pairs {
				t.Errorf("formats %+v and %+v have the same number, or the same name and values", f, g)
			}
		}
		for j, k := range f.Sections {
			if k.Number == 0 || k.Name == "" || slices.Contains(f.Sections[:j], k) {
				t.Errorf("format %v, section %d: %+v", f, j, k)
			}
		}
	}
}

// onPaths calls ask for each way to execute a search.
func onPaths(ask func() error) error {
	for _, path := range simd.Paths() {
		undo := simd.Use(path)
		err := ask()
		undo()
		if err != nil {
			return fmt.Errorf("%v: %w", path, err)
		}
	}
	return nil
}

// first returns the first error.
func first(tries ...func() error) error {
	for _, try := range tries {
		if err := try(); err != nil {
			return err
		}
	}
	return nil
}

// dirty is in all results before they are set, so that an overlooked one shows.
const dirty = -77

func dirtyInts(n int) []int { return slices.Repeat([]int{dirty}, n) }

// each runs a search of a batch: results begin as from, nil for any. There is
// room for one more, which is not written.
func each[K any](run func([]K, []int), keys []K, from []int) ([]int, error) {
	got := dirtyInts(len(keys) + 1)
	copy(got, from)
	run(keys, got)
	if got[len(keys)] != dirty {
		return nil, errors.New("a result is written behind the last")
	}
	return got[:len(keys)], nil
}

// asWanted compares the results of a batch.
func asWanted[K any](what string, run func([]K, []int), keys []K, from, want []int) error {
	got, err := each(run, keys, from)
	if err != nil {
		return fmt.Errorf("%s of %d: %w", what, len(keys), err)
	}
	for i := range got {
		if got[i] != want[i] {
			return fmt.Errorf("%s of %d: %s gives %d, want %d", what, len(keys), shown(keys[i]), got[i], want[i])
		}
	}
	return nil
}

// shown returns a key as a message shows it.
func shown(key any) string {
	if s, ok := key.(string); ok {
		return fmt.Sprintf("%.60q", s)
	}
	return fmt.Sprint(key)
}

// batches returns the sizes of batches to try out of n queries: those of less
// than a few registers, and those at which pipelines are full.
func batches(n int) (out []int) {
	for _, size := range []int{0, 1, 2, 3, 17, 31, 32, 33, 65, 129, 257, n} {
		if size <= n {
			out = append(out, size)
		}
	}
	return out
}

// within returns an error for a rank that is outside of [0, most].
func within(ranks []int, least, most int) error {
	for _, r := range ranks {
		if r < least || r > most {
			return fmt.Errorf("rank %d, want %d to %d", r, least, most)
		}
	}
	return nil
}

// sizesOf returns the sizes of segments.
func sizesOf(segments [][]byte) (sizes []int) {
	for _, s := range segments {
		sizes = append(sizes, len(s))
	}
	return sizes
}

// sameSegments returns an error for the first segment that differs.
func sameSegments(got, want [][]byte) error {
	if !slices.Equal(sizesOf(got), sizesOf(want)) {
		return fmt.Errorf("segments of %d bytes, want %d", sizesOf(got), sizesOf(want))
	}
	for i := range got {
		if !bytes.Equal(got[i], want[i]) {
			return fmt.Errorf("segment %d of %d differs", i, len(got))
		}
	}
	return nil
}

// checkStats returns an error for statistics that contradict each other, or the
// memory that there is.
func checkStats(b layout.Body, kind layout.Kind) error {
	s := b.Stats()
	if s.Kind != kind && s.Kind != layout.Pairs && s.Kind != layout.Apart {
		return fmt.Errorf("a tree of layout %v says %v", kind, s.Kind)
	}
	if min(s.InnerBytes, s.LeafBytes, s.ValueBytes) < 0 || s.InnerBytes+s.LeafBytes+s.ValueBytes > s.TotalBytes {
		return fmt.Errorf("%d, %d and %d bytes, %d in all", s.InnerBytes, s.LeafBytes, s.ValueBytes, s.TotalBytes)
	}
	all := int64(0)
	for _, size := range sizesOf(b.Segments()) {
		all += int64(size)
	}
	if all > s.TotalBytes || all > s.InnerBytes+s.LeafBytes+s.ValueBytes {
		return fmt.Errorf("segments of %d bytes, statistics say %+v", all, s)
	}
	return nil
}

// base is what suites of numbers and of strings have in common.
type base struct {
	*testing.T
	rng  *rand.Rand
	dir  string
	kind layout.Kind
}

func newBase(t *testing.T, kind layout.Kind) base {
	return base{T: t, rng: seed.Rand(t), dir: t.TempDir(), kind: kind}
}

// ok ends the test for an error.
func (b *base) ok(err error, what string, args ...any) {
	b.Helper()
	if err != nil {
		b.Fatalf("%s: %v", fmt.Sprintf(what, args...), err)
	}
}

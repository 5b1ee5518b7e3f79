package index_test

import (
	"fmt"
	"slices"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/files"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
)

// asked is every layout that can be asked for by name.
var asked = []layout.Name{layout.Auto, "pairs", "apart", "implicit", "blocked", "compressed", "radix"}

// A layout that is asked for by name is the one that Stats names, or there is an
// error that says so, for numbers of either width, with values of either, and
// for strings.
func TestLayoutsByName(t *testing.T) {
	equal := map[layout.Name]string{
		layout.Auto: "pairs", "pairs": "pairs", "apart": "apart", "implicit": "pairs", "blocked": "blocked", "compressed": "compressed", "radix": "radix",
	}
	other := map[layout.Name]string{
		layout.Auto: "apart", "apart": "apart", "implicit": "apart", "blocked": "blocked", "compressed": "compressed", "radix": "radix",
	}
	text := map[layout.Name]string{layout.Auto: "compressed", "apart": "apart", "implicit": "apart", "compressed": "compressed", "radix": "radix"}
	byName[uint32, uint32](t, equal)
	byName[uint32, uint64](t, other)
	byName[uint32, struct{}](t, other)
	byName[uint64, uint64](t, equal)
	byName[uint64, uint32](t, other)
	byName[uint64, struct{}](t, other)
	byName[uint64, string](t, other)
	byName[int8, float32](t, equal)
	byName[float64, int64](t, equal)
	byName[string, uint64](t, text)
	byName[string, struct{}](t, text)
}

// byName builds an index of each layout; those without a name in want are
// refused.
func byName[K order.Key, V any](t *testing.T, want map[layout.Name]string) {
	t.Helper()
	for _, kind := range asked {
		for _, n := range []int{0, 1, 700} {
			what := fmt.Sprintf("%T to %T, layout %v, %d keys", *new(K), *new(V), kind, n)
			cfg := index.Config{Device: onCPU, Layout: kind, Layouts: index.AllLayouts, Workers: 2}
			ix, err := index.Build(order.KeysOf(make([]K, n)), index.KeyTypeOf[K](), index.ColumnOf(make([]V, n)), index.ValueTypeOf[V](), cfg, nil)
			name, ok := want[kind]
			switch {
			case !ok:
				if index.CauseOf(err) != index.ErrLayout {
					t.Errorf("%s: %v, want an error about the layout", what, err)
				}
				continue
			case err != nil:
				t.Errorf("%s: %v", what, err)
				continue
			case ix.Stats().Layout != name || ix.Stats().Len != n:
				t.Errorf("%s: Stats say %q, %d entries, want %q", what, ix.Stats().Layout, ix.Stats().Len, name)
			}
			if err := ix.Release(); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
}

// Every row of the table is reached by a name, and none by a name that is not.
func TestEveryLayoutIsReached(t *testing.T) {
	reachedNumbers(t, index.NumbersOf[uint32](index.AllLayouts))
	reachedNumbers(t, index.NumbersOf[uint64](index.AllLayouts))
	var reached []layout.Strings
	for _, kind := range asked {
		if serve, err := index.SettleStrings(index.AllLayouts, kind); err == nil {
			reached = append(reached, serve[0])
		}
	}
	for _, l := range index.StringsOf(index.AllLayouts) {
		if !slices.Contains(reached, l) {
			t.Errorf("no name leads to %T", l)
		}
	}
	for _, none := range []layout.Name{"", "Pairs", "words", "none such"} {
		if l, err := index.SettleStrings(index.AllLayouts, none); index.CauseOf(err) != index.ErrLayout {
			t.Errorf("%q leads to %T", none, l)
		}
	}
}

func reachedNumbers[C order.Code](t *testing.T, layouts []layout.Numbers[C]) {
	t.Helper()
	width := int(unsafe.Sizeof(C(0)))
	var reached []layout.Numbers[C]
	for _, kind := range asked {
		for _, size := range []int{0, 4, 8} {
			if l, pairs, err := index.SettleNumbers[C](index.AllLayouts, kind, 1000, size); err == nil {
				reached = append(reached, l)
				if pairs && size != width {
					t.Errorf("%v: pairs of %d and %d bytes", kind, width, size)
				}
			}
		}
	}
	for _, l := range layouts {
		if !slices.Contains(reached, l) {
			t.Errorf("no name leads to %T", l)
		}
		if own, _, err := index.SettleNumbers[C](index.AllLayouts, l.Name(), 1000, 0); err != nil || own != l {
			t.Errorf("%v is the name of %T, and leads to %T, %v", l.Name(), l, own, err)
		}
	}
	for _, none := range []layout.Name{"", "Pairs", "words", "none such"} {
		if l, _, err := index.SettleNumbers[C](index.AllLayouts, none, 1000, 8); index.CauseOf(err) != index.ErrLayout {
			t.Errorf("%q leads to %T", none, l)
		}
	}
}

// A file says by a number which format it is in, and people by the layout's name, by whether
// keys are strings and whether values lie beside them: no two formats have the same. Both widths of numbers have the same formats, and each
// leads back to its layout.
func TestFormatsDiffer(t *testing.T) {
	for i, f := range index.Formats() {
		for _, g := range index.Formats()[:i] {
			if f.Number == g.Number || f.Name == g.Name && f.Strings == g.Strings && f.Pairs == g.Pairs {
				t.Errorf("formats %v and %v have number %d and %d", f, g, f.Number, g.Number)
			}
		}
		if f.Number == 0 || f.Name == "" {
			t.Errorf("%+v", f)
		}
	}
	wide := index.NumbersOf[uint64](index.AllLayouts)
	for i, l := range index.NumbersOf[uint32](index.AllLayouts) {
		if !slices.Equal(l.Formats(), wide[i].Formats()) {
			t.Errorf("%v: other formats for the other width", l.Name())
		}
		for _, f := range l.Formats() {
			if f.Strings || index.NumbersIn[uint32](f) != l || index.NumbersIn[uint64](f) != wide[i] {
				t.Errorf("format %v leads to another layout than %v", f, l.Name())
			}
		}
	}
	for _, l := range index.StringsOf(index.AllLayouts) {
		for _, f := range l.Formats() {
			if !f.Strings || index.StringsIn(f) != l {
				t.Errorf("format %v leads to another layout than %v", f, l.Name())
			}
		}
	}
}

// Sections of keys have other numbers than those of values, and a number means
// the same in every format.
func TestSectionsDiffer(t *testing.T) {
	known := map[uint32]string{}
	for _, k := range []files.SectionKind{files.Column, files.Rows, files.ValueOffsets, files.ValueBytes} {
		known[k.Number] = k.Name
	}
	values := len(known)
	for _, f := range index.Formats() {
		seen := map[uint32]bool{}
		for _, k := range f.Sections {
			if name, ok := known[k.Number]; ok && name != k.Name {
				t.Errorf("format %v: section %d is %q, and %q elsewhere", f, k.Number, k.Name, name)
			}
			if seen[k.Number] || k.Number == 0 || k.Name == "" {
				t.Errorf("format %v: section %+v", f, k)
			}
			known[k.Number], seen[k.Number] = k.Name, true
		}
		for _, k := range []files.SectionKind{files.Column, files.Rows, files.ValueOffsets, files.ValueBytes} {
			if seen[k.Number] {
				t.Errorf("format %v has keys in section %v, which is one of values", f, k)
			}
		}
	}
	names := map[string]bool{}
	for _, name := range known {
		names[name] = true
	}
	if values != 4 || len(names) != len(known) {
		t.Errorf("%d numbers of sections for %d names, %d of values", len(known), len(names), values)
	}
}

package index

import (
	"fmt"
	"slices"

	"github.com/pando-index/pando/internal/blocked"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/packed"
	"github.com/pando-index/pando/internal/snapshot"
	"github.com/pando-index/pando/internal/strlist"
	"github.com/pando-index/pando/internal/trie"
	"github.com/pando-index/pando/internal/words"
)

// The table of layouts: a new one is a package, and a row here. Of several that
// serve, the first is taken.

func layoutsOfNumbers[C order.Code]() []layout.Numbers[C] {
	return []layout.Numbers[C]{
		implicit.Layout[C]{},
		blocked.Layout[C]{},
		packed.Layout[C]{},
		trie.Numbers[C]{},
	}
}

func layoutsOfStrings() []layout.Strings {
	return []layout.Strings{
		words.Layout{},
		strlist.Layout{},
		trie.Strings{},
	}
}

// Layouts are those that an index can have. The linker keeps the layouts in a table that
// the program refers to: one that asks for no layout, sets no limit and opens no file
// has the usual ones alone.
type Layouts struct {
	Narrow  func() []layout.Numbers[uint32]
	Wide    func() []layout.Numbers[uint64]
	Strings func() []layout.Strings
}

// AllLayouts is the whole table.
var AllLayouts = &Layouts{allNarrow, allWide, layoutsOfStrings}

// usualLayouts are those that an index gets if nothing is asked for.
var usualLayouts = &Layouts{usualNarrow, usualWide, usualStrings}

func allNarrow() []layout.Numbers[uint32] { return layoutsOfNumbers[uint32]() }
func allWide() []layout.Numbers[uint64]   { return layoutsOfNumbers[uint64]() }
func usualNarrow() []layout.Numbers[uint32] {
	return []layout.Numbers[uint32]{implicit.Layout[uint32]{}}
}
func usualWide() []layout.Numbers[uint64] { return []layout.Numbers[uint64]{implicit.Layout[uint64]{}} }
func usualStrings() []layout.Strings      { return []layout.Strings{words.Layout{}, strlist.Layout{}} }

// or returns the usual ones in the place of none.
func (l *Layouts) or() *Layouts {
	if l == nil {
		return usualLayouts
	}
	return l
}

// numbersOf returns the layouts of numbers among those that an index can have.
func numbersOf[C order.Code](l *Layouts) (out []layout.Numbers[C]) {
	switch out := any(&out).(type) {
	case *[]layout.Numbers[uint32]:
		*out = l.or().Narrow()
	case *[]layout.Numbers[uint64]:
		*out = l.or().Wide()
	}
	return out
}

// Formats lists the formats of files.
func Formats() (out []*snapshot.Format) {
	for _, l := range layoutsOfNumbers[uint64]() {
		out = append(out, l.Formats()...)
	}
	for _, l := range layoutsOfStrings() {
		out = append(out, l.Formats()...)
	}
	return out
}

// SettleNumbers returns the layout for n keys with values of valSize bytes in
// it, and reports whether these lie beside their keys.
func SettleNumbers[C order.Code](from *Layouts, asked layout.Kind, n, valSize int) (l layout.Numbers[C], pairs bool, err error) {
	for _, l := range numbersOf[C](from) {
		if pairs, ok := l.Settle(asked, n, valSize); ok {
			return l, pairs, nil
		}
	}
	if asked == layout.Pairs {
		return nil, false, Problem(ErrLayout, "pairs need %d-byte values without pointers beside these keys; leave Layout out", order.CodeBits[C]()/8)
	}
	return nil, false, Problem(ErrLayout, "numbers cannot be kept in layout %v; leave Layout out", asked)
}

// SettleStrings returns the layouts for strings: one behind the first is for
// strings that those before it cannot hold.
func SettleStrings(from *Layouts, asked layout.Kind) (serve []layout.Strings, err error) {
	for _, l := range from.or().Strings() {
		if l.Serves(asked) {
			serve = append(serve, l)
		}
	}
	if serve != nil {
		return serve, nil
	}
	return nil, Problem(ErrLayout, "string keys cannot be kept in layout %v; leave Layout out", asked)
}

// NumbersIn returns the layout of numbers that a file is in.
func NumbersIn[C order.Code](f *snapshot.Format) layout.Numbers[C] {
	return withFormat(numbersOf[C](AllLayouts), f)
}

// StringsIn returns the layout of strings that a file is in.
func StringsIn(f *snapshot.Format) layout.Strings { return withFormat(layoutsOfStrings(), f) }

// withFormat returns the layout that has a format.
func withFormat[L interface{ Formats() []*snapshot.Format }](layouts []L, f *snapshot.Format) L {
	for _, l := range layouts {
		if slices.Contains(l.Formats(), f) {
			return l
		}
	}
	panic(fmt.Sprintf("index: no such layout has format %v", f))
}

package index

import (
	"fmt"
	"slices"

	"github.com/pando-index/pando/internal/blocked"
	"github.com/pando-index/pando/internal/files"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/packed"
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
// has the usual ones alone. It names no type of theirs, since every package that uses a
// Config would compile the methods of those types again.
type Layouts struct {
	narrow, wide func() any // []layout.Numbers of the code
	strings      func() any // []layout.Strings
}

// AllLayouts is the whole table.
var AllLayouts = &Layouts{allNumbers[uint32], allNumbers[uint64], allStrings}

// usualLayouts are those that an index gets if nothing is asked for.
var usualLayouts = &Layouts{usualNumbers[uint32], usualNumbers[uint64], usualStrings}

func allNumbers[C order.Code]() any   { return layoutsOfNumbers[C]() }
func allStrings() any                 { return layoutsOfStrings() }
func usualNumbers[C order.Code]() any { return []layout.Numbers[C]{implicit.Layout[C]{}} }
func usualStrings() any               { return []layout.Strings{words.Layout{}, strlist.Layout{}} }

// or returns the usual ones in the place of none.
func (l *Layouts) or() *Layouts {
	if l == nil {
		return usualLayouts
	}
	return l
}

// NumbersOf returns the layouts of numbers among those that an index can have.
func NumbersOf[C order.Code](l *Layouts) []layout.Numbers[C] {
	if order.CodeBits[C]() == 32 {
		return l.or().narrow().([]layout.Numbers[C])
	}
	return l.or().wide().([]layout.Numbers[C])
}

// StringsOf returns the layouts of strings among those that an index can have.
func StringsOf(l *Layouts) []layout.Strings { return l.or().strings().([]layout.Strings) }

// Formats lists the formats of files.
func Formats() (out []*files.Format) {
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
func SettleNumbers[C order.Code](from *Layouts, asked layout.Name, n, valSize int) (l layout.Numbers[C], pairs bool, err error) {
	for _, l := range NumbersOf[C](from) {
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
func SettleStrings(from *Layouts, asked layout.Name) (serve []layout.Strings, err error) {
	for _, l := range StringsOf(from) {
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
func NumbersIn[C order.Code](f *files.Format) layout.Numbers[C] {
	return withFormat(NumbersOf[C](AllLayouts), f)
}

// StringsIn returns the layout of strings that a file is in.
func StringsIn(f *files.Format) layout.Strings { return withFormat(layoutsOfStrings(), f) }

// withFormat returns the layout that has a format.
func withFormat[L interface{ Formats() []*files.Format }](layouts []L, f *files.Format) L {
	for _, l := range layouts {
		if slices.Contains(l.Formats(), f) {
			return l
		}
	}
	panic(fmt.Sprintf("index: no such layout has format %v", f))
}

package index

import (
	"slices"
	"strings"
	"unsafe"

	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
)

// Inside is an index without its types, as package pandoview shows it. Its
// functions panic where the methods of the index do: after Close.
type Inside struct {
	Key, Value string // names of the types
	Type       order.Type
	Greatest   uint64 // code of numbers
	Mutable    bool
	Stats      func() Stats
	// Layout returns the tree that holds the keys. The interfaces of package layout
	// that it implements say what can be shown of it.
	Layout func() any
	// Get returns the value of a key as text, and reports whether there is one.
	Get func(key order.Probe) (val string, ok bool)
	// Val returns the value of an entry by its number, -1 if that is not known, and
	// its key, of which the end may be missing.
	Val func(entry int, key order.Probe) (val string, ok bool)
	// Codes returns the codes of at most n entries around a key, in order and
	// without equal ones. Keys must not be strings.
	Codes func(around order.Probe, n int) []uint64
	// Texts does the same for keys that are strings, up to mostTexts bytes of them.
	Texts func(around order.Probe, n int) []string
	// Format and Parse make text of a key, and a key of text.
	Format func(key order.Probe) string
	Parse  func(text string) (order.Probe, error)
	// Columns returns how keys and values of a Tree are written to the log of a store.
	Columns func() (*Columns, error)
	// Bind makes the limit of a Tree count that was made with the option Loose. No goroutine may
	// change the tree meanwhile.
	Bind func()
}

// Loose is an Option of package pando, which sets it, for package pandostore: the
// MemoryLimit of a Tree does not count until Inside's Bind is called. To bring a tree back
// may take more memory than it took in its first life.
var Loose any

// Greatest returns the greatest code of a type of fixed width.
func (t KeyType) Greatest() uint64 { return 1<<max(keyWidth(t.Name)-1, 0)<<1 - 1 }

// mostValue bounds the text of a value.
const mostValue = 1000

// Inside returns the view of the index. now returns the index, or panics if it
// was closed.
func (ix *Index) Inside(now func() *Index) *Inside {
	return &Inside{
		Key: ix.key.Name, Value: ix.values.Name(), Type: ix.key.Type, Greatest: ix.key.Greatest(),
		Stats:  func() Stats { return now().Stats() },
		Layout: func() any { return now().shown() },
		Get: func(key order.Probe) (string, bool) {
			v, ok := now().Get(key)
			return ix.values.Text(v), ok
		},
		Val: func(entry int, key order.Probe) (string, bool) {
			ix := now()
			if entry >= 0 && entry < ix.n { // equal keys have values of their own
				if k := ix.Key(entry); k.Code == key.Code && strings.HasPrefix(k.Text, key.Text) {
					return ix.values.Text(ix.Val(entry)), true
				}
			}
			v, ok := ix.Get(key)
			return ix.values.Text(v), ok
		},
		Codes: func(around order.Probe, n int) []uint64 {
			ix := now()
			at, _ := ix.Seek(around)
			lo := max(0, min(at-n/2, ix.n-n))
			var out []uint64
			for i := lo; i < min(lo+n, ix.n); i++ {
				out = append(out, ix.Key(i).Code)
			}
			return slices.Compact(out)
		},
		Texts: func(around order.Probe, n int) []string { return now().textsAround(around, n) },
	}
}

// MostTexts bounds the bytes of strings that are copied to be shown.
const MostTexts = 4 << 20

// textsAround returns at most n strings around a key.
func (ix *Index) textsAround(around order.Probe, n int) (out []string) {
	at, _ := ix.Seek(around)
	lo, size := max(0, min(at-n/2, ix.n-n)), 0
	for i := lo; i < min(lo+n, ix.n) && size < MostTexts; i++ {
		s := ix.Key(i).Text
		size += len(s)
		out = append(out, s)
	}
	return slices.Compact(out)
}

// shown returns the tree of the index.
func (ix *Index) shown() any {
	if e, ok := ix.Engine.(Shower); ok {
		return e.Shown()
	}
	return ix.Body()
}

// Sample builds a tree of codes in order, in the layout of a given name where
// that serves numbers, else in the best: a small stand-in for an index, to try
// things with. bits is the width of a code.
func Sample(bits int, kind layout.Kind, codes []uint64) (layout.Body, error) {
	if bits == 32 {
		narrow := make([]uint32, len(codes))
		for i, c := range codes {
			narrow[i] = uint32(c)
		}
		return sample(kind, narrow)
	}
	return sample(kind, codes)
}

// SampleStrings does the same for strings in order.
func SampleStrings(kind layout.Kind, texts []string) (layout.StringTree, error) {
	layouts, err := SettleStrings(AllLayouts, kind)
	if err != nil {
		return nil, err
	}
	return layouts[0].Build(texts, nil, layout.Config{Workers: 1})
}

func sample[C order.Code](kind layout.Kind, codes []C) (layout.Body, error) {
	cfg, size := layout.Config{Workers: 1}, int(unsafe.Sizeof(C(0)))
	lay, pairs, err := SettleNumbers[C](AllLayouts, kind, len(codes), size)
	if err != nil {
		lay, pairs, err = SettleNumbers[C](AllLayouts, layout.Auto, len(codes), size)
	}
	if err != nil {
		return nil, err
	}
	src := layout.Source[C]{Len: len(codes), Codes: codes}
	if pairs {
		cfg.Pairs, cfg.ValSize, src.Vals = true, size, unsafe.Pointer(unsafe.SliceData(codes))
	}
	return lay.Build(src, cfg)
}

package index

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
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
	// Bind makes the limit of a Tree count that was made Loose. No goroutine may
	// change the tree meanwhile.
	Bind func()
}

// face returns the handle of an index of the face, and the Go type of its keys; nil for
// anything else. Package pando sets it.
var face func(ix any) (handle any, key reflect.Type)

// SetFace makes f the function that InsideOf asks for a *pando.Frozen or a *pando.Tree:
// packages of this module look into them, and nobody else does.
func SetFace(f func(ix any) (handle any, key reflect.Type)) { face = f }

// HandleOf returns the handle of a *pando.Frozen or a *pando.Tree, and the Go type of its keys.
func HandleOf(ix any) (handle any, key reflect.Type) { return face(ix) }

// InsideOf returns a function that returns the view of an index, or panics if it was
// closed. ix is a *pando.Frozen, a *pando.Tree, or has that function as a method; for
// anything else InsideOf returns false. A handle is asked here and not by the face, so that
// the linker leaves Inside out of programs that do not look into an index.
func InsideOf(ix any) (inside func() *Inside, ok bool) {
	if in, ok := ix.(interface{ Inside() *Inside }); ok {
		return in.Inside, true
	}
	if face == nil {
		return nil, false
	}
	handle, key := face(ix)
	h, ok := handle.(interface {
		Inside(key reflect.Type) *Inside
	})
	if !ok {
		return nil, false
	}
	return func() *Inside { return h.Inside(key) }, true
}

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
				if k := ix.Engine.Key(entry); k.Code == key.Code && strings.HasPrefix(k.Text, key.Text) {
					return ix.values.Text(ix.Val(entry)), true
				}
			}
			v, ok := ix.Get(key)
			return ix.values.Text(v), ok
		},
		Codes: func(around order.Probe, n int) []uint64 {
			ix := now()
			at, _ := ix.Engine.Seek(around)
			lo := max(0, min(at-n/2, ix.n-n))
			var out []uint64
			for i := lo; i < min(lo+n, ix.n); i++ {
				out = append(out, ix.Engine.Key(i).Code)
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
	at, _ := ix.Engine.Seek(around)
	lo, size := max(0, min(at-n/2, ix.n-n)), 0
	for i := lo; i < min(lo+n, ix.n) && size < MostTexts; i++ {
		s := ix.Engine.Key(i).Text
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
	return ix.Engine.Body()
}

// Sample builds a tree of codes in order, in the layout of a given name where
// that serves numbers, else in the best: a small stand-in for an index, to try
// things with. bits is the width of a code.
func Sample(bits int, kind layout.Name, codes []uint64) (layout.Body, error) {
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
func SampleStrings(kind layout.Name, texts []string) (layout.StringTree, error) {
	layouts, err := SettleStrings(AllLayouts, kind)
	if err != nil {
		return nil, err
	}
	return layouts[0].Build(texts, nil, layout.Config{Workers: 1})
}

func sample[C order.Code](kind layout.Name, codes []C) (layout.Body, error) {
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

// WithText adds how keys of a Go type are read and written.
func (in *Inside) WithText(typ reflect.Type) *Inside {
	in.Format = func(p order.Probe) string { return KeyText(in.Type, typ, p) }
	in.Parse = func(text string) (order.Probe, error) {
		k, at := newKey(in.Type, typ)
		err := parseKey(k, text)
		return at.Probe(0), err
	}
	return in
}

// KeyText returns the text of a key of a Go type, as fmt has it.
func KeyText(t order.Type, typ reflect.Type, p order.Probe) string {
	k, at := newKey(t, typ)
	at.SetProbe(0, p)
	return fmt.Sprint(k.Interface())
}

// newKey returns a key of a Go type, and where it lies.
func newKey(t order.Type, typ reflect.Type) (reflect.Value, order.Keys) {
	k := reflect.New(typ)
	return k.Elem(), order.KeysAt(t, k.UnsafePointer(), 1)
}

// parseKey sets a key to the one that text names.
func parseKey(to reflect.Value, text string) (err error) {
	switch bits := to.Type().Bits; to.Kind() {
	case reflect.String:
		to.SetString(text)
	case reflect.Float32, reflect.Float64:
		var f float64
		f, err = strconv.ParseFloat(text, bits())
		to.SetFloat(f)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		var i int64
		i, err = strconv.ParseInt(text, 0, bits())
		to.SetInt(i)
	default:
		var u uint64
		u, err = strconv.ParseUint(text, 0, bits())
		to.SetUint(u)
	}
	if err != nil {
		return fmt.Errorf("%q is no key of type %v", text, to.Type())
	}
	return nil
}

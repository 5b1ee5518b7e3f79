package index

import (
	"slices"
	"strings"
	"unsafe"

	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/op"
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
}

// greatest returns the greatest code of a type of fixed width.
func (t KeyType) greatest() uint64 { return 1<<max(keyWidth(t.Name)-1, 0)<<1 - 1 }

// mostValue bounds the text of a value.
const mostValue = 1000

// Inside returns the view of the index. now returns the index, or panics if it
// was closed.
func (ix *Index) Inside(now func() *Index) *Inside {
	return &Inside{
		Key: ix.key.Name, Value: ix.values.name(), Type: ix.key.Type, Greatest: ix.key.greatest(),
		Stats:  func() Stats { return now().Stats() },
		Layout: func() any { return now().shown() },
		Get: func(key order.Probe) (string, bool) {
			v, ok := now().Get(key)
			return ix.values.text(v), ok
		},
		Val: func(entry int, key order.Probe) (string, bool) {
			ix := now()
			if entry >= 0 && entry < ix.n { // equal keys have values of their own
				if k := ix.Key(entry); k.Code == key.Code && strings.HasPrefix(k.Text, key.Text) {
					return ix.values.text(ix.Val(entry)), true
				}
			}
			v, ok := ix.Get(key)
			return ix.values.text(v), ok
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

// mostTexts bounds the bytes of strings that are copied to be shown.
const mostTexts = 4 << 20

// textsAround returns at most n strings around a key.
func (ix *Index) textsAround(around order.Probe, n int) (out []string) {
	at, _ := ix.Seek(around)
	lo, size := max(0, min(at-n/2, ix.n-n)), 0
	for i := lo; i < min(lo+n, ix.n) && size < mostTexts; i++ {
		s := ix.Key(i).Text
		size += len(s)
		out = append(out, s)
	}
	return slices.Compact(out)
}

// shown returns the tree of the index, that of its moment where it is a snapshot.
func (ix *Index) shown() any {
	if m, ok := ix.engine.(interface{ shown() any }); ok {
		return m.shown()
	}
	return ix.body()
}

func (e *momentOf[C]) shown() any { return e.view }

// Inside returns the view of the map. alive panics if it was closed.
func (m *Map) Inside(alive func()) *Inside {
	return &Inside{
		Key: m.key.Name, Value: m.val.name(), Type: m.key.Type, Greatest: m.key.greatest(), Mutable: true, Columns: m.Columns,
		Stats:  func() Stats { alive(); return m.Stats() },
		Layout: func() any { alive(); return m.shown() },
		Get: func(key order.Probe) (string, bool) {
			alive()
			v, ok := m.Get(key)
			return m.val.text(v), ok
		},
		Val: func(_ int, key order.Probe) (string, bool) {
			alive()
			v, ok := m.Get(key)
			return m.val.text(v), ok
		},
		Codes: func(around order.Probe, n int) (out []uint64) {
			alive()
			for _, k := range m.around(around, n) {
				out = append(out, k.Code)
			}
			slices.Sort(out) // others may write meanwhile
			return slices.Compact(out)
		},
		Texts: func(around order.Probe, n int) (out []string) {
			alive()
			for _, k := range m.around(around, n) {
				out = append(out, k.Text)
			}
			slices.Sort(out)
			return slices.Compact(out)
		},
	}
}

// around returns the keys of at most n entries around a key, up to mostTexts
// bytes of strings.
func (m *Map) around(key order.Probe, n int) (out []order.Probe) {
	c := m.cursor()
	defer c.Done()
	size := 0
	read := func(down bool, most int) {
		if !c.move(Edge{Key: key}, down) {
			return
		}
		for len(out) < most && size < mostTexts {
			k, _, ok := c.next()
			if !ok {
				return
			}
			k.Text = strings.Clone(k.Text) // the cursor's memory may be used again
			size += len(k.Text)
			out = append(out, k)
		}
	}
	read(true, n/2)
	read(false, n)
	return out
}

func (t *textMap) shown() any { return t.Tree }

func (e *textMoment) shown() any { return e.Snapshot }

func (t *codes[C]) shown() any { return t.Tree }

// Recorded is a tree that records its changes.
type Recorded interface{ Record(r *bplus.Recorder) }

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

// SampleTree builds a mutable tree of codes in order, to try changes with. bits is the
// width of a code. It is here since the trees of both widths are compiled here anyway.
func SampleTree(bits int, codes []uint64) (bplus.Scratch, error) {
	if bits == 32 {
		return sampleTree[uint32](codes)
	}
	return sampleTree[uint64](codes)
}

func sampleTree[C order.Code](codes []uint64) (bplus.Scratch, error) {
	t, err := bplus.Load(len(codes), func(lo int, keys, vals []C) {
		for i := range keys {
			keys[i], vals[i] = C(codes[lo+i]), 0
		}
	}, 0, 1)
	if err != nil {
		return nil, err
	}
	return scratch[C]{t}, nil
}

// scratch implements bplus.Scratch.
type scratch[C order.Code] struct{ t *bplus.Tree[C] }

func (s scratch[C]) Record(r *bplus.Recorder)          { s.t.Record(r) }
func (s scratch[C]) Note(step bplus.Step, code uint64) { s.t.Note(step, C(code)) }
func (s scratch[C]) NoteSearch(code uint64)            { s.t.NoteSearch(C(code)) }
func (s scratch[C]) Close()                            { s.t.Close() }

func (s scratch[C]) Set(code uint64) error {
	_, _, err := s.t.Set(C(code), 0)
	return err
}

func (s scratch[C]) Apply(codes []uint64) error {
	ops := &bplus.Ops[C]{Kind: op.Set, Keys: make([]C, len(codes)), Vals: make([]C, len(codes))}
	for i, c := range codes {
		ops.Keys[i] = C(c)
	}
	return s.t.Apply(ops, 1)
}

package live

import (
	"slices"
	"strings"

	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
)

// Inside returns the view of the map. alive panics if it was closed.
func (m *Map) Inside(alive func()) *index.Inside {
	return &index.Inside{
		Key: m.key.Name, Value: m.val.Name(), Type: m.key.Type, Greatest: m.key.Greatest(), Mutable: true,
		Columns: func() (*index.Columns, error) { return index.NewColumns(m.key, m.val, m.codec) },
		Bind:    m.bind,
		Stats:   func() index.Stats { alive(); return m.Stats() },
		Layout:  func() any { alive(); return m.tree.Shown() },
		Get: func(key order.Probe) (string, bool) {
			alive()
			v, ok := m.Get(key)
			return m.val.Text(v), ok
		},
		Val: func(_ int, key order.Probe) (string, bool) {
			alive()
			v, ok := m.Get(key)
			return m.val.Text(v), ok
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

// around returns the keys of at most n entries around a key, up to index.MostTexts
// bytes of strings.
func (m *Map) around(key order.Probe, n int) (out []order.Probe) {
	c := m.tree.Cursor()
	defer c.Done()
	size := 0
	read := func(down bool, most int) {
		if !c.Move(index.Edge{Key: key}, down) {
			return
		}
		for len(out) < most && size < index.MostTexts {
			k, _, ok := c.Next()
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

// Recorded is a tree that records its changes.
type Recorded interface{ Record(r *bplus.Recorder) }

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

package peers

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/plar/go-adaptive-radix-tree/v2"
	"github.com/tidwall/btree"
)

// TextSystem is an index over texts.
type TextSystem interface {
	Name() string
	BytesPerEntry() float64
	Get(q []string, vals []uint64, found []bool) (hits int)
	Close()
}

// TextMaker builds one.
type TextMaker struct {
	Name  string
	Peak  func(key float64) float64 // maximum bytes per entry while it is built, given the bytes per key
	Build func(*data.Texts) (TextSystem, error)
}

// BuildTexts builds the systems, the heaviest last, and leaves out those that
// do not fit into free memory. They are returned in the order of makers.
func BuildTexts(s *contest.Session, t *data.Texts, makers []TextMaker) ([]TextSystem, error) {
	order := make([]int, len(makers))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(makers[a].Peak(t.Mean), makers[b].Peak(t.Mean)) })
	built := make([]TextSystem, len(makers))
	for _, i := range order {
		m := makers[i]
		if !s.Fits(m.Name, len(t.Keys), m.Peak(t.Mean)) {
			continue
		}
		s.Say("building %s, %s %s ...", m.Name, contest.SizeText(len(t.Keys)), t.Label)
		restore := contest.LimitHeap()
		sys, err := m.Build(t)
		restore()
		if err != nil {
			CloseAll(slices.DeleteFunc(built, func(sys TextSystem) bool { return sys == nil }))
			return nil, fmt.Errorf("building %s, n %s: %w", m.Name, contest.SizeText(len(t.Keys)), err)
		}
		built[i] = sys
	}
	return slices.DeleteFunc(built, func(sys TextSystem) bool { return sys == nil }), nil
}

// TextMakers returns every system over strings that is not Pando. Those that
// keep strings as they are get the dataset's own, in key order, and are
// charged for their bytes.
func TextMakers() []TextMaker {
	return []TextMaker{MakeTextART(), makeTextBinary(), makeTextTidwall(), makeTextMap()}
}

// textART is plar's tree, which keeps a slice of bytes for each key.
type textART struct {
	heapBuilt
	tree art.Tree
}

// MakeTextART returns plar's adaptive radix tree.
func MakeTextART() TextMaker {
	// A copy of the key, the leaf, the value's box, and inner nodes.
	return TextMaker{Name: NameART, Peak: func(key float64) float64 { return key + 150 }, Build: func(t *data.Texts) (TextSystem, error) {
		sys := &textART{}
		grown := contest.HeapGrowth(func() {
			sys.tree = art.New()
			for i, k := range t.Keys {
				sys.tree.Insert(art.Key(k), t.Vals[i])
			}
		})
		sys.perEntry = grown / float64(len(t.Keys))
		return sys, nil
	}}
}

func (t *textART) Name() string { return NameART }

func (t *textART) Close() { t.tree = nil }

func (t *textART) Get(q []string, vals []uint64, found []bool) (hits int) {
	var key art.Key
	for i, k := range q {
		key = append(key[:0], k...) // cheaper than a slice per query
		v, ok := t.tree.Search(key)
		vals[i], found[i] = 0, ok
		if ok {
			vals[i] = v.(uint64)
			hits++
		}
	}
	return hits
}

// textBinary is the sorted slice of strings, and a slice of values.
type textBinary struct{ t *data.Texts }

func makeTextBinary() TextMaker {
	return TextMaker{Name: NameBinary, Peak: func(float64) float64 { return 0 }, Build: func(t *data.Texts) (TextSystem, error) {
		return textBinary{t}, nil
	}}
}

func (b textBinary) Name() string { return NameBinary }

func (b textBinary) Close() {}

func (b textBinary) BytesPerEntry() float64 { return b.t.Mean + data.StringHeader + data.TextValue }

func (b textBinary) Get(q []string, vals []uint64, found []bool) (hits int) {
	for i, k := range q {
		at, ok := slices.BinarySearch(b.t.Keys, k)
		vals[i], found[i] = 0, ok
		if ok {
			vals[i] = b.t.Vals[at]
			hits++
		}
	}
	return hits
}

// textTidwall is tidwall/btree's Map over strings.
type textTidwall struct {
	heapBuilt
	tree *btree.Map[string, uint64]
}

func makeTextTidwall() TextMaker {
	return TextMaker{Name: NameTidwallMap, Peak: func(float64) float64 { return treePeak * (data.StringHeader + data.TextValue) }, Build: func(t *data.Texts) (TextSystem, error) {
		sys := &textTidwall{}
		grown := contest.HeapGrowth(func() {
			sys.tree = new(btree.Map[string, uint64])
			for i, k := range t.Keys {
				sys.tree.Load(k, t.Vals[i])
			}
		})
		sys.perEntry = grown/float64(len(t.Keys)) + t.Mean
		return sys, nil
	}}
}

func (t *textTidwall) Name() string { return NameTidwallMap }

func (t *textTidwall) Close() { t.tree = nil }

func (t *textTidwall) Get(q []string, vals []uint64, found []bool) (hits int) {
	for i, k := range q {
		v, ok := t.tree.Get(k)
		vals[i], found[i] = v, ok
		if ok {
			hits++
		}
	}
	return hits
}

// textMap is Go's map, the unordered reference.
type textMap struct {
	heapBuilt
	m map[string]uint64
}

func makeTextMap() TextMaker {
	return TextMaker{Name: NameGoMap, Peak: func(float64) float64 { return MapPeak * (data.StringHeader + data.TextValue) }, Build: func(t *data.Texts) (TextSystem, error) {
		sys := &textMap{}
		grown := contest.HeapGrowth(func() {
			sys.m = make(map[string]uint64, len(t.Keys))
			for i, k := range t.Keys {
				sys.m[k] = t.Vals[i]
			}
		})
		sys.perEntry = grown/float64(len(t.Keys)) + t.Mean
		return sys, nil
	}}
}

func (g *textMap) Name() string { return NameGoMap }

func (g *textMap) Close() { g.m = nil }

func (g *textMap) Get(q []string, vals []uint64, found []bool) (hits int) {
	for i, k := range q {
		v, ok := g.m[k]
		vals[i], found[i] = v, ok
		if ok {
			hits++
		}
	}
	return hits
}

// TextUpdater is a map of strings whose values change.
type TextUpdater interface {
	TextSystem
	Update(q []string, vals []uint64) error
}

// ARTUpdater returns plar's tree as a map whose values change.
func ARTUpdater(sys TextSystem) TextUpdater { return artUpdater{sys.(*textART)} }

// artUpdater is plar's tree, which one goroutine changes.
type artUpdater struct{ *textART }

func (t artUpdater) Update(q []string, vals []uint64) error {
	var key art.Key
	for i, k := range q {
		key = append(key[:0], k...)
		t.tree.Insert(key, vals[i])
	}
	return nil
}

package main

import (
	"slices"

	art "github.com/plar/go-adaptive-radix-tree/v2"
	"github.com/tidwall/btree"
)

// textPeers returns every system over strings that is not Pando. Those that
// keep strings as they are get the dataset's own, in key order, and are
// charged for their bytes.
func textPeers() []textMaker {
	return []textMaker{makeTextART(), makeTextBinary(), makeTextTidwall(), makeTextMap()}
}

// textART is plar's tree, which keeps a slice of bytes for each key.
type textART struct {
	heapBuilt
	tree art.Tree
}

func makeTextART() textMaker {
	// A copy of the key, the leaf, the value's box, and inner nodes.
	return textMaker{name: nameART, peak: func(key float64) float64 { return key + 150 }, build: func(t *texts) (textSystem, error) {
		sys := &textART{}
		grown := heapGrowth(func() {
			sys.tree = art.New()
			for i, k := range t.keys {
				sys.tree.Insert(art.Key(k), t.vals[i])
			}
		})
		sys.perEntry = grown / float64(len(t.keys))
		return sys, nil
	}}
}

func (t *textART) Name() string { return nameART }
func (t *textART) Close()       { t.tree = nil }

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
type textBinary struct{ t *texts }

const (
	stringHeader = 16
	textValue    = 8
)

func makeTextBinary() textMaker {
	return textMaker{name: nameBinary, peak: func(float64) float64 { return 0 }, build: func(t *texts) (textSystem, error) {
		return textBinary{t}, nil
	}}
}

func (b textBinary) Name() string           { return nameBinary }
func (b textBinary) Close()                 {}
func (b textBinary) BytesPerEntry() float64 { return b.t.mean + stringHeader + textValue }

func (b textBinary) Get(q []string, vals []uint64, found []bool) (hits int) {
	for i, k := range q {
		at, ok := slices.BinarySearch(b.t.keys, k)
		vals[i], found[i] = 0, ok
		if ok {
			vals[i] = b.t.vals[at]
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

func makeTextTidwall() textMaker {
	return textMaker{name: nameTidwallMap, peak: func(float64) float64 { return treePeak * (stringHeader + textValue) }, build: func(t *texts) (textSystem, error) {
		sys := &textTidwall{}
		grown := heapGrowth(func() {
			sys.tree = new(btree.Map[string, uint64])
			for i, k := range t.keys {
				sys.tree.Load(k, t.vals[i])
			}
		})
		sys.perEntry = grown/float64(len(t.keys)) + t.mean
		return sys, nil
	}}
}

func (t *textTidwall) Name() string { return nameTidwallMap }
func (t *textTidwall) Close()       { t.tree = nil }

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

func makeTextMap() textMaker {
	return textMaker{name: nameGoMap, peak: func(float64) float64 { return mapPeak * (stringHeader + textValue) }, build: func(t *texts) (textSystem, error) {
		sys := &textMap{}
		grown := heapGrowth(func() {
			sys.m = make(map[string]uint64, len(t.keys))
			for i, k := range t.keys {
				sys.m[k] = t.vals[i]
			}
		})
		sys.perEntry = grown/float64(len(t.keys)) + t.mean
		return sys, nil
	}}
}

func (g *textMap) Name() string { return nameGoMap }
func (g *textMap) Close()       { g.m = nil }

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

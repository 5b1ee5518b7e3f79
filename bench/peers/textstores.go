package peers

import (
	"github.com/plar/go-adaptive-radix-tree/v2"
	"github.com/tidwall/btree"
)

// TextStore is a map of strings that can be changed.
type TextStore interface {
	TextSystem
	// Set makes one call a key.
	Set(keys []string, vals []uint64) error
	// Each makes one call of Get a key.
	Each(q []string, vals []uint64, found []bool) (hits int)
	// Scan goes through all entries in key order.
	Scan() (entries int, sum uint64)
}

// TextStoreMaker makes an empty store.
type TextStoreMaker struct {
	Name string
	Make func() TextStore
}

// TextStores returns the maps of strings that are not Pando's.
func TextStores() []TextStoreMaker {
	return append([]TextStoreMaker{
		{NameART, func() TextStore { return &artText{textART{tree: art.New()}} }},
		{NameTidwallMap, func() TextStore { return &tidwallText{textTidwall{tree: new(btree.Map[string, uint64])}} }},
		{NameTidwallG, newTidwallGText},
		{NameGoMap, func() TextStore { return &mapText{textMap{m: map[string]uint64{}}} }},
	}, moreTextStores...)
}

// Weigh notes what an entry takes.
func (h *heapBuilt) Weigh(perEntry float64) { h.perEntry = perEntry }

type artText struct{ textART }

func (t *artText) Set(keys []string, vals []uint64) error {
	for i, k := range keys {
		t.tree.Insert(art.Key(k), vals[i])
	}
	return nil
}

func (t *artText) Each(q []string, vals []uint64, found []bool) int { return t.Get(q, vals, found) }

func (t *artText) Scan() (n int, sum uint64) {
	t.tree.ForEach(func(node art.Node) bool {
		n++
		sum += node.Value().(uint64)
		return true
	})
	return n, sum
}

type tidwallText struct{ textTidwall }

func (t *tidwallText) Set(keys []string, vals []uint64) error {
	for i, k := range keys {
		t.tree.Set(k, vals[i])
	}
	return nil
}

func (t *tidwallText) Each(q []string, vals []uint64, found []bool) int { return t.Get(q, vals, found) }

func (t *tidwallText) Scan() (n int, sum uint64) {
	t.tree.Scan(func(_ string, v uint64) bool {
		n++
		sum += v
		return true
	})
	return n, sum
}

// tidwallGText is tidwall/btree's BTreeG without its lock.
type tidwallGText struct {
	heapBuilt
	tree *btree.BTreeG[textPair]
}

type textPair struct {
	key string
	val uint64
}

func newTidwallGText() TextStore {
	return &tidwallGText{tree: btree.NewBTreeGOptions(func(a, b textPair) bool { return a.key < b.key }, btree.Options{NoLocks: true})}
}

func (t *tidwallGText) Name() string { return NameTidwallG }

func (t *tidwallGText) Close() { t.tree = nil }

func (t *tidwallGText) Set(keys []string, vals []uint64) error {
	for i, k := range keys {
		t.tree.Set(textPair{k, vals[i]})
	}
	return nil
}

func (t *tidwallGText) Get(q []string, vals []uint64, found []bool) (hits int) {
	for i, k := range q {
		p, ok := t.tree.Get(textPair{key: k})
		if vals[i], found[i] = p.val, ok; ok {
			hits++
		}
	}
	return hits
}

func (t *tidwallGText) Each(q []string, vals []uint64, found []bool) int {
	return t.Get(q, vals, found)
}

func (t *tidwallGText) Scan() (n int, sum uint64) {
	t.tree.Scan(func(p textPair) bool {
		n++
		sum += p.val
		return true
	})
	return n, sum
}

type mapText struct{ textMap }

func (g *mapText) Set(keys []string, vals []uint64) error {
	for i, k := range keys {
		g.m[k] = vals[i]
	}
	return nil
}

func (g *mapText) Each(q []string, vals []uint64, found []bool) int { return g.Get(q, vals, found) }

func (g *mapText) Scan() (n int, sum uint64) {
	for _, v := range g.m {
		n++
		sum += v
	}
	return n, sum
}

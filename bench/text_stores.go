package main

import (
	art "github.com/plar/go-adaptive-radix-tree/v2"
	"github.com/tidwall/btree"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/papers/fast"
)

// textStores returns the maps of strings that can be changed, Pando's first.
func textStores() []textStoreMaker {
	return append([]textStoreMaker{
		{namePandoTree, newTreeText},
		{nameTextPages, func() textStore { return &pagesText{fast.NewTextPages()} }},
		{nameART, func() textStore { return &artText{textART{tree: art.New()}} }},
		{nameTidwallMap, func() textStore { return &tidwallText{textTidwall{tree: new(btree.Map[string, uint64])}} }},
		{nameTidwallG, newTidwallGText},
		{nameGoMap, func() textStore { return &mapText{textMap{m: map[string]uint64{}}} }},
	}, moreTextStores...)
}

// weigh notes what an entry takes.
func (h *heapBuilt) weigh(perEntry float64) { h.perEntry = perEntry }

// treeText is Pando's Tree.
type treeText struct {
	tree *pando.Tree[string, uint64]
}

func newTreeText() textStore {
	t, err := pando.NewTree[string, uint64](pando.On(pando.CPU), pando.Workers(1))
	if err != nil {
		panic(err)
	}
	return &treeText{t}
}

func (t *treeText) Name() string           { return namePandoTree }
func (t *treeText) Close()                 { t.tree.Close() }
func (t *treeText) BytesPerEntry() float64 { return perEntry(t.tree.Stats()) }

func (t *treeText) Set(keys []string, vals []uint64) error {
	for i, k := range keys {
		if err := t.tree.Set(k, vals[i]); err != nil {
			return err
		}
	}
	return nil
}

func (t *treeText) Get(q []string, vals []uint64, found []bool) int {
	return t.tree.GetBatch(q, vals, found)
}

func (t *treeText) Each(q []string, vals []uint64, found []bool) (hits int) {
	for i, k := range q {
		if vals[i], found[i] = t.tree.Get(k); found[i] {
			hits++
		}
	}
	return hits
}

func (t *treeText) Scan() (n int, sum uint64) {
	for _, v := range t.tree.All() {
		n++
		sum += v
	}
	return n, sum
}

// nameTextPages is the radix tree's rival: a prototype for one goroutine, without
// deletes and snapshots.
const nameTextPages = "pages of strings, prototype"

type pagesText struct{ *fast.TextPages }

func (t *pagesText) Name() string           { return nameTextPages }
func (t *pagesText) Close()                 {}
func (t *pagesText) BytesPerEntry() float64 { return float64(t.Bytes()) / float64(t.Len()) }

func (t *pagesText) Set(keys []string, vals []uint64) error {
	for i, k := range keys {
		t.TextPages.Set(k, vals[i])
	}
	return nil
}

func (t *pagesText) Get(q []string, vals []uint64, found []bool) int {
	return t.GetBatch(q, vals, found)
}

func (t *pagesText) Each(q []string, vals []uint64, found []bool) (hits int) {
	for i, k := range q {
		if vals[i], found[i] = t.TextPages.Get(k); found[i] {
			hits++
		}
	}
	return hits
}

func (t *pagesText) Scan() (n int, sum uint64) {
	t.TextPages.Scan(func(_ string, v uint64) bool {
		n++
		sum += v
		return true
	})
	return n, sum
}

// frozenTextStore is a Frozen, which is only read.
type frozenTextStore struct{ *frozenText }

func (f *frozenTextStore) Set([]string, []uint64) error { panic("a Frozen does not change") }

func (f *frozenTextStore) Each(q []string, vals []uint64, found []bool) int {
	return f.Get(q, vals, found)
}

func (f *frozenTextStore) Scan() (n int, sum uint64) {
	for _, v := range f.ix.All() {
		n++
		sum += v
	}
	return n, sum
}

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

func newTidwallGText() textStore {
	return &tidwallGText{tree: btree.NewBTreeGOptions(func(a, b textPair) bool { return a.key < b.key }, btree.Options{NoLocks: true})}
}

func (t *tidwallGText) Name() string { return nameTidwallG }
func (t *tidwallGText) Close()       { t.tree = nil }

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

package ours

import (
	"github.com/pando-index/pando"
	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/peers"
)

// FrozenText is Pando with strings as keys.
type FrozenText struct {
	label string
	Ix    *pando.Frozen[string, uint64]
}

func makeText(label string, opts ...pando.Option) peers.TextMaker {
	return peers.TextMaker{Name: label, Peak: func(key float64) float64 { return 2 * (key + 16) }, Build: func(t *data.Texts) (peers.TextSystem, error) {
		f, err := FreezeTexts(t, label, 1, opts...)
		if err != nil {
			return nil, err
		}
		return f, nil
	}}
}

// FreezeTexts builds an index of strings.
func FreezeTexts(t *data.Texts, label string, threads int, opts ...pando.Option) (*FrozenText, error) {
	ix, err := pando.Freeze(t.Keys, t.Vals, append([]pando.Option{pando.On(pando.CPU), pando.Workers(threads)}, opts...)...)
	if err != nil {
		return nil, err
	}
	return &FrozenText{label, ix}, nil
}

// Texts returns Pando with each engine for strings, the default first.
func Texts() []peers.TextMaker {
	return []peers.TextMaker{
		makeText(contest.Pando),
		makeText(NameApart, pando.Layout(pando.Apart)),
	}
}

// Name returns the name of its row.
func (f *FrozenText) Name() string { return f.label }

// Close frees what it holds.
func (f *FrozenText) Close() { f.Ix.Close() }

// BytesPerEntry returns the bytes that an entry takes.
func (f *FrozenText) BytesPerEntry() float64 { return perEntry(f.Ix.Stats()) }

// Get answers a batch, and counts the hits.
func (f *FrozenText) Get(q []string, vals []uint64, found []bool) int {
	return f.Ix.GetBatch(q, vals, found)
}

// GetBytes is Get for strings that lie one behind the other.
func (f *FrozenText) GetBytes(data []byte, offsets []int32, vals []uint64, found []bool) int {
	return f.Ix.GetBatchBytes(data, offsets, vals, found)
}

// FrozenTextSet is Pando over strings without values.
type FrozenTextSet struct {
	ix *pando.Frozen[string, struct{}]
}

// OpenTextSet builds it for one thread.
func OpenTextSet(keys []string) (FrozenTextSet, error) {
	ix, err := pando.Freeze(keys, make([]struct{}, len(keys)), pando.On(pando.CPU), pando.Workers(1))
	return FrozenTextSet{ix}, err
}

// Close frees what it holds.
func (f FrozenTextSet) Close() { f.ix.Close() }

// Rank counts the keys below each query.
func (f FrozenTextSet) Rank(q []string, ranks []int) { f.ix.RankBatch(q, ranks) }

// BytesPerEntry returns the bytes that an entry takes.
func (f FrozenTextSet) BytesPerEntry() float64 { return perEntry(f.ix.Stats()) }

// TreeText is Pando's Tree.
type TreeText struct {
	Tree *pando.Tree[string, uint64]
}

// NewTreeText returns an empty one.
func NewTreeText() *TreeText {
	t, err := pando.NewTree[string, uint64](pando.On(pando.CPU), pando.Workers(1))
	if err != nil {
		panic(err)
	}
	return &TreeText{t}
}

// Name returns the name of its row.
func (t *TreeText) Name() string { return NameTree }

// Close frees what it holds.
func (t *TreeText) Close() { t.Tree.Close() }

// BytesPerEntry returns the bytes that an entry takes.
func (t *TreeText) BytesPerEntry() float64 { return perEntry(t.Tree.Stats()) }

// Set makes one call a key.
func (t *TreeText) Set(keys []string, vals []uint64) error {
	for i, k := range keys {
		if err := t.Tree.Set(k, vals[i]); err != nil {
			return err
		}
	}
	return nil
}

// Get answers a batch, and counts the hits.
func (t *TreeText) Get(q []string, vals []uint64, found []bool) int {
	return t.Tree.GetBatch(q, vals, found)
}

// Each makes one call per query.
func (t *TreeText) Each(q []string, vals []uint64, found []bool) (hits int) {
	for i, k := range q {
		if vals[i], found[i] = t.Tree.Get(k); found[i] {
			hits++
		}
	}
	return hits
}

// Scan goes through all entries, and returns sums of what it has seen.
func (t *TreeText) Scan() (n int, sum uint64) {
	for _, v := range t.Tree.All() {
		n++
		sum += v
	}
	return n, sum
}

// FrozenTextStore is a Frozen, which is only read.
type FrozenTextStore struct{ *FrozenText }

// Set makes one call a key.
func (f *FrozenTextStore) Set([]string, []uint64) error { panic("a Frozen does not change") }

// Each makes one call per query.
func (f *FrozenTextStore) Each(q []string, vals []uint64, found []bool) int {
	return f.Get(q, vals, found)
}

// Scan goes through all entries, and returns sums of what it has seen.
func (f *FrozenTextStore) Scan() (n int, sum uint64) {
	for _, v := range f.Ix.All() {
		n++
		sum += v
	}
	return n, sum
}

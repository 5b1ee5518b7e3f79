package text

import (
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/papers/fast"
)

// textStores returns the maps of strings that can be changed, Pando's first.
func textStores() []peers.TextStoreMaker {
	return append([]peers.TextStoreMaker{
		{Name: ours.NameTree, Make: func() peers.TextStore { return ours.NewTreeText() }},
		{Name: nameTextPages, Make: func() peers.TextStore { return &pagesText{fast.NewTextPages()} }},
	}, peers.TextStores()...)
}

// nameTextPages is the radix tree's rival: a prototype for one goroutine, without
// deletes and snapshots.
const nameTextPages = "pages of strings, prototype"

type pagesText struct{ *fast.TextPages }

func (t *pagesText) Name() string { return nameTextPages }

func (t *pagesText) Close() {}

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

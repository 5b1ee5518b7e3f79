package peers

import (
	"encoding/binary"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/plar/go-adaptive-radix-tree/v2"
)

// radixTree is plar's adaptive radix tree, over the key's bytes from the
// highest down, so that its order is that of the numbers. It cannot list the
// range between two keys, so it does not take part in the range experiment.
type radixTree[W data.Word] struct {
	heapBuilt
	tree art.Tree
}

func makeART[W data.Word]() Maker[W] {
	return Maker[W]{Name: NameART, Peak: artPeak, Build: func(d *data.Dataset[W]) (System[W], error) {
		sys := &radixTree[W]{}
		grown := contest.HeapGrowth(func() {
			sys.tree = art.New()
			for i, k := range d.Keys {
				// The tree keeps the slice: each key needs its own.
				key := make(art.Key, data.BitsOf[W]()/8)
				putKey(key, k)
				sys.tree.Insert(key, d.Vals[i])
			}
		})
		sys.perEntry = grown / float64(len(d.Keys))
		return sys, nil
	}}
}

func putKey[W data.Word](dst art.Key, k W) {
	if len(dst) == 4 {
		binary.BigEndian.PutUint32(dst, uint32(k))
		return
	}
	binary.BigEndian.PutUint64(dst, uint64(k))
}

func (t *radixTree[W]) Name() string { return NameART }

func (t *radixTree[W]) Close() { t.tree = nil }

func (t *radixTree[W]) Get(q, vals []W, found []bool) (hits int) {
	key := make(art.Key, data.BitsOf[W]()/8)
	for i, k := range q {
		putKey(key, k)
		v, ok := t.tree.Search(key)
		vals[i], found[i] = 0, ok
		if ok {
			vals[i] = v.(W)
			hits++
		}
	}
	return hits
}

func (t *radixTree[W]) Each(q, vals []W) (hits int) {
	key := make(art.Key, data.BitsOf[W]()/8)
	for i, k := range q {
		putKey(key, k)
		if v, ok := t.tree.Search(key); ok {
			vals[i] = v.(W)
			hits++
		}
	}
	return hits
}

func (t *radixTree[W]) Chain(q, vals []W, mask W) (hits int) {
	key := make(art.Key, data.BitsOf[W]()/8)
	var last W
	for i, k := range q {
		putKey(key, k^last&mask)
		if v, ok := t.tree.Search(key); ok {
			last = v.(W)
			vals[i] = last
			hits++
		}
	}
	return hits
}

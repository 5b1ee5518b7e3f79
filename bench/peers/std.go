package peers

import (
	"slices"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
)

// Names of the peers, as the tables show them.
const (
	NameTidwallMap = "tidwall/btree Map"
	NameTidwallG   = "tidwall/btree BTreeG"
	NameGoogle     = "google/btree BTreeG"
	NameART        = "plar ART"
	NameBinary     = "slices.BinarySearch"
	NameGoMap      = "Go map (unordered)"
)

// BinarySearch is the sorted slice: no structure at all, and no memory except
// the pairs. It uses the dataset's own slices.
type BinarySearch[W data.Word] struct{ d *data.Dataset[W] }

// NewBinarySearch searches the dataset itself.
func NewBinarySearch[W data.Word](d *data.Dataset[W]) *BinarySearch[W] { return &BinarySearch[W]{d} }

// MakeBinarySearch returns a search in sorted slices with Go's library.
func MakeBinarySearch[W data.Word]() Maker[W] {
	return Maker[W]{Name: NameBinary, Build: func(d *data.Dataset[W]) (System[W], error) {
		return &BinarySearch[W]{d}, nil
	}}
}

// Name returns the name of its row.
func (b *BinarySearch[W]) Name() string { return NameBinary }

// BytesPerEntry returns the bytes that an entry takes.
func (b *BinarySearch[W]) BytesPerEntry() float64 { return data.PairBytes[W]() }

// Close frees what it holds.
func (b *BinarySearch[W]) Close() {}

// Get answers a batch, and counts the hits.
func (b *BinarySearch[W]) Get(q, vals []W, found []bool) (hits int) {
	for i, k := range q {
		at, ok := slices.BinarySearch(b.d.Keys, k)
		vals[i], found[i] = 0, ok
		if ok {
			vals[i] = b.d.Vals[at]
			hits++
		}
	}
	return hits
}

// Each makes one call per query.
func (b *BinarySearch[W]) Each(q, vals []W) (hits int) {
	for i, k := range q {
		if at, ok := slices.BinarySearch(b.d.Keys, k); ok {
			vals[i] = b.d.Vals[at]
			hits++
		}
	}
	return hits
}

// Chain makes one call per query, each of which waits for the one before.
func (b *BinarySearch[W]) Chain(q, vals []W, mask W) (hits int) {
	var v W
	for i, k := range q {
		if at, ok := slices.BinarySearch(b.d.Keys, k^v&mask); ok {
			v = b.d.Vals[at]
			vals[i] = v
			hits++
		}
	}
	return hits
}

// Rank counts the keys below each query.
func (b *BinarySearch[W]) Rank(q []W, ranks []int) {
	for i, k := range q {
		ranks[i], _ = slices.BinarySearch(b.d.Keys, k)
	}
}

// Ranges lists the entries of ranges.
func (b *BinarySearch[W]) Ranges(lo, hi []W, out *Flat[W]) {
	out.clear()
	for i, from := range lo {
		at, _ := slices.BinarySearch(b.d.Keys, from)
		end := at
		for end < len(b.d.Keys) && b.d.Keys[end] <= hi[i] {
			end++
		}
		out.Keys = append(out.Keys, b.d.Keys[at:end]...)
		out.Vals = append(out.Vals, b.d.Vals[at:end]...)
		out.Ends = append(out.Ends, len(out.Keys))
	}
}

// Scan goes through all entries, and returns sums of what it has seen.
func (b *BinarySearch[W]) Scan() (keySum, valSum W) {
	for i, k := range b.d.Keys {
		keySum, valSum = keySum+k, valSum+b.d.Vals[i]
	}
	return keySum, valSum
}

// goMap is Go's map, the unordered reference: it shows what giving up order
// gains.
type goMap[W data.Word] struct {
	heapBuilt
	m map[W]W
}

// MakeGoMap returns a map of Go, which has no order.
func MakeGoMap[W data.Word]() Maker[W] {
	return Maker[W]{Name: NameGoMap, Peak: MapPeak * data.PairBytes[W](), Build: func(d *data.Dataset[W]) (System[W], error) {
		sys := &goMap[W]{}
		grown := contest.HeapGrowth(func() { sys.m = loadGoMap(d) })
		sys.perEntry = grown / float64(len(d.Keys))
		return sys, nil
	}}
}

func loadGoMap[W data.Word](d *data.Dataset[W]) map[W]W {
	m := make(map[W]W, len(d.Keys))
	for i, k := range d.Keys {
		m[k] = d.Vals[i]
	}
	return m
}

func (g *goMap[W]) Name() string { return NameGoMap }

func (g *goMap[W]) Close() { g.m = nil }

func (g *goMap[W]) Get(q, vals []W, found []bool) (hits int) {
	for i, k := range q {
		v, ok := g.m[k]
		vals[i], found[i] = v, ok
		if ok {
			hits++
		}
	}
	return hits
}

func (g *goMap[W]) Each(q, vals []W) (hits int) {
	for i, k := range q {
		v, ok := g.m[k]
		vals[i] = v
		if ok {
			hits++
		}
	}
	return hits
}

func (g *goMap[W]) Chain(q, vals []W, mask W) (hits int) {
	var v W
	var ok bool
	for i, k := range q {
		v, ok = g.m[k^v&mask]
		vals[i] = v
		if ok {
			hits++
		}
	}
	return hits
}

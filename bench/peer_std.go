package main

import (
	"slices"
)

// Names of the peers, as the tables show them.
const (
	nameTidwallMap = "tidwall/btree Map"
	nameTidwallG   = "tidwall/btree BTreeG"
	nameGoogle     = "google/btree BTreeG"
	nameART        = "plar ART"
	nameBinary     = "slices.BinarySearch"
	nameGoMap      = "Go map (unordered)"
)

// binarySearch is the sorted slice: no structure at all, and no memory except
// the pairs. It uses the dataset's own slices.
type binarySearch[W word] struct{ d *dataset[W] }

func makeBinarySearch[W word]() maker[W] {
	return maker[W]{name: nameBinary, build: func(d *dataset[W]) (system[W], error) {
		return &binarySearch[W]{d}, nil
	}}
}

func (b *binarySearch[W]) Name() string           { return nameBinary }
func (b *binarySearch[W]) BytesPerEntry() float64 { return pairBytes[W]() }
func (b *binarySearch[W]) Close()                 {}

// pairBytes returns the size of a key and a value in bytes.
func pairBytes[W word]() float64 { return float64(2 * bitsOf[W]() / 8) }

func (b *binarySearch[W]) Get(q, vals []W, found []bool) (hits int) {
	for i, k := range q {
		at, ok := slices.BinarySearch(b.d.keys, k)
		vals[i], found[i] = 0, ok
		if ok {
			vals[i] = b.d.vals[at]
			hits++
		}
	}
	return hits
}

func (b *binarySearch[W]) Each(q, vals []W) (hits int) {
	for i, k := range q {
		if at, ok := slices.BinarySearch(b.d.keys, k); ok {
			vals[i] = b.d.vals[at]
			hits++
		}
	}
	return hits
}

func (b *binarySearch[W]) Chain(q, vals []W, mask W) (hits int) {
	var v W
	for i, k := range q {
		if at, ok := slices.BinarySearch(b.d.keys, k^v&mask); ok {
			v = b.d.vals[at]
			vals[i] = v
			hits++
		}
	}
	return hits
}

func (b *binarySearch[W]) Rank(q []W, ranks []int) {
	for i, k := range q {
		ranks[i], _ = slices.BinarySearch(b.d.keys, k)
	}
}

func (b *binarySearch[W]) Ranges(lo, hi []W, out *flat[W]) {
	out.clear()
	for i, from := range lo {
		at, _ := slices.BinarySearch(b.d.keys, from)
		end := at
		for end < len(b.d.keys) && b.d.keys[end] <= hi[i] {
			end++
		}
		out.keys = append(out.keys, b.d.keys[at:end]...)
		out.vals = append(out.vals, b.d.vals[at:end]...)
		out.ends = append(out.ends, len(out.keys))
	}
}

func (b *binarySearch[W]) Scan() (keySum, valSum W) {
	for i, k := range b.d.keys {
		keySum, valSum = keySum+k, valSum+b.d.vals[i]
	}
	return keySum, valSum
}

// goMap is Go's map, the unordered reference: it shows what giving up order
// gains.
type goMap[W word] struct {
	heapBuilt
	m map[W]W
}

func makeGoMap[W word]() maker[W] {
	return maker[W]{name: nameGoMap, peak: mapPeak * pairBytes[W](), build: func(d *dataset[W]) (system[W], error) {
		sys := &goMap[W]{}
		grown := heapGrowth(func() { sys.m = loadGoMap(d) })
		sys.perEntry = grown / float64(len(d.keys))
		return sys, nil
	}}
}

func loadGoMap[W word](d *dataset[W]) map[W]W {
	m := make(map[W]W, len(d.keys))
	for i, k := range d.keys {
		m[k] = d.vals[i]
	}
	return m
}

func (g *goMap[W]) Name() string { return nameGoMap }
func (g *goMap[W]) Close()       { g.m = nil }

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

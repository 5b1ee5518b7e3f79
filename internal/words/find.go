package words

import (
	"sync"
	"unsafe"

	"github.com/pando-index/pando/internal/simd"
)

// groupKeys is the number of queries that go through a step together.
const groupKeys = 256

// group is room for queries that are searched together.
type group struct {
	words   [groupKeys]uint64
	partial [groupKeys]uint32
	at      [groupKeys]int
	ranks   [groupKeys]int
	pending
}

var groups = sync.Pool{New: func() any { return new(group) }}

// Find sets ranks[i] to the number of the first string equal to keys[i], or to
// -1 where there is none.
func (t *Tree) Find(keys []string, ranks []int) {
	g := groups.Get().(*group)
	for len(keys) > 0 {
		n := min(len(keys), groupKeys)
		t.locate(g, keys[:n], ranks[:n])
		for i, key := range keys[:n] {
			ranks[i] = t.found(key, g.partial[i], ranks[i])
		}
		if t.valSize > 0 {
			simd.FetchEach(t.vals, ranks[:n], t.valSize)
		}
		keys, ranks = keys[n:], ranks[n:]
	}
	groups.Put(g)
}

// found returns the place of a key whose search has come to entry r, or -1.
func (t *Tree) found(key string, partial uint32, r int) int {
	at, equal := t.inRun(key, partial, r)
	if !equal && t.loose {
		at, equal = t.settle(key, at)
	}
	if !equal {
		return -1
	}
	return at
}

// Rank sets ranks[i] to the number of strings below keys[i].
func (t *Tree) Rank(keys []string, ranks []int) {
	g := groups.Get().(*group)
	for len(keys) > 0 {
		n := min(len(keys), groupKeys)
		t.locate(g, keys[:n], ranks[:n])
		for i, key := range keys[:n] {
			ranks[i] = t.ranked(key, g.partial[i], ranks[i])
		}
		keys, ranks = keys[n:], ranks[n:]
	}
	groups.Put(g)
}

// ranked returns the rank of a key whose search has come to entry r.
func (t *Tree) ranked(key string, partial uint32, r int) int {
	r, equal := t.inRun(key, partial, r)
	if !equal {
		r, _ = t.settle(key, r)
	}
	return r
}

// Seek returns the number of strings below key, and whether the one there is
// equal to it.
func (t *Tree) Seek(key string) (rank int, equal bool) {
	g := groups.Get().(*group)
	t.locate(g, []string{key}, g.ranks[:1])
	rank, equal = t.inRun(key, g.partial[0], g.ranks[0])
	groups.Put(g)
	if !equal {
		rank, equal = t.settle(key, rank)
	}
	return rank, equal
}

// After returns the number of strings up to key.
func (t *Tree) After(key string) int {
	r, equal := t.Seek(key)
	if !equal {
		return r
	}
	return t.gallop(r, func(s string) bool { return s <= key })
}

// locate takes a group of queries to the first entry of their page whose
// partial key is not below theirs, and fetches the full key there.
func (t *Tree) locate(g *group, keys []string, ranks []int) {
	n := len(keys)
	if t.n == 0 {
		clear(ranks[:n])
		return
	}
	simd.FetchStrings(keys)
	base := unsafe.Pointer(unsafe.SliceData(t.pages))
	clear(ranks[:n])
	simd.Extract(unsafe.Pointer(&t.nodes[0]), 0, ranks, keys, g.words[:n])
	t.root.Rank(g.words[:n], ranks)
	t.enter(g, keys, ranks)
	simd.FetchEach(base, ranks[:n], pageBytes)
	simd.Extract(base, pageBytes, ranks, keys, g.partial[:n])
	t.toLines(g, ranks[:n])
	simd.StepDown(&t.step, g.partial[:n], ranks)
	t.fetchKeys(g, keys, ranks)
}

// toLines replaces pages by their lines that queries belong to, and fetches
// those: partial keys and offsets.
func (t *Tree) toLines(g *group, ranks []int) {
	for i, p := range ranks {
		partial, line := g.partial[i], 0
		for _, s := range t.page(p).seps {
			if s < partial {
				line++
			}
		}
		ranks[i] = p*keyLines + line
		g.at[i] = p*pageLines + line
	}
	base := unsafe.Pointer(unsafe.SliceData(t.pages))
	simd.FetchEach(unsafe.Add(base, simd.LineBytes), g.at[:len(ranks)], simd.LineBytes)
	simd.FetchEach(unsafe.Add(base, (1+keyLines)*simd.LineBytes), g.at[:len(ranks)], simd.LineBytes)
}

// fetchKeys asks for the full keys of entries: as much of each as there is of
// the query, whose length a hit has.
func (t *Tree) fetchKeys(g *group, keys []string, ranks []int) {
	ranks = ranks[:len(keys)]
	for i, r := range ranks {
		if r >= t.n {
			r = t.n - 1
		}
		p := t.page(r / pageEntries)
		g.at[i] = int(p.Base) + int(p.offsets[r%pageEntries])
	}
	heap := unsafe.Pointer(unsafe.SliceData(t.bytes))
	simd.FetchEach(heap, g.at[:len(ranks)], 1)
	for i, k := range keys {
		g.at[i] += max(len(k), 1) - 1
	}
	simd.FetchEach(heap, g.at[:len(ranks)], 1)
}

// nearRun is the length from which on a run is searched by halving.
const nearRun = 4

// inRun returns the first entry from r on that is not below key, within the run
// of entries with the same partial key; else the one behind the run.
func (t *Tree) inRun(key string, partial uint32, r int) (rank int, equal bool) {
	if r >= t.n {
		return t.n, false
	}
	p := t.page(r / pageEntries)
	end := min((r/pageEntries+1)*pageEntries, t.n)
	for near := r + nearRun; r < end; r++ {
		s := t.view(r)
		if s == key {
			return r, true
		}
		if s > key {
			return r, false
		}
		if r+1 < end && p.partials[(r+1)%pageEntries] != partial {
			return r + 1, false
		}
		if r == near {
			break
		}
	}
	lo, hi := min(r+1, end), end // of a long run
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if p.partials[mid%pageEntries] == partial && t.view(mid) < key {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < end && t.view(lo) == key
}

// settle returns the rank of a key by full keys, beginning at a guess.
func (t *Tree) settle(key string, r int) (rank int, equal bool) {
	r = min(r, t.n)
	below := func(s string) bool { return s < key }
	if r < t.n && below(t.view(r)) {
		r = t.gallop(r, below)
	} else if r > 0 && !below(t.view(r-1)) {
		r = t.back(r-1, below)
	}
	return r, r < t.n && t.view(r) == key
}

// gallop returns the first entry behind r for which before is false; it is true
// for r.
func (t *Tree) gallop(r int, before func(string) bool) int {
	step := 1
	for r+step < t.n && before(t.view(r+step)) {
		r += step
		step *= 2
	}
	return t.halve(r+1, min(r+step, t.n), before)
}

// back returns the first entry for which before is false; it is false for r.
func (t *Tree) back(r int, before func(string) bool) int {
	step := 1
	for r-step >= 0 && !before(t.view(r-step)) {
		r -= step
		step *= 2
	}
	return t.halve(max(r-step, -1)+1, r, before)
}

// halve returns the first of [lo, hi) for which before is false, or hi.
func (t *Tree) halve(lo, hi int, before func(string) bool) int {
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if before(t.view(mid)) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// Work returns the cost of finding keys that are in the list: the full keys
// that are compared, where one for each key is the least.
func (t *Tree) Work(keys []string) (compared int) {
	g := groups.Get().(*group)
	defer groups.Put(g)
	ranks := make([]int, groupKeys)
	for len(keys) > 0 {
		n := min(len(keys), groupKeys)
		t.locate(g, keys[:n], ranks[:n])
		for i, key := range keys[:n] {
			at, _ := t.inRun(key, g.partial[i], ranks[i])
			compared += 1 + steps(at-ranks[i])
		}
		keys = keys[n:]
	}
	return compared
}

// steps is how many keys of a run inRun has compared to come so far.
func steps(distance int) int {
	if distance <= nearRun {
		return distance
	}
	return nearRun + 6 // halving a page
}

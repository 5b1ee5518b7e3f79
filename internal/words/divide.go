package words

import (
	"sort"
	"unsafe"

	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/partial"
	"github.com/pando-index/pando/internal/simd"
)

// run is pages whose greatest keys have the same word.
type run struct {
	first, pages int
	more         bool // the page behind begins with keys of that word
}

// ambiguous says that the word alone does not tell a page.
func (r run) ambiguous() bool { return r.pages > 1 || r.more }

// divided is a node's pages as its program divides them.
type divided struct {
	words []uint64 // distinct
	links []uint32 // first page of each
	runs  []run
}

// divide gives node x a program for strings [lo, hi), and the words of its
// pages by it.
func (b *builder) divide(x, lo, hi int) (d divided) {
	n := &b.nodes[x]
	n.Program = partial.Chooser{Bits: nodeBits, Granule: b.cfg.Granule, Workers: b.cfg.Workers}.Program(hi-lo, func(i int) string { return b.view(lo + i) })
	all := b.wordsOf(n)
	d = divided{words: all[:0], links: make([]uint32, 0, len(all)), runs: make([]run, 0, len(all))}
	for i, w := range all { // words take the place of those that are equal
		if last := len(d.words) - 1; last >= 0 && d.words[last] == w {
			d.runs[last].pages++
			continue
		}
		page := int(n.First) + i
		d.words, d.links, d.runs = append(d.words, w), append(d.links, uint32(page)), append(d.runs, run{first: page, pages: 1})
	}
	for i := range d.runs {
		r := &d.runs[i]
		next := (r.first + r.pages) * pageEntries
		r.more = next < hi && n.Partial(b.view(next)) == d.words[i]
	}
	return d
}

// wordsOf returns the partial keys of the greatest keys of a node's pages.
func (b *builder) wordsOf(n *node) []uint64 {
	words := make([]uint64, n.Pages)
	var keys [groupKeys]string
	var which [groupKeys]int
	for i := 0; i < len(words); i += groupKeys {
		k := min(groupKeys, len(words)-i)
		for j := range k {
			keys[j] = b.greatest(int(n.First) + i + j)
		}
		simd.Extract(unsafe.Pointer(&n.Program), 0, which[:], keys[:k], words[i:])
	}
	return words
}

// buildNode makes a node for an ambiguous run of pages by their parent's
// program, and returns the link to it: to the first page itself where nothing
// tells keys with that word apart. The parent is for strings [lo, hi).
func (b *builder) buildNode(parent int, r run, word uint64, lo, hi, depth int) (link uint32) {
	program := b.nodes[parent].Program
	first, end := b.withWord(&program, word, lo, hi)
	if b.greatest(r.first) == b.view(end-1) { // all equal
		return uint32(r.first)
	}
	if depth > maxDepth || first == lo && end == hi {
		b.loose = true
		return uint32(r.first)
	}
	x, at := len(b.nodes), len(b.words)
	b.nodes = append(b.nodes, node{First: uint32(r.first), Pages: uint32(r.pages)})
	d := b.divide(x, first, end)
	b.nodes[x].Words, b.nodes[x].Count = uint32(at), uint32(len(d.words))
	b.words, b.lower = par.Append(b.words, d.words), par.Append(b.lower, d.links)
	for i, sub := range d.runs {
		if sub.ambiguous() {
			b.lower[at+i] = b.buildNode(x, sub, d.words[i], first, end, depth+1)
		}
	}
	return linkNode | uint32(x)
}

// withWord returns those of strings [lo, hi) whose partial key is a word; the
// program is theirs, so partial keys are in order.
func (b *builder) withWord(p *simd.Program, word uint64, lo, hi int) (int, int) {
	first := lo + sort.Search(hi-lo, func(i int) bool { return p.Partial(b.view(lo+i)) >= word })
	end := first + sort.Search(hi-first, func(i int) bool { return p.Partial(b.view(first+i)) > word })
	return first, end
}

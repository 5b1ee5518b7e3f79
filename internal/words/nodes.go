package words

import (
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
)

// directory tells pages apart by partial keys of their greatest keys. Node 0 is
// the root: its program is used for every query, and its words are the keys of
// an implicit tree. A link is the number of a page, or, where several pages
// have the same word, that of a node with a program made for the keys that
// have it.
type directory struct {
	memory []byte
	nodes  []node
	words  []uint64 // of all nodes but the root
	links  []uint32 // of the root's distinct words, then of words
	loose  bool     // some pages could not be told apart: a miss is to be looked at by full keys
	plain  bool     // the root tells all pages apart
}

// node is a node of the directory as it lies in memory.
type node struct {
	simd.Program
	Words, Count uint32 // its words
	First, Pages uint32 // the pages it tells apart
	_            [8]byte
}

const nodeBytes = int(unsafe.Sizeof(node{}))

// linkNode marks links to nodes.
const linkNode = 1 << 31

// maxDepth bounds the nodes on a way: keys whose common prefix is too long for
// as many nodes are left to full comparisons.
const maxDepth = 8

// counts is the first line of the directory's memory.
type counts struct {
	Distinct, Nodes, Words, Loose uint64
	_                             [32]byte
}

// sizeOf returns the bytes of a directory.
func (c *counts) size() uint64 {
	return 64 + c.Nodes*64 + c.Words*8 + (c.Distinct+c.Words)*4
}

// counts returns how much is in a directory.
func (d *directory) counts(distinct int) counts {
	c := counts{Distinct: uint64(distinct), Nodes: uint64(len(d.nodes)), Words: uint64(len(d.words))}
	if d.loose {
		c.Loose = 1
	}
	return c
}

// write lays a directory out in memory.
func (d *directory) write(distinct int) []byte {
	c := d.counts(distinct)
	out := make([]byte, 0, c.size())
	out = par.Append(out, arena.Bytes([]counts{c}))
	out = par.Append(out, arena.Bytes(d.nodes))
	out = par.Append(out, arena.Bytes(d.words))
	return par.Append(out, arena.Bytes(d.links))
}

// readDirectory finds its parts in memory; false if they are not there.
func readDirectory(memory []byte, pages int) (d directory, distinct int, ok bool) {
	const most = 1 << 40 // keeps sums within 64 bits
	if len(memory) < 64 {
		return d, 0, false
	}
	c := (*counts)(unsafe.Pointer(&memory[0]))
	if c.Distinct > most || c.Nodes > most || c.Words > most || c.Nodes < 1 || c.size() != uint64(len(memory)) ||
		c.Distinct > uint64(pages) || (pages > 0) != (c.Distinct > 0) {
		return d, 0, false
	}
	rest := memory[64:]
	d.memory = memory
	d.nodes, rest = arena.As[node](rest[:c.Nodes*64]), rest[c.Nodes*64:]
	d.words, rest = arena.As[uint64](rest[:c.Words*8]), rest[c.Words*8:]
	d.links = arena.As[uint32](rest)
	d.loose, d.plain = c.Loose != 0, c.Distinct == uint64(pages) && c.Nodes == 1
	return d, int(c.Distinct), true
}

// pending is queries whose page is not known yet.
type pending struct {
	keys  [groupKeys]string
	query [groupKeys]int
	node  [groupKeys]int
	word  [groupKeys]uint64
}

// enter replaces places among the root's words by pages.
func (t *Tree) enter(g *group, keys []string, places []int) {
	last := t.count - 1
	if t.plain {
		for i := range keys {
			places[i] = min(places[i], last)
		}
		return
	}
	wait := 0
	distinct := len(t.links) - len(t.words)
	for i, key := range keys {
		d := places[i]
		if d >= distinct {
			places[i] = last
			continue
		}
		link := t.links[d]
		if link&linkNode == 0 {
			places[i] = min(int(link), last)
			continue
		}
		at := min(int(link&^linkNode), len(t.nodes)-1)
		if t.root.Key(d) != g.words[i] {
			places[i] = min(int(t.nodes[at].First), last)
			continue
		}
		g.keys[wait], g.query[wait], g.node[wait] = key, i, at
		wait++
	}
	for depth := 0; wait > 0 && depth <= maxDepth; depth++ {
		t.fetchNodes(g, wait)
		simd.Extract(unsafe.Pointer(&t.nodes[0]), nodeBytes, g.node[:wait], g.keys[:wait], g.word[:wait])
		wait = t.choose(g, wait, places)
	}
	for i := range wait { // only a damaged file gets here
		places[g.query[i]] = last
	}
	clear(g.keys[:]) // strings are not ours to keep
}

// fetchNodes asks for the nodes that queries wait at, then for their words.
func (t *Tree) fetchNodes(g *group, wait int) {
	simd.FetchEach(unsafe.Pointer(&t.nodes[0]), g.node[:wait], nodeBytes)
	for i, x := range g.node[:wait] {
		n := &t.nodes[x]
		g.at[i] = int(n.Words) + int(n.Count)/2
	}
	simd.FetchEach(unsafe.Pointer(unsafe.SliceData(t.words)), g.at[:wait], 8)
}

// choose takes queries through one node each, and keeps those that come to
// another.
func (t *Tree) choose(g *group, wait int, places []int) (still int) {
	last := t.count - 1
	for i := range wait {
		n := &t.nodes[g.node[i]]
		first := min(int(n.Words), len(t.words))
		words := t.words[first:min(first+int(n.Count), len(t.words))]
		at := lowerBound(words, g.word[i])
		if at == len(words) {
			places[g.query[i]] = min(int(n.First+n.Pages), last)
			continue
		}
		link := t.links[len(t.links)-len(t.words)+first+at]
		child := min(int(link&^linkNode), len(t.nodes)-1)
		switch {
		case link&linkNode == 0:
			places[g.query[i]] = min(int(link), last)
		case words[at] != g.word[i]:
			places[g.query[i]] = min(int(t.nodes[child].First), last)
		default:
			g.keys[still], g.query[still], g.node[still] = g.keys[i], g.query[i], child
			still++
		}
	}
	return still
}

// lowerBound returns the number of sorted words below w, without a branch that
// depends on them.
func lowerBound(words []uint64, w uint64) int {
	base := 0
	for n := len(words); n > 0; {
		half := (n + 1) / 2
		if words[base+half-1] < w {
			base += half
		}
		n -= half
	}
	return base
}

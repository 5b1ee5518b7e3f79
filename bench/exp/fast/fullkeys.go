package fast

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"unsafe"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/inside"
	"github.com/pando-index/pando/internal/simd"
)

// fullKeys is the FAST paper's tree without compression: a binary tree over
// keys of one size that holds them whole, its nodes blocked by cache line and
// by page. A line of 64 bytes has 2^L-1 keys of L binary levels: 15 keys of 4
// bytes, 3 of 16, and one key from 32 bytes on; a key of 128 bytes takes two
// lines. Keys are stored as numbers, the first bytes highest, so that whole
// words are compared. Many queries take a step together, each prefetching its
// next node meanwhile.
//
//	row 0        row 1                    the rest of the levels in rows of as
//	┌──────┐     ┌────────┬────────┬──    many as fit a page of 2 MiB. Child c
//	│ root │     │ page 0 │ page 1 │ …    of node x is node x<<L + c of the next
//	└──────┘     └────────┴────────┴──    level, and the last is the rank
//
// The root has the levels that are left over, so that all other nodes are
// full. Slots after the last key hold the greatest possible key.
type fullKeys struct {
	size   int // bytes per key
	levels int // L
	node   int // bytes per node
	n      int
	block  *inside.Block
	nodes  []byte
	steps  []fullStep
}

// fullStep is one level of nodes.
type fullStep struct {
	at    int // first node
	page  int // nodes per page
	shift int // from a node's number to that of its page
	fan   int // L, or less for the root
}

// node returns the position of node x of the level.
func (s *fullStep) node(x int) int {
	return s.at + x>>s.shift*s.page + x&(1<<s.shift-1)
}

const (
	fullPage  = 2 << 20 // bytes
	fullGroup = 128     // queries in flight
)

// buildFullKeys makes the tree from sorted keys of one size, a power of two
// from 4 to 128.
func buildFullKeys(keys []string) (*fullKeys, error) {
	if len(keys) == 0 || bits.OnesCount(uint(len(keys[0]))) != 1 || len(keys[0]) < 4 || len(keys[0]) > 128 {
		return nil, fmt.Errorf("full keys: some are needed, of 4, 8, ... or 128 bytes")
	}
	size := len(keys[0])
	t := &fullKeys{size: size, levels: max(1, bits.Len(uint(64/size))-1), node: max(64, size), n: len(keys)}
	total := t.plan()
	var err error
	if t.block, err = inside.NewBlock(total * t.node); err != nil {
		return nil, err
	}
	t.nodes = t.block.Segment(0)
	x, below := 0, bits.Len(uint(len(keys))) // binary levels under a node's keys
	for i := range t.steps {
		s := &t.steps[i]
		below -= s.fan
		x += s.fan
		contest.Spread(contest.AllCores(), 1<<(x-s.fan), func(lo, hi int) int {
			for y := lo; y < hi; y++ {
				t.fill(s, y, below, keys)
			}
			return 0
		})
	}
	return t, nil
}

// plan lays out the levels and returns the number of nodes. Trees of 2^d-1
// keys waste nothing.
func (t *fullKeys) plan() (nodes int) {
	depth := bits.Len(uint(t.n))
	root := (depth-1)%t.levels + 1
	t.steps = []fullStep{{page: 1, fan: root}}
	nodes = 1
	per := 1 // levels of nodes in a page
	for pageNodes(per+1, t.levels)*t.node <= fullPage {
		per++
	}
	for left := (depth - root) / t.levels; left > 0; {
		k := (left-1)%per + 1 // the top row has what is left over
		page, pages := pageNodes(k, t.levels), 1<<(depth-left*t.levels)
		at := nodes
		for l := range k {
			t.steps = append(t.steps, fullStep{at: at, page: page, shift: l * t.levels, fan: t.levels})
			at += 1 << (l * t.levels)
		}
		nodes += pages * page
		left -= k
	}
	return nodes
}

// pageNodes returns the number of nodes in k levels of 1, 2^l, 4^l, ...
func pageNodes(k, l int) int { return (1<<(k*l) - 1) / (1<<l - 1) }

// fill writes the keys of node y: those in the middle of its parts, each of
// which has below binary levels.
func (t *fullKeys) fill(s *fullStep, y, below int, keys []string) {
	dst := t.nodes[s.node(y)*t.node:][:t.node]
	for i := range dst {
		dst[i] = 0xff
	}
	for c := range 1<<s.fan - 1 {
		if at := (y<<s.fan+c+1)<<below - 1; at < len(keys) {
			putFull(dst[c*t.size:][:t.size], keys[at])
		}
	}
}

// putFull writes a key as numbers.
func putFull(dst []byte, key string) {
	if len(dst) == 4 {
		binary.NativeEndian.PutUint32(dst, binary.BigEndian.Uint32([]byte(key)))
		return
	}
	for at := 0; at < len(dst); at += 8 {
		binary.NativeEndian.PutUint64(dst[at:], binary.BigEndian.Uint64([]byte(key[at:at+8])))
	}
}

func (t *fullKeys) Close() { t.block.Release() }

func (t *fullKeys) bytes() float64 { return float64(len(t.nodes)) / float64(t.n) }

// fullQueries are the queries of a group as numbers, and their positions.
type fullQueries struct {
	heads [fullGroup]uint64 // their first 8 bytes
	short [fullGroup]uint32 // keys of 4 bytes
	x     [fullGroup]int    // node
	at    [fullGroup]int    // its position
	equal [fullGroup]int    // queries to be compared in full,
	rest  [fullGroup]int    // and the positions of their nodes
}

// Rank sets ranks to the number of keys below each query.
func (t *fullKeys) Rank(q []string, ranks []int) {
	g := new(fullQueries)
	for len(q) > 0 {
		n := min(len(q), fullGroup)
		clear(g.x[:n])
		clear(g.at[:n])
		for i, key := range q[:n] {
			if t.size == 4 {
				g.short[i] = uint32(headOf(key) >> 32)
			} else {
				g.heads[i] = headOf(key)
			}
		}
		t.descend(g, q[:n])
		copy(ranks, g.x[:n])
		q, ranks = q[n:], ranks[n:]
	}
}

// headOf returns the first 8 bytes of a key as a number, with zeros after its
// end.
func headOf(key string) uint64 {
	b := unsafe.Slice(unsafe.StringData(key), len(key))
	if len(b) < 8 {
		return uint64(binary.BigEndian.Uint32(b)) << 32
	}
	return binary.BigEndian.Uint64(b)
}

// descend takes queries through all levels. Keys of 4 and 8 bytes are compared
// by vectors, a line at a time, as Pando's are.
func (t *fullKeys) descend(g *fullQueries, q []string) {
	base := unsafe.Pointer(unsafe.SliceData(t.nodes))
	for i := range t.steps {
		s := &t.steps[i]
		last := i+1 == len(t.steps)
		next := s // if nothing more is fetched
		if !last {
			next = &t.steps[i+1]
		}
		switch {
		case t.size == 4:
			simd.StepDown(t.vectors(base, s, next, last), g.short[:len(q)], g.x[:])
			continue
		case t.size == 8:
			simd.StepDown(t.vectors(base, s, next, last), g.heads[:len(q)], g.x[:])
			continue
		case s.fan == 1:
			t.binary(base, next, g, q)
		default:
			t.quaternary(base, next, g, q)
		}
		if !last {
			simd.FetchEach(base, g.at[:len(q)], t.node)
		}
	}
}

// vectors describes a step to the vector code.
func (t *fullKeys) vectors(base unsafe.Pointer, s, next *fullStep, last bool) *simd.Step {
	lines := func(s *fullStep) simd.Lines {
		return simd.Lines{At: s.at, Page: s.page, Shift: s.shift, Mask: 1<<s.shift - 1}
	}
	step := &simd.Step{Base: base, Here: lines(s), Next: simd.NoLines, Fan: s.fan, Last: math.MaxInt}
	if !last {
		step.Next = lines(next)
	}
	return step
}

// binary takes queries through a level with one key per node. The first 8
// bytes decide, except for the few queries where they are equal: these wait
// until the rest of their nodes is fetched, too.
func (t *fullKeys) binary(base unsafe.Pointer, next *fullStep, g *fullQueries, q []string) {
	shift, mask := next.shift&63, 1<<next.shift-1
	equal := 0
	for i := range q {
		at := unsafe.Add(base, g.at[i]*t.node)
		head, count := *(*uint64)(at), 0
		if head < g.heads[i] {
			count = 1
		}
		if head == g.heads[i] {
			g.equal[equal], g.rest[equal] = i, g.at[i]
			equal++
		}
		x := g.x[i]<<1 + count
		g.x[i] = x
		g.at[i] = next.at + x>>shift*next.page + x&mask
	}
	if equal == 0 {
		return
	}
	if t.node > simd.LineBytes {
		simd.FetchEach(unsafe.Add(base, simd.LineBytes), g.rest[:equal], t.node)
	}
	for j, i := range g.equal[:equal] {
		x := g.x[i] + t.less(unsafe.Add(base, g.rest[j]*t.node), q[i])
		g.x[i] = x
		g.at[i] = next.at + x>>shift*next.page + x&mask
	}
}

// quaternary is the same for three keys per node.
func (t *fullKeys) quaternary(base unsafe.Pointer, next *fullStep, g *fullQueries, q []string) {
	shift, mask := next.shift&63, 1<<next.shift-1
	for i := range q {
		at := unsafe.Add(base, g.at[i]*t.node)
		head, keys := g.heads[i], (*[3][2]uint64)(at)
		a, b, c := keys[0][0], keys[1][0], keys[2][0]
		count := 0
		if a < head {
			count++
		}
		if b < head {
			count++
		}
		if c < head {
			count++
		}
		if a == head || b == head || c == head {
			count = t.less(at, q[i]) + t.less(unsafe.Add(at, t.size), q[i]) + t.less(unsafe.Add(at, 2*t.size), q[i])
		}
		x := g.x[i]<<2 + count
		g.x[i] = x
		g.at[i] = next.at + x>>shift*next.page + x&mask
	}
}

// less returns 1 if the key at an address is below the query, by all of their
// bytes.
func (t *fullKeys) less(at unsafe.Pointer, q string) int {
	words := unsafe.Slice((*uint64)(at), t.size/8)
	b := unsafe.Slice(unsafe.StringData(q), len(q))
	for i, w := range words {
		if have := binary.BigEndian.Uint64(b[8*i:]); w != have {
			if w < have {
				return 1
			}
			return 0
		}
	}
	return 0
}

package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/seed"
)

// level is lines of keys, and a step through some of them: nodes [0, nodes).
type level[C Code] struct {
	Step
	words []uint64
	nodes int
}

// places returns layouts that lines can have in a level of 64 nodes:
// contiguous, in a row of pages of which they are one level, and others that
// no row has.
func places() []Lines {
	return []Lines{
		{Page: 1}, {At: 7, Page: 1}, {At: 3, Page: 2}, // contiguous; every other line
		{At: 1, Page: 5, Shift: 2, Mask: 3}, {At: 2, Page: 21, Shift: 4, Mask: 15}, {Shift: 6, Page: 85, Mask: 63},
		{At: 5, Page: 9, Shift: 3, Mask: 3, Sub: 1}, {Page: 3, Shift: 2, Mask: 0}, {Mask: 63}, {At: 4, Mask: 15, Sub: 2},
	}
}

// makeLevel makes a level whose lines take only the memory that its nodes
// need.
func makeLevel[C Code](here Lines, words func(n int) []uint64, fill func(node []C)) *level[C] {
	l := &level[C]{nodes: 64}
	lines := 0
	for x := range l.nodes {
		lines = max(lines, here.Line(x)+1)
	}
	l.words = words(lines * LineBytes / 8)
	l.Base, l.Here, l.Next = unsafe.Pointer(&l.words[0]), here, NoLines
	l.Fan, l.Last = 4, math.MaxInt
	for i := range lines {
		fill(l.line(i))
	}
	return l
}

func (l *level[C]) line(i int) []C {
	return unsafe.Slice((*C)(unsafe.Pointer(&l.words[i*LineBytes/8])), nodeKeys[C]())
}

// ask returns n queries: nodes, and keys equal or next to one of theirs.
func (l *level[C]) ask(n int, rng *rand.Rand) (keys []C, nodes []int) {
	for range n {
		x := rng.IntN(l.nodes)
		line := l.line(l.Here.Line(x))
		keys = append(keys, line[rng.IntN(len(line))]+C(rng.IntN(3))-1)
		nodes = append(nodes, x)
	}
	return keys, nodes
}

// check compares a step with what its doc comment says.
func (l *level[C]) check(keys []C, nodes []int) error {
	got := append([]int(nil), nodes...)
	StepDown(&l.Step, keys, got)
	for i, key := range keys {
		x, count := nodes[i], 0
		at := l.Here.At + (x>>l.Here.Shift)*l.Here.Page + ((x >> l.Here.Sub) & l.Here.Mask)
		for _, k := range l.line(at) {
			if k < key {
				count++
			}
		}
		if want := min(x<<l.Fan+count, l.Last); got[i] != want {
			return fmt.Errorf("key %d from node %d of %+v comes to %d, want %d", key, x, l.Here, got[i], want)
		}
	}
	for i := len(keys); i < len(nodes); i++ {
		if got[i] != nodes[i] {
			return fmt.Errorf("node %d of a query not asked is changed to %d", nodes[i], got[i])
		}
	}
	return nil
}

func TestStepEqualsTheDefinition(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		bothWidths(t, stepEqual[uint32], stepEqual[uint64])
	})
}

// stepEqual takes batches of every length through levels of every layout, with
// every layout of lines to fetch.
func stepEqual[C Code](t *testing.T) {
	rng := seed.Rand(t)
	for _, here := range places() {
		for _, kind := range fillings[C](rng) {
			l := makeLevel(here, alignedWords, kind.fill)
			for _, next := range append(places(), NoLines) {
				l.Next, l.NextBase, l.Fan, l.Last = next, nil, rng.IntN(6), math.MaxInt
				if rng.IntN(2) == 0 {
					l.NextBase, l.Last = unsafe.Pointer(l), rng.IntN(l.nodes<<l.Fan)
				}
				keys, nodes := l.ask(longest, rng)
				for _, n := range lengths() {
					if err := l.check(keys[:n], nodes); err != nil {
						t.Fatalf("%s, batch of %d, next %+v: %v", kind.name, n, next, err)
					}
				}
			}
		}
	}
}

// A prefetch changes nothing, wherever it points.
func TestFetchingDoesNoHarm(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		words := alignedWords(64)
		FetchEach(unsafe.Pointer(&words[0]), nil, 8)
		FetchEach(unsafe.Pointer(&words[0]), []int{0}, 8)
		FetchEach(nil, []int{0, -1, 64}, 1)
		FetchEach(unsafe.Pointer(&words[0]), []int{0, 63, -1, math.MaxInt, math.MinInt, math.MaxInt / 4}, 64)
		for i, w := range words {
			if w != 0 {
				t.Errorf("word %d is %d", i, w)
			}
		}
	})
}

package blocked

import (
	"unsafe"

	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
)

// Build makes a tree. Keys that are not in order give layout.ErrUnsorted and
// leave nothing behind; equal keys stay in the order they come in. Nothing of
// the source is kept.
func Build[C simd.Code](src layout.Source[C], cfg Config) (*Tree[C], error) {
	t, under, err := plan[C](src.Len, cfg)
	if err != nil {
		return nil, err
	}
	leaves, err := implicit.Build(src, under)
	if err != nil {
		return nil, err
	}
	t.over(leaves)
	for g := range t.steps {
		t.writeLevel(g, par.Workers(cfg.Workers))
	}
	return t, nil
}

// pieceLines is the number of lines that a worker writes at a time: the leaves
// under the lowest of them are some MiB.
const pieceLines = 4096

// writeLevel writes the lines of level g that have a leaf under them.
func (t *Tree[C]) writeLevel(g, workers int) {
	nodes := t.nodes(g)
	par.Run(workers, (nodes+pieceLines-1)/pieceLines, par.Func(func(p int) {
		for x := p * pieceLines; x < min((p+1)*pieceLines, nodes); x++ {
			t.writeLine(g, x)
		}
	}))
}

// nodes is the number of nodes of level g with a leaf under them.
func (t *Tree[C]) nodes(g int) int { return ceil(t.count, (len(t.steps)-g)*t.geo.L) }

// writeLine writes the separators of node x of level g.
func (t *Tree[C]) writeLine(g, x int) {
	line := t.line(g, x)
	line[len(line)-1] = ^C(0)
	under := (len(t.steps) - 1 - g) * t.geo.L // a child has 2^under leaves
	for j, slot := range t.slot {
		line[slot] = t.greatest((x<<t.geo.L + j + 1) << under)
	}
}

// greatest returns the greatest key in the leaves before one; the maximum where
// the last leaf is among them: keys above it need no separator.
func (t *Tree[C]) greatest(leaf int) C {
	if leaf >= t.count {
		return ^C(0)
	}
	return t.leaves.Key(leaf<<t.leaves.LeafShift - 1)
}

// line returns the line of node x of level g.
func (t *Tree[C]) line(g, x int) []C {
	at := t.steps[g].Here.Line(x) * simd.LineBytes
	return unsafe.Slice((*C)(unsafe.Add(t.leaves.Base, at)), keysInLine[C]())
}

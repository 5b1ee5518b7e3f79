package pando

import (
	"fmt"
	"math"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/blocked"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/snapshot"
	"github.com/pando-index/pando/internal/text"
)

// What a file's header says of layouts, and what layouts must be like in a
// file.

// fileLayout is the layout of the tree in a file's words.
func (e *fixed[K, C, V]) fileLayout() snapshot.Layout {
	switch {
	case e.kind == Compressed:
		return snapshot.Compressed
	case e.kind == Blocked && e.pairs:
		return snapshot.BlockedPairs
	case e.kind == Blocked:
		return snapshot.BlockedApart
	case e.pairs:
		return snapshot.Pairs
	}
	return snapshot.Apart
}

// kind is the file's layout as trees are told apart.
func (f *file) kind() LayoutKind {
	switch f.Layout {
	case snapshot.BlockedPairs, snapshot.BlockedApart:
		return Blocked
	case snapshot.Compressed, snapshot.Words:
		return Compressed
	}
	return Implicit
}

// hasLayout says whether the file's layout is what an option asks for.
func (f *file) hasLayout(asked LayoutKind) bool {
	switch asked {
	case AutoLayout, f.kind():
		return true
	case Pairs:
		return f.Layout == snapshot.Pairs
	case Apart:
		return f.Layout == snapshot.Apart || f.Layout == snapshot.Text
	}
	return false
}

// checkShape compares the sections of a tree with what entries and layout
// demand. Strings have no shape.
func (f *file) checkShape() (err error) {
	var plan implicit.Outline
	switch f.KeyBits {
	case 32:
		plan, err = planTree[uint32](int(f.Entries), f.treeConfig())
	case 64:
		plan, err = planTree[uint64](int(f.Entries), f.treeConfig())
	}
	if err != nil {
		return snapshot.Bad("the header is damaged: " + err.Error())
	}
	if f.Levels != uint32(plan.Levels) || f.Fanout != uint32(plan.Fanout) {
		return snapshot.Bad(fmt.Sprintf("the header is damaged: %d levels of fanout %d for %d entries", f.Levels, f.Fanout, f.Entries))
	}
	for i, size := range plan.Sizes {
		if s := f.Sections[i]; s.Bytes != int64(size) {
			return snapshot.Bad(fmt.Sprintf("the section table is damaged: section %v has %d bytes, it must have %d", s.Kind, s.Bytes, size))
		}
	}
	f.slack = plan.Slack
	return nil
}

// treeConfig is how the tree in the file was built.
func (f *file) treeConfig() treeConfig {
	cfg := treeConfig{kind: f.kind(), pageLevels: int(f.PageLevels), Config: implicit.Config{Fanout: int(f.Fanout)}}
	if f.Fanout == 0 { // would mean the most there can be
		cfg.Fanout = math.MaxInt
	}
	if f.PageLevels == 0 { // would mean the default
		cfg.pageLevels = -1
	}
	pairs := f.Layout == snapshot.Pairs || f.Layout == snapshot.BlockedPairs
	if pairs {
		cfg.Leaves = implicit.Pairs
	}
	if pairs || f.index(snapshot.Column) >= 0 {
		cfg.ValSize = int(f.ValSize)
	}
	if k := f.index(snapshot.PackedKeys); k >= 0 {
		cfg.packed = int(f.Sections[k].Bytes)
	}
	return cfg
}

// openList makes a list of the strings that a file holds.
func (f *file) openList(block *arena.Block) (list, error) {
	if f.Layout == snapshot.Text {
		return halved{text.Open(block.Segment(0), block.Segment(1), block)}, nil
	}
	t, err := blocked.OpenText(int(f.Entries), block)
	if err != nil {
		return nil, snapshot.Bad(err.Error())
	}
	return t, nil
}

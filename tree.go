package pando

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/blocked"
	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
)

// tree is a layout of keys of fixed width as the engine sees it.
type tree[C order.Code] interface {
	exec.Stepped[C]
	Seek(key C) (rank int, equal bool)
	Key(i int) C
	Val(i int) unsafe.Pointer // of a value that lives in the tree
	CopyKeys(dst []C, lo int)
	CopyVals(dst []byte, lo int)
	Prefetch(lo, n int)
	PrefetchFrom(vals unsafe.Pointer, size int)
	Segments() [][]byte
	Check() error
	Release()
}

// treeConfig says how a tree is built, or how it lies in a file.
type treeConfig struct {
	implicit.Config
	kind       LayoutKind // Implicit, Blocked or Compressed
	auto       bool       // kind may be changed for the keys at hand
	pageLevels int        // Blocked: binary levels of a page; 0 for the default
	packed     int        // Compressed, in a file: bytes of the pages
}

// blockedConfig is the same in that layout's words.
func (c treeConfig) blockedConfig() blocked.Config {
	return blocked.Config{Config: c.Config, Geometry: blocked.Geometry{P: c.pageLevels}}
}

// layTree says how the tree of n keys is to be built for these types.
func layTree[C order.Code, V any](c config, n int) (treeConfig, error) {
	var code C
	width := int(unsafe.Sizeof(code))
	cfg := treeConfig{kind: c.layout, auto: c.layout == AutoLayout, Config: implicit.Config{
		ValSize: inlineSize[V](),
		Pages:   c.pages.arenaPages(),
		Limit:   c.limit,
		Workers: par.Workers(c.workers),
	}}
	can := cfg.ValSize == width && implicit.PairsFit[C](n)
	switch c.layout {
	case Pairs:
		if !can {
			return cfg, fmt.Errorf("%w: pairs need %d-byte values without pointers beside these keys; leave Layout out", ErrLayout, width)
		}
		cfg.kind = Implicit
	case Apart:
		cfg.kind, can = Implicit, false
	case AutoLayout:
		cfg.kind = Implicit
	case Compressed:
		can = false
	}
	if can {
		cfg.Leaves = implicit.Pairs
	}
	return cfg, nil
}

// AutoLayout compresses an index that is over its limit otherwise, if it then
// is so many times smaller. It does not for the speed of it: ranks take 1.1 to
// 1.4 times as long at 64M keys, 1.2 to 1.8 times at a million, and nowhere
// less (experiment layouts). Tests let it do so from so many entries on.
var (
	autoPackEntries = math.MaxInt
	autoPackRatio   = 1.5
)

// packs says whether AutoLayout compresses keys, which must be sorted.
func packs[C order.Code](src implicit.Source[C], cfg treeConfig) bool {
	if !cfg.auto {
		return false
	}
	plain, err := implicit.Need[C](src.Len, cfg.Config)
	if err != nil || src.Len < autoPackEntries && (cfg.Limit == 0 || plain <= cfg.Limit) {
		return false
	}
	cfg.Leaves = implicit.Apart
	packed, err := blocked.PackedBytes(src, cfg.Config)
	return err == nil && float64(packed)*autoPackRatio <= float64(plain)
}

// plant builds the engine's tree of sorted keys.
func (e *fixed[K, C, V]) plant(src implicit.Source[C], cfg treeConfig) error {
	if packs(src, cfg) {
		cfg.kind, cfg.Leaves = Compressed, implicit.Apart
	}
	t, err := buildTree(src, cfg)
	if err == nil {
		e.tree, e.kind, e.pairs = t, cfg.kind, cfg.Leaves == implicit.Pairs
	}
	return err
}

// asTree gives a layout as what the engine sees, and nothing where there is an
// error: a nil of its own type would be no nil.
func asTree[C order.Code](t tree[C], err error) (tree[C], error) {
	if err != nil {
		return nil, err
	}
	return t, nil
}

// buildTree makes a tree of sorted keys.
func buildTree[C order.Code](src implicit.Source[C], cfg treeConfig) (tree[C], error) {
	switch cfg.kind {
	case Blocked:
		t, err := blocked.Build(src, cfg.blockedConfig())
		return asTree[C](t, err)
	case Compressed:
		t, err := blocked.BuildPacked(src, cfg.Config)
		return asTree[C](t, err)
	}
	t, err := implicit.Build(src, cfg.Config)
	return asTree[C](t, err)
}

// openTree makes a tree of n keys of what a file holds.
func openTree[C order.Code](n int, cfg treeConfig, block *arena.Block) (tree[C], error) {
	switch cfg.kind {
	case Blocked:
		t, err := blocked.Open[C](n, cfg.blockedConfig(), block)
		return asTree[C](t, err)
	case Compressed:
		t, err := blocked.OpenPacked[C](n, cfg.Config, block)
		return asTree[C](t, err)
	}
	t, err := implicit.Open[C](n, cfg.Config, block)
	return asTree[C](t, err)
}

// planTree gives the outline of a tree of n keys in a file.
func planTree[C order.Code](n int, cfg treeConfig) (implicit.Outline, error) {
	switch cfg.kind {
	case Blocked:
		return blocked.Plan[C](n, cfg.blockedConfig())
	case Compressed:
		return blocked.PlanPacked[C](n, cfg.packed, cfg.Config)
	}
	return implicit.Plan[C](n, cfg.Config)
}

// needTree gives the bytes that a tree of n keys takes; 0 where only the keys,
// in order, can tell.
func needTree[C order.Code](n int, cfg treeConfig) (int64, error) {
	switch cfg.kind {
	case Blocked:
		return blocked.Need[C](n, cfg.blockedConfig())
	case Compressed:
		return 0, nil
	}
	return implicit.Need[C](n, cfg.Config)
}

// treeStats describes a tree.
func treeStats[C order.Code](t tree[C]) implicit.Stats {
	switch t := t.(type) {
	case *blocked.Tree[C]:
		return t.Stats().Stats
	case *blocked.Packed[C]:
		return packedStats(t)
	case *implicit.Tree[C]:
		return t.Stats()
	}
	panic(fmt.Sprintf("pando: no Stats for a %T", t))
}

// packedStats describes a compressed tree without a look at its pages, which
// may lie in a file.
func packedStats[C order.Code](t *blocked.Packed[C]) implicit.Stats {
	s := implicit.Stats{Levels: t.Depth(), Fanout: t.Top().Stats().Fanout}
	for i, segment := range t.Segments() {
		switch n := int64(len(segment)); i {
		case 0, 1, 2:
			s.InnerBytes += n
		case 3:
			s.LeafBytes = n
		default:
			s.ValueBytes = n
		}
	}
	all, _ := t.Memory()
	s.TotalBytes = int64(len(all))
	return s
}

// pageLevels gives the binary levels of a blocked tree's pages, 0 for others.
func pageLevels[C order.Code](t tree[C]) int {
	if t, ok := t.(*blocked.Tree[C]); ok {
		return t.Geometry().P
	}
	return 0
}

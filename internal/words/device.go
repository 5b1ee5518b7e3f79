package words

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/simd"
)

// StringImage returns the memory that a device needs to search: the root's
// tree, directory and pages; and the strings, which it can do without.
func (t *Tree) StringImage() (layout.StringImage, error) {
	if err := t.sound(); err != nil {
		return layout.StringImage{}, err
	}
	leaves := t.root.Segments()[1]
	root := unsafe.Slice((*byte)(t.root.Base), int(t.root.Leaves)*8+len(leaves))
	return layout.StringImage{Parts: [][]byte{root, t.memory, t.pages}, Strings: t.bytes, Resident: &resident{tree: t}}, nil
}

// resident is a tree on a device.
type resident struct {
	tree *Tree
	copy kernel.Words
}

func (r *resident) Kernels() kernel.Source { return kernel.WordsSource }

func (r *resident) Place(parts []device.Ptr, strings device.Ptr, longest int) error {
	t := r.tree
	nodes := parts[1] + device.Ptr(unsafe.Sizeof(counts{}))
	words := nodes + device.Ptr(len(t.nodes)*nodeBytes)
	r.copy = kernel.Words{
		Root: parts[0], Nodes: nodes, Words: words, Links: words + device.Ptr(8*len(t.words)), Pages: parts[2], Bytes: strings,
		Distinct: uint32(len(t.links) - len(t.words)), LastPage: uint32(max(t.count, 1) - 1), Entries: uint32(t.n),
		Longest: uint32(longest),
	}
	if t.plain {
		r.copy.Plain = 1
	}
	return r.copy.SetRoot(&t.root.Tree)
}

func (r *resident) Search(set *kernel.Set, st device.Stream, p *kernel.Params, keys, offsets device.Ptr, n int, out device.Ptr) error {
	return set.WordsFind(st, p, &r.copy, keys, offsets, n, out)
}

// fitsDevice returns an error for a tree with more entries than a kernel can
// tell apart.
func (t *Tree) fitsDevice() error {
	if t.n > kernel.MaxWords {
		return fmt.Errorf("%w: %d strings, the most is %d", kernel.ErrTooLarge, t.n, kernel.MaxWords)
	}
	return nil
}

// sound returns an error for a tree in which something points outside of it:
// kernels, unlike searches on the CPU, do not look, and a damaged file may hold
// anything.
func (t *Tree) sound() error {
	if err := t.fitsDevice(); err != nil {
		return err
	}
	for i, l := range t.links {
		if at := int(l &^ linkNode); l&linkNode != 0 && at >= len(t.nodes) || l&linkNode == 0 && at >= t.count {
			return fmt.Errorf("link %d of the directory leads nowhere", i)
		}
	}
	for i := range t.nodes {
		if n := &t.nodes[i]; uint64(n.Words)+uint64(n.Count) > uint64(len(t.words)) {
			return fmt.Errorf("node %d of the directory has words %d to %d of %d", i, n.Words, uint64(n.Words)+uint64(n.Count), len(t.words))
		}
	}
	for p := range t.count {
		pg := t.page(p)
		if pg.Base > uint64(len(t.bytes)) || uint64(pg.End) > uint64(len(t.bytes))-pg.Base ||
			!slices.IsSorted(pg.offsets[:]) || pg.offsets[pageEntries-1] > pg.End {
			return fmt.Errorf("page %d has strings outside of the list", p)
		}
	}
	return nil
}

// Loose reports whether a search by partial keys may miss a string that is
// there, so that a miss must be settled by full keys.
func (t *Tree) Loose() bool { return t.loose }

// Confirm takes searches to their end that have come to entries by partial
// keys: ranks become places, or -1, as Find gives them.
func (t *Tree) Confirm(keys []string, ranks []int) {
	t.confirm(keys, ranks, t.found)
}

// ConfirmRank is Confirm for ranks.
func (t *Tree) ConfirmRank(keys []string, ranks []int) {
	t.confirm(keys, ranks, t.ranked)
}

func (t *Tree) confirm(keys []string, ranks []int, end func(key string, partial uint32, r int) int) {
	g := groups.Get().(*group)
	base := unsafe.Pointer(unsafe.SliceData(t.pages))
	if t.n == 0 {
		for i := range keys {
			ranks[i] = end(keys[i], 0, 0)
		}
		keys = nil
	}
	for len(keys) > 0 {
		n := min(len(keys), groupKeys)
		for i, r := range ranks[:n] {
			g.ranks[i] = min(r, t.n-1) / pageEntries
		}
		simd.Extract(base, pageBytes, g.ranks[:n], keys[:n], g.partial[:n])
		t.fetchKeys(g, keys[:n], ranks)
		for i, key := range keys[:n] {
			ranks[i] = end(key, g.partial[i], ranks[i])
		}
		keys, ranks = keys[n:], ranks[n:]
	}
	groups.Put(g)
}

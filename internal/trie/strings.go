package trie

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/files"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/strlist"
)

var stringsInFile = &files.Format{
	Number: 8, Name: "radix", Version: 3, Strings: true,
	Sections: []files.SectionKind{sectionNodes, sectionTable, strlist.SectionOffsets, layout.SectionKeyBytes},
}

// Strings is tries as a layout of strings.
type Strings struct {
	Table Table
	Wide  Wide
}

// Kind returns the layout's name.
func (Strings) Name() layout.Name { return Name }

// Formats lists the formats of tries in files.
func (Strings) Formats() []*files.Format { return []*files.Format{stringsInFile} }

// Serves reports whether the layout is asked for, by its name.
func (Strings) Serves(asked layout.Name) bool { return asked == Name }

// Need returns the bytes that a trie of these strings takes at least: with one node
// for all, if they are two or more.
func (Strings) Need(keys []string, cfg layout.Config) (int64, error) {
	if int64(len(keys)) >= leafBit {
		return 0, layout.ErrTooLarge
	}
	sizes := []int{int(unsafe.Sizeof(trieHead{})), 0, 8 * (len(keys) + 1), 0}
	for _, k := range keys {
		sizes[3] += len(k)
	}
	return arena.Need(sizes, triePages(sizes, cfg.Pages))
}

// triePages returns the pages for segments: where there is little, huge ones would be
// mostly empty.
func triePages(sizes []int, pages arena.Pages) arena.Pages {
	total := 0
	for _, n := range sizes {
		total += n
	}
	if total < 4<<20 {
		return arena.Small
	}
	return pages
}

// inOrder is strings to build from.
type inOrder struct {
	keys  []string
	order []int // nil for as they are
}

func (s inOrder) key(i int) string {
	if s.order != nil {
		i = s.order[i]
	}
	return s.keys[i]
}

func (s inOrder) span(lo, hi int) sortedKeys      { return s }
func (s inOrder) byteAt(i, depth int) int         { return simd.ByteAt(s.key(i), depth) }
func (s inOrder) alike(i, j int) (bytes, cmp int) { return alike(s.key(i), s.key(j)) }

// alike returns how many bytes two strings begin with alike, and their order.
func alike(a, b string) (bytes, order int) {
	n := simd.CommonPrefix(a, b)
	x, y := simd.ByteAt(a, n), simd.ByteAt(b, n)
	switch {
	case x < y:
		return n, -1
	case x > y:
		return n, 1
	}
	return n, 0
}

// Build makes a trie.
func (l Strings) Build(keys []string, order []int, cfg layout.Config) (layout.StringTree, error) {
	src := inOrder{keys, order}
	g, err := survey(len(keys), src, cfg.Workers, cfg.Stop)
	if err != nil {
		return nil, err
	}
	starts := make([]uint64, len(g.spans)+1)
	for i := range g.spans {
		starts[i+1] = starts[i]
		for k := i * spanKeys; k < min((i+1)*spanKeys, len(keys)); k++ {
			starts[i+1] += uint64(len(src.key(k)))
		}
	}
	sizes := []int{0, 0, 8 * (len(keys) + 1), int(starts[len(g.spans)])}
	if sizes[0], sizes[1], err = g.plan(l.Table, l.Wide); err != nil {
		return nil, err
	}
	limit := cfg.Limit
	if limit > 0 {
		limit = max(limit-cfg.Beside, 1)
	}
	block, err := arena.New(sizes, 0, triePages(sizes, cfg.Pages), limit)
	if err != nil {
		return nil, err
	}
	t, err := buildStrings(g, src, starts, block, cfg.Stop)
	if err != nil {
		block.Release()
		return nil, err
	}
	return t, nil
}

func buildStrings(g *growth, src inOrder, starts []uint64, block *arena.Block, stop func() bool) (*StringTree, error) {
	offsets, data := arena.As[uint64](block.Segment(2)), block.Segment(3)
	var stopped atomic.Bool
	par.Run(g.workers, len(g.spans), par.Func(func(i int) {
		if stop != nil && stop() {
			stopped.Store(true)
			return
		}
		at := starts[i]
		for k := i * spanKeys; k < min((i+1)*spanKeys, g.n); k++ {
			at += uint64(copy(data[at:], src.key(k)))
			offsets[k+1] = at
		}
	}))
	if stopped.Load() {
		return nil, op.ErrStopped
	}
	t := newStringTree(block)
	var err error
	g.keys = t.list
	if t.trie, err = g.fill(t.list, block); err != nil {
		return nil, err
	}
	return t, nil
}

// Outline returns the segments that a trie in a file must have: the sizes of its
// nodes and its table are known when it is opened.
func (Strings) Outline(n int, _ layout.InFile) (layout.Outline, error) {
	return layout.Outline{Sizes: []int{-1, -1, 8 * (n + 1), -1}}, nil
}

// Open makes a trie over a block that holds one.
func (Strings) Open(n int, _ layout.InFile, b *arena.Block) (layout.StringTree, error) {
	if got := len(b.Segment(2)); got != 8*(n+1) {
		return nil, fmt.Errorf("offsets of %d strings have %d bytes", n, got)
	}
	t := newStringTree(b)
	var err error
	if t.trie, err = openTrie(n, t.list, b); err != nil {
		return nil, err
	}
	return t, nil
}

// StringTree is a trie of strings, which lie one behind the other in order.
type StringTree struct {
	*trie
	list *textList
}

func newStringTree(b *arena.Block) *StringTree {
	return &StringTree{list: &textList{strlist.Open(b.Segment(2), b.Segment(3), b), arena.As[uint64](b.Segment(2)), b.Segment(3)}}
}

// textList implements trieKeys and keySpans.
type textList struct {
	*strlist.List
	offsets []uint64
	data    []byte
}

func (l *textList) span(lo, hi int) sortedKeys        { return l }
func (l *textList) byteAt(i, depth int) int           { return simd.ByteAt(l.View(i), depth) }
func (l *textList) alike(i, j int) (bytes, order int) { return alike(l.View(i), l.View(j)) }
func (l *textList) text(i int, _ *[8]byte) string     { return l.View(i) }
func (l *textList) stages() int                       { return 2 }

func (l *textList) compare(i int, key string) (bytes, order int) {
	k := l.View(i)
	if k == key {
		return len(k), 0
	}
	return alike(key, k)
}

func (l *textList) lies(i, stage int) (unsafe.Pointer, int) {
	if stage == 0 {
		return unsafe.Pointer(&l.offsets[i]), 1
	}
	at := l.offsets[i]
	if at >= uint64(len(l.data)) {
		return nil, 0
	}
	return unsafe.Pointer(&l.data[at]), int(min(1+(l.offsets[i+1]-at)>>6, 4))
}

// Len returns the number of strings.
func (t *StringTree) Len() int { return t.n }

// Seek returns the number of strings below key, and reports whether the one there is
// key.
func (t *StringTree) Seek(key string) (rank int, equal bool) { return t.seek(key, false) }

// After returns the number of strings up to key.
func (t *StringTree) After(key string) int {
	rank, _ := t.seek(key, true)
	return rank
}

// Key returns string i.
func (t *StringTree) Key(i int) string {
	s := strings.Clone(t.list.View(i))
	runtime.KeepAlive(t)
	return s
}

// Find sets ranks[i] to the first string that is keys[i], or -1.
func (t *StringTree) Find(keys []string, ranks []int) { t.search(keys, ranks, false) }

// Rank sets ranks[i] to the number of strings below keys[i].
func (t *StringTree) Rank(keys []string, ranks []int) { t.search(keys, ranks, true) }

// PrefetchFrom names a column of values that Find is to prefetch.
func (t *StringTree) PrefetchFrom(vals unsafe.Pointer, size int) { t.vals, t.valSize = vals, size }

// together is how many bytes of strings share a piece of memory when they are copied
// out: holding one of them holds this much at most.
const together = 1 << 10

// CopyKeys sets dst to the strings from lo on, several of them in one piece of memory.
func (t *StringTree) CopyKeys(dst []string, lo int) {
	for len(dst) > 0 {
		n, size := 0, 0
		for ; n < len(dst) && (n == 0 || size+len(t.list.View(lo+n)) <= together); n++ {
			size += len(t.list.View(lo + n))
		}
		memory := make([]byte, 0, size)
		for i := range n {
			at := len(memory)
			memory = append(memory, t.list.View(lo+i)...)
			dst[i] = unsafe.String(unsafe.SliceData(memory[at:]), len(memory)-at)
		}
		dst, lo = dst[n:], lo+n
	}
	runtime.KeepAlive(t)
}

// AppendKey appends string i to dst.
func (t *StringTree) AppendKey(dst []byte, i int) []byte {
	dst = append(dst, t.list.View(i)...)
	runtime.KeepAlive(t)
	return dst
}

// EndNear returns the first string from r on that is above key, which is likely to be
// near: it is looked for among a few before the trie is asked.
func (t *StringTree) EndNear(r int, key string) int {
	const few = 16
	for end := r + few; r < end; r++ {
		if r >= t.n || t.list.View(r) > key {
			return r
		}
	}
	return max(r, t.After(key)) // a damaged file may be in no order
}

// Stats describes the trie.
func (t *StringTree) Stats() layout.Stats {
	return t.stats(8*len(t.list.offsets) + len(t.list.data))
}

// Format returns the format of the trie in a file.
func (t *StringTree) Format() *files.Format { return stringsInFile }

// Shape is that of strings: the header says nothing of them.
func (t *StringTree) Shape() layout.Shape { return layout.Shape{} }

// Segments returns the memory of nodes, root table, offsets and strings.
func (t *StringTree) Segments() [][]byte {
	offsets, data := t.list.Segments()
	return [][]byte{t.nodes, t.table, offsets, data}
}

// Check returns an error for the first thing that is not as Build makes it of the
// strings there.
func (t *StringTree) Check() error {
	if err := t.list.Check(true); err != nil {
		return err
	}
	return t.checkTrie(t.list)
}

// Release gives the memory back.
func (t *StringTree) Release() { t.block.Release() }

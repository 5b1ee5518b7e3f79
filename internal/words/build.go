package words

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/partial"
	"github.com/pando-index/pando/internal/simd"
)

// Config says how to build a list of strings.
type Config struct {
	Pages   arena.Pages
	Limit   int64 // most bytes to take; 0 for no limit
	Workers int   // goroutines that build
	Granule int   // the paper's G, for experiments; 0 for first differing bits only
}

// directoryBytes is room for a page in the directory, more than most take.
const directoryBytes = 32

// pagesFor is the number of pages for n strings.
func pagesFor(n int) int { return (n + pageEntries - 1) / pageEntries }

// smallBlock is the size below which huge pages would be mostly empty.
const smallBlock = 4 << 20

// sizesOf returns the sizes of pages and bytes.
func sizesOf(keys []string) []int {
	total := 0
	for _, k := range keys {
		total += len(k)
	}
	return []int{pagesFor(len(keys)) * pageBytes, total}
}

func (cfg *Config) pagesFor(sizes []int) arena.Pages {
	if sizes[0]+sizes[1] < smallBlock {
		return arena.Small
	}
	return cfg.Pages
}

// Need returns the bytes that a list of these strings takes, but for a rare
// surplus of its directory.
func Need(keys []string, cfg Config) (int64, error) {
	sizes := sizesOf(keys)
	need, err := arena.Need(sizes, cfg.pagesFor(sizes))
	return need + int64(pagesFor(len(keys))*directoryBytes), err
}

// Build makes a list of strings, in the given order; nil means as they
// are, which must be sorted. Nothing of keys is kept.
func Build(keys []string, order []int, cfg Config) (*Tree, error) {
	if cfg.Granule > 0 && 64%cfg.Granule != 0 {
		return nil, fmt.Errorf("granules of %d bits do not fill a window of 64", cfg.Granule)
	}
	if uint64(pagesFor(len(keys))) >= linkNode {
		return nil, fmt.Errorf("%w: %d strings", layout.ErrTooLarge, len(keys))
	}
	need, err := Need(keys, cfg)
	if err != nil {
		return nil, err
	}
	if cfg.Limit > 0 && need > cfg.Limit {
		return nil, fmt.Errorf("%w: needs %d bytes, the limit is %d", arena.ErrLimit, need, cfg.Limit)
	}
	sizes := sizesOf(keys)
	block, err := arena.New(sizes, 0, cfg.pagesFor(sizes), 0)
	if err != nil {
		return nil, err
	}
	t := &Tree{n: len(keys), count: pagesFor(len(keys)), pages: block.Segment(0), bytes: block.Segment(1), blocks: []*arena.Block{block}}
	b := &builder{Tree: t, keys: keys, order: order, cfg: cfg}
	if err := b.build(); err != nil {
		t.Release()
		return nil, err
	}
	return t, nil
}

// builder is a list in the making.
type builder struct {
	*Tree
	keys  []string
	order []int
	cfg   Config
	lower []uint32 // links of words
}

func (b *builder) build() error {
	if err := b.buildPages(); err != nil {
		return err
	}
	b.aim()
	words := b.buildDirectory()
	memory := b.write(len(words))
	if err := b.within(len(memory), len(words)); err != nil {
		return err
	}
	block, err := arena.New([]int{len(memory)}, 0, arena.Small, 0)
	if err != nil {
		return err
	}
	b.blocks = append(b.blocks, block)
	copy(block.Segment(0), memory)
	if b.root, err = implicit.Build(layout.Source[uint64]{Len: len(words), Codes: words}, rootConfig(b.cfg.Workers)); err != nil {
		return err
	}
	directory, _, ok := readDirectory(block.Segment(0), b.count)
	if !ok {
		return errors.New("words: a directory that cannot be read again")
	}
	b.directory = directory
	return nil
}

// within compares the limit with what the list takes in all, now that the size
// of its directory is known.
func (b *builder) within(directory, words int) error {
	root, err := implicit.Need[uint64](words, rootConfig(0))
	if err != nil {
		return err
	}
	more, err := arena.Need([]int{directory}, arena.Small)
	if err != nil {
		return err
	}
	if need := b.blocks[0].Bytes() + root + more; b.cfg.Limit > 0 && need > b.cfg.Limit {
		return fmt.Errorf("%w: needs %d bytes, the limit is %d", arena.ErrLimit, need, b.cfg.Limit)
	}
	return nil
}

// rootConfig is the tree of the root's words.
func rootConfig(workers int) implicit.Config {
	return implicit.Config{Leaves: implicit.Apart, Pages: arena.HugeAll, Workers: workers}
}

// key returns string i of the result.
func (b *builder) key(i int) string {
	if b.order != nil {
		i = b.order[i]
	}
	return b.keys[i]
}

// pagesAtOnce is the pages that a worker takes at a time.
const pagesAtOnce = 256

// buildPages writes strings and pages.
func (b *builder) buildPages() error {
	starts := b.starts()
	var failed atomic.Pointer[error]
	par.Run(par.Workers(b.cfg.Workers), len(starts), par.Func(func(piece int) {
		at := starts[piece]
		for p := piece * pagesAtOnce; p < min((piece+1)*pagesAtOnce, b.count) && failed.Load() == nil; p++ {
			end, err := b.fillPage(p, at)
			if err != nil {
				failed.Store(&err)
			}
			b.finishPage(p)
			at = end
		}
	}))
	if e := failed.Load(); e != nil {
		return *e
	}
	return nil
}

// starts returns for each piece of pages where its strings begin.
func (b *builder) starts() []uint64 {
	pieces := (b.count + pagesAtOnce - 1) / pagesAtOnce
	sums := make([]uint64, pieces+1)
	par.Run(par.Workers(b.cfg.Workers), pieces, par.Func(func(piece int) {
		for i := piece * pagesAtOnce * pageEntries; i < min((piece+1)*pagesAtOnce*pageEntries, b.n); i++ {
			sums[piece+1] += uint64(len(b.key(i)))
		}
	}))
	for i := range pieces {
		sums[i+1] += sums[i]
	}
	return sums[:pieces]
}

// fillPage copies the strings of a page and sets their offsets.
func (b *builder) fillPage(p int, at uint64) (end uint64, err error) {
	pg := b.page(p)
	pg.Base, end = at, at
	first := p * pageEntries
	before := ""
	if first > 0 {
		before = b.key(first - 1)
	}
	for slot := range pageEntries {
		if end-at > math.MaxUint32 {
			return end, fmt.Errorf("%w: those of page %d take more than 4 GiB", layout.ErrTooLong, p)
		}
		pg.offsets[slot] = uint32(end - at)
		if first+slot >= b.n {
			continue
		}
		k := b.key(first + slot)
		if k < before {
			return end, layout.ErrUnsorted
		}
		before = k
		end += uint64(copy(b.bytes[end:], k))
	}
	if end-at > math.MaxUint32 {
		return end, fmt.Errorf("%w: those of page %d take more than 4 GiB", layout.ErrTooLong, p)
	}
	pg.End = uint32(end - at)
	return end, nil
}

// finishPage chooses a page's program, and sets partial keys and separators.
func (b *builder) finishPage(p int) {
	pg, lo, hi := b.page(p), p*pageEntries, min((p+1)*pageEntries, b.n)
	var views [pageEntries]string
	var which [pageEntries]int
	for i := range hi - lo {
		views[i] = b.view(lo + i)
	}
	pg.Program = partial.Chooser{Bits: pageBits, Granule: b.cfg.Granule, Workers: 1}.Program(hi-lo, func(i int) string { return views[i] })
	simd.Extract(unsafe.Pointer(&pg.Program), 0, which[:], views[:hi-lo], pg.partials[:])
	for i := hi - lo; i < pageEntries; i++ {
		pg.partials[i] = math.MaxUint32
	}
	for line := range pg.seps {
		pg.seps[line] = pg.partials[line*lineKeys+lineKeys-1]
	}
}

// greatest returns the last string of a page.
func (b *builder) greatest(p int) string { return b.view(min((p+1)*pageEntries, b.n) - 1) }

// buildDirectory makes the nodes, and returns the root's words.
func (b *builder) buildDirectory() (words []uint64) {
	b.nodes = []node{{Pages: uint32(b.count)}}
	if b.n == 0 {
		return nil
	}
	d := b.divide(0, 0, b.n)
	var open []int // words that do not tell a page alone
	for i, r := range d.runs {
		if r.ambiguous() {
			open = append(open, i)
		}
	}
	parts := make([]*builder, len(open))
	par.Run(par.Workers(b.cfg.Workers), len(open), par.Func(func(p int) {
		i := open[p]
		part := &builder{Tree: b.part(), cfg: b.cfg}
		d.links[i] = part.buildNode(0, d.runs[i], d.words[i], 0, b.n, 1)
		parts[p] = part
	}))
	for p, i := range open {
		d.links[i] = b.adopt(parts[p], d.links[i])
	}
	b.links = append(d.links, b.lower...)
	b.lower = nil
	return d.words
}

// part is the list with a directory of its own, which has the root alone: a
// worker builds what is below one of the root's words.
func (b *builder) part() *Tree {
	t := *b.Tree
	t.directory = directory{nodes: []node{b.nodes[0]}}
	return &t
}

// adopt adds what a worker has built, whose numbers begin at the root's, and
// returns the link to it.
func (b *builder) adopt(part *builder, link uint32) uint32 {
	nodes, words := uint32(len(b.nodes)-1), uint32(len(b.words))
	shift := func(link uint32) uint32 {
		if link&linkNode != 0 {
			link += nodes
		}
		return link
	}
	for _, n := range part.nodes[1:] {
		n.Words += words
		b.nodes = append(b.nodes, n)
	}
	b.words = append(b.words, part.words...)
	for _, l := range part.lower {
		b.lower = append(b.lower, shift(l))
	}
	b.loose = b.loose || part.loose
	return shift(link)
}

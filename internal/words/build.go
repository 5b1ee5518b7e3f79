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
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/partial"
	"github.com/pando-index/pando/internal/simd"
)

// Config says how to build a list of strings.
type Config struct {
	Pages   arena.Pages
	Limit   int64       // most bytes to take; 0 for no limit
	Beside  int64       // of them, those that are taken already
	Workers int         // goroutines that build
	Stop    func() bool // see layout.Config
	Granule int         // the paper's G, for experiments; 0 for first differing bits only
}

// MostPageBytes is the most that the strings of a page can take together, since
// offsets have 32 bits. Tests set it to less: longer strings take gigabytes.
var MostPageBytes uint64 = math.MaxUint32

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

// Need returns the bytes that a list of these strings takes in any order, with
// the least directory: how large that is shows only as it is built. It returns
// layout.ErrTooLong or layout.ErrTooLarge for strings that no order makes fit.
func Need(keys []string, cfg Config) (int64, error) { return need(sizesOf(keys), len(keys), cfg) }

func need(sizes []int, n int, cfg Config) (int64, error) {
	pages := pagesFor(n)
	switch {
	case uint64(pages) >= linkNode:
		return 0, fmt.Errorf("%w: %d strings", layout.ErrTooLarge, n)
	case uint64(sizes[1]) > uint64(pages)*MostPageBytes:
		return 0, fmt.Errorf("%w: %d of them take %d bytes", layout.ErrTooLong, n, sizes[1])
	}
	words := min(n, 1)
	least := counts{Distinct: uint64(words), Nodes: 1}
	return inAll(sizes, int(least.size()), words, cfg)
}

// inAll returns the bytes that a list takes with a directory of the given bytes
// and words in its root.
func inAll(sizes []int, directory, words int, cfg Config) (int64, error) {
	pages, err := arena.Need(sizes, cfg.pagesFor(sizes))
	if err != nil {
		return 0, err
	}
	more, err := arena.Need([]int{directory}, arena.Small)
	if err != nil {
		return 0, err
	}
	root, err := implicit.Need[uint64](words, rootConfig(0))
	return pages + more + root, err
}

// within compares the limit with the bytes of a list.
func (cfg *Config) within(need int64) error {
	if need += cfg.Beside; cfg.Limit > 0 && need > cfg.Limit {
		return fmt.Errorf("%w: needs %d bytes, the limit is %d", arena.ErrLimit, need, cfg.Limit)
	}
	return nil
}

// Build makes a list of strings, in the given order; nil means as they
// are, which must be sorted. Nothing of keys is kept. A list that is refused has
// taken nothing off the heap.
func Build(keys []string, order []int, cfg Config) (*Tree, error) {
	if cfg.Granule > 0 && 64%cfg.Granule != 0 {
		return nil, fmt.Errorf("granules of %d bits do not fill a window of 64", cfg.Granule)
	}
	b := &builder{Tree: &Tree{n: len(keys), count: pagesFor(len(keys))}, keys: keys, order: order, sizes: sizesOf(keys), cfg: cfg}
	if err := b.build(); err != nil {
		b.Release()
		return nil, err
	}
	return b.Tree, nil
}

// builder is a list in the making.
type builder struct {
	*Tree
	keys  []string
	order []int
	sizes []int // of pages and bytes
	cfg   Config
	lower []uint32 // links of words
}

// build makes the directory from the list, whose strings lie one behind the
// other. Under a limit it makes it first, from the keys where they are: nothing
// may be taken before it is known how much is needed, and that depends on it.
func (b *builder) build() (err error) {
	if err := b.fits(); err != nil {
		return err
	}
	var words []uint64
	if b.cfg.Limit > 0 {
		if words, err = b.directoryFirst(); err != nil {
			return err
		}
	}
	block, err := arena.New(b.sizes, 0, b.cfg.pagesFor(b.sizes), 0)
	if err != nil {
		return err
	}
	b.blocks, b.pages, b.bytes = []*arena.Block{block}, block.Segment(0), block.Segment(1)
	if err := b.buildPages(); err != nil {
		return err
	}
	b.aim()
	if b.cfg.Limit == 0 {
		words = b.buildDirectory()
	}
	return b.keep(words)
}

// fits checks the bounds that are known before there is a directory: the least
// that the list takes, and that the strings of no page are too long together.
func (b *builder) fits() error {
	least, err := need(b.sizes, b.n, b.cfg)
	if err != nil {
		return err
	}
	if err := b.cfg.within(least); err != nil {
		return err
	}
	if uint64(b.sizes[1]) <= MostPageBytes {
		return nil
	}
	for p := range b.count {
		total := uint64(0)
		for i := p * pageEntries; i < min((p+1)*pageEntries, b.n); i++ {
			total += uint64(len(b.key(i)))
		}
		if total > MostPageBytes {
			return fmt.Errorf("%w: %d of them, one behind the other in order, take %d bytes", layout.ErrTooLong, pageEntries, total)
		}
	}
	return nil
}

// directoryFirst makes the directory before there is a list, and compares the
// limit with the bytes of both. It returns the root's words.
func (b *builder) directoryFirst() ([]uint64, error) {
	if b.order == nil && !partial.Sorted(b.keys, b.cfg.Workers) {
		return nil, layout.ErrUnsorted
	}
	words := b.buildDirectory()
	c := b.counts(len(words))
	need, err := inAll(b.sizes, int(c.size()), len(words), b.cfg)
	if err != nil {
		return nil, err
	}
	return words, b.cfg.within(need)
}

// keep moves the directory off the heap.
func (b *builder) keep(words []uint64) error {
	memory := b.write(len(words))
	block, err := arena.New([]int{len(memory)}, 0, arena.Small, 0)
	if err != nil {
		return err
	}
	b.blocks = append(b.blocks, block)
	par.Copy(block.Segment(0), memory, par.Workers(b.cfg.Workers))
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

// view returns string i of the result where it lies: in the list, or among the
// keys as long as there is none.
func (b *builder) view(i int) string {
	if b.pages == nil {
		return b.key(i)
	}
	return b.Tree.view(i)
}

// pagesAtOnce is the pages that a worker takes at a time.
const pagesAtOnce = 256

// buildPages writes strings and pages.
func (b *builder) buildPages() error {
	starts := b.starts()
	var failed atomic.Pointer[error]
	par.Run(par.Workers(b.cfg.Workers), len(starts), par.Func(func(piece int) {
		at, room := starts[piece], new(pageRoom)
		if b.cfg.Stop != nil && b.cfg.Stop() {
			err := op.ErrStopped
			failed.Store(&err)
		}
		for p := piece * pagesAtOnce; p < min((piece+1)*pagesAtOnce, b.count) && failed.Load() == nil; p++ {
			end, err := b.fillPage(p, at)
			if err != nil {
				failed.Store(&err)
			}
			b.finishPage(p, room)
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
	pg.End = uint32(end - at)
	return end, nil
}

// pageRoom is room to finish one page after the other.
type pageRoom struct {
	views [pageEntries]string
	which [pageEntries]int // page 0, for all
}

// finishPage chooses a page's program, and sets partial keys and separators.
func (b *builder) finishPage(p int, room *pageRoom) {
	pg, lo, hi := b.page(p), p*pageEntries, min((p+1)*pageEntries, b.n)
	for i := range hi - lo {
		room.views[i] = b.view(lo + i)
	}
	pg.Program = partial.Chooser{Bits: pageBits, Granule: b.cfg.Granule, Workers: 1}.Program(hi-lo, func(i int) string { return room.views[i] })
	simd.Extract(unsafe.Pointer(&pg.Program), 0, room.which[:], room.views[:hi-lo], pg.partials[:])
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
		part := &builder{Tree: b.part(), keys: b.keys, order: b.order, cfg: b.cfg}
		d.links[i] = part.buildNode(0, d.runs[i], d.words[i], 0, b.n, 1)
		parts[p] = part
	}))
	for p, i := range open {
		d.links[i] = b.adopt(parts[p], d.links[i])
	}
	b.links = par.Append(d.links, b.lower)
	b.lower = nil
	return d.words
}

// part is the list with a directory of its own, which has the root alone: a
// worker builds the nodes below one of the root's words.
func (b *builder) part() *Tree {
	t := *b.Tree
	t.directory = directory{nodes: []node{b.nodes[0]}}
	return &t
}

// adopt adds the nodes that a worker has built, whose numbers begin at the
// root's, and returns the link to it.
func (b *builder) adopt(part *builder, link uint32) uint32 {
	nodes, words := uint32(len(b.nodes)-1), uint32(len(b.words))
	shift := func(link uint32) uint32 {
		if link&linkNode != 0 {
			link += nodes
		}
		return link
	}
	b.nodes, b.lower = par.Grow(b.nodes, len(part.nodes)), par.Grow(b.lower, len(part.lower))
	for _, n := range part.nodes[1:] {
		n.Words += words
		b.nodes = append(b.nodes, n)
	}
	b.words = par.Append(b.words, part.words)
	for _, l := range part.lower {
		b.lower = append(b.lower, shift(l))
	}
	b.loose = b.loose || part.loose
	return shift(link)
}

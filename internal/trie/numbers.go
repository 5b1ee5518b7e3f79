package trie

import (
	"math/bits"
	"runtime"
	"sync"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/shortcut"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/snapshot"
)

var numbersInFile = &snapshot.Format{
	Number: 9, Name: "radix", Version: 3,
	Sections: []snapshot.Kind{sectionNodes, sectionTable, layout.SectionLeaves},
}

// Numbers is tries as a layout of numbers: a key is its code, the greatest byte first.
type Numbers[C layout.Code] struct {
	Table Table
	Wide  Wide
}

// Kind returns the layout's name.
func (Numbers[C]) Kind() layout.Kind { return Name }

// Formats lists the formats of tries in files.
func (Numbers[C]) Formats() []*snapshot.Format { return []*snapshot.Format{numbersInFile} }

// Settle reports whether the layout is asked for, by its name. Values are apart.
func (Numbers[C]) Settle(asked layout.Kind, _, _ int) (pairs, ok bool) { return false, asked == Name }

// widthOf returns the bytes of a code.
func widthOf[C layout.Code]() int { return int(unsafe.Sizeof(C(0))) }

// trieSizes returns the sizes of the segments of a trie of numbers.
func trieSizes[C layout.Code](n, nodes, table int, cfg layout.Config) []int {
	sizes := []int{nodes, table, n * widthOf[C]()}
	if cfg.ValSize > 0 {
		sizes = append(sizes, n*cfg.ValSize)
	}
	return sizes
}

// Need returns the bytes that a trie of n numbers takes at most: if all nodes have two
// children, and the root table as many tops as it may.
func (l Numbers[C]) Need(n int, cfg layout.Config) (int64, error) {
	return l.need(n, n*trieForms[trie4].size, (1+n/shortcut.LineFill)*int(unsafe.Sizeof(shortcut.Line{})), cfg)
}

// Least returns the bytes that a trie of n numbers takes if all are equal.
func (l Numbers[C]) Least(n int, cfg layout.Config) (int64, error) { return l.need(n, 0, 0, cfg) }

func (Numbers[C]) need(n, nodes, table int, cfg layout.Config) (int64, error) {
	if int64(n) >= leafBit || int64(n)*int64(trieForms[trie4].size) != int64(n*trieForms[trie4].size) {
		return 0, layout.ErrTooLarge
	}
	sizes := trieSizes[C](n, int(unsafe.Sizeof(trieHead{}))+nodes, table, cfg)
	return arena.Need(sizes, triePages(sizes, cfg.Pages))
}

// Survey returns the bytes that a trie of these sorted numbers takes.
func (l Numbers[C]) Survey(src layout.Source[C], cfg layout.Config) (int64, error) {
	_, sizes, err := l.survey(src, cfg)
	if err != nil {
		return 0, err
	}
	return arena.Need(sizes, triePages(sizes, cfg.Pages))
}

func (l Numbers[C]) survey(src layout.Source[C], cfg layout.Config) (*growth, []int, error) {
	g, err := survey(src.Len, numberSource[C]{&src}, cfg.Workers, cfg.Stop)
	if err != nil {
		return nil, nil, err
	}
	nodes, table, err := g.plan(l.Table, l.Wide)
	return g, trieSizes[C](src.Len, nodes, table, cfg), err
}

// Build makes a trie.
func (l Numbers[C]) Build(src layout.Source[C], cfg layout.Config) (layout.Tree[C], error) {
	g, sizes, err := l.survey(src, cfg)
	if err != nil {
		return nil, err
	}
	block, err := arena.New(sizes, 0, triePages(sizes, cfg.Pages), cfg.Limit)
	if err != nil {
		return nil, err
	}
	t := newNumberTree[C](block, cfg.ValSize)
	par.Run(g.workers, len(g.spans), par.Func(func(i int) {
		lo, hi := i*spanKeys, min((i+1)*spanKeys, src.Len)
		if src.Codes != nil {
			par.Copy(t.codes[lo:hi], src.Codes[lo:hi], 1)
		} else {
			src.Encode(t.codes[lo:hi], lo)
		}
		if s := cfg.ValSize; s > 0 {
			src.CopyVals(t.column[lo*s:hi*s], lo, s)
		}
	}))
	g.keys = t.codes
	if t.trie, err = g.fill(t.codes, block); err != nil {
		block.Release()
		return nil, err
	}
	t.aim()
	return t, nil
}

// Outline returns the segments that a trie in a file must have: the sizes of its
// nodes and its table are known when it is opened.
func (Numbers[C]) Outline(n int, in layout.InFile) (layout.Outline, error) {
	return layout.Outline{Sizes: trieSizes[C](n, -1, -1, layout.Config{ValSize: in.ValSize})}, nil
}

// Open makes a trie over a block that holds one.
func (l Numbers[C]) Open(n int, in layout.InFile, b *arena.Block) (layout.Tree[C], error) {
	o, err := l.Outline(n, in)
	if err == nil {
		err = o.CheckSegments(b)
	}
	if err != nil {
		return nil, err
	}
	t := newNumberTree[C](b, in.ValSize)
	if t.trie, err = openTrie(n, t.codes, b); err != nil {
		return nil, err
	}
	t.aim()
	return t, nil
}

// numberSource is numbers to build from.
type numberSource[C layout.Code] struct{ *layout.Source[C] }

func (s numberSource[C]) key(i int) C { return s.Span(i, i+1, nil)[0] }

func (s numberSource[C]) alike(i, j int) (bytes, order int) {
	return alikeCodes(s.key(i), s.key(j))
}

func (s numberSource[C]) byteAt(i, depth int) int { return digit(s.key(i), depth) }

func (s numberSource[C]) span(lo, hi int) sortedKeys {
	return &numberSpan[C]{lo, s.Span(lo, hi, nil)}
}

// numberSpan is some of the numbers to build from.
type numberSpan[C layout.Code] struct {
	lo    int
	codes []C
}

func (s *numberSpan[C]) alike(i, j int) (bytes, order int) {
	return alikeCodes(s.codes[i-s.lo], s.codes[j-s.lo])
}

func (s *numberSpan[C]) byteAt(i, depth int) int { return digit(s.codes[i-s.lo], depth) }

// digit returns a byte of a code, counted from the greatest; -1 behind the last.
func digit[C layout.Code](code C, depth int) int {
	w := widthOf[C]()
	if depth >= w {
		return -1
	}
	return int(byte(code >> (8 * uint(w-1-depth))))
}

// alikeCodes returns how many bytes two codes begin with alike, and their order.
func alikeCodes[C layout.Code](a, b C) (bytes, order int) {
	bytes = (bits.LeadingZeros64(uint64(a^b)) - 64 + 8*widthOf[C]()) / 8
	switch {
	case a < b:
		return bytes, -1
	case a > b:
		return bytes, 1
	}
	return bytes, 0
}

// codeList implements trieKeys and keySpans.
type codeList[C layout.Code] []C

func (l codeList[C]) span(lo, hi int) sortedKeys          { return l }
func (l codeList[C]) byteAt(i, depth int) int             { return digit(l[i], depth) }
func (l codeList[C]) alike(i, j int) (bytes, order int)   { return alikeCodes(l[i], l[j]) }
func (l codeList[C]) stages() int                         { return 1 }
func (l codeList[C]) lies(i, _ int) (unsafe.Pointer, int) { return unsafe.Pointer(&l[i]), 1 }

func (l codeList[C]) text(i int, buf *[8]byte) string {
	return bigEndian(uint64(l[i]), widthOf[C](), buf)
}

func (l codeList[C]) compare(i int, key string) (bytes, order int) {
	var code C
	for j := range widthOf[C]() {
		code = code<<8 | C(key[j])
	}
	return alikeCodes(code, l[i])
}

// NumberTree is a trie of numbers, which lie one behind the other in order, with a
// column of values behind them.
type NumberTree[C layout.Code] struct {
	*trie
	codes   codeList[C]
	column  []byte
	colSize int
}

func newNumberTree[C layout.Code](b *arena.Block, valSize int) *NumberTree[C] {
	t := &NumberTree[C]{codes: arena.As[C](b.Segment(2)), colSize: valSize}
	if valSize > 0 {
		t.column = b.Segment(3)
	}
	return t
}

// aim makes searches prefetch values of the column.
func (t *NumberTree[C]) aim() {
	if t.colSize > 0 {
		t.PrefetchFrom(unsafe.Pointer(unsafe.SliceData(t.column)), t.colSize)
	}
}

// numerals is codes as strings.
type numerals struct {
	bytes [bucketKeys][8]byte
	texts [bucketKeys]string
}

var numeralsPool = sync.Pool{New: func() any { return new(numerals) }}

// each calls search with codes as strings, a bucket at a time.
func (t *NumberTree[C]) each(keys []C, ranks []int, below bool) {
	n := numeralsPool.Get().(*numerals)
	for len(keys) > 0 {
		k := min(len(keys), bucketKeys)
		for i, code := range keys[:k] {
			n.texts[i] = bigEndian(uint64(code), widthOf[C](), &n.bytes[i])
		}
		t.search(n.texts[:k], ranks[:k], below)
		keys, ranks = keys[k:], ranks[k:]
	}
	numeralsPool.Put(n)
}

// Rank sets ranks[i] to the number of entries below keys[i].
func (t *NumberTree[C]) Rank(keys []C, ranks []int) { t.each(keys, ranks, true) }

// Find sets ranks[i] to the number of the first entry equal to keys[i], or -1.
func (t *NumberTree[C]) Find(keys []C, ranks []int) { t.each(keys, ranks, false) }

// Seek returns the number of entries below key, and reports whether the entry there
// is equal to it.
func (t *NumberTree[C]) Seek(key C) (rank int, equal bool) {
	n := numeralsPool.Get().(*numerals)
	rank, equal = t.seek(bigEndian(uint64(key), widthOf[C](), &n.bytes[0]), false)
	numeralsPool.Put(n)
	return rank, equal
}

// PrefetchFrom names a column of values that Find is to prefetch.
func (t *NumberTree[C]) PrefetchFrom(vals unsafe.Pointer, size int) { t.vals, t.valSize = vals, size }

// Len returns the number of entries.
func (t *NumberTree[C]) Len() int { return t.n }

// Key returns the key of entry i.
func (t *NumberTree[C]) Key(i int) C {
	k := t.codes[i]
	runtime.KeepAlive(t)
	return k
}

// CopyKeys copies the keys of the entries from lo on.
func (t *NumberTree[C]) CopyKeys(dst []C, lo int) {
	par.Copy(dst, t.codes[lo:lo+len(dst)], 1)
	runtime.KeepAlive(t)
}

// Prefetch asks for the keys of n entries from lo on.
func (t *NumberTree[C]) Prefetch(lo, n int) {
	const few = 6
	if n > 0 {
		simd.PrefetchAt(unsafe.Pointer(&t.codes[lo]), min(1+n*widthOf[C]()/simd.LineBytes, few))
	}
}

// Val returns the address of entry i's value in the column.
func (t *NumberTree[C]) Val(i int) unsafe.Pointer {
	return unsafe.Add(unsafe.Pointer(unsafe.SliceData(t.column)), i*t.colSize)
}

// CopyVals copies the values from entry lo on.
func (t *NumberTree[C]) CopyVals(dst []byte, lo int) {
	par.Copy(dst, t.column[lo*t.colSize:][:len(dst)], 1)
	runtime.KeepAlive(t)
}

// Stats describes the trie.
func (t *NumberTree[C]) Stats() layout.Stats {
	s := t.stats(len(t.codes) * widthOf[C]())
	s.ValueBytes = int64(len(t.column))
	return s
}

// Format returns the format of the trie in a file.
func (t *NumberTree[C]) Format() *snapshot.Format { return numbersInFile }

// Shape is that of tries: the header says nothing of them.
func (t *NumberTree[C]) Shape() layout.Shape { return layout.Shape{} }

// Segments returns the memory of nodes, root table, keys and values.
func (t *NumberTree[C]) Segments() [][]byte {
	out := [][]byte{t.nodes, t.table, arena.Bytes(t.codes)}
	if t.colSize > 0 {
		out = append(out, t.column)
	}
	return out
}

// Check returns an error for the first thing that is not as Build makes it of the
// keys there.
func (t *NumberTree[C]) Check() error { return t.checkTrie(t.codes) }

// Release gives the memory back.
func (t *NumberTree[C]) Release() { t.block.Release() }

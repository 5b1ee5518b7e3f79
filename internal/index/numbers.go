package index

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
)

// numbers is the engine for keys of fixed width: a tree over their codes, with
// the values in its leaves, in its column, or elsewhere.
type numbers[C order.Code] struct {
	tree    layout.Tree[C]
	key     order.Type
	n       int
	valSize int // bytes of a value in the tree; 0 for none
	pairs   bool
	cpu     *exec.CPU[C]
	sinks   sync.Pool // *column
	onGPU[C]
}

// withValues is numbers whose tree holds the values.
type withValues[C order.Code] struct {
	*numbers[C]
	layout.Valued
}

// values is the values to build from, where they lie.
type values struct {
	at   unsafe.Pointer
	kept int // bytes of a value that layouts keep; 0 where they do not
	size int // bytes of any value
}

// built is an engine, and the order in which values that it does not keep are
// to be put.
type built struct {
	engine
	order rows
}

// build makes an engine of keys in any order.
func build(keys order.Keys, vals values, cfg Config) (built, error) {
	switch keys.Bits() {
	case 32:
		return buildNumbers[uint32](keys, vals, cfg)
	case 64:
		return buildNumbers[uint64](keys, vals, cfg)
	}
	return buildStrings(keys.Strings(), vals, cfg)
}

// builder builds a tree of numbers.
type builder[C order.Code] struct {
	keys   order.Keys
	vals   values
	layout layout.Numbers[C]
	cfg    layout.Config
	auto   bool // another layout may be taken for the keys at hand
	order  rows

	stopped func() error // an error if the build is to be stopped
}

func buildNumbers[C order.Code](keys order.Keys, vals values, cfg Config) (built, error) {
	lay, pairs, err := settleNumbers[C](cfg.Layout, keys.Len(), vals.kept)
	if err != nil {
		return built{}, err
	}
	b := &builder[C]{keys: keys, vals: vals, layout: lay, auto: cfg.Layout == layout.Auto, cfg: layout.Config{
		Pairs: pairs, ValSize: vals.kept, Pages: cfg.Pages, Limit: cfg.Limit, Workers: par.Workers(cfg.Workers),
	}, stopped: cfg.stopped}
	tree, err := b.build()
	if err != nil {
		b.order.release()
		return built{}, err
	}
	return built{newNumbers(tree, keys.Type, vals.kept, cfg), b.order}, nil
}

// newNumbers makes the engine over a tree.
func newNumbers[C order.Code](tree layout.Tree[C], key order.Type, valSize int, cfg Config) engine {
	_, pairs := tree.(layout.Paired[C])
	e := &numbers[C]{tree: tree, key: key, n: tree.Len(), valSize: valSize, pairs: pairs}
	e.cpu = exec.NewCPU(tree, e.n, par.Workers(cfg.Workers))
	e.cpu.SetBound(cfg.Response)
	e.sinks.New = func() any { return new(column) }
	if v, ok := tree.(layout.Valued); ok && valSize > 0 {
		return &withValues[C]{e, v}
	}
	return e
}

// build builds from input that is in order, and sorts it first where it is not.
// Whether it is shows as it is built, for next to nothing. But under a limit,
// nothing may be taken before it is known what is needed.
func (b *builder[C]) build() (layout.Tree[C], error) {
	if b.cfg.Limit == 0 || order.SortedKeys[C](b.keys, b.cfg.Workers) {
		tree, err := b.plant(b.sorted())
		if !errors.Is(err, layout.ErrUnsorted) {
			return tree, err
		}
	}
	switch {
	case b.vals.kept == 4:
		return sortValues[C, uint32](b)
	case b.vals.kept == 8:
		return sortValues[C, uint64](b)
	case b.vals.size == 0:
		return sortKeys(b)
	case uint64(b.keys.Len()) > math.MaxUint32:
		return sortRows[C, uint64](b)
	}
	return sortRows[C, uint32](b)
}

// sorted is input that is in order.
func (b *builder[C]) sorted() layout.Source[C] {
	src := layout.Source[C]{Len: b.keys.Len(), Vals: b.vals.at}
	if b.keys.Raw() != nil || src.Len == 0 {
		src.Codes = order.Codes[C](b.keys, nil)
	} else {
		src.Encode = func(dst []C, lo int) { order.CodesTo(dst, b.keys.Slice(lo, lo+len(dst))) }
	}
	return src
}

// Auto takes a layout whose size depends on the keys for an index that is over
// its limit otherwise, if it then is so many times smaller. It does not for the
// speed of it: ranks of compressed keys take 1.1 to 1.4 times as long at 64M
// keys, 1.2 to 1.8 times at a million, and nowhere less (experiment layouts).
const autoRatio = 1.5

// plant builds the tree of sorted keys.
func (b *builder[C]) plant(src layout.Source[C]) (layout.Tree[C], error) {
	if err := b.stopped(); err != nil {
		return nil, err
	}
	lay, cfg := b.layout, b.cfg
	if smaller := b.smaller(src); smaller != nil {
		lay, cfg.Pairs = smaller, false
	}
	return lay.Build(src, cfg)
}

// smaller returns the layout that Auto takes instead of one that breaks the
// limit, nil for none.
func (b *builder[C]) smaller(src layout.Source[C]) layout.Numbers[C] {
	if !b.auto || b.cfg.Limit == 0 {
		return nil
	}
	plain, err := b.layout.Need(src.Len, b.cfg)
	if err != nil || plain <= b.cfg.Limit {
		return nil
	}
	cfg := b.cfg
	cfg.Pairs = false
	for _, l := range layoutsOfNumbers[C]() {
		if s, ok := l.(layout.Surveyed[C]); ok {
			size, err := s.Survey(src, cfg)
			if err == nil && float64(size)*autoRatio <= float64(plain) {
				return l
			}
		}
	}
	return nil
}

// sortedKeys is scratch memory for sorting: codes and what moves along, twice.
type sortedKeys[C, P order.Code] struct {
	block   *arena.Block
	codes   []C
	payload []P
}

// sortInto sorts keys with a payload that fill sets, in scratch memory that
// the caller releases; nil for no payload. Scratch memory and the tree that is
// built from it must fit the limit together.
func sortInto[C, P order.Code](b *builder[C], fill func([]P)) (*sortedKeys[C, P], error) {
	n := b.keys.Len()
	var code C
	var p P
	sizes := []int{n * int(unsafe.Sizeof(code)), n * int(unsafe.Sizeof(code)), 0, 0}
	if fill != nil {
		sizes[2] = n * int(unsafe.Sizeof(p))
		sizes[3] = sizes[2]
	}
	if err := b.fits(sizes); err != nil {
		return nil, err
	}
	block, err := arena.New(sizes, 0, scratchPages(n), 0)
	if err != nil {
		return nil, err
	}
	s := &sortedKeys[C, P]{block: block}
	codes, spare := arena.As[C](block.Segment(0)), arena.As[C](block.Segment(1))
	encode(codes, b.keys, b.cfg.Workers)
	var payload, payloadSpare []P
	if fill != nil {
		payload, payloadSpare = arena.As[P](block.Segment(2)), arena.As[P](block.Segment(3))
		fill(payload)
	}
	if err := b.stopped(); err != nil {
		block.Release()
		return nil, err
	}
	s.codes, s.payload = order.Sort(codes, spare, payload, payloadSpare, b.cfg.Workers)
	if err := b.fitsSorted(s.codes, block.Bytes()); err != nil {
		block.Release()
		return nil, err
	}
	return s, nil
}

// fits checks the limit for scratch memory and tree together. How large a tree
// is whose size depends on its keys shows later.
func (b *builder[C]) fits(scratch []int) error {
	tree, err := int64(0), error(nil)
	if _, surveyed := b.layout.(layout.Surveyed[C]); !surveyed {
		if tree, err = b.layout.Need(b.keys.Len(), b.cfg); err != nil {
			return err
		}
	}
	more, err := arena.Need(scratch, scratchPages(b.keys.Len()))
	if err != nil {
		return err
	}
	return within(b.cfg.Limit, tree, more)
}

// fitsSorted does the same for a tree whose size shows when its keys are
// sorted, in scratch memory that is taken already.
func (b *builder[C]) fitsSorted(codes []C, scratch int64) error {
	s, surveyed := b.layout.(layout.Surveyed[C])
	if !surveyed || b.cfg.Limit == 0 {
		return nil
	}
	tree, err := s.Survey(layout.Source[C]{Len: len(codes), Codes: codes}, b.cfg)
	if err != nil {
		return err
	}
	return within(b.cfg.Limit, tree, scratch)
}

// within checks a limit for a tree and what it takes to sort its keys.
func within(limit, tree, scratch int64) error {
	if limit > 0 && tree+scratch > limit {
		return fmt.Errorf("%w: needs %d bytes, %d of them to sort the keys, the limit is %d; sorted input needs less", arena.ErrLimit, tree+scratch, scratch, limit)
	}
	return nil
}

func scratchPages(n int) arena.Pages {
	if n < 1<<20 {
		return arena.Small
	}
	return arena.HugeAll
}

// encode turns all keys into codes.
func encode[C order.Code](dst []C, keys order.Keys, workers int) {
	const piece = 64 << 10
	par.Run(workers, (len(dst)+piece-1)/piece, par.Func(func(p int) {
		lo, hi := p*piece, min((p+1)*piece, len(dst))
		order.CodesTo(dst[lo:hi], keys.Slice(lo, hi))
	}))
}

// sortValues builds a tree whose values move along with their keys.
func sortValues[C, P order.Code](b *builder[C]) (layout.Tree[C], error) {
	s, err := sortInto(b, func(dst []P) { par.Copy(dst, unsafe.Slice((*P)(b.vals.at), len(dst)), b.cfg.Workers) })
	if err != nil {
		return nil, err
	}
	defer s.block.Release()
	return b.plant(layout.Source[C]{Len: len(s.codes), Codes: s.codes, Vals: unsafe.Pointer(unsafe.SliceData(s.payload))})
}

// sortKeys builds a tree of keys alone.
func sortKeys[C order.Code](b *builder[C]) (layout.Tree[C], error) {
	s, err := sortInto[C, uint32](b, nil)
	if err != nil {
		return nil, err
	}
	defer s.block.Release()
	return b.plant(layout.Source[C]{Len: len(s.codes), Codes: s.codes})
}

// sortRows builds a tree of keys alone, and notes which row each came from.
func sortRows[C, P order.Code](b *builder[C]) (layout.Tree[C], error) {
	s, err := sortInto(b, func(rows []P) {
		for i := range rows {
			rows[i] = P(i)
		}
	})
	if err != nil {
		return nil, err
	}
	b.order = rowsOf(s.payload, s.block)
	return b.plant(layout.Source[C]{Len: len(s.codes), Codes: s.codes})
}

// codeBits returns the width of a code.
func codeBits[C order.Code]() int {
	var c C
	return 8 * int(unsafe.Sizeof(c))
}

package index

import (
	"errors"
	"fmt"
	"math"
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
	sinks   par.Pool[column]
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

	// off is, if there is a limit, the bytes that values take off the heap where the layout
	// does not keep them.
	off int64
}

// built is an engine, and the order in which values that it does not keep are
// to be put.
type built struct {
	Engine
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
	keys    order.Keys
	vals    values
	layout  layout.Numbers[C]
	cfg     layout.Config
	layouts *Layouts
	auto    bool  // another of them may be taken for the keys at hand
	scratch int64 // bytes that it takes to sort them
	order   rows

	stopped func() error // an error if the build is to be stopped
}

// newBuilder settles the layout of n numbers with values of size bytes.
func newBuilder[C order.Code](n, size int, cfg Config) (*builder[C], error) {
	lay, pairs, err := SettleNumbers[C](cfg.Layouts, cfg.Layout, n, size)
	if err != nil {
		return nil, err
	}
	return &builder[C]{layout: lay, layouts: cfg.Layouts, auto: cfg.Layout == layout.Auto, cfg: layout.Config{
		Pairs: pairs, ValSize: size, Pages: cfg.Pages, Limit: cfg.Limit, Workers: par.Workers(cfg.Workers), Stop: cfg.stop(),
	}, stopped: cfg.stopped}, nil
}

// BuildSorted makes an index of entries that are in order: src is a layout.Source of codes
// of either width. It is no type parameter, since a package that has one compiles all of this
// again.
func BuildSorted(src any, key KeyType, val *ValueType, cfg Config, codec *Codec) (*Index, error) {
	var b built
	var err error
	n := 0
	switch src := src.(type) {
	case layout.Source[uint32]:
		n = src.Len
		b, err = buildSorted(src, key.Type, val.kept, cfg)
	case layout.Source[uint64]:
		n = src.Len
		b, err = buildSorted(src, key.Type, val.kept, cfg)
	default:
		panic("index: no source of codes")
	}
	return complete(newIndex(n, key, val, cfg, codec), b, err, Column{}, cfg)
}

// buildSorted makes an engine of entries that are in order.
func buildSorted[C order.Code](src layout.Source[C], key order.Type, size int, cfg Config) (built, error) {
	b, err := newBuilder[C](src.Len, size, cfg)
	if err != nil {
		return built{}, err
	}
	tree, err := b.plant(src)
	if err != nil {
		return built{}, err
	}
	return built{Engine: newNumbers(tree, key, size, cfg)}, nil
}

func buildNumbers[C order.Code](keys order.Keys, vals values, cfg Config) (built, error) {
	b, err := newBuilder[C](keys.Len(), vals.kept, cfg)
	if err != nil {
		return built{}, err
	}
	if vals.kept == 0 && cfg.Limit > 0 {
		if b.cfg.Limit -= vals.off; b.cfg.Limit <= 0 {
			return built{}, fmt.Errorf("%w: values alone need %d bytes, the limit is %d", arena.ErrLimit, vals.off, cfg.Limit)
		}
	}
	b.keys, b.vals = keys, vals
	tree, err := b.build()
	if err != nil {
		b.order.release()
		return built{}, err
	}
	return built{newNumbers(tree, keys.Type, vals.kept, cfg), b.order}, nil
}

// newNumbers makes the engine over a tree.
func newNumbers[C order.Code](tree layout.Tree[C], key order.Type, valSize int, cfg Config) Engine {
	_, pairs := tree.(layout.Paired[C])
	e := &numbers[C]{tree: tree, key: key, n: tree.Len(), valSize: valSize, pairs: pairs, sinks: par.NewPool[column]()}
	e.cpu = exec.NewCPU(tree, e.n, par.Workers(cfg.Workers))
	e.cpu.SetBound(cfg.Response)
	if v, ok := tree.(layout.Valued); ok && valSize > 0 {
		return &withValues[C]{e, v}
	}
	return e
}

// build builds from input that is in order, and sorts it first where it is not.
// Whether it is shows as it is built, for next to nothing. But under a limit,
// nothing may be taken before the need is known.
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

// autoRatio is how many times smaller a layout whose size depends on the keys
// must be before Auto takes it for an index that is over its limit otherwise.
// Auto does not take it for speed: ranks of compressed keys take 1.1 to 1.4
// times as long at 64M keys, 1.2 to 1.8 times at a million, and nowhere less
// (experiment layouts).
const autoRatio = 1.5

// plant builds the tree of sorted keys.
func (b *builder[C]) plant(src layout.Source[C]) (layout.Tree[C], error) {
	if err := b.stopped(); err != nil {
		return nil, err
	}
	if b.cfg.Limit == 0 {
		return b.layout.Build(src, b.cfg)
	}
	lay, cfg, err := b.pick(func(lay layout.Numbers[C], cfg layout.Config) (int64, error) {
		if s, ok := lay.(layout.Surveyed[C]); ok {
			return s.Survey(src, cfg)
		}
		return lay.Need(src.Len, cfg)
	})
	if err != nil {
		return nil, err
	}
	return lay.Build(src, cfg)
}

// pick returns the layout to build, by the size of a tree in it: the one that is
// settled, or, if that breaks the limit and Auto may take another, one that is
// autoRatio times smaller.
func (b *builder[C]) pick(size func(layout.Numbers[C], layout.Config) (int64, error)) (layout.Numbers[C], layout.Config, error) {
	lay, cfg := b.layout, b.cfg
	need, err := size(lay, cfg)
	if err != nil {
		return nil, cfg, err
	}
	if b.auto && cfg.Limit > 0 && need+b.scratch > cfg.Limit {
		apart := cfg
		apart.Pairs = false
		for _, l := range NumbersOf[C](b.layouts) {
			if _, ok := l.(layout.Surveyed[C]); !ok {
				continue
			}
			if n, err := size(l, apart); err == nil && float64(n)*autoRatio <= float64(need) {
				lay, cfg, need = l, apart, n
				break
			}
		}
	}
	return lay, cfg, within(cfg.Limit, need, b.scratch)
}

// sortedKeys is scratch memory for sorting: codes and the payload that moves along,
// twice.
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
	wide, also := order.CodeBits[C]()/8, 0
	if fill != nil {
		also = order.CodeBits[P]() / 8
	}
	sizes := []int{n * wide, n * wide, n * also, n * also}
	if err := b.fits(sizes, order.SortNeed(n, wide+also, b.cfg.Workers)); err != nil {
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
	s.codes, s.payload = order.SortUntil(codes, spare, payload, payloadSpare, b.cfg.Workers, b.cfg.Stop)
	if err := b.stopped(); err != nil {
		block.Release()
		return nil, err
	}
	return s, nil
}

// fits checks the limit before the keys are sorted, in scratch memory of these
// sizes and on the heap: for the memory of that, and the least that a tree of
// them takes. How large one is whose size depends on the keys shows later.
func (b *builder[C]) fits(sizes []int, heap int64) error {
	n := b.keys.Len()
	block, err := arena.Need(sizes, scratchPages(n))
	if err != nil {
		return err
	}
	b.scratch = block + heap
	_, _, err = b.pick(func(lay layout.Numbers[C], cfg layout.Config) (int64, error) {
		if s, ok := lay.(layout.Surveyed[C]); ok {
			return s.Least(n, cfg)
		}
		return lay.Need(n, cfg)
	})
	return err
}

// within checks a limit for a tree and the scratch memory for sorting its keys.
func within(limit, tree, scratch int64) error {
	if limit == 0 || tree+scratch <= limit {
		return nil
	}
	if scratch == 0 {
		return fmt.Errorf("%w: needs at least %d bytes, the limit is %d", arena.ErrLimit, tree, limit)
	}
	return fmt.Errorf("%w: needs at least %d bytes, %d of them to sort the keys, the limit is %d; sorted input needs less", arena.ErrLimit, tree+scratch, scratch, limit)
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

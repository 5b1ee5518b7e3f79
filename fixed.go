package pando

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/blocked"
	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
)

// fixed is the engine for keys of fixed width: a tree over their codes. The
// values live in the tree's leaves, in its column, or in rows.
type fixed[K Key, C order.Code, V any] struct {
	codec    order.Codec[K, C]
	tree     tree[C]
	n        int        // entries
	kind     LayoutKind // Implicit, Blocked or Compressed
	cpu      *exec.CPU[K, C]
	gpu      *exec.GPU[K, C] // nil where there is none
	least    int             // batches from this size on go to the GPU
	onDevice int64           // bytes that the GPU holds
	copies   bool            // the GPU copies runs of entries
	pairs    bool            // values lie in the leaves
	rows     []V             // in key order, where values are in the Go heap or lie in a file
	coded    *coded[V]       // where a codec has written them to a file
	takes    sync.Pool       // *take[V]
}

// freezeFixed builds the index for keys with codes of type C.
func freezeFixed[K Key, C order.Code, V any](keys []K, vals []V, c config) (*index[K, V], error) {
	cfg, err := layTree[C, V](c, len(keys))
	if err != nil {
		return nil, err
	}
	e := &fixed[K, C, V]{codec: order.NewCodec[K, C](), n: len(keys)}
	// Whether input is sorted shows as it is built, for next to nothing. But
	// under a limit, nothing may be taken before it is known what is needed.
	err = implicit.ErrUnsorted
	if cfg.Limit == 0 || order.SortedKeys(e.codec, keys, cfg.Workers) {
		err = e.buildSorted(keys, vals, cfg)
	}
	if errors.Is(err, implicit.ErrUnsorted) {
		err = e.buildUnsorted(keys, vals, cfg)
	}
	if err != nil {
		return nil, err
	}
	e.schedule(c)
	ix := &index[K, V]{engine: e, stats: e.stats()}
	if ix.stats.Device, ix.stats.Reason, err = e.attach(c); err != nil {
		e.tree.Release()
		return nil, err
	}
	return ix, nil
}

// schedule sets how batches run on the CPU.
func (e *fixed[K, C, V]) schedule(c config) {
	e.cpu = exec.NewCPU(e.codec, e.tree, e.n, par.Workers(c.workers))
	e.cpu.SetBound(c.response)
}

// buildSorted builds from input that is in order.
func (e *fixed[K, C, V]) buildSorted(keys []K, vals []V, cfg treeConfig) error {
	src := implicit.Source[C]{Len: len(keys), Vals: unsafe.Pointer(unsafe.SliceData(vals))}
	if e.codec.Identity() {
		src.Codes = e.codec.EncodeSlice(nil, keys)
	} else {
		src.Encode = func(dst []C, lo int) { e.codec.EncodeSlice(dst, keys[lo:lo+len(dst)]) }
	}
	if err := e.plant(src, cfg); err != nil {
		return err
	}
	if cfg.ValSize == 0 {
		e.keepRows(gather[V, int](vals, len(keys), nil))
	}
	return nil
}

// buildUnsorted sorts first. What moves along with a key is its value where
// that lives in the tree, else its row.
func (e *fixed[K, C, V]) buildUnsorted(keys []K, vals []V, cfg treeConfig) error {
	switch {
	case cfg.ValSize == 4:
		return sortAndBuild(e, keys, recast[uint32](vals), cfg)
	case cfg.ValSize == 8:
		return sortAndBuild(e, keys, recast[uint64](vals), cfg)
	}
	return buildRows(e, keys, vals, cfg)
}

// buildRows builds where values stay in Go memory: sorted rows, then the
// values in their order.
func buildRows[K Key, C order.Code, V any](e *fixed[K, C, V], keys []K, vals []V, cfg treeConfig) error {
	var v V
	if unsafe.Sizeof(v) == 0 {
		return sortAndBuild[K, C, V, uint32](e, keys, nil, cfg)
	}
	if uint64(len(keys)) > math.MaxUint32 {
		return sortRows[K, C, V, uint64](e, keys, vals, cfg)
	}
	return sortRows[K, C, V, uint32](e, keys, vals, cfg)
}

// stats describes the engine.
func (e *fixed[K, C, V]) stats() Stats {
	t := treeStats(e.tree)
	var v V
	s := Stats{
		Layout: e.kind, Levels: t.Levels, Fanout: t.Fanout,
		InnerBytes: t.InnerBytes, LeafBytes: t.LeafBytes, ValueBytes: t.ValueBytes,
		HeapBytes: int64(len(e.rows)) * int64(unsafe.Sizeof(v)),
	}
	switch {
	case e.kind == Implicit && e.pairs:
		s.Layout = Pairs
	case e.kind == Implicit:
		s.Layout = Apart
	}
	s.TotalBytes = t.TotalBytes + s.HeapBytes
	return s
}

// keepRows keeps values that live in Go memory.
func (e *fixed[K, C, V]) keepRows(rows []V) {
	e.rows = rows
	var v V
	e.tree.PrefetchFrom(unsafe.Pointer(unsafe.SliceData(rows)), int(unsafe.Sizeof(v)))
}

// sorted is scratch memory for sorting: codes and what moves along, twice.
type sorted[C, P order.Code] struct {
	block   *arena.Block
	codes   []C
	payload []P
}

// sortInto sorts keys with a payload that fill sets, in scratch memory that
// the caller releases. Where limit is above 0, scratch memory and the tree
// that is built from it must fit.
func sortInto[K Key, C, P order.Code](codec order.Codec[K, C], keys []K, fill func([]P), cfg treeConfig) (*sorted[C, P], error) {
	n := len(keys)
	var code C
	var p P
	sizes := []int{n * int(unsafe.Sizeof(code)), n * int(unsafe.Sizeof(code)), 0, 0}
	if fill != nil {
		sizes[2] = n * int(unsafe.Sizeof(p))
		sizes[3] = sizes[2]
	}
	if err := fits[C](n, sizes, cfg); err != nil {
		return nil, err
	}
	block, err := arena.New(sizes, 0, scratchPages(n), 0)
	if err != nil {
		return nil, err
	}
	s := &sorted[C, P]{block: block}
	codes, spare := arena.As[C](block.Segment(0)), arena.As[C](block.Segment(1))
	encode(codec, codes, keys, cfg.Workers)
	var payload, payloadSpare []P
	if fill != nil {
		payload, payloadSpare = arena.As[P](block.Segment(2)), arena.As[P](block.Segment(3))
		fill(payload)
	}
	s.codes, s.payload = order.Sort(codes, spare, payload, payloadSpare, cfg.Workers)
	if err := fitsSorted(s.codes, block.Bytes(), cfg); err != nil {
		block.Release()
		return nil, err
	}
	return s, nil
}

// fits checks the limit for scratch memory and tree together.
func fits[C order.Code](n int, scratch []int, cfg treeConfig) error {
	tree, err := needTree[C](n, cfg)
	if err != nil {
		return err
	}
	more, err := arena.Need(scratch, scratchPages(n))
	if err != nil {
		return err
	}
	return within(cfg.Limit, tree, more)
}

// fitsSorted does the same for a tree whose size shows when its keys are
// sorted, in scratch memory that is taken already.
func fitsSorted[C order.Code](codes []C, scratch int64, cfg treeConfig) error {
	if cfg.kind != Compressed || cfg.Limit == 0 {
		return nil
	}
	tree, err := blocked.PackedBytes(implicit.Source[C]{Len: len(codes), Codes: codes}, cfg.Config)
	if err != nil {
		return err
	}
	return within(cfg.Limit, tree, scratch)
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
func encode[K Key, C order.Code](codec order.Codec[K, C], dst []C, keys []K, workers int) {
	const piece = 64 << 10
	par.Run(workers, (len(keys)+piece-1)/piece, par.Func(func(p int) {
		lo, hi := p*piece, min((p+1)*piece, len(keys))
		codec.EncodeTo(dst[lo:hi], keys[lo:hi])
	}))
}

// sortAndBuild builds a tree whose values are the payload itself; nil for
// values that take no memory.
func sortAndBuild[K Key, C order.Code, V any, P order.Code](e *fixed[K, C, V], keys []K, vals []P, cfg treeConfig) error {
	var fill func([]P)
	if vals != nil {
		fill = func(dst []P) { copy(dst, vals) }
	}
	s, err := sortInto(e.codec, keys, fill, cfg)
	if err != nil {
		return err
	}
	defer s.block.Release()
	src := implicit.Source[C]{Len: len(keys), Codes: s.codes, Vals: unsafe.Pointer(unsafe.SliceData(s.payload))}
	if err := e.plant(src, cfg); err != nil {
		return err
	}
	if cfg.ValSize == 0 {
		e.keepRows(make([]V, len(keys)))
	}
	return nil
}

// sortRows builds a tree of keys alone and gathers the values by row.
func sortRows[K Key, C order.Code, V any, P order.Code](e *fixed[K, C, V], keys []K, vals []V, cfg treeConfig) error {
	s, err := sortInto(e.codec, keys, func(rows []P) {
		for i := range rows {
			rows[i] = P(i)
		}
	}, cfg)
	if err != nil {
		return err
	}
	defer s.block.Release()
	if err := e.plant(implicit.Source[C]{Len: len(keys), Codes: s.codes}, cfg); err != nil {
		return err
	}
	e.keepRows(gather(vals, len(keys), s.payload))
	return nil
}

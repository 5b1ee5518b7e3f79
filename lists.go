package pando

import (
	"fmt"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/blocked"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/snapshot"
	"github.com/pando-index/pando/internal/text"
)

// autoStrings is what AutoLayout is for string keys.
const autoStrings = Compressed

// freezeText builds the index for string keys.
func freezeText[K Key, V any](keys []K, vals []V, c config) (*index[K, V], error) {
	switch c.layout {
	case Pairs, Blocked:
		return nil, fmt.Errorf("%w: string keys cannot be kept in layout %v; leave Layout out", ErrLayout, c.layout)
	case AutoLayout:
		c.layout = autoStrings
	}
	// What values take off the heap is set aside before the list may have the
	// rest of the limit.
	column, err := columnNeed[V](len(keys))
	if err != nil {
		return nil, err
	}
	e := &words[K, V]{n: len(keys), workers: par.Workers(c.workers)}
	order, err := e.buildList(recast[string](keys), c, column)
	if err != nil {
		return nil, err
	}
	if err := e.keepVals(vals, order); err != nil {
		e.list.Release()
		return nil, err
	}
	ix := &index[K, V]{engine: e}
	e.describe(&ix.stats)
	if ix.stats.Device, ix.stats.Reason, err = e.attach(c); err != nil {
		e.Release()
		return nil, err
	}
	return ix, nil
}

// buildList makes the list of the strings, and gives their order; nil if they
// came sorted. Beside the list the limit must have room for more bytes.
func (e *words[K, V]) buildList(names []string, c config, more int64) (order []int, err error) {
	cfg := blocked.TextConfig{Pages: c.pages.arenaPages(), Workers: e.workers}
	need, err := listNeed(names, c.layout, cfg)
	if err != nil {
		return nil, err
	}
	if need += more; c.limit > 0 && need > c.limit {
		return nil, fmt.Errorf("%w: needs %d bytes, the limit is %d", arena.ErrLimit, need, c.limit)
	}
	order = blocked.TextOrder(names, e.workers)
	if c.layout != Compressed {
		e.list, e.layout = halved{text.Build(names, order)}, snapshot.Text
		return order, nil
	}
	if c.limit > 0 {
		cfg.Limit = c.limit - more
	}
	t, err := blocked.BuildText(names, order, cfg)
	if err != nil {
		return nil, err
	}
	e.list, e.layout = t, snapshot.Words
	return order, nil
}

// listNeed gives the bytes that a list of strings takes.
func listNeed(names []string, layout LayoutKind, cfg blocked.TextConfig) (int64, error) {
	if layout == Compressed {
		return blocked.TextNeed(names, cfg)
	}
	return text.Need(names), nil
}

// describe sets what Stats say of a list.
func (e *words[K, V]) describe(s *Stats) {
	var v V
	switch t := e.list.(type) {
	case *blocked.Text:
		parts := t.Stats()
		s.Layout, s.Levels = Compressed, parts.Levels+1
		s.InnerBytes, s.LeafBytes = parts.Directory, parts.Pages+parts.Keys
	default:
		s.Layout, s.HeapBytes = Apart, e.list.Bytes()
	}
	if e.column != nil {
		s.ValueBytes = e.column.Bytes()
	} else {
		s.HeapBytes += int64(len(e.rows)) * int64(unsafe.Sizeof(v))
	}
	s.TotalBytes = s.InnerBytes + s.LeafBytes + s.ValueBytes + s.HeapBytes
}

// columnNeed gives the bytes that n values take off the heap.
func columnNeed[V any](n int) (int64, error) {
	return arena.Need([]int{n * inlineSize[V]()}, scratchPages(n))
}

// keepVals keeps the values in the order of their keys: those without
// pointers off the heap.
func (e *words[K, V]) keepVals(vals []V, order []int) error {
	size := inlineSize[V]()
	if size == 0 || e.n == 0 {
		e.rows = gather(vals, e.n, order)
		return nil
	}
	block, err := arena.New([]int{e.n * size}, 0, scratchPages(e.n), 0)
	if err != nil {
		return err
	}
	e.column, e.rows = block, arena.As[V](block.Segment(0))
	gatherTo(e.rows, vals, order)
	e.fetchVals()
	return nil
}

// fetchVals tells the list where the values of what it finds lie.
func (e *words[K, V]) fetchVals() {
	var v V
	if t, ok := e.list.(*blocked.Text); ok && len(e.rows) > 0 {
		t.PrefetchFrom(unsafe.Pointer(unsafe.SliceData(e.rows)), int(unsafe.Sizeof(v)))
	}
}

// halved is the list that is searched by halving.
type halved struct{ *text.Block }

// Find sets ranks[i] to the first string that is keys[i], or -1.
func (h halved) Find(keys []string, ranks []int) {
	for i, k := range keys {
		r, equal := h.Seek(k)
		if !equal {
			r = -1
		}
		ranks[i] = r
	}
}

// Rank sets ranks[i] to the number of strings below keys[i].
func (h halved) Rank(keys []string, ranks []int) {
	for i, k := range keys {
		ranks[i], _ = h.Seek(k)
	}
}

// Prefix gives the strings that start with p.
func (h halved) Prefix(p string) (lo, hi int) {
	lo, _ = h.Seek(p)
	hi = h.Len()
	if next, ok := order.AfterPrefix(p); ok {
		hi, _ = h.Seek(next)
	}
	return lo, max(lo, hi) // a damaged file may be in no order
}

// Segments gives the memory of the list.
func (h halved) Segments() [][]byte {
	offsets, data := h.Block.Segments()
	return [][]byte{offsets, data}
}

// Check gives an error for the first string that is not as it must be.
func (h halved) Check() error { return h.Block.Check(true) }

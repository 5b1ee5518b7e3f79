package index

import (
	"fmt"
	"io"
	"reflect"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/files"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/vector"
)

// Handle is an index that may be closed while it is in use: a pando.Frozen without its
// types. A method reads the index that Open returns, and then asks Done whether it is still
// there: answers from memory that is gone are not returned.
type Handle struct {
	Key   KeyType
	ix    atomic.Pointer[Index]  // nil once closed
	later atomic.Pointer[unread] // a snapshot of a tree that has not been read yet
	shut  atomic.Uint64          // 0 until it is closed
}

// Later is an index that is made when it is first read: a snapshot of a tree.
type Later interface {
	Open() (*Index, error)
	Drop() // gives it up unread
}

// unread is an index that is made when it is first read.
type unread struct {
	once sync.Once
	from Later
}

// Begin makes the handle that of an index.
func (h *Handle) Begin(key KeyType, ix *Index) {
	h.Key = key
	h.ix.Store(ix)
}

// BeginLater makes the handle that of an index that is made when it is first read.
func (h *Handle) BeginLater(key KeyType, from Later) {
	h.Key = key
	h.later.Store(&unread{from: from})
}

// Open returns the index, or panics if it was closed.
func (h *Handle) Open() *Index {
	ix := h.ix.Load()
	if ix == nil {
		return h.openLater()
	}
	return ix
}

// openLater makes an index of a snapshot that has not been read yet.
func (h *Handle) openLater() *Index {
	s := h.later.Load()
	if s == nil {
		panic("pando: Frozen used after Close")
	}
	s.once.Do(func() {
		ix, err := s.from.Open()
		if err != nil {
			panic("pando: cannot read the snapshot: " + err.Error())
		}
		h.ix.Store(ix)
		if h.later.Load() == nil { // closed meanwhile
			h.ix.Store(nil)
		}
	})
	ix := h.ix.Load()
	if ix == nil {
		panic(closedInUse)
	}
	return ix
}

const closedInUse = "pando: Frozen closed while it was in use"

// Done is called when an answer has been read: if the index was closed in the
// meantime, the answer may be nonsense and is not returned.
func (h *Handle) Done(ix *Index) {
	if h.ix.Load() != ix {
		panic(closedInUse)
	}
}

// Alive panics if the index was closed.
func (h *Handle) Alive() {
	if h.shut.Load() != 0 {
		panic(closedInUse)
	}
}

// Shut returns a word that is not 0 once the index was closed, to be read by
// atomic.LoadUint64.
func (h *Handle) Shut() *uint64 { return (*uint64)(unsafe.Pointer(&h.shut)) } // an atomic.Uint64 is but that

// Close gives the memory of the index back.
func (h *Handle) Close() error {
	h.shut.Store(1) // before memory is given back, which iterations may be reading
	if s := h.later.Swap(nil); s != nil {
		h.ix.Store(nil)
		s.from.Drop()
		return nil
	}
	if ix := h.ix.Swap(nil); ix != nil {
		return ix.Release()
	}
	return nil
}

// Get returns a value of its own, which Close does not touch.
func (h *Handle) Get(key order.Probe) (Value, bool) {
	ix := h.Open()
	x, found := ix.Get(key)
	x = ix.values.Own(x)
	h.Done(ix)
	return x, found
}

// Stats describes the index.
func (h *Handle) Stats() Stats {
	ix := h.Open()
	s := ix.Stats()
	h.Done(ix)
	return s
}

// Words describes the index in a few words, without reading it.
func (h *Handle) Words() string {
	ix := h.ix.Load()
	switch {
	case ix != nil:
		return ix.Stats().Words()
	case h.later.Load() != nil:
		return "snapshot"
	}
	return "closed"
}

// Inside returns the view of the index, whose keys have a Go type.
func (h *Handle) Inside(key reflect.Type) *Inside { return h.Open().Inside(h.Open).WithText(key) }

// GetBatch looks keys up, and returns the number of keys found.
func (h *Handle) GetBatch(keys order.Keys, vals Column, found []bool) (hits int) {
	ix := h.Open()
	vals, found = Results("GetBatch", vals, found, keys.Len())
	hits = ix.GetBatch(keys, vals, found)
	h.Done(ix)
	return hits
}

// GetPacked is GetBatch for strings that lie one behind the other.
func (h *Handle) GetPacked(data []byte, offsets []int32, vals Column, found []bool) (hits int) {
	h.Key.MustBeText("GetBatchBytes")
	ix := h.Open()
	vals, found = Results("GetBatchBytes", vals, found, MustSpan(data, offsets, ix.workers))
	hits = ix.GetPacked(data, offsets, vals, found)
	h.Done(ix)
	return hits
}

// Seek returns the number of entries below a key, and reports whether the entry there has
// it.
func (h *Handle) Seek(key order.Probe) (int, bool) {
	ix := h.Open()
	i, found := ix.Engine.Seek(key)
	h.Done(ix)
	return i, found
}

// RankBatch sets ranks[i] to the number of entries below keys[i].
func (h *Handle) RankBatch(keys order.Keys, ranks []int) {
	ix := h.Open()
	MustHold("RankBatch", "ranks", len(ranks), keys.Len())
	ix.Engine.Rank(keys, ranks[:keys.Len()])
	h.Done(ix)
}

// MustAt returns the index, which must have an entry i.
func (h *Handle) MustAt(i int) *Index {
	ix := h.Open()
	if i < 0 || i >= ix.n {
		panic(fmt.Sprintf("pando: At(%d): the index has %d entries", i, ix.n))
	}
	return ix
}

// Floor returns the index, and the last entry with a key up to key.
func (h *Handle) Floor(key order.Probe) (*Index, int) {
	ix := h.Open()
	return ix, ix.Engine.After(key) - 1
}

// Ceil returns the index, and the first entry with a key from key on.
func (h *Handle) Ceil(key order.Probe) (*Index, int) {
	ix := h.Open()
	i, _ := ix.Engine.Seek(key)
	return ix, i
}

// Count returns the number of entries from lo to hi.
func (h *Handle) Count(lo, hi order.Probe) int {
	ix := h.Open()
	first, _ := ix.Engine.Seek(lo)
	n := max(0, ix.Engine.After(hi)-first)
	h.Done(ix)
	return n
}

// CountBatch sets counts[i] to the number of entries from lo[i] to hi[i].
func (h *Handle) CountBatch(lo, hi order.Keys, counts []int) {
	ix := h.Open()
	MustPair("CountBatch", lo.Len(), hi.Len())
	MustHold("CountBatch", "counts", len(counts), lo.Len())
	ix.CountBatch(lo, hi, counts[:lo.Len()])
	h.Done(ix)
}

// RangeBatch finds the entries of ranges; CopyRanges copies them.
func (h *Handle) RangeBatch(lo, hi order.Keys, limit int) (*Index, Ranges) {
	ix := h.Open()
	MustPair("RangeBatch", lo.Len(), hi.Len())
	found := ix.Ranges(lo, hi, limit)
	h.Done(ix)
	return ix, found
}

// CopyRanges sets keys and vals to the entries that RangeBatch has found.
func (h *Handle) CopyRanges(ix *Index, found Ranges, keys order.Keys, vals Column) {
	ix.CopyRanges(found, keys, vals)
	ix.Done(found)
	h.Done(ix)
}

// PrefixCount returns the number of entries whose key begins with p.
func (h *Handle) PrefixCount(p order.Probe) int {
	h.Key.MustHavePrefixes("PrefixCount")
	ix := h.Open()
	lo, hi := ix.Prefix(p.Text)
	h.Done(ix)
	return hi - lo
}

// Walk begins an iteration over the entries in reach, from one key to another or as a Scan
// has it. If these are no more than Few, it sets keys and vals to them and returns their
// number, and nil.
func (h *Handle) Walk(what Reach, from, to order.Probe, s *Scan, keys, vals unsafe.Pointer) (w *Walk, n int) {
	ix := h.Open()
	first, end, down := 0, 0, what == ReachDown
	switch what {
	case ReachAll, ReachDown:
		end = ix.n
	case ReachRange:
		first, end = ix.Span(from, to)
	case ReachPrefix:
		first, end = ix.Prefix(from.Text)
	case ReachScan:
		first, end = ix.Within(&s.Bounds)
		switch {
		case s.Limited && s.Reverse:
			first = max(first, end-s.Limit)
		case s.Limited:
			end = min(end, first+min(s.Limit, ix.n))
		}
		down = s.Reverse
	}
	h.Done(ix) // else first and end may be anything
	if n = max(0, end-first); n <= Few && ix.CopyFew(first, n, down, order.KeysAt(h.Key.Type, keys, Few), vals) {
		h.Done(ix)
		return nil, n
	}
	return ix.Walk(h, first, end, down), 0
}

// Save writes the index to a file, which appears whole or not at all.
func (h *Handle) Save(path string) error {
	ix := h.Open()
	return ix.save(path, func() { h.Done(ix) })
}

// save writes the index to a file. It calls open before the file appears, and before it
// returns an error: an index that was closed meanwhile has none of its own.
func (ix *Index) save(path string, open func()) error {
	err := files.Replace(path, func(w io.Writer) error {
		_, err := ix.WriteTo(w)
		open()
		return Public(err)
	}, open)
	if err != nil {
		return fmt.Errorf("pando: cannot save %s: %w", path, err)
	}
	return nil
}

// SaveOwn saves an index that nobody else has.
func (ix *Index) SaveOwn(path string) error { return ix.save(path, func() {}) }

// WriteTo writes the index, and says so only if it was open until the end.
func (h *Handle) WriteTo(w io.Writer) (int64, error) {
	ix := h.Open()
	n, err := ix.WriteTo(w)
	h.Done(ix)
	return n, Public(err)
}

// span returns the entries [first, end) with lo <= key <= hi: some of those there
// are, even while the index is being closed.
func (h *Handle) span(ix *Index, lo, hi order.Probe) (first, end int) {
	if h.Key.Compare(lo, hi) > 0 {
		return 0, 0
	}
	first, end = ix.Span(lo, hi)
	end = min(max(end, 0), ix.n)
	return min(max(first, 0), end), end
}

// withValues calls do with the values of a range, or returns false if they cannot be read
// many at a time.
func (h *Handle) withValues(lo, hi order.Probe, do func(src vector.Source, ix *Index)) bool {
	ix := h.Open()
	src, ok := ix.Entries(h.span(ix, lo, hi))
	if ok {
		do(src, ix)
	}
	h.Done(ix)
	return ok
}

// Summarize sums up the values of the entries from lo to hi. It returns false if they
// cannot be read many at a time, as the other methods for values do.
func (h *Handle) Summarize(lo, hi order.Probe) (sum Summary, ok bool) {
	ok = h.withValues(lo, hi, func(src vector.Source, ix *Index) {
		sum = vector.Summarize(src, ix.values.Number(), ix.workers)
	})
	return sum, ok
}

// Histogram counts the values of the entries from lo to hi between bounds, given by their
// bits.
func (h *Handle) Histogram(lo, hi order.Probe, bounds []uint64, counts []int) bool {
	return h.withValues(lo, hi, func(src vector.Source, ix *Index) {
		vector.Histogram(src, ix.values.Number(), bounds, counts, ix.workers)
	})
}

// SummarizeBatch sums up the values of many ranges.
func (h *Handle) SummarizeBatch(lo, hi order.Keys, out []Summary) bool {
	ix := h.Open()
	ok := ix.SummarizeRanges(lo, hi, out)
	h.Done(ix)
	return ok
}

// Select copies the entries from lo to hi whose value satisfies a condition to the memory
// that room returns for them.
func (h *Handle) Select(lo, hi order.Probe, c Condition, room func(n int) (order.Keys, Column)) bool {
	ix := h.Open()
	first, end := h.span(ix, lo, hi)
	if _, ok := ix.Entries(first, end); !ok {
		return false
	}
	ix.Select(h, first, end, c, room)
	h.Done(ix)
	return true
}

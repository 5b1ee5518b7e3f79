package pando

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/live"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/snapshot"
	"github.com/pando-index/pando/internal/vector"
)

// frozenCore is a Frozen without its types. Code that does not depend on them is
// here, so that it is compiled with this package, and not again in each package that
// has a Frozen, for each pair of types.
type frozenCore struct {
	ix    atomic.Pointer[index.Index] // nil once closed
	later atomic.Pointer[unread]      // a snapshot of a Tree that has not been read yet
	shut  atomic.Uint64               // 0 until it is closed
	key   keyType
	types types // for String
}

// unread is a snapshot of a Tree that becomes an index when it is first read.
type unread struct {
	once sync.Once
	from *live.Freezing
}

// open returns the index, or panics if it was closed.
func (f *frozenCore) open() *index.Index {
	ix := f.ix.Load()
	if ix == nil {
		return f.openLater()
	}
	return ix
}

// openLater makes an index of a snapshot that has not been read yet.
func (f *frozenCore) openLater() *index.Index {
	s := f.later.Load()
	if s == nil {
		panic("pando: Frozen used after Close")
	}
	s.once.Do(func() {
		ix, err := s.from.Open()
		if err != nil {
			panic("pando: cannot read the snapshot: " + err.Error())
		}
		f.ix.Store(ix)
		if f.later.Load() == nil { // closed meanwhile
			f.ix.Store(nil)
		}
	})
	ix := f.ix.Load()
	if ix == nil {
		panic(closedInUse)
	}
	return ix
}

const closedInUse = "pando: Frozen closed while it was in use"

// done is called when an answer has been read: if the index was closed in the
// meantime, the answer may be nonsense and is not returned.
func (f *frozenCore) done(ix *index.Index) {
	if f.ix.Load() != ix {
		panic(closedInUse)
	}
}

// Alive panics if the index was closed.
func (f *frozenCore) Alive() {
	if f.shut.Load() != 0 {
		panic(closedInUse)
	}
}

func (f *frozenCore) close() error {
	f.shut.Store(1) // before memory is given back, which iterations may be reading
	if s := f.later.Swap(nil); s != nil {
		f.ix.Store(nil)
		s.from.Drop()
		return nil
	}
	if ix := f.ix.Swap(nil); ix != nil {
		return ix.Release()
	}
	return nil
}

// get returns a value of its own, which Close does not touch.
func (f *frozenCore) get(key order.Probe) (index.Value, bool) {
	ix := f.open()
	x, found := ix.Get(key)
	x = ix.ValueType().Own(x)
	f.done(ix)
	return x, found
}

// stats is Stats.
func (f *frozenCore) stats() Stats {
	ix := f.open()
	s := stats(ix.Stats())
	f.done(ix)
	return s
}

// getBatch is GetBatch.
func (f *frozenCore) getBatch(keys order.Keys, vals index.Column, found []bool) (hits int) {
	ix := f.open()
	vals, found = results("GetBatch", vals, found, keys.Len())
	hits = ix.GetBatch(keys, vals, found)
	f.done(ix)
	return hits
}

// getPacked is GetBatchBytes.
func (f *frozenCore) getPacked(data []byte, offsets []int32, vals index.Column, found []bool) (hits int) {
	f.key.mustBeText("GetBatchBytes")
	ix := f.open()
	vals, found = results("GetBatchBytes", vals, found, mustSpan(data, offsets, ix.Workers()))
	hits = ix.GetPacked(data, offsets, vals, found)
	f.done(ix)
	return hits
}

// seek returns the number of entries below a key, and whether the one there has it.
func (f *frozenCore) seek(key order.Probe) (int, bool) {
	ix := f.open()
	i, found := ix.Seek(key)
	f.done(ix)
	return i, found
}

// rankBatch is RankBatch.
func (f *frozenCore) rankBatch(keys order.Keys, ranks []int) {
	ix := f.open()
	mustHold("RankBatch", "ranks", len(ranks), keys.Len())
	ix.Rank(keys, ranks[:keys.Len()])
	f.done(ix)
}

// mustAt returns the index, which must have an entry i.
func (f *frozenCore) mustAt(i int) *index.Index {
	ix := f.open()
	if i < 0 || i >= ix.Len() {
		panic(fmt.Sprintf("pando: At(%d): the index has %d entries", i, ix.Len()))
	}
	return ix
}

// floor returns the index, and the last entry with a key up to key.
func (f *frozenCore) floor(key order.Probe) (*index.Index, int) {
	ix := f.open()
	return ix, ix.After(key) - 1
}

// ceil returns the index, and the first entry with a key from key on.
func (f *frozenCore) ceil(key order.Probe) (*index.Index, int) {
	ix := f.open()
	i, _ := ix.Seek(key)
	return ix, i
}

// count is Count.
func (f *frozenCore) count(lo, hi order.Probe) int {
	ix := f.open()
	first, _ := ix.Seek(lo)
	n := max(0, ix.After(hi)-first)
	f.done(ix)
	return n
}

// countBatch is CountBatch.
func (f *frozenCore) countBatch(lo, hi order.Keys, counts []int) {
	ix := f.open()
	mustPair("CountBatch", lo.Len(), hi.Len())
	mustHold("CountBatch", "counts", len(counts), lo.Len())
	ix.CountBatch(lo, hi, counts[:lo.Len()])
	f.done(ix)
}

// rangeBatch finds the entries of ranges; copyRanges copies them.
func (f *frozenCore) rangeBatch(lo, hi order.Keys, limit int) (*index.Index, index.Ranges) {
	ix := f.open()
	mustPair("RangeBatch", lo.Len(), hi.Len())
	found := ix.Ranges(lo, hi, limit)
	f.done(ix)
	return ix, found
}

func (f *frozenCore) copyRanges(ix *index.Index, found index.Ranges, keys order.Keys, vals index.Column) {
	ix.CopyRanges(found, keys, vals)
	ix.Done(found)
	f.done(ix)
}

// prefixCount is PrefixCount.
func (f *frozenCore) prefixCount(p order.Probe) int {
	f.key.mustHavePrefixes("PrefixCount")
	ix := f.open()
	lo, hi := ix.Prefix(p.Text)
	f.done(ix)
	return hi - lo
}

// walk begins an iteration over the entries in reach, from one key to another or
// as a Scan has it. If that is but few entries, it sets keys and vals to them and
// returns their number, and nil.
func (f *frozenCore) walk(what reachKind, from, to order.Probe, s *scan, keys, vals unsafe.Pointer) (w *index.Walk, n int) {
	ix := f.open()
	first, end, down := 0, 0, what == reachDown
	switch what {
	case reachAll, reachDown:
		end = ix.Len()
	case reachRange:
		first, end = ix.Span(from, to)
	case reachPrefix:
		first, end = ix.Prefix(from.Text)
	case reachScan:
		first, end = ix.Within(&s.bounds)
		switch {
		case s.limited && s.reverse:
			first = max(first, end-s.limit)
		case s.limited:
			end = min(end, first+min(s.limit, ix.Len()))
		}
		down = s.reverse
	}
	f.done(ix) // else first and end may be anything
	if n = max(0, end-first); n <= few && ix.CopyFew(first, n, down, order.KeysAt(f.key.Type, keys, few), vals) {
		f.done(ix)
		return nil, n
	}
	return ix.Walk(f, first, end, down), 0
}

// save is Save.
func (f *frozenCore) save(path string) error {
	ix := f.open()
	err := snapshot.Replace(path,
		func(w io.Writer) error { _, err := f.write(ix, w); return err },
		func() { f.done(ix) })
	if err != nil {
		return fmt.Errorf("pando: cannot save %s: %w", path, err)
	}
	return nil
}

// write writes the index and says so only if it was open until the end.
func (f *frozenCore) write(ix *index.Index, w io.Writer) (int64, error) {
	n, err := ix.WriteTo(w)
	f.done(ix)
	if err != nil {
		err = translate(err)
	}
	return n, err
}

// string is String.
func (f *frozenCore) string() string {
	name := "pando.Frozen" + f.types.String()
	ix := f.ix.Load()
	switch {
	case ix != nil:
		return name + "{" + inWords(ix.Stats()) + "}"
	case f.later.Load() != nil:
		return name + "{snapshot}"
	}
	return name + "{closed}"
}

// span returns the entries [first, end) with lo <= key <= hi: some of those there
// are, even while the index is being closed.
func (f *frozenCore) span(ix *index.Index, lo, hi order.Probe) (first, end int) {
	if f.key.Compare(lo, hi) > 0 {
		return 0, 0
	}
	first, end = ix.Span(lo, hi)
	end = min(max(end, 0), ix.Len())
	return min(max(first, 0), end), end
}

// values calls do with the values of a range, or returns false if they cannot be read
// many at a time.
func (f *frozenCore) values(lo, hi order.Probe, do func(src vector.Source, workers int)) bool {
	ix := f.open()
	first, end := f.span(ix, lo, hi)
	src, ok := ix.Entries(first, end)
	if ok {
		do(src, ix.Workers())
	}
	f.done(ix)
	return ok
}

func (f *frozenCore) aggregateBatch(lo, hi order.Keys, out []vector.Summary) bool {
	ix := f.open()
	ok := ix.SummarizeRanges(lo, hi, out)
	f.done(ix)
	return ok
}

// selectValues copies the entries that satisfy a condition to the memory that room
// returns for them, or returns false if values cannot be read many at a time.
func (f *frozenCore) selectValues(lo, hi order.Probe, c vector.Condition, room func(n int) (order.Keys, index.Column)) bool {
	ix := f.open()
	first, end := f.span(ix, lo, hi)
	if _, ok := ix.Entries(first, end); !ok {
		return false
	}
	ix.Select(f, first, end, c, room)
	f.done(ix)
	return true
}

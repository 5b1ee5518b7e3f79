package live

import (
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/vector"
)

// many returns the map as one whose values lie in the tree and can be read many
// at a time, and false if it is none.
func (m *Map) many() (Valued, bool) {
	v, ok := m.tree.(Valued)
	return v, ok && m.apart == nil
}

// span is the values of a map from one key to another, as a vector.Source. Its
// pieces are cut at keys: if others change the map meanwhile they are not as long
// as they should be, but no entry is in two.
//
// Where a device has the values as well it is a vector.Summarizer and Counter, too.
type span struct {
	m      Valued
	size   int
	lo, hi uint64
	cuts   []uint64
	cutter cutter // makes cuts when they are needed; nil when it has
}

// cutter cuts a span into pieces, and returns about how many entries it has.
type cutter interface{ cut(s *span) int }

func (s *span) Pieces() int {
	if s.lo > s.hi {
		return 0
	}
	if s.cutter != nil {
		s.cutter.cut(s)
		s.cutter = nil
	}
	return len(s.cuts) + 1
}

// piece returns the keys of a piece, from one to another.
func (s *span) piece(p int) (lo, hi uint64) {
	lo, hi = s.lo, s.hi
	if p > 0 {
		lo = s.cuts[p-1]
	}
	if p < len(s.cuts) {
		hi = s.cuts[p] - 1
	}
	return lo, hi
}

func (s *span) Read(piece int, r *vector.Reader) {
	lo, hi := s.piece(piece)
	s.m.ReadValues(lo, hi, s.size, r)
}

// Summarize asks the device, if there is one.
func (s *span) Summarize(t vector.Type) (sum vector.Summary, ok bool) {
	m, can := s.m.(Vectored)
	if !can || s.lo > s.hi {
		return sum, false
	}
	out := make([]vector.Summary, 1)
	ok = m.Summarize(t, []uint64{s.lo}, []uint64{s.hi}, out)
	return out[0], ok
}

// Histogram asks the device, if there is one.
func (s *span) Histogram(t vector.Type, bounds []uint64, counts []int) bool {
	m, can := s.m.(Vectored)
	return can && s.lo <= s.hi && len(bounds) <= kernel.MaxBounds && m.Histogram(t, s.lo, s.hi, bounds, counts)
}

// SummarizeRanges sums up the values of n ranges, of keys from one to another, at
// one moment and on a device. It returns false if that is the CPU's work.
func (m *Map) SummarizeRanges(n int, keys func(i int) (lo, hi order.Probe), out []vector.Summary) bool {
	s, ok := m.tree.(Vectored)
	if _, many := m.many(); !many || !ok || n == 0 {
		return false
	}
	lo, hi := make([]uint64, n), make([]uint64, n)
	for i := range lo {
		from, to := keys(i)
		lo[i], hi[i] = from.Code, to.Code
	}
	return s.Summarize(m.val.Number(), lo, hi, out)
}

// Entries returns the values of the entries from lo to hi, to be read by several
// workers or by one alone. It returns false if these are not where they can be
// read many at a time.
func (m *Map) Entries(lo, hi order.Probe, workers int) (src vector.Source, ok bool) {
	v, ok := m.many()
	if !ok {
		return nil, false
	}
	s := &span{m: v, size: m.size, lo: lo.Code, hi: hi.Code}
	if workers != 1 {
		s.cutter = m
	}
	return s, true
}

// span returns a range, cut into pieces, and about how many entries that has.
func (m *Map) span(v Valued, lo, hi order.Probe) (s *span, n int) {
	s = &span{m: v, size: m.size, lo: lo.Code, hi: hi.Code}
	return s, m.cut(s)
}

// cut cuts a range into pieces.
func (m *Map) cut(s *span) (n int) {
	if s.lo > s.hi {
		return 0
	}
	first, end := m.tree.Rank(order.Probe{Code: s.lo}, false), m.tree.Rank(order.Probe{Code: s.hi}, true)
	for i := first + vector.Piece; i < end; i += vector.Piece {
		key, _, ok := m.tree.At(i)
		k := key.Code
		if !ok || k > s.hi {
			break
		}
		if last := len(s.cuts); k > s.lo && (last == 0 || k > s.cuts[last-1]) {
			s.cuts = append(s.cuts, k)
		}
	}
	return max(0, end-first)
}

// Select copies those of the entries from lo to hi whose value satisfies c to the memory
// that room returns for them. Values must lie in the tree.
func (m *Map) Select(lo, hi order.Probe, c vector.Condition, room func(n int) (order.Keys, index.Column)) {
	v, _ := m.many()
	s, _ := m.span(v, lo, hi)
	out := make([]selected, s.Pieces())
	par.Run(m.workers, len(out), par.Func(func(p int) {
		from, to := s.piece(p)
		v.SelectValues(from, to, m.selecting(c, &out[p]))
	}))
	copySelected(out, m.val, room)
}

// Transform changes the values of the entries from lo to hi, and returns how many
// there were. It does nothing, and returns false, if they do not lie in the tree.
func (m *Map) Transform(lo, hi order.Probe, c *vector.Change) (changed int, inTree bool, err error) {
	if m.tree.Closed() {
		return 0, true, m.failed(op.ErrClosed)
	}
	v, ok := m.many()
	if !ok {
		return 0, false, nil
	}
	m.awaitRange(lo, hi)
	s, n := m.span(v, lo, hi)
	changed, err = v.Transform(s, n, c)
	return changed, true, m.failed(err)
}

func (t *codes[C]) Transform(s *span, entries int, f bplus.Changer) (int, error) {
	cuts := make([]C, len(s.cuts))
	for i, k := range s.cuts {
		cuts[i] = C(k)
	}
	return t.tree.Transform(C(s.lo), C(s.hi), cuts, entries, f, t.workers)
}

func (t *codes[C]) ReadValues(lo, hi uint64, size int, r *vector.Reader) {
	t.tree.Scan(C(lo), C(hi), false, func(_, vals []C) { take(r, vals, size) })
}

func (t *codes[C]) SelectValues(lo, hi uint64, s *selecting) {
	t.tree.Scan(C(lo), C(hi), true, func(keys, vals []C) { selectFrom(s, keys, vals) })
}

// take hands values of size bytes to r that a tree has widened to C. It
// changes vals.
func take[C order.Code](r *vector.Reader, vals []C, size int) {
	r.Take(narrowed(vals, size), len(vals))
}

// narrowed makes values as wide as they are, in their own memory.
func narrowed[C order.Code](vals []C, size int) unsafe.Pointer {
	at := unsafe.Pointer(unsafe.SliceData(vals))
	if size*8 < order.CodeBits[C]() {
		to := arena.As[uint32](arena.Bytes(vals))
		for i, v := range vals {
			to[i] = uint32(v)
		}
	}
	return at
}

// selecting collects the entries of a piece that satisfy a condition.
type selecting struct {
	t    vector.Type
	size int
	cond vector.Condition
	mask vector.Mask
	to   *selected
}

// selecting returns what collects entries of the map in to.
func (m *Map) selecting(c vector.Condition, to *selected) *selecting {
	return &selecting{t: m.val.Number(), size: m.size, cond: c, to: to}
}

// selected is entries that satisfy a condition, as a tree has them.
type selected struct{ keys, vals []uint64 }

// copySelected calls room with the number of entries that were selected, and
// copies them to the memory that it returns.
func copySelected(parts []selected, val *index.ValueType, room func(n int) (order.Keys, index.Column)) {
	n := 0
	for _, p := range parts {
		n += len(p.keys)
	}
	keys, vals := room(n)
	at := 0
	for _, p := range parts {
		setKeys(keys.Slice(at, at+len(p.keys)), p.keys)
		storeVals(val.Bytes(val.Part(vals, at, at+len(p.vals))), val.Size(), p.vals)
		at += len(p.keys)
	}
}

// selectFrom selects from the entries of a leaf. It changes vals.
func selectFrom[C order.Code](s *selecting, keys, vals []C) {
	n := len(vals)
	at := narrowed(vals, s.size)
	s.cond.Match(s.t.NumberKind, at, n, &s.mask)
	s.mask.Each(n, func(first, k int) {
		for i := first; i < first+k; i++ {
			s.to.keys = append(s.to.keys, uint64(keys[i]))
			if s.size == 4 {
				s.to.vals = append(s.to.vals, uint64(*(*uint32)(unsafe.Add(at, 4*i))))
			} else {
				s.to.vals = append(s.to.vals, *(*uint64)(unsafe.Add(at, 8*i)))
			}
		}
	})
}

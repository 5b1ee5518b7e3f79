package index

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/files"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/strlist"
)

// Values holds values in key order that are not in the layout of the keys. Those without
// pointers are in a column off the heap, or in a file. Bare ones, bytes of any number, lie one
// behind the other: slices off the heap or in a file, from where they are copied, and strings
// in Go memory without pointers, from where they can be handed out and stay good after Close,
// or in a file. Others are in a Go slice, or in a file as a codec has written them.
type Values struct {
	*ValueType
	rows   Column
	list   *strlist.List // of bare ones
	column *arena.Block  // where rows or list lie, unless in Go memory or in a file
	coded  *coded
	sinks  par.Pool[sink]
}

// PointerFree reports whether values of a type hold nothing for the garbage
// collector to follow.
func PointerFree(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return true
	case reflect.Array:
		return t.Len() == 0 || PointerFree(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if !PointerFree(t.Field(i).Type) {
				return false
			}
		}
		return true
	}
	return false
}

// rows is the order that sorting has put rows in; empty where they stay as they
// are. At most one of the slices is there.
type rows struct {
	narrow []uint32
	wide   []uint64
	ints   []int
	block  *arena.Block // where they lie, unless in Go memory
}

// rowsOf makes rows of the payload that has moved along with keys, in scratch memory.
func rowsOf[P uint32 | uint64](order []P, block *arena.Block) rows {
	r := rows{block: block}
	switch o := any(order).(type) {
	case []uint32:
		r.narrow = o
	case []uint64:
		r.wide = o
	}
	return r
}

func (r *rows) release() {
	if r.block != nil {
		r.block.Release()
	}
	*r = rows{}
}

// row returns the row that comes as number i.
func (r *rows) row(i int) int {
	switch {
	case r.narrow != nil:
		return int(r.narrow[i])
	case r.wide != nil:
		return int(r.wide[i])
	case r.ints != nil:
		return r.ints[i]
	}
	return i
}

// gather keeps n values in the order of their keys, off the heap unless they hold pointers
// and are not bare. vals has none where a value takes no memory.
func (s *Values) gather(vals Column, n int, order *rows, workers int) error {
	if s.bare != notBare && n > 0 {
		return s.gatherBare(vals, n, order, workers)
	}
	if !s.free || s.size == 0 || n == 0 {
		s.rows = s.Zeros(n)
	} else {
		block, err := arena.New([]int{n * s.size}, 0, scratchPages(n), 0)
		if err != nil {
			return err
		}
		s.column, s.rows = block, s.columnIn(block.Segment(0))
	}
	switch {
	case vals.n == 0 || s.size == 0:
	case order.narrow != nil:
		gatherTo(s.ValueType, s.rows, vals, order.narrow)
	case order.wide != nil:
		gatherTo(s.ValueType, s.rows, vals, order.wide)
	case order.ints != nil:
		gatherTo(s.ValueType, s.rows, vals, order.ints)
	default:
		s.CopyAll(s.rows, vals, workers)
	}
	return nil
}

// gatherBare keeps n values that are bare: where each ends, then their bytes.
func (s *Values) gatherBare(vals Column, n int, order *rows, workers int) error {
	var ends []uint64
	var data []byte
	if total := int(s.bareBytes(vals)); s.bare == bareString {
		ends, data = make([]uint64, n+1), make([]byte, total)
	} else {
		block, err := arena.New([]int{8 * (n + 1), total}, 0, scratchPages(n), 0)
		if err != nil {
			return err
		}
		s.column, ends, data = block, arena.As[uint64](block.Segment(0)), block.Segment(1)
	}
	for i := range vals.n {
		ends[i+1] = ends[i] + uint64(len(s.viewBytes(s.Place(vals, order.row(i)))))
	}
	const piece = 4096
	par.Run(workers, (vals.n+piece-1)/piece, par.Func(func(p int) {
		for i := p * piece; i < min((p+1)*piece, vals.n); i++ {
			copy(data[ends[i]:ends[i+1]], s.viewBytes(s.Place(vals, order.row(i))))
		}
	}))
	s.list = strlist.Open(arena.Bytes(ends), data, s.column)
	return nil
}

// bareAt returns value i, which is bare: a string where it lies, if it can stay there, else a
// copy.
func (s *Values) bareAt(i int) Value {
	if s.bare == bareString {
		return s.bareValue(s.list.Key(i))
	}
	return s.bareValue(strings.Clone(s.list.View(i)))
}

// bareBytes returns the bytes of values that are bare.
func (t *ValueType) bareBytes(vals Column) (n int64) {
	for i := range vals.n {
		n += int64(len(t.viewBytes(t.Place(vals, i))))
	}
	return n
}

// need returns the bytes that n values take off the heap where the layout of the keys does
// not hold them.
func (t *ValueType) need(vals Column, n int) (int64, error) {
	switch {
	case n == 0:
		return 0, nil
	case t.bare == bareSlice:
		return arena.Need([]int{8 * (n + 1), int(t.bareBytes(vals))}, scratchPages(n))
	case t.free:
		return columnNeed(n, t.size)
	}
	return 0, nil
}

// gatherTo copies values in the order of rows.
func gatherTo[R int | uint32 | uint64](t *ValueType, out, vals Column, rows []R) {
	switch t.kept {
	case 4:
		gatherWords(SliceOf[uint32](out), SliceOf[uint32](vals), rows)
	case 8:
		gatherWords(SliceOf[uint64](out), SliceOf[uint64](vals), rows)
	default:
		for i, r := range rows {
			t.copy(t.Place(out, i), t.Place(vals, int(r)))
		}
	}
}

func gatherWords[W uint32 | uint64, R int | uint32 | uint64](out, vals []W, rows []R) {
	for i, r := range rows {
		out[i] = vals[r]
	}
}

// columnNeed returns the bytes that n values of size bytes take off the heap.
func columnNeed(n, size int) (int64, error) {
	return arena.Need([]int{n * size}, scratchPages(n))
}

// fetchedBy tells a layout where the values of its entries lie.
func (s *Values) fetchedBy(body layout.Body) {
	if f, ok := body.(layout.ValueFetcher); ok && s.rows.n > 0 {
		f.PrefetchFrom(s.rows.at, s.size)
	}
}

// footprint returns the bytes of values in Go memory, and off the heap.
func (s *Values) footprint() (heap, off int64) {
	switch {
	case s.column != nil:
		return 0, s.column.Bytes()
	case s.list != nil:
		return s.list.Bytes(), 0
	}
	return int64(s.rows.n) * int64(s.size), 0
}

// at returns value i.
func (s *Values) at(i int) Value {
	switch {
	case s.list != nil:
		return s.bareAt(i)
	case s.coded != nil:
		return Value{At: s.coded.at(i)}
	}
	if uint(i) >= uint(s.rows.n) {
		panic(fmt.Sprintf("index: value %d of %d", i, s.rows.n))
	}
	return s.load(s.Place(s.rows, i))
}

// copyOut sets vals to those from lo on.
func (s *Values) copyOut(vals Column, lo int) {
	if s.list != nil {
		for i := range vals.n {
			setBare(s.Place(vals, i), s.bareAt(lo+i))
		}
		return
	}
	if s.coded == nil {
		s.CopyAll(vals, s.Part(s.rows, lo, lo+vals.n), 1)
		return
	}
	for i := range vals.n {
		s.Store(s.Place(vals, i), s.at(lo+i))
	}
}

func (s *Values) release() {
	if s.column != nil {
		s.column.Release()
	}
}

// sink turns ranks into values.
type sink struct {
	from    *Values
	entries int
	vals    Column
	found   []bool
}

// sink returns a sink for a batch, which done takes back.
func (s *Values) sink(entries int, vals Column, found []bool) *sink {
	t := par.Get(s.sinks)
	*t = sink{s, entries, vals, found}
	return t
}

func (s *Values) done(t *sink) {
	*t = sink{} // the caller's slices are not ours to keep
	par.Put(s.sinks, t)
}

// Take sets the results of a bucket.
func (t *sink) Take(lo int, ranks []int) (hits int) {
	from, vals := t.from, t.from.Part(t.vals, lo, lo+len(ranks))
	switch {
	case from.list != nil:
		hits = t.takeBare(vals, ranks)
	case from.rows.n == 0 || from.kept == 0:
		for i, r := range ranks {
			var v Value
			if uint(r) < uint(t.entries) { // below 0: not found; above: being closed
				v = from.at(r)
				hits++
			}
			from.Store(from.Place(vals, i), v)
		}
	case from.kept == 4:
		hits = takeWords(SliceOf[uint32](vals), SliceOf[uint32](from.rows), ranks)
	default:
		hits = takeWords(SliceOf[uint64](vals), SliceOf[uint64](from.rows), ranks)
	}
	setFound(t.found, lo, ranks)
	return hits
}

// takeBare sets the results of a bucket whose values are bare.
func (t *sink) takeBare(vals Column, ranks []int) (hits int) {
	from := t.from
	for i, r := range ranks {
		if from.bare == bareSlice && i%fetchAhead == 0 { // strings are not read here
			from.fetch(ranks[i:min(i+fetchAhead, len(ranks))], t.entries)
		}
		at := from.Place(vals, i)
		if uint(r) >= uint(t.entries) { // below 0: not found; above: being closed
			from.wipe(at, 1)
			continue
		}
		setBare(at, from.bareAt(r))
		hits++
	}
	return hits
}

// takeWords sets the results of a bucket whose values are kept.
func takeWords[W uint32 | uint64](vals, rows []W, ranks []int) (hits int) {
	for i, r := range ranks {
		var v W
		if uint(r) < uint(len(rows)) { // below 0: not found; above: being closed
			v = rows[r]
			hits++
		}
		vals[i] = v
	}
	return hits
}

// Fetch asks for the values of entries, which Take will read.
func (t *sink) Fetch(ranks []int) {
	switch from := t.from; {
	case from.list != nil: // where values begin: they themselves are found from there
		ends, _ := from.list.Segments()
		simd.FetchEach(unsafe.Pointer(unsafe.SliceData(ends)), ranks, 8)
	case from.size > 0 && from.rows.n > 0:
		simd.FetchEach(from.rows.at, ranks, from.size)
	}
}

// coded is values in a file as a codec has written them.
type coded struct {
	list   *strlist.List
	decode func([]byte) (unsafe.Pointer, error)
	path   string
}

// at returns where value i lies.
func (c *coded) at(i int) unsafe.Pointer {
	v, err := c.try(i)
	if err != nil && !c.list.Released() { // a closed index gives no answer anyway
		panic(fmt.Sprintf("pando: %s: value %d cannot be decoded: %v; run `pando verify` on the file, or open it with the codec it was saved with", c.path, i, err))
	}
	return v
}

// try decodes value i. A codec may panic over bytes that it has not written.
func (c *coded) try(i int) (v unsafe.Pointer, err error) {
	defer func() {
		if p := recover(); p != nil {
			v, err = nil, fmt.Errorf("decode panicked: %v", p)
		}
	}()
	return c.decode(c.list.Copy(i))
}

// parts returns the sections of values in a file.
func (s *Values) parts(codec *Codec) ([]files.Part, error) {
	switch {
	case s.coded != nil:
		return listParts(s.coded.list), nil
	case s.list != nil && codec != nil && codec.plain:
		return listParts(s.list), nil
	case s.size == 0:
		return nil, nil
	case s.free:
		return []files.Part{files.Memory(files.Rows, s.Bytes(s.rows))}, nil
	case codec == nil:
		return nil, Problem(ErrValues, "%v values hold pointers; give Freeze the option Values", s.typ)
	}
	if s.list == nil {
		return codec.parts(s.rows.n, func(i int) unsafe.Pointer { return s.Place(s.rows, i) })
	}
	return codec.parts(s.list.Len(), func(i int) unsafe.Pointer {
		p := s.make(1)
		setBare(p, s.bareAt(i))
		return p
	})
}

// listParts returns the sections of values that lie one behind the other.
func listParts(l *strlist.List) []files.Part {
	offsets, data := l.Segments()
	return []files.Part{files.Memory(files.ValueOffsets, offsets), files.Memory(files.ValueBytes, data)}
}

// parts encodes n values into sections. Where each value starts is known, and
// kept, when all have been encoded once.
func (c *Codec) parts(n int, at func(i int) unsafe.Pointer) ([]files.Part, error) {
	offsets := make([]uint64, 1, n+1)
	var buf []byte
	var err error
	for i := range n {
		if buf, err = c.encode(buf[:0], i, at(i)); err != nil {
			return nil, err
		}
		offsets = append(offsets, offsets[len(offsets)-1]+uint64(len(buf)))
	}
	return []files.Part{
		files.Memory(files.ValueOffsets, arena.Bytes(offsets)),
		{Kind: files.ValueBytes, Write: func(w io.Writer) error { return c.writeAll(w, n, at, offsets) }},
	}, nil
}

// writeAll encodes values and writes them, many at a time.
func (c *Codec) writeAll(w io.Writer, n int, at func(i int) unsafe.Pointer, offsets []uint64) error {
	const enough = 64 << 10
	buf := make([]byte, 0, 2*enough)
	var err error
	for i := range n {
		before := len(buf)
		if buf, err = c.encode(buf, i, at(i)); err != nil {
			return err
		}
		if uint64(len(buf)-before) != offsets[i+1]-offsets[i] {
			return Problem(ErrValues, "encode gave %d bytes for value %d, and %d before; it must give the same each time", len(buf)-before, i, offsets[i+1]-offsets[i])
		}
		if len(buf) >= enough {
			if _, err := w.Write(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
	}
	_, err = w.Write(buf)
	return err
}

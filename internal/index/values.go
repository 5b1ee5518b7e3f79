package index

import (
	"fmt"
	"io"
	"reflect"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/snapshot"
	"github.com/pando-index/pando/internal/strlist"
)

// Values holds values in key order that are not in the layout of the keys: as
// they are, in a Go slice, in a column off the heap or in a file; or as a codec
// has written them to a file.
type Values[V any] struct {
	rows   []V
	column *arena.Block // where rows lie, unless in Go memory or in a file
	coded  *coded[V]
	moment *Freezing[V] // in a tree that has changed since
	sinks  par.Pool[sink[V]]
}

func sizeOf[V any]() uintptr {
	var v V
	return unsafe.Sizeof(v)
}

// inlineSize returns the bytes of a V that layouts keep: 4 or 8, and 0 for
// values that live in a Go slice or take no memory at all.
func inlineSize[V any]() int {
	if s := sizeOf[V](); (s == 4 || s == 8) && PointerFree(reflect.TypeFor[V]()) {
		return int(s)
	}
	return 0
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

// rowsOf makes rows of what has moved along with keys, in scratch memory.
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

// gather keeps n values in the order of their keys: those of 4 or 8 bytes
// without pointers off the heap. vals is nil where a V takes no memory.
func (s *Values[V]) gather(vals []V, n int, order *rows, workers int) error {
	size := inlineSize[V]()
	if size == 0 || n == 0 {
		s.rows = make([]V, n)
	} else {
		block, err := arena.New([]int{n * size}, 0, scratchPages(n), 0)
		if err != nil {
			return err
		}
		s.column, s.rows = block, arena.As[V](block.Segment(0))
	}
	switch {
	case vals == nil:
	case order.narrow != nil:
		gatherTo(s.rows, vals, order.narrow)
	case order.wide != nil:
		gatherTo(s.rows, vals, order.wide)
	case order.ints != nil:
		gatherTo(s.rows, vals, order.ints)
	default:
		par.Copy(s.rows, vals, workers)
	}
	return nil
}

// gatherTo copies values in the order of rows.
func gatherTo[V any, R int | uint32 | uint64](out, vals []V, rows []R) {
	for i, r := range rows {
		out[i] = vals[r]
	}
}

// columnNeed returns the bytes that n values of size bytes take off the heap.
func columnNeed(n, size int) (int64, error) {
	return arena.Need([]int{n * size}, scratchPages(n))
}

// fetchedBy tells a layout where the values of what it finds lie.
func (s *Values[V]) fetchedBy(body layout.Body) {
	if f, ok := body.(layout.ValueFetcher); ok && len(s.rows) > 0 {
		f.PrefetchFrom(unsafe.Pointer(unsafe.SliceData(s.rows)), int(sizeOf[V]()))
	}
}

// bytes returns what values take in Go memory, and off the heap.
func (s *Values[V]) bytes() (heap, off int64) {
	if s.column != nil {
		return 0, s.column.Bytes()
	}
	return int64(len(s.rows)) * int64(sizeOf[V]()), 0
}

// at returns value i.
func (s *Values[V]) at(i int) V {
	if s.coded != nil {
		return s.coded.at(i)
	}
	if s.moment != nil {
		return s.moment.value(i)
	}
	return s.rows[i]
}

// copyOut sets vals to those from lo on.
func (s *Values[V]) copyOut(vals []V, lo int) {
	if s.moment != nil {
		mustSolo(s.moment.copyEntries(lo, order.Keys{}, vals))
		return
	}
	if s.coded == nil {
		par.Copy(vals, s.rows[lo:lo+len(vals)], 1)
		return
	}
	for i := range vals {
		vals[i] = s.coded.at(lo + i)
	}
}

func (s *Values[V]) release() {
	if s.column != nil {
		s.column.Release()
	}
}

// sink turns what is found into values.
type sink[V any] struct {
	from    *Values[V]
	entries int
	vals    []V
	found   []bool
}

// sink returns a sink for a batch, which done takes back.
func (s *Values[V]) sink(entries int, vals []V, found []bool) *sink[V] {
	t := s.sinks.Get()
	*t = sink[V]{s, entries, vals, found}
	return t
}

func (s *Values[V]) done(t *sink[V]) {
	*t = sink[V]{} // the caller's slices are not ours to keep
	s.sinks.Put(t)
}

// Take sets the results of a bucket.
func (t *sink[V]) Take(lo int, ranks []int) (hits int) {
	vals := t.vals[lo : lo+len(ranks)]
	for i, r := range ranks {
		var v V
		if uint(r) < uint(t.entries) { // below 0: not found; above: being closed
			v = t.from.at(r)
			hits++
		}
		vals[i] = v
	}
	setFound(t.found, lo, ranks)
	return hits
}

// Fetch asks for the values of entries, which Take will read.
func (t *sink[V]) Fetch(ranks []int) {
	if size := int(sizeOf[V]()); size > 0 && len(t.from.rows) > 0 {
		simd.FetchEach(unsafe.Pointer(unsafe.SliceData(t.from.rows)), ranks, size)
	}
}

// coded is values in a file as a codec has written them.
type coded[V any] struct {
	list   *strlist.List
	decode func([]byte) (V, error)
	path   string
}

// at returns value i.
func (c *coded[V]) at(i int) V {
	v, err := c.try(i)
	if err != nil && !c.list.Released() { // a closed index gives no answer anyway
		panic(fmt.Sprintf("pando: %s: value %d cannot be decoded: %v; run `pando verify` on the file, or open it with the codec it was saved with", c.path, i, err))
	}
	return v
}

// try decodes value i. A codec may panic over bytes that it has not written.
func (c *coded[V]) try(i int) (v V, err error) {
	defer func() {
		if p := recover(); p != nil {
			var none V
			v, err = none, fmt.Errorf("decode panicked: %v", p)
		}
	}()
	return c.decode(c.list.Copy(i))
}

// parts returns the sections of values in a file.
func (s *Values[V]) parts(codec *Codec[V]) ([]snapshot.Part, error) {
	t := reflect.TypeFor[V]()
	switch {
	case s.coded != nil:
		offsets, data := s.coded.list.Segments()
		return []snapshot.Part{snapshot.Memory(snapshot.ValueOffsets, offsets), snapshot.Memory(snapshot.ValueBytes, data)}, nil
	case PointerFree(t) && t.Size() == 0:
		return nil, nil
	case PointerFree(t):
		return []snapshot.Part{snapshot.Memory(snapshot.Rows, arena.Bytes(s.rows))}, nil
	case codec == nil:
		return nil, problem(CauseValues, "%v values hold pointers; give Freeze the option Values", t)
	}
	return codec.parts(s.rows)
}

// parts encodes values into sections. Where each value starts is known, and
// kept, when all have been encoded once.
func (c *Codec[V]) parts(rows []V) ([]snapshot.Part, error) {
	offsets := make([]uint64, 1, len(rows)+1)
	var buf []byte
	var err error
	for i, v := range rows {
		if buf, err = c.encode(buf[:0], i, v); err != nil {
			return nil, err
		}
		offsets = append(offsets, offsets[len(offsets)-1]+uint64(len(buf)))
	}
	return []snapshot.Part{
		snapshot.Memory(snapshot.ValueOffsets, arena.Bytes(offsets)),
		{Kind: snapshot.ValueBytes, Write: func(w io.Writer) error { return c.writeAll(w, rows, offsets) }},
	}, nil
}

// writeAll encodes values and writes them, many at a time.
func (c *Codec[V]) writeAll(w io.Writer, rows []V, offsets []uint64) error {
	const enough = 64 << 10
	buf := make([]byte, 0, 2*enough)
	var err error
	for i, v := range rows {
		before := len(buf)
		if buf, err = c.encode(buf, i, v); err != nil {
			return err
		}
		if uint64(len(buf)-before) != offsets[i+1]-offsets[i] {
			return problem(CauseValues, "encode gave %d bytes for value %d, and %d before; it must give the same each time", len(buf)-before, i, offsets[i+1]-offsets[i])
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

package index

import (
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
)

// Columns writes operations of a batch as columns of bytes, as a log has them, and reads
// them back. Keys and values of fixed width lie there as in memory, so that reading
// copies nothing; strings and values by a codec one behind the other, with the end of each
// before them. docs/format.md has the bytes.
type Columns struct {
	key   KeyType
	val   *ValueType
	codec *Codec
}

// NewColumns returns how keys and values are written, or an error where values hold pointers and
// there is no codec for them.
func NewColumns(key KeyType, val *ValueType, codec *Codec) (*Columns, error) {
	if !val.free && codec == nil {
		return nil, Problem(ErrValues, "%v values hold pointers; give the option Values", val.typ)
	}
	return &Columns{key, val, codec}, nil
}

// Names returns the names of both types, as files have them.
func (c *Columns) Names() (key, value string) { return c.key.Name, c.val.Name() }

// ValueSize returns the bytes of a value that is written as it is, else 0.
func (c *Columns) ValueSize() uint32 { return c.val.fileSize() }

// Batch is operations of a batch: on keys, of one kind, or each of its own where Kinds
// is not nil. Vals has a value for each key, or none where all operations delete.
type Batch struct {
	Kind  op.Kind
	Kinds []op.Kind
	Keys  order.Keys
	Vals  Column
}

// Len returns the number of operations.
func (b *Batch) Len() int { return b.Keys.Len() }

// MostColumns is the most bytes that one operation may take: offsets have 32 bits.
const MostColumns = 1 << 30

// aligned rounds up to the alignment of columns.
func aligned(n int) int { return (n + 7) &^ 7 }

// pad appends zeros up to the alignment of columns.
func pad(dst []byte) []byte { return append(dst, make([]byte, aligned(len(dst))-len(dst))...) }

// Check returns an error if Append would, for an operation that is too long or a value that
// the codec refuses. A codec that panics does so here.
func (c *Columns) Check(b *Batch) error {
	w := columnWriter{Columns: c, b: b}
	texts, coded := c.key.Bits() == 0, b.Vals.n > 0 && !c.val.free
	if !texts && !coded {
		return nil
	}
	for i := range b.Len() {
		n := 0
		if texts {
			n = len(b.Keys.Strings()[i])
		}
		if coded {
			if m, ok := c.length(b.Vals, i); ok {
				n += m
			} else {
				w.encoded, w.ends = w.encoded[:0], w.ends[:0]
				if err := w.encode(i); err != nil {
					return err
				}
				n += len(w.encoded)
			}
		}
		if n > MostColumns-64 {
			return Problem(ErrTooLong, "key and value %d have %d bytes together; %d is the most", i, n, MostColumns-64)
		}
	}
	return nil
}

// CheckOne is Check for one operation that sets a key.
func (c *Columns) CheckOne(key order.Probe, val Value) error {
	if c.val.free && len(key.Text) <= MostColumns-64 {
		return nil
	}
	if val.At == nil {
		val.At = c.val.make(1)
	}
	b := Batch{Kind: op.Set, Keys: order.KeysAs(order.TypeOf[string](), []string{key.Text}), Vals: Column{val.At, 1}}
	text := *c
	text.key = KeyType{Type: order.TypeOf[string]()} // of a number it is empty
	return text.Check(&b)
}

// length returns the bytes that a value takes whose codec takes any, and false for others.
func (c *Columns) length(vals Column, i int) (int, bool) {
	if !c.codec.plain {
		return 0, false
	}
	return *(*int)(unsafe.Add(c.val.Place(vals, i), unsafe.Sizeof(uintptr(0)))), true // of a string, or a slice of bytes
}

// Append appends the columns of operations from one on, as many as take about room bytes
// and one at least, and returns how many. The length of dst must be aligned. Check comes
// before.
func (c *Columns) Append(dst []byte, b *Batch, from, room int) (out []byte, n int, err error) {
	w := columnWriter{Columns: c, b: b, from: from}
	if n, err = w.choose(room); err != nil {
		return dst, 0, err
	}
	if b.Kinds != nil {
		dst = pad(append(dst, kindBytes(b.Kinds[from:from+n])...))
	}
	dst = w.keys(dst, n)
	if b.Vals.n > 0 {
		dst = w.vals(dst, n)
	}
	return dst, n, nil
}

func kindBytes(k []op.Kind) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(k))), len(k))
}

// columnWriter appends the columns of some operations.
type columnWriter struct {
	*Columns
	b       *Batch
	from    int
	encoded []byte   // values by the codec
	ends    []uint32 // where each ends there
}

// fixed returns the bytes of a key, and of a value, that have a fixed width, else 0, and
// reports whether both have.
func (w *columnWriter) fixed() (key, val int, both bool) {
	both = w.key.Bits() != 0
	if both {
		key = w.key.Size()
	}
	if w.b.Vals.n > 0 && w.val.free {
		val = w.val.size
	}
	return key, val, both && (w.val.free || w.b.Vals.n == 0)
}

// choose returns how many operations take about room bytes. It encodes their values,
// since only that shows how long they are.
func (w *columnWriter) choose(room int) (int, error) {
	left := w.b.Len() - w.from
	key, val, both := w.fixed()
	each := key + val
	if w.b.Kinds != nil {
		each++
	}
	if both {
		return min(left, max(1, room/max(1, each))), nil
	}
	total := 0
	for i := range left {
		more := each
		if key == 0 {
			more += 4 + len(w.b.Keys.Strings()[w.from+i])
		}
		if w.b.Vals.n > 0 && !w.val.free {
			before := len(w.encoded)
			if err := w.encode(w.from + i); err != nil {
				return 0, err
			}
			more += 4 + len(w.encoded) - before
		}
		if total += more; total > room && i > 0 {
			return i, nil // what was encoded of the last stays unused
		}
	}
	return left, nil
}

// encode encodes value i, which is empty unless the operation sets it.
func (w *columnWriter) encode(i int) (err error) {
	if w.b.Kind == op.Set && w.b.Kinds == nil || w.b.Kinds != nil && w.b.Kinds[i] == op.Set {
		if w.encoded, err = w.codec.encode(w.encoded, i, w.val.Place(w.b.Vals, i)); err != nil {
			return err
		}
	}
	w.ends = append(w.ends, uint32(len(w.encoded)))
	return nil
}

func (w *columnWriter) keys(dst []byte, n int) []byte {
	part := w.b.Keys.Slice(w.from, w.from+n)
	if w.key.Bits() != 0 {
		return pad(append(dst, unsafe.Slice((*byte)(part.At()), n*w.key.Size())...))
	}
	end := uint32(0)
	for _, s := range part.Strings() {
		end += uint32(len(s))
		dst = binary.LittleEndian.AppendUint32(dst, end)
	}
	dst = pad(dst)
	for _, s := range part.Strings() {
		dst = append(dst, s...)
	}
	return pad(dst)
}

func (w *columnWriter) vals(dst []byte, n int) []byte {
	if w.val.free {
		return pad(append(dst, w.val.Bytes(w.val.Part(w.b.Vals, w.from, w.from+n))...))
	}
	end := uint32(0)
	for _, end = range w.ends[:n] {
		dst = binary.LittleEndian.AppendUint32(dst, end)
	}
	return pad(append(pad(dst), w.encoded[:end]...))
}

// Read returns the n operations that columns hold, which must begin at an aligned address:
// each with a kind of its own where mixed is true, else all of a kind. Keys, and values of fixed
// width, lie in the bytes.
func (c *Columns) Read(data []byte, n int, kind op.Kind, mixed bool) (b Batch, err error) {
	if n < 0 || n > len(data) { // each takes a byte at least
		return b, Problem(ErrFile, "%d operations in %d bytes", n, len(data))
	}
	r := columnReader{data}
	b.Kind = kind
	if mixed {
		kinds := r.take(n)
		b.Kinds = unsafe.Slice((*op.Kind)(unsafe.Pointer(unsafe.SliceData(kinds))), len(kinds))
		for _, k := range b.Kinds {
			if k > op.Delete {
				return b, Problem(ErrFile, "an operation of kind %d", k)
			}
		}
	}
	if c.key.Bits() != 0 {
		keys := r.take(n * c.key.Size())
		b.Keys = order.KeysAt(c.key.Type, unsafe.Pointer(unsafe.SliceData(keys)), len(keys)/c.key.Size())
	} else {
		texts := make([]string, n)
		err = r.each(n, func(i int, part []byte) error {
			texts[i] = unsafe.String(unsafe.SliceData(part), len(part))
			return nil
		})
		b.Keys = order.KeysAs(c.key.Type, texts)
	}
	if err == nil && (b.Keys.Len() != n || mixed && len(b.Kinds) != n) {
		err = errShort
	}
	if err == nil && (mixed || kind == op.Set) {
		b.Vals, err = c.readVals(&r, &b, n)
	}
	if err == nil && len(r.data) != 0 {
		err = Problem(ErrFile, "columns of %d operations end %d bytes before the last", n, len(r.data))
	}
	return b, err
}

func (c *Columns) readVals(r *columnReader, b *Batch, n int) (Column, error) {
	switch {
	case c.val.size == 0:
		return c.val.Zeros(n), nil
	case c.val.free:
		bytes := r.take(n * c.val.size)
		if len(bytes) != n*c.val.size {
			return Column{}, errShort
		}
		return c.val.columnIn(bytes), nil
	}
	vals := c.val.Zeros(n)
	return vals, r.each(n, func(i int, part []byte) error {
		if b.Kinds != nil && b.Kinds[i] != op.Set {
			return nil
		}
		v, err := c.decode(append([]byte{}, part...)) // never nil, as in files
		if err != nil {
			return Problem(ErrFile, "value %d cannot be decoded: %w", i, err)
		}
		c.val.Store(c.val.Place(vals, i), Value{At: v})
		return nil
	})
}

// decode decodes a value. A codec may panic over bytes that it has not written.
func (c *Columns) decode(b []byte) (v unsafe.Pointer, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = Problem(ErrFile, "decode panicked: %v", p)
		}
	}()
	return c.codec.Decode(b)
}

var errShort = Problem(ErrFile, "columns are shorter than their operations")

// columnReader takes columns one after the other.
type columnReader struct{ data []byte }

// take returns the next n bytes, and goes on at the next column. It returns nil, and has
// nothing more, where there are fewer.
func (r *columnReader) take(n int) []byte {
	if n < 0 || aligned(n) > len(r.data) {
		r.data = nil
		return nil
	}
	b := r.data[:n:n]
	r.data = r.data[aligned(n):]
	return b
}

// each calls do with each part of a column of parts of any length.
func (r *columnReader) each(n int, do func(i int, part []byte) error) error {
	ends := r.take(4 * n)
	if len(ends) != 4*n {
		return errShort
	}
	last := 0
	if n > 0 {
		last = int(binary.LittleEndian.Uint32(ends[4*(n-1):]))
	}
	if last > math.MaxInt32 {
		return errShort
	}
	data, from := r.take(last), 0
	if len(data) != last {
		return errShort
	}
	for i := range n {
		to := int(binary.LittleEndian.Uint32(ends[4*i:]))
		if to < from || to > last {
			return Problem(ErrFile, "part %d of a column ends at %d, behind %d of %d", i, to, from, last)
		}
		if err := do(i, data[from:to:to]); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// Gathering is a Batch that grows.
type Gathering struct {
	*Columns
	kinds []op.Kind
	fixed []uint64 // memory of keys that are numbers
	texts []string
	vals  Column // as long as there is room
}

// Gather returns an empty batch.
func (c *Columns) Gather() *Gathering { return &Gathering{Columns: c} }

// Len returns the number of operations.
func (g *Gathering) Len() int { return len(g.kinds) }

// Reset removes all operations. What they led to is not kept.
func (g *Gathering) Reset() {
	clear(g.texts)
	if !g.val.free {
		g.val.Clear(g.vals.First(len(g.kinds)))
	}
	g.kinds, g.texts = g.kinds[:0], g.texts[:0]
}

// grow makes room for n more operations, and returns how many there were.
func (g *Gathering) grow(n int) (had int) {
	had = len(g.kinds)
	if need := had + n; need > g.vals.n {
		room := max(64, 2*g.vals.n, need)
		vals := g.val.Zeros(room)
		g.val.CopyAll(vals, g.vals.First(had), 1)
		g.vals = vals
		if size := g.key.Size(); g.key.Bits() != 0 {
			keys := make([]uint64, (room*size+7)/8)
			copy(keys, g.fixed)
			g.fixed = keys
		}
	}
	g.kinds = append(g.kinds, make([]op.Kind, n)...)
	if g.key.Bits() == 0 {
		g.texts = append(g.texts, make([]string, n)...)
	}
	return had
}

// Add adds an operation. The value is copied unless it deletes.
func (g *Gathering) Add(kind op.Kind, key order.Probe, val Value) {
	i := g.grow(1)
	g.kinds[i] = kind
	g.keys().SetProbe(i, key)
	if kind == op.Set {
		g.val.Store(g.val.Place(g.vals, i), val)
	} else {
		g.val.Store(g.val.Place(g.vals, i), Value{})
	}
}

// AddAll adds the operations of a batch. Strings and values are not copied further than
// Go's assignment copies them.
func (g *Gathering) AddAll(b *Batch) {
	n := b.Len()
	at := g.grow(n)
	if b.Kinds != nil {
		copy(g.kinds[at:], b.Kinds)
	} else {
		for i := range n {
			g.kinds[at+i] = b.Kind
		}
	}
	g.keys().Slice(at, at+n).Copy(b.Keys)
	if to := g.val.Part(g.vals, at, at+n); b.Vals.n > 0 {
		g.val.CopyAll(to, b.Vals, 1)
	} else {
		g.val.Clear(to)
	}
}

func (g *Gathering) keys() order.Keys {
	if g.key.Bits() == 0 {
		return order.KeysAs(g.key.Type, g.texts)
	}
	return order.KeysAt(g.key.Type, unsafe.Pointer(unsafe.SliceData(g.fixed)), len(g.kinds))
}

// Batch returns the operations, until the next is added. Where all are of one kind it says
// so.
func (g *Gathering) Batch() Batch {
	b := g.Each()
	if len(g.kinds) == 0 || g.kinds[0] == op.Get {
		return b
	}
	for _, k := range g.kinds {
		if k != g.kinds[0] {
			return b
		}
	}
	if b.Kind, b.Kinds = g.kinds[0], nil; b.Kind == op.Delete {
		b.Vals = Column{}
	}
	return b
}

// Each returns the operations as Batch does, each with a kind of its own.
func (g *Gathering) Each() Batch {
	return Batch{Kinds: g.kinds, Keys: g.keys(), Vals: g.vals.First(len(g.kinds))}
}

// Val returns value i, until the next operation is added.
func (g *Gathering) Val(i int) Value { return g.val.Copy(g.vals, i) }

// ValOf returns a copy of value i of a column.
func (c *Columns) ValOf(vals Column, i int) Value { return c.val.Copy(vals, i) }

// Compare compares two keys.
func (c *Columns) Compare(a, b order.Probe) int { return c.key.Compare(a, b) }

package index

import (
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/snapshot"
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
// there is no codec for them, or the order of bytes is not that of files.
func NewColumns(key KeyType, val *ValueType, codec *Codec) (*Columns, error) {
	if err := snapshot.Order(); err != nil {
		return nil, err
	}
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
	// Coded has the bytes of each value that is set, by a codec that is anybody's. Such a
	// codec may fail, or write something else, when it is called again: Encode calls it once.
	Coded [][]byte
}

// Len returns the number of operations.
func (b *Batch) Len() int { return b.Keys.Len() }

// MostColumns is the most bytes that one operation may take: offsets have 32 bits.
const MostColumns = 1 << 30

// aligned rounds up to the alignment of columns.
func aligned(n int) int { return (n + 7) &^ 7 }

// pad appends zeros up to the alignment of columns.
func pad(dst []byte) []byte { return append(dst, make([]byte, aligned(len(dst))-len(dst))...) }

// foreign reports whether values are written by a codec that is anybody's.
func (c *Columns) foreign() bool { return !c.val.free && !c.codec.plain }

// Encode readies a batch for Append: it encodes the values where a codec of anybody's
// does that, which may panic, and returns an error for an operation that is too long.
func (c *Columns) Encode(b *Batch) error {
	var data []byte
	var ends []int
	coded := b.Vals.n > 0 && c.foreign()
	for i := 0; coded && i < b.Len(); i++ {
		if b.sets(i) {
			var err error
			if data, err = c.codec.encode(data, i, c.val.Place(b.Vals, i)); err != nil {
				return err
			}
		}
		ends = append(ends, len(data))
	}
	if coded {
		b.Coded = make([][]byte, len(ends))
		from := 0
		for i, to := range ends {
			b.Coded[i] = data[from:to:to]
			from = to
		}
	}
	if c.key.Bits() != 0 && (b.Vals.n == 0 || c.val.free) {
		return nil
	}
	for i := range b.Len() {
		text := ""
		if c.key.Bits() == 0 {
			text = b.Keys.Strings()[i]
		}
		if err := c.short(text, c.coded(b, i), i); err != nil {
			return err
		}
	}
	return nil
}

// EncodeOne is Encode for one operation that sets a key. It returns the bytes of the value
// where Encode keeps them.
func (c *Columns) EncodeOne(key order.Probe, val Value) (coded []byte, err error) {
	if c.val.free {
		return nil, c.Check(key)
	}
	if val.At == nil {
		val.At = c.val.make(1)
	}
	if c.foreign() {
		if coded, err = c.codec.encode([]byte{}, 0, val.At); err != nil {
			return nil, err
		}
	}
	return coded, c.short(key.Text, c.coded(&Batch{Kind: op.Set, Vals: Column{val.At, 1}, Coded: [][]byte{coded}}, 0), 0)
}

// Check returns an error for a key that is too long.
func (c *Columns) Check(key order.Probe) error { return c.short(key.Text, 0, 0) }

// short returns an error if a key and a value are too long together.
func (c *Columns) short(key string, val, i int) error {
	if n := len(key) + val; n > MostColumns-64 {
		return Problem(ErrTooLong, "key and value %d have %d bytes together; %d is the most", i, n, MostColumns-64)
	}
	return nil
}

// sets reports whether operation i sets a key.
func (b *Batch) sets(i int) bool {
	if b.Kinds != nil {
		return b.Kinds[i] == op.Set
	}
	return b.Kind == op.Set
}

// coded returns the bytes that value i takes by a codec.
func (c *Columns) coded(b *Batch, i int) int {
	switch {
	case b.Vals.n == 0 || c.val.free || !b.sets(i):
		return 0
	case c.codec.plain:
		return *(*int)(unsafe.Add(c.val.Place(b.Vals, i), unsafe.Sizeof(uintptr(0)))) // of a string, or a slice of bytes
	}
	return len(b.Coded[i])
}

// Append appends the columns of operations from one on, as many as take about room bytes
// and one at least, and returns how many. The length of dst must be aligned. Encode comes
// before.
func (c *Columns) Append(dst []byte, b *Batch, from, room int) (out []byte, n int) {
	w := columnWriter{Columns: c, b: b, from: from}
	n = w.choose(room)
	if b.Kinds != nil {
		dst = pad(append(dst, kindBytes(b.Kinds[from:from+n])...))
	}
	dst = w.keys(dst, n)
	if b.Vals.n > 0 {
		dst = w.vals(dst, n)
	}
	return dst, n
}

func kindBytes(k []op.Kind) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(k))), len(k))
}

// columnWriter appends the columns of some operations.
type columnWriter struct {
	*Columns
	b    *Batch
	from int
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

// choose returns how many operations take about room bytes.
func (w *columnWriter) choose(room int) int {
	left := w.b.Len() - w.from
	key, val, both := w.fixed()
	each := key + val
	if w.b.Kinds != nil {
		each++
	}
	if both {
		return min(left, max(1, room/max(1, each)))
	}
	total := 0
	for i := range left {
		more := each
		if key == 0 {
			more += 4 + len(w.b.Keys.Strings()[w.from+i])
		}
		if w.b.Vals.n > 0 && !w.val.free {
			more += 4 + w.coded(w.b, w.from+i)
		}
		if total += more; total > room && i > 0 {
			return i
		}
	}
	return left
}

func (w *columnWriter) keys(dst []byte, n int) []byte {
	part := w.b.Keys.Slice(w.from, w.from+n)
	if w.key.Bits() != 0 {
		return pad(append(dst, unsafe.Slice((*byte)(part.At()), n*w.key.Size())...))
	}
	texts := part.Strings()
	return parts(dst, n, func(dst []byte, i int) []byte { return append(dst, texts[i]...) })
}

func (w *columnWriter) vals(dst []byte, n int) []byte {
	if w.val.free {
		return pad(append(dst, w.val.Bytes(w.val.Part(w.b.Vals, w.from, w.from+n))...))
	}
	return parts(dst, n, func(dst []byte, i int) []byte {
		switch i += w.from; {
		case !w.b.sets(i):
		case w.codec.plain:
			dst, _ = w.codec.Encode(dst, w.val.Place(w.b.Vals, i)) // which takes any
		default:
			dst = append(dst, w.b.Coded[i]...)
		}
		return dst
	})
}

// parts appends a column of n parts of any length, each of which add appends: where each
// ends, and then all of them.
func parts(dst []byte, n int, add func(dst []byte, i int) []byte) []byte {
	ends := len(dst)
	dst = pad(append(dst, make([]byte, 4*n)...))
	begin := len(dst)
	for i := range n {
		dst = add(dst, i)
		binary.LittleEndian.PutUint32(dst[ends+4*i:], uint32(len(dst)-begin))
	}
	return pad(dst)
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
		if len(kinds) != n {
			return b, errShort
		}
		b.Kinds = unsafe.Slice((*op.Kind)(unsafe.Pointer(unsafe.SliceData(kinds))), len(kinds))
		for _, k := range b.Kinds {
			if k > op.Delete {
				return b, Problem(ErrFile, "an operation of kind %d", k)
			}
		}
	}
	if c.key.Bits() != 0 {
		keys := r.take(n * c.key.Size())
		if len(keys) != n*c.key.Size() {
			return b, errShort
		}
		b.Keys = order.KeysAt(c.key.Type, unsafe.Pointer(unsafe.SliceData(keys)), len(keys)/c.key.Size())
	} else {
		if n > len(r.data)/4 { // each has an end
			return b, errShort
		}
		texts := make([]string, n)
		err = r.each(n, func(i int, part []byte) error {
			texts[i] = unsafe.String(unsafe.SliceData(part), len(part))
			return nil
		})
		b.Keys = order.KeysAs(c.key.Type, texts)
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
	if n > len(r.data)/4 {
		return Column{}, errShort
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
	coded [][]byte
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
	clear(g.coded)
	g.kinds, g.texts, g.coded = g.kinds[:0], g.texts[:0], g.coded[:0]
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
	if g.foreign() {
		g.coded = append(g.coded, make([][]byte, n)...)
	}
	if g.key.Bits() == 0 {
		g.texts = append(g.texts, make([]string, n)...)
	}
	return had
}

// Add adds an operation. The value is copied unless it deletes. coded is what EncodeOne has
// returned, if the operation is to be appended to a log.
func (g *Gathering) Add(kind op.Kind, key order.Probe, val Value, coded []byte) {
	i := g.grow(1)
	g.kinds[i] = kind
	if g.foreign() {
		g.coded[i] = coded
	}
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
	return Batch{Kinds: g.kinds, Keys: g.keys(), Vals: g.vals.First(len(g.kinds)), Coded: g.coded}
}

// Val returns value i, until the next operation is added.
func (g *Gathering) Val(i int) Value { return g.val.Copy(g.vals, i) }

// ValOf returns a copy of value i of a column.
func (c *Columns) ValOf(vals Column, i int) Value { return c.val.Copy(vals, i) }

// Compare compares two keys.
func (c *Columns) Compare(a, b order.Probe) int { return c.key.Compare(a, b) }

package typed

import (
	"unsafe"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/table/cols"
)

// Builder gathers rows and builds an index of them.
type Builder struct {
	types    Types
	keys     keyRows
	vals     rows
	unsorted bool
	expected int
}

// rows is a column of all rows gathered, of a type known only at run time.
type rows interface {
	len() int
	room() int
	grow(n int) // makes room for n rows in all
	add(c *cols.Column, drop []bool)
	width() int64 // bytes of a value, not counting the text of a string
	text() int64  // bytes of the text of all strings
	isText() bool
	column() index.Column
	reset()
}

// keyRows are rows that have an order.
type keyRows interface {
	rows
	inOrder(from int) bool // reports whether row from and those after it are in order
	asKeys() order.Keys
}

// Expect says how many rows there will be in all, about. Room is made for
// them when it is needed next. Pages that are never written to take no
// memory, so that it does not matter if they are fewer.
func (b *Builder) Expect(rows int) { b.expected = rows }

// Len returns the number of rows gathered.
func (b *Builder) Len() int { return b.keys.len() }

// Add takes the rows of a batch, without those marked in drop, which may
// be nil. vals is not looked at where the index has no values.
func (b *Builder) Add(keys, vals *cols.Column, drop []bool) {
	start := b.Len()
	if n := start + keys.Len(); n > b.keys.room() {
		// For as many as are expected, and at least twice as many as there are,
		// because those must be copied.
		n = max(n, 2*start, b.expected)
		b.keys.grow(n)
		b.vals.grow(n)
	}
	b.keys.add(keys, drop)
	b.vals.add(vals, drop)
	b.unsorted = b.unsorted || !b.keys.inOrder(max(0, start-1))
}

// Need estimates the greatest number of bytes that a build of the given rows
// takes at a time, from the rows seen. It counts: the gathered rows; the index,
// which is the pairs and an eighth more; while unsorted rows are sorted, keys
// and the values that move along, both twice; strings twice; and an eighth of
// all that for the reader.
func (b *Builder) Need(rows int) int64 {
	pair := b.keys.width() + b.vals.width()
	perRow := pair + (pair + pair/8)
	if b.keys.isText() {
		perRow += 8 // their order
	} else if b.unsorted {
		perRow += 2 * (b.keys.width() + max(4, b.vals.width()))
	}
	text := 0.0
	if n := b.Len(); n > 0 {
		text = 2 * float64(b.keys.text()+b.vals.text()) / float64(n)
	}
	return int64(float64(rows) * (float64(perRow) + text) * 9 / 8)
}

// Freeze builds the index. The builder is empty afterwards.
func (b *Builder) Freeze(opts ...pando.Option) (Index, error) {
	defer func() {
		b.keys.reset()
		b.vals.reset()
		b.unsorted, b.expected = false, 0
	}()
	o, err := configure(index.Freezing, opts)
	if err != nil {
		return nil, err
	}
	return newIndex(b.types, func(key index.KeyType, val *index.ValueType) (*index.Index, error) {
		return index.Freeze(b.keys.asKeys(), key, b.vals.column(), val, o)
	})
}

// list is rows of type T. One of struct{} stays empty: there are no values.
type list[T any] struct {
	all       []T
	textBytes int64
}

func (l *list[T]) len() int    { return len(l.all) }
func (l *list[T]) room() int   { return cap(l.all) }
func (l *list[T]) text() int64 { return l.textBytes }
func (l *list[T]) reset()      { *l = list[T]{} }

func (l *list[T]) isText() bool         { t, ok := typeOf[T](); return ok && t == cols.String }
func (l *list[T]) column() index.Column { return index.ColumnOf(l.all) }

func (l *list[T]) width() int64 {
	var v T
	return int64(unsafe.Sizeof(v))
}

func (l *list[T]) grow(n int) {
	if _, ok := typeOf[T](); ok {
		l.all = append(make([]T, 0, n), l.all...)
	}
}

func (l *list[T]) add(c *cols.Column, drop []bool) {
	if _, ok := typeOf[T](); !ok {
		return
	}
	start, from := len(l.all), *cellsOf[T](c)
	if drop == nil {
		l.all = append(l.all, from...)
	} else {
		for i, v := range from {
			if !drop[i] {
				l.all = append(l.all, v)
			}
		}
	}
	words, _ := any(l.all[start:]).([]string)
	for _, w := range words {
		l.textBytes += int64(len(w))
	}
}

// keyList is rows of keys.
type keyList[K order.Key] struct{ list[K] }

func (l *keyList[K]) inOrder(from int) bool { return inOrder(l.all[from:]) }
func (l *keyList[K]) asKeys() order.Keys    { return order.KeysOf(l.all) }

package typed

import (
	"cmp"
	"unsafe"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/table"
)

// Builder gathers rows and builds an index of them.
type Builder interface {
	// Expect announces approximately how many rows there will be in all. Room
	// is made for them when it is needed next. Pages that are never written to
	// take no memory, so it does no harm if there are fewer rows.
	Expect(rows int)
	// Add adds the rows of a batch, except those marked in drop, which may be
	// nil. vals is ignored if the index has no values.
	Add(keys, vals *table.Column, drop []bool)
	Len() int
	// Need estimates the peak memory in bytes of a build of the given number
	// of rows, from the rows seen: what is gathered plus the index.
	Need(rows int) int64
	// Freeze builds the index. The builder is empty afterwards.
	Freeze(opts ...pando.Option) (Index, error)
}

type builder[K pando.Key, V any] struct {
	keys     []K
	vals     []V
	text     int64 // bytes in all strings
	unsorted bool
	expected int
}

func (b *builder[K, V]) Len() int { return len(b.keys) }

func (b *builder[K, V]) Expect(rows int) { b.expected = rows }

// grow makes room for n more rows: for as many as are expected, and at least
// twice as many as there are, because the existing ones must be copied.
func (b *builder[K, V]) grow(n int) {
	if n += len(b.keys); n > cap(b.keys) {
		n = max(n, 2*len(b.keys), b.expected)
		b.keys = append(make([]K, 0, n), b.keys...)
		b.vals = append(make([]V, 0, n), b.vals...)
	}
}

func isText[T any]() bool { t, ok := typeOf[T](); return ok && t == table.String }

func (b *builder[K, V]) Add(keys, vals *table.Column, drop []bool) {
	b.grow(keys.Len())
	start := len(b.keys)
	b.keys = appendKept(b.keys, keysOf[K](keys), drop)
	if _, ok := typeOf[V](); ok {
		b.vals = appendKept(b.vals, *cells[V](vals), drop)
		b.text += textBytes(b.vals[start:])
	} else {
		b.vals = b.vals[:0]
	}
	b.text += textBytes(b.keys[start:])
	b.unsorted = b.unsorted || !inOrder(b.keys[max(0, start-1):])
}

// appendKept appends all elements that are not to be dropped.
func appendKept[T any](to, from []T, drop []bool) []T {
	if drop == nil {
		return append(to, from...)
	}
	for i, v := range from {
		if !drop[i] {
			to = append(to, v)
		}
	}
	return to
}

// textBytes returns the total length of all strings; 0 if T is not a string.
func textBytes[T any](s []T) (n int64) {
	words, _ := any(s).([]string)
	for _, w := range words {
		n += int64(len(w))
	}
	return n
}

func inOrder[K pando.Key](keys []K) bool {
	for i := 1; i < len(keys); i++ {
		if cmp.Less(keys[i], keys[i-1]) {
			return false
		}
	}
	return true
}

// Need counts: the gathered rows; the index, which is the pairs and an eighth
// more; while unsorted rows are sorted, the keys twice and what moves along
// with them twice; strings twice; and an eighth of all that for the reader.
func (b *builder[K, V]) Need(rows int) int64 {
	var k K
	var v V
	pair := int64(unsafe.Sizeof(k) + unsafe.Sizeof(v))
	perRow := pair + (pair + pair/8)
	if b.unsorted && !isText[K]() {
		perRow += 2 * (int64(unsafe.Sizeof(k)) + max(4, int64(unsafe.Sizeof(v))))
	} else if isText[K]() {
		perRow += 8 // their order
	}
	text := 0.0
	if b.Len() > 0 {
		text = 2 * float64(b.text) / float64(b.Len())
	}
	return int64(float64(rows) * (float64(perRow) + text) * 9 / 8)
}

func (b *builder[K, V]) Freeze(opts ...pando.Option) (Index, error) {
	var v V
	if unsafe.Sizeof(v) == 0 {
		b.vals = nil
	}
	f, err := pando.Freeze(b.keys, b.vals, options[V](opts)...)
	*b = builder[K, V]{}
	if err != nil {
		return nil, err
	}
	return index[K, V]{f}, nil
}

package typed

import (
	"cmp"
	"unsafe"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/table"
)

// Builder gathers rows and builds an index of them.
type Builder interface {
	// Expect says how many rows there will be in all, about. Room is made for
	// them when it is needed next. Pages that are never written to take no
	// memory, so that it does not matter if they are fewer.
	Expect(rows int)
	// Add takes the rows of a batch, without those marked in drop, which may
	// be nil. vals is not looked at where the index has no values.
	Add(keys, vals *table.Column, drop []bool)
	Len() int
	// Need estimates the bytes that a build of so many rows takes at its
	// worst moment, from the rows seen: what is gathered and the index.
	Need(rows int) int64
	// Freeze builds the index. The builder is empty afterwards.
	Freeze(opts ...pando.Option) (Index, error)
}

type builder[K pando.Key, V any] struct {
	keys     []K
	vals     []V
	text     int64 // bytes of all strings
	unsorted bool
	expected int
}

func (b *builder[K, V]) Len() int { return len(b.keys) }

func (b *builder[K, V]) Expect(rows int) { b.expected = rows }

// grow makes room for n more rows: for as many as are expected, and at least
// twice as many as there are, because what is there must be copied.
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

// appendKept appends all that is not to be dropped.
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

// textBytes gives the length of all strings; 0 where they are not strings.
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

// Need counts: what is gathered; the index, which is the pairs and an eighth
// more; while unsorted rows are sorted, keys twice and what moves along with
// them twice; strings twice; and an eighth of all that for the reader.
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

package typed

import (
	"cmp"
	"math"
	"reflect"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/table/cols"
)

// kind is all that the code of this package has to know of a type.
type kind interface {
	// value returns the type of values.
	value() *index.ValueType
	// room makes a column n long, and returns where its cells lie. Where the column is
	// nil, or of no type, they lie somewhere else.
	room(c *cols.Column, n int) index.Column
	// newRows returns a list of rows.
	newRows() rows
}

// keyKind is a kind of keys.
type keyKind interface {
	kind
	key() (index.KeyType, reflect.Type)
	// keys returns the cells of a column.
	keys(c *cols.Column) order.Keys
	newKeys() keyRows
}

// numberKind is a kind of values that are numbers.
type numberKind interface {
	summary(s *index.Summary) Summary
	bits(c *cols.Column) []uint64
	// divide is Summary.Divide.
	divide(s *Summary, n int, bounds *cols.Column)
}

// kindOf returns the kind of a type.
func kindOf(t cols.Type) keyKind {
	switch t {
	case cols.Int64:
		return numbers[int64]{}
	case cols.Uint64:
		return numbers[uint64]{}
	case cols.Int32:
		return numbers[int32]{}
	case cols.Uint32:
		return numbers[uint32]{}
	case cols.Float64:
		return numbers[float64]{}
	case cols.Float32:
		return numbers[float32]{}
	}
	return keyCells[string]{}
}

// cells is the kind of T, which is struct{} where there are no values.
type cells[T any] struct{}

func (cells[T]) value() *index.ValueType { return index.ValueTypeOf[T]() }
func (cells[T]) newRows() rows           { return new(list[T]) }

func (cells[T]) room(c *cols.Column, n int) index.Column { return index.ColumnOf(room[T](c, n)) }

// keyCells is the kind of T as keys.
type keyCells[T order.Key] struct{ cells[T] }

func (keyCells[T]) key() (index.KeyType, reflect.Type) {
	return index.KeyTypeOf[T](), reflect.TypeFor[T]()
}

func (keyCells[T]) keys(c *cols.Column) order.Keys { return order.KeysOf(*cellsOf[T](c)) }
func (keyCells[T]) newKeys() keyRows               { return new(keyList[T]) }

// number is the type of a column of numbers.
type number interface {
	int64 | uint64 | int32 | uint32 | float64 | float32
}

// numbers is the kind of T, which is a number.
type numbers[T number] struct{ keyCells[T] }

func (numbers[T]) summary(s *index.Summary) (out Summary) {
	sum, least, greatest := index.TotalsOf[T](index.NumberType(reflect.TypeFor[T]()), s)
	out.Count, out.Mean = s.Count, s.Mean
	room[T](&out.Sum, 1)[0], room[T](&out.Min, 1)[0], room[T](&out.Max, 1)[0] = sum, least, greatest
	about := s.Mean * float64(s.Count)
	out.Wrapped = T(1)/2 == 0 && math.Abs(about-float64(sum)) > 1e-9*math.Abs(about)+1
	return out
}

func (numbers[T]) bits(c *cols.Column) (bits []uint64) {
	n := index.NumberType(reflect.TypeFor[T]())
	for _, v := range *cellsOf[T](c) {
		bits = append(bits, index.BitsOf(n, v))
	}
	return bits
}

func (numbers[T]) divide(s *Summary, n int, bounds *cols.Column) {
	least, greatest := (*cellsOf[T](&s.Min))[0], (*cellsOf[T](&s.Max))[0]
	out := room[T](bounds, max(0, n-1))[:0]
	last := least
	for i := 1; i < n; i++ {
		// The part of each end is taken by itself: their distance may not fit.
		part := float64(i) / float64(n)
		b := T(float64(least)*(1-part) + float64(greatest)*part)
		if b > last && b <= greatest {
			out = append(out, b)
			last = b
		}
	}
	*cellsOf[T](bounds) = out
}

// cellsOf returns the slice of a column that holds type T; nil for a T that is in
// no column.
func cellsOf[T any](c *cols.Column) *[]T {
	var slot any
	switch any((*T)(nil)).(type) {
	case *int64:
		slot = &c.Int64
	case *uint64:
		slot = &c.Uint64
	case *int32:
		slot = &c.Int32
	case *uint32:
		slot = &c.Uint32
	case *float64:
		slot = &c.Float64
	case *float32:
		slot = &c.Float32
	case *string:
		slot = &c.String
	}
	p, _ := slot.(*[]T)
	return p
}

// typeOf returns the column type of T, and false for none.
func typeOf[T any]() (cols.Type, bool) {
	switch any((*T)(nil)).(type) {
	case *int64:
		return cols.Int64, true
	case *uint64:
		return cols.Uint64, true
	case *int32:
		return cols.Int32, true
	case *uint32:
		return cols.Uint32, true
	case *float64:
		return cols.Float64, true
	case *float32:
		return cols.Float32, true
	case *string:
		return cols.String, true
	}
	return 0, false
}

// room makes a column n long and gives its slice. Where c is nil, or T is in
// no column, the slice is one of its own.
func room[T any](c *cols.Column, n int) []T {
	t, ok := typeOf[T]()
	if c == nil || !ok {
		return make([]T, n)
	}
	c.Type, c.Null = t, nil
	s := cellsOf[T](c)
	if cap(*s) < n {
		*s = make([]T, n)
	}
	*s = (*s)[:n]
	return *s
}

// inOrder reports whether keys ascend.
func inOrder[K order.Key](keys []K) bool {
	for i := 1; i < len(keys); i++ {
		if cmp.Less(keys[i], keys[i-1]) {
			return false
		}
	}
	return true
}

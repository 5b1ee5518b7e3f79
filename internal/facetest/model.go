// Package facetest compares indexes, through their public methods, with the
// simplest model that could be right. Only tests import it.
package facetest

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"unsafe"

	"github.com/pando-index/pando"
)

// model is the simplest thing that could be right: entries sorted by
// cmp.Compare, equal keys in the order they came in.
type Model[K pando.Key, V any] struct {
	Keys []K
	Vals []V
	Same func(a, b V) bool
}

func NewModel[K pando.Key, V any](keys []K, vals []V, same func(a, b V) bool) *Model[K, V] {
	rows := make([]int, len(keys))
	for i := range rows {
		rows[i] = i
	}
	slices.SortStableFunc(rows, func(a, b int) int { return cmp.Compare(keys[a], keys[b]) })
	m := &Model[K, V]{Same: same}
	for _, r := range rows {
		m.Keys, m.Vals = append(m.Keys, keys[r]), append(m.Vals, vals[r])
	}
	return m
}

// Rank returns the number of the entries below key.
func (m *Model[K, V]) Rank(key K) int {
	return sort.Search(len(m.Keys), func(i int) bool { return cmp.Compare(m.Keys[i], key) >= 0 })
}

// After returns the number of the entries up to key.
func (m *Model[K, V]) After(key K) int {
	return sort.Search(len(m.Keys), func(i int) bool { return cmp.Compare(m.Keys[i], key) > 0 })
}

// Get returns the value of the first entry with key.
func (m *Model[K, V]) Get(key K) (v V, found bool) {
	if i := m.Rank(key); i < len(m.Keys) && cmp.Compare(m.Keys[i], key) == 0 {
		return m.Vals[i], true
	}
	return v, false
}

// Span returns the entries with lo <= key <= hi, the first limit of them where
// limit is above 0.
func (m *Model[K, V]) Span(lo, hi K, limit int) (first, end int) {
	return cut(m.Rank(lo), m.After(hi), limit)
}

// Is reports whether k, v is entry i, as an index gives it: never as -0.
func (m *Model[K, V]) Is(i int, k K, v V) bool {
	return cmp.Compare(k, m.Keys[i]) == 0 && m.Same(v, m.Vals[i]) && !negativeZero(k)
}

// negativeZero is false for all keys but -0.
func negativeZero(k any) bool {
	switch f := k.(type) {
	case float32:
		return f == 0 && math.Signbit(float64(f))
	case float64:
		return f == 0 && math.Signbit(f)
	case Celsius:
		return f == 0 && math.Signbit(float64(f))
	}
	return false
}

// Named types, whose kind is all that counts.
type (
	Celsius float64
	ID      uint32
	Offset  int8
	Label   string
)

// domain is how tests get keys of a type.
type Domain[K pando.Key] struct {
	Ends []K            // the least, the greatest, and others where something may break
	Num  func(i int) K  // keys that lie close; neighbours may differ by more than 1
	Bits func(uint64) K // keys from anywhere
}

type integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

func Integers[K integer]() Domain[K] {
	least, greatest := K(0), ^K(0)
	if greatest < 0 { // signed
		least = K(1) << (8*unsafe.Sizeof(least) - 1)
		greatest = least - 1
	}
	return Domain[K]{
		Ends: []K{least, least + 1, ^K(0), 0, 1, greatest/2 + 1, greatest - 1, greatest},
		Num:  func(i int) K { return K(i - 1000) },
		Bits: func(u uint64) K { return K(u) },
	}
}

// floats makes the domain of a floating-point type from its bits.
func floats[K ~float32 | ~float64](bits func(uint64) K, nans ...K) Domain[K] {
	inf, zero := K(math.Inf(1)), K(0)
	small := bits(1)
	return Domain[K]{
		Ends: append([]K{-inf, inf, zero, -zero, K(math.Copysign(0, -1)), small, -small, 1, -1, 1e38, -1e38}, nans...),
		Num:  func(i int) K { return K(i-1000) / 4 },
		Bits: bits,
	}
}

func Float64s[K ~float64]() Domain[K] {
	bits := func(u uint64) K { return K(math.Float64frombits(u)) }
	return floats(bits, K(math.NaN()), bits(0xfff8_0000_0000_0001), K(math.MaxFloat64), K(-math.MaxFloat64))
}

func Float32s[K ~float32]() Domain[K] {
	bits := func(u uint64) K { return K(math.Float32frombits(uint32(u))) }
	return floats(bits, K(math.NaN()), bits(0xffc0_0001), K(math.MaxFloat32), K(-math.MaxFloat32))
}

func Strings[K ~string]() Domain[K] {
	return Domain[K]{
		Ends: []K{"", "\x00", "\x00\x00", "a", "a\x00", "aa", "\x7f", "\x80", "\xff", "\xff\xff", "\xff\xff\xff\xff"},
		Num:  func(i int) K { return K(fmt.Sprintf("user:%06d", i)) },
		Bits: func(u uint64) K {
			b := make([]byte, u%12)
			for i := range b {
				u = u*6364136223846793005 + 1442695040888963407
				b[i] = "\x00\x01az\x80\xff"[u>>33%6]
			}
			return K(b)
		},
	}
}

// values is how tests get values of a type and tell them apart.
type Values[V any] struct {
	Of     func(i int) V
	Same   func(a, b V) bool
	Inline int // bytes of a V that lives in the index, or 0
}

func Equals[V comparable](inline int, of func(i int) V) Values[V] {
	return Values[V]{Of: of, Same: func(a, b V) bool { return a == b }, Inline: inline}
}

// Record is a value of 8 bytes that is aligned to 4.
type Record struct{ A, B int32 }

var (
	Uint64Values  = Equals(8, func(i int) uint64 { return uint64(i)*0x9e3779b97f4a7c15 + 1 })
	Uint32Values  = Equals(4, func(i int) uint32 { return uint32(i)*2654435761 + 1 })
	Int32Values   = Equals(4, func(i int) int32 { return int32(i)*-1640531535 + 1 })
	BytesValues   = Equals(8, func(i int) [8]byte { return [8]byte{byte(i), byte(i >> 8), byte(i >> 16), 3, 0, 0, 0, 1} })
	RecordValues  = Equals(8, func(i int) Record { return Record{int32(i), -int32(i) - 1} })
	EmptyValues   = Equals(0, func(int) struct{} { return struct{}{} })
	StringValues  = Equals(0, func(i int) string { return "value " + strconv.Itoa(i) })
	TriplesValues = Equals(0, func(i int) [3]uint16 { return [3]uint16{uint16(i), uint16(i >> 16), 7} })
	BoolValues    = Equals(0, func(i int) bool { return i%3 != 0 })

	// NaNs are values like any other, and come back bit by bit.
	FloatValues = Values[float64]{
		Of:     func(i int) float64 { return math.Float64frombits(uint64(i)*0x9e3779b97f4a7c15 | 1) },
		Same:   func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) },
		Inline: 8,
	}
	PointerValues = Values[*int]{
		Of:   func(i int) *int { return &i },
		Same: func(a, b *int) bool { return a == b || a != nil && b != nil && *a == *b },
	}
	SliceValues = Values[[]byte]{
		Of:   func(i int) []byte { return strconv.AppendInt(nil, int64(i), 36) },
		Same: bytes.Equal,
	}
)

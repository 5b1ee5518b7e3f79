package pando_test

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
type model[K pando.Key, V any] struct {
	keys []K
	vals []V
	same func(a, b V) bool
}

func newModel[K pando.Key, V any](keys []K, vals []V, same func(a, b V) bool) *model[K, V] {
	rows := make([]int, len(keys))
	for i := range rows {
		rows[i] = i
	}
	slices.SortStableFunc(rows, func(a, b int) int { return cmp.Compare(keys[a], keys[b]) })
	m := &model[K, V]{same: same}
	for _, r := range rows {
		m.keys, m.vals = append(m.keys, keys[r]), append(m.vals, vals[r])
	}
	return m
}

// rank counts the entries below key.
func (m *model[K, V]) rank(key K) int {
	return sort.Search(len(m.keys), func(i int) bool { return cmp.Compare(m.keys[i], key) >= 0 })
}

// after counts the entries up to key.
func (m *model[K, V]) after(key K) int {
	return sort.Search(len(m.keys), func(i int) bool { return cmp.Compare(m.keys[i], key) > 0 })
}

// get gives the value of the first entry with key.
func (m *model[K, V]) get(key K) (v V, found bool) {
	if i := m.rank(key); i < len(m.keys) && cmp.Compare(m.keys[i], key) == 0 {
		return m.vals[i], true
	}
	return v, false
}

// span gives the entries with lo <= key <= hi, the first limit of them where
// limit is above 0.
func (m *model[K, V]) span(lo, hi K, limit int) (first, end int) {
	first = m.rank(lo)
	end = max(first, m.after(hi))
	if limit > 0 {
		end = min(end, first+limit)
	}
	return first, end
}

// is tells whether k, v is entry i, as an index gives it: never as -0.
func (m *model[K, V]) is(i int, k K, v V) bool {
	return cmp.Compare(k, m.keys[i]) == 0 && m.same(v, m.vals[i]) && !negativeZero(k)
}

// negativeZero is false for all keys but -0.
func negativeZero[K pando.Key](k K) bool {
	switch f := any(k).(type) {
	case float32:
		return f == 0 && math.Signbit(float64(f))
	case float64:
		return f == 0 && math.Signbit(f)
	case celsius:
		return f == 0 && math.Signbit(float64(f))
	}
	return false
}

// Named types, whose kind is all that counts.
type (
	celsius float64
	id      uint32
	offset  int8
	label   string
)

// domain is how tests get keys of a type.
type domain[K pando.Key] struct {
	ends []K            // the least, the greatest, and others where something may break
	num  func(i int) K  // keys that lie close; neighbours may differ by more than 1
	bits func(uint64) K // keys from anywhere
}

type integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

func integers[K integer]() domain[K] {
	least, greatest := K(0), ^K(0)
	if greatest < 0 { // signed
		least = K(1) << (8*unsafe.Sizeof(least) - 1)
		greatest = least - 1
	}
	return domain[K]{
		ends: []K{least, least + 1, ^K(0), 0, 1, greatest/2 + 1, greatest - 1, greatest},
		num:  func(i int) K { return K(i - 1000) },
		bits: func(u uint64) K { return K(u) },
	}
}

// floats makes the domain of a floating-point type from its bits.
func floats[K ~float32 | ~float64](bits func(uint64) K, nans ...K) domain[K] {
	inf, zero := K(math.Inf(1)), K(0)
	small := bits(1)
	return domain[K]{
		ends: append([]K{-inf, inf, zero, -zero, K(math.Copysign(0, -1)), small, -small, 1, -1, 1e38, -1e38}, nans...),
		num:  func(i int) K { return K(i-1000) / 4 },
		bits: bits,
	}
}

func float64s[K ~float64]() domain[K] {
	bits := func(u uint64) K { return K(math.Float64frombits(u)) }
	return floats(bits, K(math.NaN()), bits(0xfff8_0000_0000_0001), K(math.MaxFloat64), K(-math.MaxFloat64))
}

func float32s[K ~float32]() domain[K] {
	bits := func(u uint64) K { return K(math.Float32frombits(uint32(u))) }
	return floats(bits, K(math.NaN()), bits(0xffc0_0001), K(math.MaxFloat32), K(-math.MaxFloat32))
}

func texts[K ~string]() domain[K] {
	return domain[K]{
		ends: []K{"", "\x00", "\x00\x00", "a", "a\x00", "aa", "\x7f", "\x80", "\xff", "\xff\xff", "\xff\xff\xff\xff"},
		num:  func(i int) K { return K(fmt.Sprintf("user:%06d", i)) },
		bits: func(u uint64) K {
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
type values[V any] struct {
	of     func(i int) V
	same   func(a, b V) bool
	inline int // bytes of a V that lives in the index, or 0
}

func equals[V comparable](inline int, of func(i int) V) values[V] {
	return values[V]{of: of, same: func(a, b V) bool { return a == b }, inline: inline}
}

// record is a value of 8 bytes that is aligned to 4.
type record struct{ A, B int32 }

var (
	uint64Values  = equals(8, func(i int) uint64 { return uint64(i)*0x9e3779b97f4a7c15 + 1 })
	uint32Values  = equals(4, func(i int) uint32 { return uint32(i)*2654435761 + 1 })
	int32Values   = equals(4, func(i int) int32 { return int32(i)*-1640531535 + 1 })
	bytesValues   = equals(8, func(i int) [8]byte { return [8]byte{byte(i), byte(i >> 8), byte(i >> 16), 3, 0, 0, 0, 1} })
	recordValues  = equals(8, func(i int) record { return record{int32(i), -int32(i) - 1} })
	emptyValues   = equals(0, func(int) struct{} { return struct{}{} })
	stringValues  = equals(0, func(i int) string { return "value " + strconv.Itoa(i) })
	triplesValues = equals(0, func(i int) [3]uint16 { return [3]uint16{uint16(i), uint16(i >> 16), 7} })
	boolValues    = equals(0, func(i int) bool { return i%3 != 0 })

	// NaNs are values like any other, and come back bit by bit.
	floatValues = values[float64]{
		of:     func(i int) float64 { return math.Float64frombits(uint64(i)*0x9e3779b97f4a7c15 | 1) },
		same:   func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) },
		inline: 8,
	}
	pointerValues = values[*int]{
		of:   func(i int) *int { return &i },
		same: func(a, b *int) bool { return a == b || a != nil && b != nil && *a == *b },
	}
	sliceValues = values[[]byte]{
		of:   func(i int) []byte { return strconv.AppendInt(nil, int64(i), 36) },
		same: bytes.Equal,
	}
)

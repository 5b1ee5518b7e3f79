// Package tuple makes string keys of several values, and values of keys again:
// the order of keys is that of the tuples, value by value, each ascending or
// descending.
//
//	key := tuple.Key(tuple.String("Oslo"), tuple.Desc(tuple.Time(now)), tuple.Int(42))
//
// The key of a tuple begins with the key of any tuple that it begins with. So the
// entries of one city, latest first, are
//
//	ix.Prefix(tuple.Key(tuple.String("Oslo")))
//
// An element is a byte for its type and then its value: integers 0 to 8 bytes,
// shorter the nearer they are to 0, floats 8, times 12, UUIDs 16, strings and
// bytes as long as they are and two more, and one for each zero in them. Elements
// of different types in one place are in the order of the types' bytes. Those of a
// descending element are all inverted.
package tuple

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"
)

// ErrKey is the error for a key that no tuple has, or that of another tuple than
// was asked for.
var ErrKey = errors.New("tuple: not the key of such a tuple")

// Kind is the type of an element.
type Kind uint8

const (
	KindBytes  Kind = 0x10
	KindString Kind = 0x18
	KindInt    Kind = 0x28 // that of 0; that of others is as many more, or less, as they have bytes
	KindFloat  Kind = 0x38
	KindTime   Kind = 0x40
	KindUUID   Kind = 0x48
)

// Element is a value in a tuple.
type Element struct {
	kind     Kind
	desc     bool
	negative bool   // of an integer
	bits     uint64 // magnitude of an integer, bits of a float, seconds of a time
	nanos    uint32
	text     string // a string, bytes or a UUID
}

// Int returns an integer. Int and Uint of the same number are the same.
func Int(n int64) Element {
	if n < 0 {
		return Element{kind: KindInt, negative: true, bits: -uint64(n)}
	}
	return Uint(uint64(n))
}

// Uint returns an integer.
func Uint(n uint64) Element { return Element{kind: KindInt, bits: n} }

// Float returns a float, in the order of cmp.Compare: NaN comes first, and -0 is
// the same as 0.
func Float(f float64) Element {
	switch {
	case f != f:
		f = math.NaN()
	case f == 0:
		f = 0
	}
	return Element{kind: KindFloat, bits: math.Float64bits(f)}
}

// String returns a string.
func String(s string) Element { return Element{kind: KindString, text: s} }

// Bytes returns a copy of bytes.
func Bytes(b []byte) Element { return Element{kind: KindBytes, text: string(b)} }

// Time returns a moment, to the nanosecond. It comes back in UTC.
func Time(t time.Time) Element {
	return Element{kind: KindTime, bits: uint64(t.Unix()), nanos: uint32(t.Nanosecond())}
}

// UUID returns 16 bytes.
func UUID(id [16]byte) Element { return Element{kind: KindUUID, text: string(id[:])} }

// Desc returns the element in descending order.
func Desc(e Element) Element {
	e.desc = true
	return e
}

// Key returns the key of a tuple.
func Key(elements ...Element) string { return string(Append(nil, elements...)) }

// Append appends the key of a tuple to dst, as append does: for lookups by bytes
// without an allocation.
func Append(dst []byte, elements ...Element) []byte {
	for i := range elements {
		e := &elements[i]
		at := len(dst)
		dst = e.append(dst)
		if e.desc {
			for j := at; j < len(dst); j++ {
				dst[j] = ^dst[j]
			}
		}
	}
	return dst
}

// append appends an element in ascending order.
func (e *Element) append(dst []byte) []byte {
	switch e.kind {
	case KindInt:
		return e.appendInt(dst)
	case KindFloat:
		return binary.BigEndian.AppendUint64(append(dst, byte(KindFloat)), orderedFloat(e.bits))
	case KindTime:
		dst = binary.BigEndian.AppendUint64(append(dst, byte(KindTime)), e.bits^1<<63)
		return binary.BigEndian.AppendUint32(dst, e.nanos)
	case KindUUID:
		return append(append(dst, byte(KindUUID)), e.text...)
	}
	// A zero is followed by 255, the end is zero and one: so a string is below all
	// that it begins, also where its bytes are inverted.
	dst = append(dst, byte(e.kind))
	for i := range len(e.text) {
		if dst = append(dst, e.text[i]); e.text[i] == 0 {
			dst = append(dst, 0xff)
		}
	}
	return append(dst, 0, 1)
}

// appendInt appends the bytes of a number that are not leading zeros. How many
// they are is in the kind, so that longer ones are further from 0; those of a
// negative number are inverted.
func (e *Element) appendInt(dst []byte) []byte {
	n := (bits.Len64(e.bits) + 7) / 8
	kind, value := KindInt+Kind(n), e.bits
	if e.negative {
		kind, value = KindInt-Kind(n), ^e.bits
	}
	dst = append(dst, byte(kind))
	for i := n - 1; i >= 0; i-- {
		dst = append(dst, byte(value>>(8*i)))
	}
	return dst
}

// orderedFloat returns the bits of a float as a number in the floats' order; NaN
// is 0.
func orderedFloat(b uint64) uint64 {
	if f := math.Float64frombits(b); f != f {
		return 0
	}
	return b ^ (uint64(int64(b)>>63) | 1<<63)
}

func floatOf(code uint64) float64 {
	if code == 0 {
		return math.NaN()
	}
	return math.Float64frombits(code ^ (uint64(int64(^code)>>63) | 1<<63))
}

// Parse returns the elements of a key.
func Parse(key string) ([]Element, error) {
	var all []Element
	for rest := []byte(key); len(rest) > 0; {
		e, n, ok := take(rest)
		if !ok {
			return nil, fmt.Errorf("%w: at byte %d of %q", ErrKey, len(key)-len(rest), key)
		}
		all, rest = append(all, e), rest[n:]
	}
	return all, nil
}

// take reads the first element of b, and returns how many bytes it has.
func take(b []byte) (e Element, n int, ok bool) {
	if b[0] >= 0x80 { // inverted
		up := make([]byte, len(b))
		for i, c := range b {
			up[i] = ^c
		}
		b, e.desc = up, true
	}
	switch kind := Kind(b[0]); {
	case kind >= KindInt-8 && kind <= KindInt+8:
		n, ok = e.takeInt(b)
	case kind == KindString || kind == KindBytes:
		n, ok = e.takeText(b)
	case kind == KindFloat && len(b) >= 9:
		e.kind, e.bits = kind, math.Float64bits(floatOf(binary.BigEndian.Uint64(b[1:])))
		n, ok = 9, true
	case kind == KindTime && len(b) >= 13:
		e.kind, e.bits, e.nanos = kind, binary.BigEndian.Uint64(b[1:])^1<<63, binary.BigEndian.Uint32(b[9:])
		n, ok = 13, e.nanos < 1e9
	case kind == KindUUID && len(b) >= 17:
		e.kind, e.text = kind, string(b[1:17])
		n, ok = 17, true
	}
	// An element has one way to be written: all else is no key.
	return e, n, ok && bytes.Equal(e.append(nil), b[:n])
}

func (e *Element) takeInt(b []byte) (n int, ok bool) {
	e.kind, e.negative = KindInt, Kind(b[0]) < KindInt
	if n = int(b[0]) - int(KindInt); e.negative {
		n = -n
	}
	if len(b) < 1+n {
		return 0, false
	}
	for _, c := range b[1 : 1+n] {
		if e.negative {
			c = ^c
		}
		e.bits = e.bits<<8 | uint64(c)
	}
	return 1 + n, true
}

func (e *Element) takeText(b []byte) (n int, ok bool) {
	e.kind = Kind(b[0])
	var text []byte
	for i := 1; i+1 < len(b); i++ {
		if b[i] == 0 {
			if i++; b[i] == 1 {
				e.text = string(text)
				return i + 1, true
			}
			text = append(text, 0)
			continue
		}
		text = append(text, b[i])
	}
	return 0, false
}

package table

import (
	"math"
	"strconv"
	"strings"
	"unsafe"

	"github.com/pando-index/pando/internal/table/cols"
)

// slabSize is the number of bytes allocated for strings at a time. A string
// keeps its whole slab alive, so slabs are small.
const slabSize = 32 << 10

// slab allocates memory for strings; it is never written again.
type slab struct{ room []byte }

// copy returns b as a string.
func (s *slab) copy(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if len(b) > slabSize/4 {
		return string(b)
	}
	if cap(s.room)-len(s.room) < len(b) {
		s.room = make([]byte, 0, slabSize)
	}
	n := len(s.room)
	s.room = append(s.room, b...)
	return unsafe.String(&s.room[n], len(b))
}

// problem is the reason why a text is not a value.
type problem uint8

const (
	fine     problem = iota
	syntax           // not a number, or not a whole one
	size             // does not fit
	kindless         // not of the column's kind
	changed          // a number, but not one that is written so
)

// explain describes the problem, and what to do about it.
func (p problem) explain(f Field, value string) *Error {
	e := &Error{Column: f.Name}
	if p == kindless {
		e.What, e.Advice = quoted(value)+" is no "+f.Kind.String(), tryType(f.Name, String)
		return e
	}
	if p == changed {
		e.What = quoted(value) + " would not stay as it is: the first rows made the column " + f.Type.String()
		e.Advice = tryType(f.Name, String)
		return e
	}
	float := Float64
	switch _, fits := parseFloat([]byte(value), 64); {
	case p == size:
		e.What = quoted(value) + " does not fit " + f.Type.String()
		e.Advice = tryType(f.Name, wider(f.Type, value))
		if t := wider(f.Type, value); f.Type == Int64 && t == Uint64 || f.Type == Uint64 && t == Int64 {
			// No number type holds all values of both.
			e.Advice += ", or, if other values do not fit that, " + f.Name + "=" + String.String()
		}
	case fits != fine || f.Type == Float64 || f.Type == Float32:
		e.What = quoted(value) + " is no number (" + f.Type.String() + ")"
		e.Advice = tryType(f.Name, String)
	default:
		e.What = quoted(value) + " is no whole number (" + f.Type.String() + ")"
		e.Advice = tryType(f.Name, float)
	}
	return e
}

// tryType names the flag that helps.
func tryType(column string, t Type) string {
	return "give --type " + column + "=" + t.String()
}

// wider returns a type that holds a value which t does not.
func wider(t Type, value string) Type {
	b := []byte(value)
	if t == Float32 {
		if _, p := parseFloat(b, 64); p == fine {
			return Float64
		}
		return String
	}
	if _, p := wholeInt(trim(b)); p == fine {
		return Int64
	}
	if _, p := wholeUint(trim(b)); p == fine {
		return Uint64
	}
	return String
}

// AppendText adds the value that a text stands for to a column, by the rules of CSV. If it stands for none, it
// returns false, and the column is of no use.
func AppendText(c *Column, text string) bool {
	var room slab
	n := c.Len()
	return appendText(c, []byte(text), &room) == fine && !(n < len(c.Null) && c.Null[n])
}

// appendText adds the value that a text stands for. An empty text is a null
// where the column is one of numbers, of UUIDs or of booleans.
func appendText(c *Column, b []byte, text *slab) problem {
	if c.Type == String && !parsedText(c.Kind) {
		c.String = append(c.String, text.copy(b))
		return fine
	}
	if len(b) == 0 || b[0] <= ' ' || b[len(b)-1] <= ' ' {
		if b = trim(b); len(b) == 0 {
			c.AppendNull()
			return fine
		}
	}
	if c.Null != nil {
		c.Null = append(c.Null, false)
	}
	switch {
	case c.Kind.Of == cols.UUID:
		id, ok := parseUUID(b)
		c.String = append(c.String, text.copy(id[:]))
		if !ok {
			return kindless
		}
		return fine
	case c.Kind.Of == cols.Boolean:
		return appendTruth(c, string(b))
	case c.Kind.Of != cols.Other:
		return appendOfKind(c, b)
	}
	p := appendNumber(c, b)
	if c.Exact && p == fine && !(keptInFront(b) && (c.Type != Float64 || holdsDigits(c.Float64[len(c.Float64)-1], b))) {
		return changed
	}
	return p
}

// appendTruth adds a boolean, which programs write in several ways: True, TRUE.
func appendTruth(c *Column, word string) problem {
	v := strings.EqualFold(word, "true")
	c.String = append(c.String, truth(v))
	if !v && !strings.EqualFold(word, "false") {
		return kindless
	}
	return fine
}

// appendOfKind adds the number that a text of the column's kind stands for.
func appendOfKind(c *Column, b []byte) problem {
	v, err := ParseNumber(c.Kind, string(b))
	if c.Type == Int32 {
		c.Int32 = append(c.Int32, int32(v))
	} else {
		c.Int64 = append(c.Int64, v)
	}
	if err != nil || c.Type == Int32 && v != int64(int32(v)) {
		return kindless
	}
	return fine
}

// appendNumber adds the number that a text stands for.
func appendNumber(c *Column, b []byte) problem {
	switch c.Type {
	case Int64:
		v, p := wholeInt(b)
		c.Int64 = append(c.Int64, v)
		return p
	case Uint64:
		v, p := wholeUint(b)
		c.Uint64 = append(c.Uint64, v)
		return p
	case Int32:
		v, p := wholeInt(b)
		if p == fine && v != int64(int32(v)) {
			p = size
		}
		c.Int32 = append(c.Int32, int32(v))
		return p
	case Uint32:
		v, p := wholeUint(b)
		if p == fine && v > math.MaxUint32 {
			p = size
		}
		c.Uint32 = append(c.Uint32, uint32(v))
		return p
	case Float64:
		v, p := parseFloat(b, 64)
		c.Float64 = append(c.Float64, v)
		return p
	default:
		v, p := parseFloat(b, 32)
		c.Float32 = append(c.Float32, float32(v))
		return p
	}
}

// trim removes spaces and tabs from both ends.
func trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// digits reads a number without a sign. More than 19 digits may not fit.
func digits(b []byte) (v uint64, p problem) {
	if len(b) == 0 {
		return 0, syntax
	}
	if len(b) > 19 {
		return manyDigits(b)
	}
	for _, c := range b {
		d := c - '0'
		if d > 9 {
			return 0, syntax
		}
		v = v*10 + uint64(d)
	}
	return v, fine
}

func manyDigits(b []byte) (uint64, problem) {
	for _, c := range b {
		if c-'0' > 9 {
			return 0, syntax
		}
	}
	v, err := strconv.ParseUint(string(b), 10, 64)
	if err != nil {
		return 0, size
	}
	return v, fine
}

// parseUint reads decimal digits, with an optional plus sign.
func parseUint(b []byte) (uint64, problem) {
	if len(b) > 1 && b[0] == '+' {
		b = b[1:]
	} else if len(b) > 1 && b[0] == '-' {
		v, p := digits(b[1:])
		if p == fine && v > 0 {
			p = size
		}
		return 0, p
	}
	return digits(b)
}

// parseInt reads decimal digits, with an optional sign.
func parseInt(b []byte) (int64, problem) {
	negative := false
	if len(b) > 1 && (b[0] == '-' || b[0] == '+') {
		negative = b[0] == '-'
		b = b[1:]
	}
	v, p := digits(b)
	return signed(negative, v, p)
}

// parseFloat reads a decimal number, an infinity or a NaN. Other notations
// that Go accepts (hexadecimal, underscores) are not numbers here.
func parseFloat(b []byte, bits int) (float64, problem) {
	for _, c := range b {
		if c == '_' || c == 'x' || c == 'X' || c == 'p' || c == 'P' {
			return 0, syntax
		}
	}
	v, err := strconv.ParseFloat(unsafe.String(unsafe.SliceData(b), len(b)), bits)
	if err == nil {
		return v, fine
	}
	if ne, ok := err.(*strconv.NumError); ok && ne.Err == strconv.ErrRange {
		return 0, size
	}
	return 0, syntax
}

// copyString returns a copy of v in the slab's memory.
func (s *slab) copyString(v string) string {
	return s.copy(unsafe.Slice(unsafe.StringData(v), len(v)))
}

package tuple

import (
	"fmt"
	"math"
	"time"
)

// Kind returns the type of the element.
func (e Element) Kind() Kind { return e.kind }

// Descending reports whether the element is in descending order.
func (e Element) Descending() bool { return e.desc }

// Scan stores the values of a key in the variables that dst points to. A pointer
// is to an int, int64, uint64, float64, string, []byte, time.Time or [16]byte;
// nil leaves a value out. It returns ErrKey for a tuple of other types or length,
// and for an integer that does not fit.
func Scan(key string, dst ...any) error {
	all, err := Parse(key)
	if err != nil {
		return err
	}
	if len(all) != len(dst) {
		return fmt.Errorf("%w: it has %d values, %d were asked for", ErrKey, len(all), len(dst))
	}
	for i, e := range all {
		if dst[i] != nil && !e.set(dst[i]) {
			return fmt.Errorf("%w: value %d is of kind %v, which does not fit %T", ErrKey, i, e.kind, dst[i])
		}
	}
	return nil
}

// set sets the variable that a pointer points to, and reports whether it can.
func (e Element) set(dst any) bool {
	switch p := dst.(type) {
	case *int64:
		n, ok := e.int()
		*p = n
		return ok
	case *int:
		n, ok := e.int()
		*p = int(n)
		return ok && int64(int(n)) == n
	case *uint64:
		*p = e.bits
		return e.kind == KindInt && !e.negative
	case *float64:
		*p = math.Float64frombits(e.bits)
		return e.kind == KindFloat
	case *string:
		*p = e.text
		return e.kind == KindString
	case *[]byte:
		*p = []byte(e.text)
		return e.kind == KindBytes
	case *time.Time:
		*p = time.Unix(int64(e.bits), int64(e.nanos)).UTC()
		return e.kind == KindTime
	case *[16]byte:
		copy(p[:], e.text)
		return e.kind == KindUUID
	}
	return false
}

// int returns an integer, and reports whether it is one that fits.
func (e Element) int() (int64, bool) {
	if e.negative {
		return int64(-e.bits), e.bits <= 1<<63
	}
	return int64(e.bits), e.kind == KindInt && e.bits <= math.MaxInt64
}

// String returns the name of the type.
func (k Kind) String() string {
	switch k {
	case KindBytes:
		return "bytes"
	case KindString:
		return "string"
	case KindInt:
		return "integer"
	case KindFloat:
		return "float"
	case KindTime:
		return "time"
	case KindUUID:
		return "UUID"
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

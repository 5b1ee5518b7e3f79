package table

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"github.com/pando-index/pando/internal/table/cols"
)

// appendParquetText adds a value of a leaf as text.
func appendParquetText(buf []byte, t parquet.Type, v parquet.Value) []byte {
	switch k := parquetKind(t); k.Of {
	case cols.Date:
		return appendDate(buf, int64(v.Int32()))
	case cols.Timestamp:
		return appendMoment(buf, v.Int64(), k.Unit, k.UTC)
	}
	if isInterval(t) && len(v.ByteArray()) == 12 {
		return appendInterval(buf, v.ByteArray())
	}
	var logical any
	if l := t.LogicalType(); l != nil {
		logical = l.Value
	}
	switch l := logical.(type) {
	case *format.DecimalType:
		return appendDecimal(buf, parquetUnscaled(v), int(l.Scale))
	case *format.UUIDType:
		return appendUUID(buf, string(v.ByteArray()))
	case *format.TimeType:
		if v.Kind() == parquet.Int32 {
			return appendClock(buf, int64(v.Int32()), parquetUnit(l.Unit))
		}
		return appendClock(buf, v.Int64(), parquetUnit(l.Unit))
	case *format.IntType:
		if !l.IsSigned && v.Kind() == parquet.Int32 {
			return strconv.AppendUint(buf, uint64(v.Uint32()), 10)
		} else if !l.IsSigned {
			return strconv.AppendUint(buf, v.Uint64(), 10)
		}
	}
	switch v.Kind() {
	case parquet.Boolean:
		return strconv.AppendBool(buf, v.Boolean())
	case parquet.Int32:
		return strconv.AppendInt(buf, int64(v.Int32()), 10)
	case parquet.Int64:
		return strconv.AppendInt(buf, v.Int64(), 10)
	case parquet.Float:
		return strconv.AppendFloat(buf, float64(v.Float()), 'g', -1, 32)
	case parquet.Double:
		return strconv.AppendFloat(buf, v.Double(), 'g', -1, 64)
	case parquet.Int96:
		days, nanos := parquetInt96(v)
		return appendMoment(buf, days*int64(24*time.Hour)+nanos, time.Nanosecond, false)
	}
	return append(buf, v.ByteArray()...)
}

// isInterval reports whether 12 bytes of a type are an interval.
func isInterval(t parquet.Type) bool {
	c := t.ConvertedType()
	return c != nil && *c == deprecated.Interval
}

// appendInterval adds months, days and milliseconds as ISO 8601 has them: P1M2DT0.5S.
func appendInterval(buf, b []byte) []byte {
	months, days, millis := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])
	return fmt.Appendf(buf, "P%dM%dDT%sS", months, days, strconv.FormatFloat(float64(millis)/1000, 'f', -1, 64))
}

// parquetInt96 returns a timestamp of the old kind: days since 1970, and
// nanoseconds of the day.
func parquetInt96(v parquet.Value) (days, nanos int64) {
	n := v.Int96()
	const unixEpoch = 2440588 // as a Julian day
	return int64(n[2]) - unixEpoch, int64(uint64(n[1])<<32 | uint64(n[0]))
}

// parquetUnscaled returns the digits of a decimal.
func parquetUnscaled(v parquet.Value) *big.Int {
	switch v.Kind() {
	case parquet.Int32:
		return big.NewInt(int64(v.Int32()))
	case parquet.Int64:
		return big.NewInt(v.Int64())
	}
	b := v.ByteArray() // big-endian, two's complement
	n := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return n
}

// appendDecimal adds digits with a point before the last of them.
func appendDecimal(buf []byte, n *big.Int, scale int) []byte {
	if n.Sign() < 0 {
		buf = append(buf, '-')
	}
	digits := new(big.Int).Abs(n).Append(nil, 10)
	for ; scale < 0; scale++ {
		digits = append(digits, '0')
	}
	for len(digits) <= scale {
		digits = append([]byte{'0'}, digits...)
	}
	point := len(digits) - scale
	buf = append(buf, digits[:point]...)
	if scale > 0 {
		buf = append(append(buf, '.'), digits[point:]...)
	}
	return buf
}

// parquetBare reports whether a value of a leaf is a number or a truth value in
// JSON, and not a string.
func parquetBare(t parquet.Type, v parquet.Value) bool {
	if l := t.LogicalType(); l != nil {
		switch l.Value.(type) {
		case *format.DecimalType, *format.IntType:
			return true
		default:
			return false
		}
	}
	switch v.Kind() {
	case parquet.Boolean, parquet.Int32, parquet.Int64:
		return true
	case parquet.Float:
		return finite(float64(v.Float()))
	case parquet.Double:
		return finite(v.Double())
	}
	return false
}

// appendParquetJSON adds a value of a leaf as JSON.
func appendParquetJSON(buf []byte, t parquet.Type, v parquet.Value) []byte {
	if parquetBare(t, v) {
		return appendParquetText(buf, t, v)
	}
	if l := t.LogicalType(); l != nil {
		if _, ok := l.Value.(*format.JsonType); ok && utf8.Valid(v.ByteArray()) {
			return append(buf, v.ByteArray()...)
		}
	}
	return appendJSON(buf, string(appendParquetText(nil, t, v)))
}

package table

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/pando-index/pando/internal/table/cols"
)

// arrowForeign is an Arrow array that is passed on as it is.
type arrowForeign struct {
	a    arrow.Array
	uuid bool // its bytes are UUIDs
}

// arrowPlain reports whether columns of a type hold all that the type says.
func arrowPlain(t arrow.DataType) bool {
	switch t.ID() {
	case arrow.INT64, arrow.UINT64, arrow.INT32, arrow.UINT32, arrow.FLOAT64, arrow.FLOAT32, arrow.STRING:
		return true
	}
	return false
}

// arrowNested reports whether values of a type have others in them.
func arrowNested(t arrow.DataType) bool {
	switch t := t.(type) {
	case *arrow.DictionaryType:
		return arrowNested(t.ValueType)
	case arrow.ExtensionType:
		return arrowNested(t.StorageType())
	case arrow.NestedType:
		return true
	}
	return false
}

// nested returns the error for a column of values that have others in them, where a stranger sends it: few bytes may stand for
// many of them.
func nested(column string) *Error {
	return &Error{Column: column, What: "has lists or other nested values, which are no keys or values", Advice: "turn them into numbers or strings"}
}

// setArrow makes rows [i, j) of an array a column's values.
func setArrow(c *Column, a arrow.Array, i, j int) error {
	if i > j || j > a.Len() {
		return wrong("a column is shorter than its record batch")
	}
	part := array.NewSlice(a, int64(i), int64(j))
	c.Foreign = arrowForeign{part, c.Kind.Of == cols.UUID}
	if part.NullN() > 0 {
		c.PadNull(j - i)
		for k := range c.Null {
			c.Null[k] = part.IsNull(k)
		}
	}
	return nil
}

func (f arrowForeign) Len() int { return f.a.Len() }

// Pick implements cols.Foreign. Rows that follow one another stay together.
func (f arrowForeign) Pick(rows []int) cols.Foreign {
	var parts []arrow.Array
	for i := 0; i < len(rows); {
		j := i + 1
		for j < len(rows) && rows[j] == rows[j-1]+1 {
			j++
		}
		parts = append(parts, array.NewSlice(f.a, int64(rows[i]), int64(rows[j-1])+1))
		i = j
	}
	if len(parts) == 0 {
		return arrowForeign{array.NewSlice(f.a, 0, 0), f.uuid}
	}
	all, err := array.Concatenate(parts, memory.DefaultAllocator)
	if err != nil {
		panic(wrong("values of type %s cannot be picked: %v", f.a.DataType(), err))
	}
	return arrowForeign{all, f.uuid}
}

func (f arrowForeign) Kind() cols.Kind { return arrowPassedKind(f.a.DataType(), f.uuid) }

// arrowPassedKind returns the kind, common to all formats, of values of a type that
// are passed on.
func arrowPassedKind(t arrow.DataType, uuid bool) cols.Kind {
	if uuid {
		return cols.Kind{Of: cols.UUID}
	}
	for bits, integer := range arrowIntegers {
		if t.ID() == integer.ID() {
			return cols.Kind{Of: cols.Integer, Bits: bits}
		}
	}
	switch t.ID() {
	case arrow.DICTIONARY:
		return arrowPassedKind(t.(*arrow.DictionaryType).ValueType, false)
	case arrow.DECIMAL32, arrow.DECIMAL64, arrow.DECIMAL128, arrow.DECIMAL256:
		if d := t.(arrow.DecimalType); d.GetPrecision() > widest || d.GetScale() < 0 {
			return cols.Kind{}
		} else if d.GetPrecision() > mostScale {
			return cols.Kind{Of: cols.Wide, Scale: int(d.GetScale())}
		} else if d.GetScale() <= mostScale {
			return cols.Kind{Of: cols.Decimal, Scale: int(d.GetScale()), Bits: decimalBits(d.GetPrecision())}
		}
	}
	return arrowKind(t)
}

// arrowReadKind returns the kind of the values of a field that is read.
func arrowReadKind(f arrow.Field) cols.Kind {
	if isArrowUUID(f) {
		return cols.Kind{Of: cols.UUID}
	}
	return arrowKind(plainArrow(f.Type))
}

// plainArrow returns the type of the values, where they are those of a dictionary.
func plainArrow(t arrow.DataType) arrow.DataType {
	if d, ok := t.(*arrow.DictionaryType); ok {
		return d.ValueType
	}
	return t
}

// arrowKind returns the kind of values of a type, beyond the type they are read as.
func arrowKind(t arrow.DataType) cols.Kind {
	switch t := t.(type) {
	case *arrow.BooleanType:
		return cols.Kind{Of: cols.Boolean}
	case *arrow.Date32Type:
		return cols.Kind{Of: cols.Date}
	case *arrow.Date64Type: // whole days they should be, but those of JavaScript are not
		return cols.Kind{Of: cols.Timestamp, Unit: time.Millisecond}
	case arrow.DecimalType:
		if t.GetScale() > 0 && t.GetScale() <= mostScale {
			return cols.Kind{Of: cols.Decimal, Scale: int(t.GetScale())}
		}
	case *arrow.Time32Type:
		return cols.Kind{Of: cols.Time, Unit: t.Unit.Multiplier()}
	case *arrow.Time64Type:
		return cols.Kind{Of: cols.Time, Unit: t.Unit.Multiplier()}
	case *arrow.BinaryType, *arrow.LargeBinaryType, *arrow.BinaryViewType, *arrow.FixedSizeBinaryType:
		return cols.Kind{Of: cols.Binary}
	case *arrow.TimestampType:
		return cols.Kind{Of: cols.Timestamp, Unit: t.Unit.Multiplier(), UTC: t.TimeZone != ""}
	}
	return cols.Kind{}
}

func (f arrowForeign) Int(i int) int64 {
	switch a := f.a.(type) {
	case *array.Boolean:
		if a.Value(i) {
			return 1
		}
		return 0
	case *array.Date32:
		return int64(a.Value(i))
	case *array.Date64:
		return int64(a.Value(i))
	case *array.Dictionary:
		return arrowForeign{a: a.Dictionary()}.Int(a.GetValueIndex(i))
	}
	return arrowInt(f.a, i)
}

// arrowInt returns a number of an array of them.
func arrowInt(a arrow.Array, i int) int64 {
	switch a := a.(type) {
	case *array.Timestamp:
		return int64(a.Value(i))
	case *array.Time32:
		return int64(a.Value(i))
	case *array.Time64:
		return int64(a.Value(i))
	case *array.Int8:
		return int64(a.Value(i))
	case *array.Int16:
		return int64(a.Value(i))
	case *array.Int32:
		return int64(a.Value(i))
	case *array.Int64:
		return a.Value(i)
	case *array.Uint8:
		return int64(a.Value(i))
	case *array.Uint16:
		return int64(a.Value(i))
	case *array.Uint32:
		return int64(a.Value(i))
	case *array.Uint64:
		return int64(a.Value(i))
	}
	return arrowUnscaled(a, i).Int64()
}

// fitDigits returns an error if a decimal has more digits than its own type says, which
// Arrow does not prevent: others take the type at its word.
func (f arrowForeign) fitDigits(column string) error {
	precision := plainArrow(f.a.DataType()).(arrow.DecimalType).GetPrecision()
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(precision)), nil)
	for i := range f.a.Len() {
		if f.a.IsNull(i) {
			continue
		}
		a, at := f.a, i
		if d, ok := a.(*array.Dictionary); ok {
			a, at = d.Dictionary(), d.GetValueIndex(i)
		}
		if a.IsValid(at) && arrowUnscaled(a, at).CmpAbs(limit) >= 0 {
			return &Error{Column: column, What: fmt.Sprintf("a decimal has more than the %d digits of its type", precision),
				Advice: "give it a type of more digits where it comes from, or leave the column out"}
		}
	}
	return nil
}

// AppendBytes implements cols.Foreign.
func (f arrowForeign) AppendBytes(buf []byte, i int) []byte {
	switch a := f.a.(type) {
	case array.ExtensionArray:
		return arrowForeign{a: a.Storage()}.AppendBytes(buf, i)
	case *array.Dictionary:
		return arrowForeign{a: a.Dictionary()}.AppendBytes(buf, a.GetValueIndex(i))
	case *array.Decimal128, *array.Decimal256, *array.Decimal64, *array.Decimal32:
		return appendWide(buf, arrowUnscaled(a, i))
	}
	return append(buf, f.a.(texts).Value(i)...)
}

func (f arrowForeign) AppendText(buf []byte, i int) []byte {
	if f.uuid {
		return appendUUID(buf, string(f.AppendBytes(nil, i)))
	}
	switch a := f.a.(type) {
	case interface{ Value(int) string }:
		return append(buf, a.Value(i)...)
	case texts: // bytes as they are
		return append(buf, a.Value(i)...)
	case *array.Dictionary:
		return arrowForeign{a: a.Dictionary()}.AppendText(buf, a.GetValueIndex(i))
	case *array.Decimal128, *array.Decimal256, *array.Decimal64, *array.Decimal32:
		return appendDecimal(buf, arrowUnscaled(a, i), int(a.DataType().(arrow.DecimalType).GetScale()))
	}
	switch k := f.Kind(); k.Of {
	case cols.Boolean:
		return strconv.AppendBool(buf, f.Int(i) != 0)
	case cols.Date:
		return appendDate(buf, f.Int(i))
	case cols.Timestamp:
		return appendMoment(buf, f.Int(i), k.Unit, k.UTC)
	case cols.Time:
		return appendClock(buf, f.Int(i), k.Unit)
	}
	if nested, ok := f.a.DataType().(arrow.NestedType); ok && nested.ID() != arrow.EXTENSION {
		return f.AppendJSON(buf, i)
	}
	return append(buf, f.a.ValueStr(i)...)
}

func (f arrowForeign) AppendJSON(buf []byte, i int) []byte {
	if d, ok := f.a.(*array.Dictionary); ok {
		return arrowForeign{a: d.Dictionary()}.AppendJSON(buf, d.GetValueIndex(i))
	}
	switch f.a.DataType().ID() {
	case arrow.BOOL, arrow.INT8, arrow.INT16, arrow.UINT8, arrow.UINT16, arrow.DECIMAL32, arrow.DECIMAL64, arrow.DECIMAL128, arrow.DECIMAL256:
		return f.AppendText(buf, i)
	}
	if _, nested := f.a.DataType().(arrow.NestedType); nested {
		if text, err := json.Marshal(f.a.GetOneForMarshal(i)); err == nil {
			return append(buf, text...)
		}
		return appendJSON(buf, f.a.ValueStr(i))
	}
	return appendJSON(buf, string(f.AppendText(nil, i)))
}

package table

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// arrowType returns the type that an Arrow type is mapped to.
func arrowType(t arrow.DataType) (Type, error) {
	switch t.ID() {
	case arrow.INT8, arrow.INT16, arrow.INT32, arrow.DATE32, arrow.TIME32:
		return Int32, nil
	case arrow.UINT8, arrow.UINT16, arrow.UINT32:
		return Uint32, nil
	case arrow.INT64, arrow.DATE64, arrow.TIME64, arrow.TIMESTAMP, arrow.DURATION:
		return Int64, nil
	case arrow.UINT64:
		return Uint64, nil
	case arrow.FLOAT16, arrow.FLOAT32:
		return Float32, nil
	case arrow.FLOAT64:
		return Float64, nil
	case arrow.STRING, arrow.LARGE_STRING, arrow.BINARY, arrow.LARGE_BINARY, arrow.STRING_VIEW,
		arrow.BINARY_VIEW, arrow.FIXED_SIZE_BINARY, arrow.BOOL, arrow.NULL:
		return String, nil
	case arrow.DICTIONARY:
		if v := t.(*arrow.DictionaryType).ValueType; v.ID() != arrow.DICTIONARY {
			return arrowType(v)
		}
	case arrow.DECIMAL32, arrow.DECIMAL64, arrow.DECIMAL128, arrow.DECIMAL256:
		if s := t.(arrow.DecimalType).GetScale(); s >= 0 && s <= mostScale {
			return Int64, nil
		}
	case arrow.EXTENSION:
		return arrowType(t.(arrow.ExtensionType).StorageType())
	}
	return 0, fmt.Errorf("values of type %s cannot be read; turn them into numbers or strings, or leave the column out", t)
}

// appendArrow adds values [i, j) of an array whose type is mapped to the column's.
func appendArrow(c *Column, a arrow.Array, i, j int) error {
	if i > j || j > a.Len() {
		return wrong("a column is shorter than its record batch")
	}
	n := c.Len()
	if err := appendArrowValues(c, a, i, j); err != nil {
		return err
	}
	if a.NullN() == 0 {
		return nil
	}
	for k := i; k < j; k++ {
		if a.IsNull(k) {
			setNull(c, n+k-i)
		}
	}
	return nil
}

// setNull makes a value that is there a null.
func setNull(c *Column, i int) {
	c.PadNull(c.Len())
	c.Null[i] = true
	switch c.Type {
	case Int64:
		c.Int64[i] = 0
	case Uint64:
		c.Uint64[i] = 0
	case Int32:
		c.Int32[i] = 0
	case Uint32:
		c.Uint32[i] = 0
	case Float64:
		c.Float64[i] = 0
	case Float32:
		c.Float32[i] = 0
	default:
		c.String[i] = ""
	}
}

// appendArrowValues adds values and does not look for nulls.
func appendArrowValues(c *Column, a arrow.Array, i, j int) error {
	switch a := a.(type) {
	case *array.Int64:
		c.Int64 = append(c.Int64, a.Int64Values()[i:j]...)
	case *array.Uint64:
		c.Uint64 = append(c.Uint64, a.Uint64Values()[i:j]...)
	case *array.Int32:
		c.Int32 = append(c.Int32, a.Int32Values()[i:j]...)
	case *array.Uint32:
		c.Uint32 = append(c.Uint32, a.Uint32Values()[i:j]...)
	case *array.Float64:
		c.Float64 = append(c.Float64, a.Float64Values()[i:j]...)
	case *array.Float32:
		c.Float32 = append(c.Float32, a.Float32Values()[i:j]...)
	case *array.Int8:
		c.Int32 = widen(c.Int32, a.Int8Values()[i:j])
	case *array.Int16:
		c.Int32 = widen(c.Int32, a.Int16Values()[i:j])
	case *array.Uint8:
		c.Uint32 = widen(c.Uint32, a.Uint8Values()[i:j])
	case *array.Uint16:
		c.Uint32 = widen(c.Uint32, a.Uint16Values()[i:j])
	case *array.Date32:
		c.Int32 = widen(c.Int32, a.Date32Values()[i:j])
	case *array.Time32:
		c.Int32 = widen(c.Int32, a.Time32Values()[i:j])
	case *array.Date64:
		c.Int64 = widen(c.Int64, a.Date64Values()[i:j])
	case *array.Time64:
		c.Int64 = widen(c.Int64, a.Time64Values()[i:j])
	case *array.Timestamp:
		c.Int64 = widen(c.Int64, a.TimestampValues()[i:j])
	case *array.Duration:
		c.Int64 = widen(c.Int64, a.DurationValues()[i:j])
	case *array.Float16:
		for _, v := range a.Values()[i:j] {
			c.Float32 = append(c.Float32, v.Float32())
		}
	case *array.Decimal128, *array.Decimal256, *array.Decimal64, *array.Decimal32:
		return appendArrowDecimals(c, a, i, j)
	default:
		return appendArrowText(c, a, i, j)
	}
	return nil
}

// appendArrowDecimals adds decimals without their points.
func appendArrowDecimals(c *Column, a arrow.Array, i, j int) error {
	for k := i; k < j; k++ {
		if a.IsNull(k) {
			c.Int64 = append(c.Int64, 0)
			continue
		}
		n := arrowUnscaled(a, k)
		if !n.IsInt64() {
			return &Error{Column: c.Name, What: errWide.Error(), Advice: "turn them into strings, or leave the column out"}
		}
		c.Int64 = append(c.Int64, n.Int64())
	}
	return nil
}

// arrowUnscaled returns a decimal without its point.
func arrowUnscaled(a arrow.Array, i int) *big.Int {
	switch a := a.(type) {
	case *array.Decimal32:
		return big.NewInt(int64(a.Value(i)))
	case *array.Decimal64:
		return big.NewInt(int64(a.Value(i)))
	case *array.Decimal128:
		return a.Value(i).BigInt()
	}
	return a.(*array.Decimal256).Value(i).BigInt()
}

// widen appends values of a narrower or equal type.
func widen[W int32 | uint32 | int64, N ~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~int64](wide []W, narrow []N) []W {
	wide = slices.Grow(wide, len(narrow))
	for _, v := range narrow {
		wide = append(wide, W(v))
	}
	return wide
}

// texts are the arrays whose values are byte strings.
type texts interface{ Value(int) []byte }

// appendArrowText adds strings. They are copied: the array's memory is not
// the column's to keep.
func appendArrowText(c *Column, a arrow.Array, i, j int) error {
	var text slab
	for k := i; k < j; k++ {
		s := ""
		if a.IsNull(k) {
			c.String = append(c.String, s)
			continue
		}
		switch a := a.(type) {
		case interface{ Value(int) string }:
			s = text.copyString(a.Value(k))
		case texts:
			s = text.copy(a.Value(k))
		case *array.Boolean:
			s = truth(a.Value(k))
		case *array.Null:
		default:
			return wrong("an array of type %s where another was announced", a.DataType())
		}
		c.String = append(c.String, s)
	}
	return nil
}

func truth(v bool) string {
	if v {
		return "true"
	}
	return "false"
}

// appendDictionary adds the values that codes stand for.
func appendDictionary(c *Column, a *array.Dictionary, values *Column, i, j int) error {
	for k := i; k < j; k++ {
		if a.IsNull(k) {
			c.AppendNull()
			continue
		}
		code := a.GetValueIndex(k)
		if code < 0 || code >= values.Len() {
			return wrong("a dictionary code is beyond its dictionary")
		}
		appendFrom(c, values, code)
	}
	c.Seal()
	return nil
}

// appendFrom adds value i of a column of the same type.
func appendFrom(c *Column, from *Column, i int) {
	if from.IsNull(i) {
		c.AppendNull()
		return
	}
	switch c.Type {
	case Int64:
		c.Int64 = append(c.Int64, from.Int64[i])
	case Uint64:
		c.Uint64 = append(c.Uint64, from.Uint64[i])
	case Int32:
		c.Int32 = append(c.Int32, from.Int32[i])
	case Uint32:
		c.Uint32 = append(c.Uint32, from.Uint32[i])
	case Float64:
		c.Float64 = append(c.Float64, from.Float64[i])
	case Float32:
		c.Float32 = append(c.Float32, from.Float32[i])
	default:
		c.String = append(c.String, from.String[i])
	}
}

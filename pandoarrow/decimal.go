package pandoarrow

import (
	"fmt"
	"math"
	"math/big"
	"reflect"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Digits returns decimals or integers as the whole numbers that an index of decimals
// with scale digits behind the point has as its keys, in an Int64 array: of scale 2,
// 1.5 is 150. So an index that was built from decimals is asked:
//
//	ix, err := pandoarrow.Freeze[int64, string](prices, names) // prices are decimal128(10, 2)
//	keys, err := pandoarrow.Digits(asked, 2, mem)              // whatever their own scale is
//	found, hits, err := pandoarrow.Get(ix, keys, mem)
//
// A number with more digits behind the point, or of more than 64 bits, becomes null:
// such a key is in no index. Any other type of array results in ErrType. The caller
// must release the array.
func Digits(numbers arrow.Array, scale int32, mem memory.Allocator) (arrow.Array, error) {
	numbers = plain(numbers)
	own := int32(0)
	if t, ok := numbers.DataType().(arrow.DecimalType); ok {
		own = t.GetScale()
	} else if c, _ := arrowClass(numbers.DataType()); c != signed && c != unsigned || !isInteger(numbers.DataType()) {
		return nil, fmt.Errorf("%w: an Arrow array of type %s has neither decimals nor integers", ErrType, numbers.DataType())
	}
	b := array.NewInt64Builder(allocator(mem))
	defer b.Release()
	b.Reserve(numbers.Len())
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(scale-own, own-scale))), nil)
	rest := new(big.Int)
	for i := range numbers.Len() {
		if numbers.IsNull(i) {
			b.AppendNull()
			continue
		}
		n, ok := digitsAt(numbers, i)
		switch {
		case ok && own == scale:
			b.Append(n)
			continue
		case own == scale:
			b.AppendNull()
			continue
		}
		wide := wideAt(numbers, i)
		if own < scale {
			wide.Mul(wide, power)
		} else if wide.QuoRem(wide, power, rest); rest.Sign() != 0 {
			b.AppendNull()
			continue
		}
		if wide.IsInt64() {
			b.Append(wide.Int64())
		} else {
			b.AppendNull()
		}
	}
	return b.NewArray(), nil
}

// isInteger reports whether a type is one of integers, and not of dates or times.
func isInteger(t arrow.DataType) bool { return arrow.IsInteger(t.ID()) }

// isDecimal reports whether a type is one of decimals.
func isDecimal(t arrow.DataType) bool { return arrow.IsDecimal(t.ID()) }

// matchStored is match for values that an index stores or returns: decimals are
// integers there, without their point.
func matchStored[T any](t arrow.DataType) error { return matchStoredType(reflect.TypeFor[T](), t) }

func matchStoredType(of reflect.Type, t arrow.DataType) error {
	if c, width := classOfType(of); isDecimal(t) && c == signed {
		if width == 8 || width == 4 && t.(arrow.DecimalType).GetPrecision() <= 9 {
			return nil
		}
	}
	return matchType(of, t)
}

// stored is view for values that an index stores.
func stored[T any](a arrow.Array) ([]T, error) {
	if !isDecimal(a.DataType()) {
		return view[T](a)
	}
	all, err := wholeNumbers(a, reflect.TypeFor[T]())
	if err != nil {
		return nil, err
	}
	if _, width := classOf[T](); width == 8 {
		return recast[T](all), nil
	}
	short := make([]int32, len(all))
	for i, n := range all {
		short[i] = int32(n)
	}
	return recast[T](short), nil
}

// wholeNumbers returns decimals without their point, as a Go type holds them.
func wholeNumbers(a arrow.Array, of reflect.Type) ([]int64, error) {
	if err := matchStoredType(of, a.DataType()); err != nil {
		return nil, err
	}
	_, width := classOfType(of)
	all := make([]int64, a.Len())
	for i := range all {
		if a.IsNull(i) {
			continue
		}
		n, ok := digitsAt(a, i)
		if !ok || width == 4 && n != int64(int32(n)) {
			return nil, fmt.Errorf("%w: row %d: %s has more digits than %s holds", ErrType, i, a.ValueStr(i), of)
		}
		all[i] = n
	}
	return all, nil
}

// digitsAt returns a decimal without its point, or an integer, and whether 64 bits
// hold it.
func digitsAt(a arrow.Array, i int) (int64, bool) {
	switch a := a.(type) {
	case *array.Decimal32:
		return int64(a.Value(i)), true
	case *array.Decimal64:
		return int64(a.Value(i)), true
	case *array.Decimal128:
		n := a.Value(i)
		return int64(n.LowBits()), n.HighBits() == int64(n.LowBits())>>63
	}
	n := wideAt(a, i)
	return n.Int64(), n.IsInt64()
}

// wideAt is digitsAt for numbers of any size.
func wideAt(a arrow.Array, i int) *big.Int {
	switch a := a.(type) {
	case *array.Decimal32:
		return big.NewInt(int64(a.Value(i)))
	case *array.Decimal64:
		return big.NewInt(int64(a.Value(i)))
	case *array.Decimal128:
		return a.Value(i).BigInt()
	case *array.Decimal256:
		return a.Value(i).BigInt()
	case *array.Int8:
		return big.NewInt(int64(a.Value(i)))
	case *array.Int16:
		return big.NewInt(int64(a.Value(i)))
	case *array.Int32:
		return big.NewInt(int64(a.Value(i)))
	case *array.Int64:
		return big.NewInt(a.Value(i))
	case *array.Uint8:
		return big.NewInt(int64(a.Value(i)))
	case *array.Uint16:
		return big.NewInt(int64(a.Value(i)))
	case *array.Uint32:
		return big.NewInt(int64(a.Value(i)))
	}
	return new(big.Int).SetUint64(a.(*array.Uint64).Value(i))
}

// buildDecimals makes an array of decimals of numbers without their points, which at
// returns.
func buildDecimals(at func(i int) int64, found []bool, t arrow.DataType, mem memory.Allocator) (arrow.Array, error) {
	b := array.NewBuilder(mem, t)
	defer b.Release()
	b.Reserve(len(found))
	most := int64(math.MaxInt64)
	if p := t.(arrow.DecimalType).GetPrecision(); p < 19 {
		most = int64(math.Pow10(int(p))) - 1
	}
	for i := range found {
		if !found[i] {
			b.AppendNull()
			continue
		}
		n := at(i)
		if n > most || n < -most && most < math.MaxInt64 {
			return nil, fmt.Errorf("%w: %d has more digits than %s", ErrType, n, t)
		}
		switch b := b.(type) {
		case *array.Decimal32Builder:
			b.Append(decimal.Decimal32(n))
		case *array.Decimal64Builder:
			b.Append(decimal.Decimal64(n))
		case *array.Decimal128Builder:
			b.Append(decimal128.FromI64(n))
		case *array.Decimal256Builder:
			b.Append(decimal256.FromI64(n))
		}
	}
	return b.NewArray(), nil
}

package table

import (
	"errors"
	"math/big"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/pando-index/pando/internal/table/cols"
)

// mostScale is the most digits that a decimal may have behind its point: it is kept as
// an int64.
const mostScale = 18

// decimalBits returns in how many bits Parquet has decimals of the given digits.
func decimalBits(digits int32) int {
	if digits <= mostShort {
		return 32
	}
	return 64
}

// mostShort is the most digits of decimals that Parquet has in 32 bits.
const mostShort = 9

// widest is the most digits of decimals that are passed on as such.
const widest = 38

// appendWide adds a number of at most 38 digits as 16 bytes, the highest first.
func appendWide(buf []byte, n *big.Int) []byte {
	if n.Sign() < 0 {
		n = new(big.Int).Add(n, new(big.Int).Lsh(big.NewInt(1), 128))
	}
	var b [16]byte
	return append(buf, n.FillBytes(b[:])...)
}

// errWide is the error for a decimal that an int64 cannot hold.
var errWide = errors.New("a decimal has more digits than 64 bits hold")

// parquetFailure says why a column cannot be read.
func parquetFailure(column string, err error) *Error {
	if errors.Is(err, errWide) {
		return &Error{Column: column, What: err.Error(), Advice: "turn them into strings, or leave the column out"}
	}
	return &Error{Column: column, What: "the Parquet file is damaged", Err: err}
}

// parquetDecimal returns a type's description of its decimals, nil if it has none.
func parquetDecimal(t parquet.Type) *format.DecimalType {
	l := t.LogicalType()
	if l == nil {
		return nil
	}
	d, _ := l.Value.(*format.DecimalType)
	return d
}

// parquetDigits reports whether a type has decimals that are kept as bytes. Some
// programs write all of theirs so, however few digits they have.
func parquetDigits(t parquet.Type) bool {
	return parquetDecimal(t) != nil && (t.Kind() == parquet.ByteArray || t.Kind() == parquet.FixedLenByteArray)
}

// parquetReadKind returns the kind of a column that is read. Its decimals may have been
// declared with more digits than they have; those that have them are refused when they
// come.
func parquetReadKind(c *parquet.Column) cols.Kind {
	if d := parquetDecimal(c.Type()); d != nil && d.Scale > 0 {
		return cols.Kind{Of: cols.Decimal, Scale: int(d.Scale)}
	} else if d != nil {
		return cols.Kind{} // integers
	}
	if k := (&parquetForeign{column: c}).Kind(); k.Of != cols.Integer {
		return k
	}
	return cols.Kind{}
}

// someDecimals reads decimals that are kept as bytes.
func (p *parquetColumn) someDecimals(into []int64) error {
	p.room = append(p.room[:0], make([]string, len(into))...)
	if err := p.someText(p.room); err != nil {
		return err
	}
	for i, b := range p.room {
		var ok bool
		if into[i], ok = bigEndian(b); !ok {
			return errWide
		}
	}
	return nil
}

// bigEndian returns the number that bytes stand for, the first of which has the sign,
// and false if 64 bits do not hold it.
func bigEndian(b string) (v int64, ok bool) {
	if len(b) == 0 {
		return 0, true
	}
	if b[0] >= 0x80 {
		v = -1
	}
	for i := range len(b) {
		next := v<<8 | int64(b[i])
		if next>>8 != v {
			return 0, false
		}
		v = next
	}
	return v, true
}

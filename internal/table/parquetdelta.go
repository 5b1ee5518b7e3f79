package table

import (
	"encoding/binary"
	"errors"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/format"
)

// parquetDeltas rewrites the pages of a column of 32 bits that have differences
// (DELTA_BINARY_PACKED) as pages of values.
//
// Programs that compute with 64 bits, as DuckDB does, write differences of up to 33
// bits, and 4294966000 as the first value of a column without signs. The library takes
// neither for a column of 32 bits, though it is clear what they stand for.
type parquetDeltas struct {
	repeated, optional bool // the column has such levels before its values
	room               []byte
}

// newParquetDeltas returns a rewriter of the pages of a leaf, nil if they can be read
// as they are.
func newParquetDeltas(leaf *parquet.Column) *parquetDeltas {
	if leaf.Type().Kind() != parquet.Int32 {
		return nil
	}
	return &parquetDeltas{repeated: leaf.MaxRepetitionLevel() > 0, optional: leaf.MaxDefinitionLevel() > 0}
}

var errDeltas = errors.New("a page of differences is cut short")

// rewrite returns a page, and changes its header, if it has differences.
func (d *parquetDeltas) rewrite(h *format.PageHeader, body []byte) ([]byte, error) {
	var encoding *format.Encoding
	levels, values := 0, 0
	switch v1, v2 := &h.DataPageHeader, &h.DataPageHeaderV2; {
	case h.Type == format.DataPage && v1.Valid && v1.V.Encoding == format.DeltaBinaryPacked:
		encoding, values = &v1.V.Encoding, int(v1.V.NumValues)
		for _, there := range []bool{d.repeated, d.optional} {
			if !there {
				continue
			}
			if len(body) < levels+4 {
				return nil, errDeltas
			}
			levels += 4 + int(binary.LittleEndian.Uint32(body[levels:]))
		}
	case h.Type == format.DataPageV2 && v2.Valid && v2.V.Encoding == format.DeltaBinaryPacked:
		encoding, values = &v2.V.Encoding, int(v2.V.NumValues)
		levels = int(v2.V.RepetitionLevelsByteLength) + int(v2.V.DefinitionLevelsByteLength)
	default:
		return body, nil
	}
	if levels < 0 || levels > len(body) || !fewDeltas(body[levels:], values) {
		return nil, errDeltas
	}
	numbers, err := new(delta.BinaryPackedEncoding).DecodeInt64(nil, body[levels:])
	if err != nil {
		return nil, err
	}
	d.room = append(d.room[:0], body[:levels]...)
	for _, v := range numbers {
		d.room = binary.LittleEndian.AppendUint32(d.room, uint32(v))
	}
	*encoding = format.Plain
	return d.room, nil
}

// fewDeltas reports whether differences say that they are no more than a number, which
// has been checked against the memory that may be taken.
func fewDeltas(b []byte, most int) bool {
	for range 2 { // size of a block, its parts
		_, n := binary.Uvarint(b)
		if n <= 0 {
			return false
		}
		b = b[n:]
	}
	total, n := binary.Uvarint(b)
	return n > 0 && total <= uint64(most)
}

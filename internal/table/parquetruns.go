package table

import (
	"encoding/binary"
	"math/bits"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// parquetLevels is the greatest repetition level and definition level of a column: where one
// is 0, pages have no such levels.
type parquetLevels [2]int

func levelsOf(leaf *parquet.Column) parquetLevels {
	return parquetLevels{leaf.MaxRepetitionLevel(), leaf.MaxDefinitionLevel()}
}

// checkRuns checks how many values the runs of a page stand for: few bytes may stand for
// billions, and the library makes room for as many. The library finds other faults of a
// page.
func (p *parquetStream) checkRuns(h *format.PageHeader, body []byte) error {
	var encoding format.Encoding
	values := 0
	var size [2]int // of levels
	levels := [2]format.Encoding{format.RLE, format.RLE}
	switch v1, v2 := &h.DataPageHeader, &h.DataPageHeaderV2; {
	case h.Type == format.DataPage && v1.Valid:
		encoding, values, levels = v1.V.Encoding, int(v1.V.NumValues), [2]format.Encoding{v1.V.RepetitionLevelEncoding, v1.V.DefinitionLevelEncoding}
	case h.Type == format.DataPageV2 && v2.Valid:
		encoding, values = v2.V.Encoding, int(v2.V.NumValues)
		size = [2]int{int(v2.V.RepetitionLevelsByteLength), int(v2.V.DefinitionLevelsByteLength)}
	case h.Type == format.DictionaryPage && h.DictionaryPageHeader.Valid && p.limit.in.most > 0:
		//lint:ignore SA1019 older files have it
		if e := h.DictionaryPageHeader.V.Encoding; e != format.Plain && e != format.PlainDictionary { // there is no other
			return wrong("the encoding of a dictionary cannot be right; write its words plain")
		}
		return nil
	default:
		return nil
	}
	for i, most := range p.levels {
		if h.Type == format.DataPage && most > 0 {
			if len(body) < 4 {
				return nil
			}
			size[i], body = int(binary.LittleEndian.Uint32(body)), body[4:]
		}
		if size[i] < 0 || size[i] > len(body) {
			return nil
		}
		if most > 0 && levels[i] == format.RLE {
			if err := p.limit.check(valuesIn(body[:size[i]], bits.Len(uint(most)))); err != nil {
				return err
			}
		}
		body = body[size[i]:]
	}
	//lint:ignore SA1019 older files have it
	dictionary := encoding == format.RLEDictionary || encoding == format.PlainDictionary
	stranger := p.limit.in.most > 0
	switch {
	case dictionary && len(body) > 0 && stranger:
		return p.limit.check(4 * valuesIn(body[1:], int(body[0])))
	case dictionary && len(body) > 0:
		return p.limit.check(valuesIn(body[1:], int(body[0])))
	case stranger && encoding == format.DeltaByteArray: // each may begin as the one before, however long that is
		return wrong("pages of strings without their beginnings (DELTA_BYTE_ARRAY) cannot be read; write them plain, or with a dictionary")
	case stranger && len(body) > 0 && (encoding == format.DeltaBinaryPacked || encoding == format.DeltaLengthByteArray):
		if !fewDeltas(body, values) {
			return errDeltas
		}
		return p.limit.check(8 * int64(values))
	case encoding == format.RLE && len(body) > 4: // yes and no
		return p.limit.check(valuesIn(body[4:], 1))
	}
	return nil
}

// valuesIn returns how many values of width bits runs stand for, up to the first that
// is not whole, with that.
func valuesIn(runs []byte, width int) (n int64) {
	const many = 1 << 40 // more than any limit
	for len(runs) > 0 && n < many {
		head, bytes := binary.Uvarint(runs)
		if bytes <= 0 {
			break
		}
		runs = runs[bytes:]
		count, size := int64(min(head>>1, many)), int64(width+7)/8
		if head&1 != 0 { // groups of eight values, each in its bits
			n, size = n+8*count, count*int64(width)
		} else {
			n += count
		}
		if size > int64(len(runs)) {
			break
		}
		runs = runs[size:]
	}
	return n
}

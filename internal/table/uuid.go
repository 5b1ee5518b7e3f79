package table

import (
	"encoding/hex"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/parquet-go/parquet-go"

	"github.com/pando-index/pando/internal/table/cols"
)

// appendUUID adds 16 bytes as 8-4-4-4-12 hexadecimal digits. Others, which only a
// damaged file has, it adds as they are.
func appendUUID(buf []byte, s string) []byte {
	if len(s) != 16 {
		return append(buf, s...)
	}
	b := []byte(s)
	for i, part := range [][]byte{b[:4], b[4:6], b[6:8], b[8:10], b[10:]} {
		if i > 0 {
			buf = append(buf, '-')
		}
		buf = hex.AppendEncode(buf, part)
	}
	return buf
}

// parseUUID reads 8-4-4-4-12 hexadecimal digits, of either case, also without the
// hyphens or in braces.
func parseUUID(b []byte) (id [16]byte, ok bool) {
	if n := len(b); n > 1 && b[0] == '{' && b[n-1] == '}' {
		b = b[1 : n-1]
	}
	var digits [32]byte
	switch len(b) {
	case 32:
		copy(digits[:], b)
	case 36:
		if b[8] != '-' || b[13] != '-' || b[18] != '-' || b[23] != '-' {
			return id, false
		}
		n := 0
		for _, part := range [][]byte{b[:8], b[9:13], b[14:18], b[19:23], b[24:]} {
			n += copy(digits[n:], part)
		}
	default:
		return id, false
	}
	_, err := hex.Decode(id[:], digits[:])
	return id, err == nil
}

// ParseUUID returns the 16 bytes of a UUID as a string, which is how columns have them.
func ParseUUID(text string) (string, bool) {
	id, ok := parseUUID([]byte(text))
	return string(id[:]), ok
}

// isUUID reports whether a column that is to be written has UUIDs and is none of Arrow's
// own extension types, which say so themselves.
func isUUID(f Field) bool {
	switch native := f.Native.(type) {
	case arrow.ExtensionType:
		return false
	case *parquet.Column:
		return (&parquetForeign{column: native}).Kind().Of == cols.UUID
	}
	return f.Kind.Of == cols.UUID
}

// Arrow's metadata of fields that have UUIDs, whether their type is one of those
// that its library was told of or not.
const (
	arrowExtension = "ARROW:extension:name"
	arrowMetadata  = "ARROW:extension:metadata"
	arrowUUID      = "arrow.uuid"
)

// isArrowUUID reports whether a field has UUIDs.
func isArrowUUID(f arrow.Field) bool {
	if x, ok := f.Type.(arrow.ExtensionType); ok {
		return x.ExtensionName() == arrowUUID
	}
	fixed, ok := f.Type.(*arrow.FixedSizeBinaryType)
	name, _ := f.Metadata.GetValue(arrowExtension)
	return ok && fixed.ByteWidth == 16 && name == arrowUUID
}

package table

import (
	"encoding/binary"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/pando-index/pando/internal/table/cols"
)

// parquetTail writes a Parquet file, but holds its end back: only when all values
// have been seen is it known which columns may be called UTF-8. Other programs
// refuse a file that says so of bytes that are not.
type parquetTail struct {
	w    io.Writer
	hold bool
	held []byte
}

func (t *parquetTail) Write(b []byte) (int, error) {
	if !t.hold {
		return t.w.Write(b)
	}
	t.held = append(t.held, b...)
	return len(b), nil
}

// finish writes the end, in which leaves of the given numbers are plain bytes.
func (t *parquetTail) finish(leaves map[int]bool) error {
	const tail = 8 // length of the footer, magic number
	any := false
	for _, is := range leaves {
		any = any || is
	}
	if !any {
		_, err := t.w.Write(t.held)
		return err
	}
	if len(t.held) < tail {
		return errors.New("the writer has written no footer")
	}
	n := int(binary.LittleEndian.Uint32(t.held[len(t.held)-tail:]))
	start := len(t.held) - tail - n
	meta := new(format.FileMetaData)
	if start < 0 {
		return errors.New("the writer has written no footer")
	}
	if _, err := parquetDecode(t.held[start:start+n], meta, 0); err != nil {
		return err
	}
	for i, e := range parquetElements(meta) {
		if leaves[i] {
			e.ConvertedType.Reset()
			e.LogicalType = format.LogicalType{}
		}
	}
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), meta)
	if err != nil {
		return err
	}
	end := append(t.held[:start:start], footer...)
	end = binary.LittleEndian.AppendUint32(end, uint32(len(footer)))
	_, err = t.w.Write(append(end, parquetMagic...))
	return err
}

// hasBytes reports whether a column of strings has one that is not UTF-8.
func hasBytes(c *Column) bool {
	if c.Type != String || c.Form == Token || c.Kind.Of == cols.UUID {
		return false
	}
	for i := range c.Len() {
		if !c.IsNull(i) && !utf8.ValidString(textOf(c, i)) {
			return true
		}
	}
	return false
}

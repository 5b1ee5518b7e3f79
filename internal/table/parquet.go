package table

import (
	"io"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/pando-index/pando/internal/par"
)

// parquetAhead is the number of batches that a row group may be ahead of the
// reader: a million rows, the usual size of a row group, so that two of them
// can be read at the same time.
const parquetAhead = 32

// parquetSource reads row groups of a Parquet file, several at a time, and
// only their wanted columns. A field of a group is named with a dot, as in
// place.lat; lists cannot be read.
type parquetSource struct {
	*pipeline[int]
	schema []Field // the types returned
	native []Field // the types in the file
	from   []int
	file   *file.Reader
	given  atomic.Int64 // rows returned
	size   int64
}

// Schema implements Source.Schema.
func (s *parquetSource) Schema() []Field { return s.schema }

func openParquet(in *input, o Options) (src Source, err error) {
	defer guard(&err, "the Parquet file")
	at, size, err := in.at()
	if err != nil {
		return nil, err
	}
	props := parquet.NewReaderProperties(bounded(in))
	props.BufferedStreamEnabled = true // otherwise a whole column of a row group is read at once
	props.BufferSize = 256 << 10
	props.MaxCompressedPageSize, props.MaxUncompressedPageSize = 1<<30, 1<<30
	r, err := file.NewParquetReader(io.NewSectionReader(at, 0, size), file.WithReadProps(props))
	if err != nil {
		return nil, caused(err, "is not a whole Parquet file")
	}
	s := &parquetSource{file: r, size: size}
	if err := s.choose(r.MetaData().Schema, o); err != nil {
		return nil, err
	}
	next := 0
	read := func() (int, error) {
		if next == r.NumRowGroups() {
			return 0, io.EOF
		}
		next++
		return next - 1, nil
	}
	s.pipeline = startPipeline(in, par.Workers(o.Workers), parquetAhead, read, s.group)
	return s, nil
}

// choose finds the wanted columns and their types.
func (s *parquetSource) choose(sc *schema.Schema, o Options) (err error) {
	var names []string
	for i := range sc.NumColumns() {
		names = append(names, sc.Column(i).Path())
	}
	if s.from, err = pick(names, o); err != nil {
		return err
	}
	for _, i := range s.from {
		t, err := parquetType(sc.Column(i))
		if err != nil {
			return err
		}
		s.native = append(s.native, Field{Name: names[i], Type: t})
	}
	s.schema = forced(s.native, o.Types)
	return nil
}

// parquetType returns the type that a column of a file is mapped to.
func parquetType(c *schema.Column) (Type, error) {
	refuse := func(what string) (Type, error) {
		return 0, &Error{Column: c.Path(), What: what + " cannot be read; turn them into numbers or strings, or leave the column out"}
	}
	if c.MaxRepetitionLevel() > 0 {
		return refuse("lists")
	}
	number := c.PhysicalType() == parquet.Types.Int32 || c.PhysicalType() == parquet.Types.Int64
	switch l := c.LogicalType().(type) {
	case interface{ Scale() int32 }: // a decimal
		if l.Scale() != 0 || !number {
			return refuse("decimals")
		}
	case schema.Float16LogicalType, *schema.Float16LogicalType:
		return refuse("numbers of 16 bits")
	case schema.IntervalLogicalType, *schema.IntervalLogicalType:
		return refuse("intervals")
	}
	unsigned := false
	if l, ok := c.LogicalType().(interface{ IsSigned() bool }); ok {
		unsigned = !l.IsSigned()
	}
	switch c.PhysicalType() {
	case parquet.Types.Int32:
		if unsigned {
			return Uint32, nil
		}
		return Int32, nil
	case parquet.Types.Int64:
		if unsigned {
			return Uint64, nil
		}
		return Int64, nil
	case parquet.Types.Float:
		return Float32, nil
	case parquet.Types.Double:
		return Float64, nil
	case parquet.Types.Boolean, parquet.Types.ByteArray, parquet.Types.FixedLenByteArray:
		return String, nil
	}
	return refuse("timestamps of 96 bits")
}

// group reads one row group.
func (s *parquetSource) group(i int, out outlet) (err error) {
	defer guard(&err, "the Parquet file")
	g := s.file.RowGroup(i)
	columns := make([]*parquetColumn, len(s.from))
	for j, from := range s.from {
		r, err := g.Column(from)
		if err != nil {
			return caused(err, "row group %d is damaged", i)
		}
		defer r.Close()
		columns[j] = &parquetColumn{name: s.native[j].Name, r: r, most: r.Descriptor().MaxDefinitionLevel()}
	}
	for left := g.NumRows(); left > 0; {
		n := int(min(left, batchRows))
		b := out.empty()
		b.Reset(s.native)
		b.Rows = n
		for j, c := range columns {
			if err := c.fill(&b.Columns[j], n); err != nil {
				return err
			}
		}
		if err := b.retype(s.schema); err != nil {
			return err
		}
		left -= int64(n)
		s.given.Add(int64(n))
		if !out.send(b, n) {
			return nil
		}
	}
	return nil
}

// Progress implements Source.Progress. It estimates the bytes read from the
// fraction of the rows returned so far.
func (s *parquetSource) Progress() (done, total int64) {
	rows := s.file.NumRows()
	if rows <= 0 {
		return s.size, s.size
	}
	return int64(float64(s.size) * min(1, float64(s.given.Load())/float64(rows))), s.size
}

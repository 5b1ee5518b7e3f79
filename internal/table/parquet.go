package table

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

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
	schema  []Field // as given
	native  []Field // as in the file
	columns []*parquet.Column
	chunks  []parquet.ColumnChunk // by which the pages of columns are decoded
	meta    *format.FileMetaData
	at      io.ReaderAt
	limit   limit
	given   atomic.Int64 // rows
	size    int64
	probes  bool // in the last column, a value that is not of the type is null
}

// Schema implements Source.Schema.
func (s *parquetSource) Schema() []Field { return s.schema }

func openParquet(in *input, o Options) (src Source, err error) {
	defer guard(&err, "the Parquet file")
	at, size, err := in.at()
	if err != nil {
		return nil, err
	}
	meta, err := parquetFooter(at, size, in.most)
	if refused := (*Error)(nil); errors.As(err, &refused) {
		return nil, err
	} else if err != nil {
		return nil, caused(err, "is not a whole Parquet file")
	}
	if in.most > 0 && len(meta.Schema) > 1+mostColumns { // the first is the root
		return nil, errColumns
	}
	f, err := parquetStandIn(meta)
	if err != nil {
		return nil, caused(err, "is not a whole Parquet file")
	}
	s := &parquetSource{chunks: f.RowGroups()[0].ColumnChunks(), meta: meta, at: at, limit: limit{in}, size: size}
	if err := s.choose(f.Root(), o); err != nil {
		return nil, err
	}
	next := 0
	read := func() (int, error) {
		if next == len(meta.RowGroups) {
			return 0, io.EOF
		}
		next++
		return next - 1, nil
	}
	ahead := parquetAhead
	if in.most > 0 {
		ahead = 1 // each batch may have most bytes
	}
	s.pipeline = startPipeline(in, par.Workers(o.Workers), ahead, read, s.group)
	return s, nil
}

const parquetMagic = "PAR1"

// parquetFooter reads the description of a file, which may ask for most bytes at once, any number if that is 0.
func parquetFooter(at io.ReaderAt, size, most int64) (*format.FileMetaData, error) {
	end := make([]byte, 8) // length of the footer, magic number
	if size < 12 {
		return nil, errors.New("it is too short")
	}
	if _, err := at.ReadAt(end, size-8); err != nil && err != io.EOF {
		return nil, err
	}
	n := int64(binary.LittleEndian.Uint32(end))
	switch magic := string(end[4:]); {
	case magic == "PARE":
		return nil, errors.New("it is encrypted")
	case magic != parquetMagic || n > size-12:
		return nil, errors.New("it has no footer; is it cut short?")
	}
	footer := make([]byte, n)
	if _, err := at.ReadAt(footer, size-8-n); err != nil && err != io.EOF {
		return nil, err
	}
	meta := new(format.FileMetaData)
	_, err := parquetDecode(footer, meta, most)
	return meta, err
}

// parquetStandIn opens a file that is described as one of the same schema with
// one row group, not compressed. Its columns are given the pages of each row
// group of the real file, by a parquetStream.
func parquetStandIn(meta *format.FileMetaData) (*parquet.File, error) {
	var group format.RowGroup
	for i := range meta.Schema {
		if e := &meta.Schema[i]; e.Type.Valid {
			group.Columns = append(group.Columns, format.ColumnChunk{MetaData: format.ColumnMetaData{
				Type: e.Type.V, DataPageOffset: parquetStart, TotalCompressedSize: math.MaxInt64 - parquetStart}})
		}
	}
	footer, err := thrift.Marshal(new(thrift.CompactProtocol),
		&format.FileMetaData{Version: meta.Version, Schema: meta.Schema, RowGroups: []format.RowGroup{group}})
	if err != nil {
		return nil, err
	}
	file := slices.Concat([]byte(parquetMagic), footer, binary.LittleEndian.AppendUint32(nil, uint32(len(footer))), []byte(parquetMagic))
	return parquet.OpenFile(bytes.NewReader(file), int64(len(file)), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
}

// parquetLeaves adds the columns that hold values: those that are no groups.
func parquetLeaves(c *parquet.Column, leaves []*parquet.Column) []*parquet.Column {
	if c.Leaf() {
		return append(leaves, c)
	}
	for _, child := range c.Columns() {
		leaves = parquetLeaves(child, leaves)
	}
	return leaves
}

// choose finds the wanted columns and their types.
func (s *parquetSource) choose(root *parquet.Column, o Options) error {
	stranger := s.limit.in.most > 0
	for _, c := range root.Columns() {
		if stranger && (!c.Leaf() || c.Repeated()) {
			return nested(c.Name())
		}
	}
	leaves := parquetLeaves(root, nil)
	var names []string
	for _, c := range leaves {
		names = append(names, strings.Join(c.Path(), "."))
	}
	elements := parquetElements(s.meta)
	columns := slices.Clone(leaves)
	if o.Pass {
		columns, names = parquetWholes(root, columns, names, o)
	}
	from, err := pick(names, o)
	if err != nil {
		return parquetGroup(root, names, o, err)
	}
	if o.Probe.Name != "" {
		i, err := find(names, o.Probe.Name)
		if err != nil {
			return parquetGroup(root, names, o, err)
		}
		from = append(from, i)
	}
	for k, i := range from {
		c := columns[i]
		_, typed := o.Types[names[i]]
		// The bytes of a stranger are read as strings are: words of a dictionary are not copied for each row.
		if passed := o.Pass && !typed && (o.Probe.Name == "" || k < len(from)-1); passed && !parquetPlain(c) && !(stranger && parquetBytes(c.Type())) {
			s.native = append(s.native, Field{Name: names[i], Type: String, Native: c})
			s.columns = append(s.columns, c)
			continue
		}
		t, what := Type(0), "groups of columns"
		if c.Leaf() {
			t, what = parquetType(c, elements[c.Index()])
		}
		if what != "" {
			return &Error{Column: names[i], What: what + " cannot be read; turn them into numbers or strings, or leave the column out"}
		}
		s.native = append(s.native, Field{Name: names[i], Type: t, Kind: parquetReadKind(c)})
		s.columns = append(s.columns, c)
	}
	s.schema, s.probes = forced(s.native, o), o.Probe.Name != ""
	return nil
}

// parquetGroup explains that a column which was asked for is there, but has others
// in it. For any other it returns the error.
func parquetGroup(root *parquet.Column, names []string, o Options, err error) error {
	asked := append(slices.Clone(o.Columns), o.Probe.Name)
	for name := range o.Types {
		asked = append(asked, name)
	}
	for _, name := range asked {
		c := root.Column(name)
		if c == nil || c.Leaf() || slices.Contains(names, name) {
			continue
		}
		if parquetListed(c) != nil {
			return &Error{Column: name, What: "has lists or maps, which are no keys or values", Advice: "turn them into numbers or strings"}
		}
		var inside []string
		for _, leaf := range parquetLeaves(c, nil) {
			inside = append(inside, strings.Join(leaf.Path(), "."))
		}
		return &Error{Column: name, What: "has columns in it", Advice: "name one of them: " + strings.Join(inside, ", ")}
	}
	return err
}

// parquetElements returns what a file says about its leaves.
func parquetElements(meta *format.FileMetaData) (elements []*format.SchemaElement) {
	for i := range meta.Schema {
		if e := &meta.Schema[i]; e.Type.Valid {
			elements = append(elements, e)
		}
	}
	return elements
}

// parquetWholes returns the columns of the first level, which are passed on whole.
// Leaves of groups follow only where they are asked for by name.
func parquetWholes(root *parquet.Column, leaves []*parquet.Column, names []string, o Options) (columns []*parquet.Column, all []string) {
	for _, c := range root.Columns() {
		columns, all = append(columns, c), append(all, c.Name())
	}
	for i, c := range leaves {
		_, typed := o.Types[names[i]]
		if len(c.Path()) > 1 && (typed || o.Probe.Name == names[i] || slices.Contains(o.Columns, names[i])) {
			columns, all = append(columns, c), append(all, names[i])
		}
	}
	return columns, all
}

// parquetType returns the type that a column of a file is mapped to, or its
// feature that cannot be read.
func parquetType(c *parquet.Column, e *format.SchemaElement) (t Type, refused string) {
	if c.MaxRepetitionLevel() > 0 {
		return 0, "lists"
	}
	if _, ok := e.LogicalType.Value.(*format.Float16Type); ok {
		return 0, "numbers of 16 bits"
	}
	if e.ConvertedType.Valid && e.ConvertedType.V == deprecated.Interval {
		return 0, "intervals"
	}
	kind, unsigned := c.Type().Kind(), false
	if l := c.Type().LogicalType(); l != nil {
		switch l := l.Value.(type) {
		case *format.DecimalType:
			if l.Scale < 0 || l.Scale > mostScale {
				return 0, "decimals of more than 18 digits behind the point"
			}
			if parquetDigits(c.Type()) {
				return Int64, ""
			}
		case *format.IntType:
			unsigned = !l.IsSigned
		case *format.NullType:
			return Int32, "" // whatever they are stored as, there is none
		}
	}
	switch kind {
	case parquet.Int32:
		if unsigned {
			return Uint32, ""
		}
		return Int32, ""
	case parquet.Int64:
		if unsigned {
			return Uint64, ""
		}
		return Int64, ""
	case parquet.Float:
		return Float32, ""
	case parquet.Double:
		return Float64, ""
	case parquet.Boolean, parquet.ByteArray, parquet.FixedLenByteArray:
		return String, ""
	case parquet.Int96:
		return 0, "timestamps of 96 bits"
	}
	return 0, "values of an unknown type"
}

// parquetFiller reads a column of a row group.
type parquetFiller interface {
	fill(c *Column, n int) error // reads n values into an empty column
	close()
}

// filler returns the reader of a column of a row group. What it copies is asked for in room.
func (s *parquetSource) filler(g *format.RowGroup, c *parquet.Column, f Field, room *limited) parquetFiller {
	pages := func(leaf *parquet.Column) *parquet.FilePages {
		stream := newParquetStream(s.at, &g.Columns[leaf.Index()].MetaData, leaf, s.limit)
		return s.chunks[leaf.Index()].(*parquet.FileColumnChunk).PagesFrom(stream)
	}
	if f.Native == nil {
		return &parquetColumn{most: byte(c.MaxDefinitionLevel()), empty: c.Type().Kind() < 0, digits: parquetDigits(c.Type()), pages: pages(c)}
	}
	nested := &parquetNested{column: c}
	for _, leaf := range parquetLeaves(c, nil) {
		nested.leaves = append(nested.leaves, &parquetLeafReader{pages: pages(leaf), room: room})
	}
	return nested
}

// group reads one row group.
func (s *parquetSource) group(i int, out outlet) (err error) {
	defer guard(&err, "the Parquet file")
	g := &s.meta.RowGroups[i]
	if len(parquetElements(s.meta)) > len(g.Columns) {
		return wrong("row group %d is damaged: it has too few columns", i)
	}
	columns := make([]parquetFiller, len(s.columns))
	room := &limited{limit: s.limit}
	for j, c := range s.columns {
		columns[j] = s.filler(g, c, s.native[j], room)
		defer columns[j].close()
	}
	for left := g.NumRows; left > 0; {
		n := int(min(left, batchRows))
		b := out.empty()
		b.Reset(s.native)
		b.Rows, room.asked = n, 0
		for j, c := range columns {
			if err := c.fill(&b.Columns[j], n); err != nil {
				return parquetFailure(s.native[j].Name, err)
			}
		}
		if err := retypeBatch(b, s.schema, s.probes); err != nil {
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
	if s.meta.NumRows <= 0 {
		return s.size, s.size
	}
	return int64(float64(s.size) * min(1, float64(s.given.Load())/float64(s.meta.NumRows))), s.size
}

package table

import (
	"bytes"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/pando-index/pando/internal/table/cols"
)

// arrowSource reads Arrow IPC, files and streams. It holds one record batch of
// the file at a time and returns it in smaller batches.
type arrowSource struct {
	serial
	next   func() (arrow.RecordBatch, error)
	native []Field
	from   []int
	record arrow.RecordBatch
	at     int64              // rows of record already returned
	words  map[int]dictionary // by column
}

// dictionary is a dictionary that has been read.
type dictionary struct {
	of     arrow.ArrayData
	values Column
}

func openArrow(in *input, o Options) (src Source, err error) {
	defer guard(&err, "the Arrow data")
	s := &arrowSource{words: map[int]dictionary{}}
	schema, err := s.start(in)
	if refused := (*Error)(nil); errors.As(err, &refused) {
		return nil, err
	} else if err != nil {
		return nil, caused(err, "is not whole Arrow data")
	}
	var names []string
	for _, f := range schema.Fields() {
		if in.most > 0 && arrowNested(f.Type) {
			return nil, nested(f.Name)
		}
		names = append(names, f.Name)
	}
	if s.from, err = pick(names, o); err != nil {
		return nil, err
	}
	for _, i := range s.from {
		f := schema.Field(i)
		if _, typed := o.Types[f.Name]; o.Pass && !typed && !arrowPlain(f.Type) {
			passed := Field{Name: f.Name, Type: String, Native: f.Type}
			if isArrowUUID(f) {
				passed.Kind.Of = cols.UUID
			}
			s.native = append(s.native, passed)
		} else if err := s.add(f); err != nil {
			return nil, err
		}
	}
	if o.Probe.Name != "" {
		i, err := find(names, o.Probe.Name)
		if err != nil {
			return nil, err
		}
		s.from = append(s.from, i)
		if err := s.add(schema.Field(i)); err != nil {
			return nil, err
		}
	}
	s.serial = serial{in: in, schema: forced(s.native, o), fill: s.read, probes: o.Probe.Name != ""}
	return s, nil
}

// add adds a column that is read as one of the types here.
func (s *arrowSource) add(f arrow.Field) error {
	t, err := arrowType(f.Type)
	if err != nil {
		return &Error{Column: f.Name, What: err.Error()}
	}
	s.native = append(s.native, Field{Name: f.Name, Type: t, Kind: arrowReadKind(f)})
	return nil
}

// start opens a file or a stream.
func (s *arrowSource) start(in *input) (schema *arrow.Schema, err error) {
	m := streamMessages(in)
	magic, _ := in.r.Peek(6)
	isFile := bytes.Equal(magic, []byte("ARROW1"))
	if isFile {
		if m, err = fileMessages(in); err != nil {
			return nil, err
		}
	}
	room := &limited{Allocator: memory.NewGoAllocator(), limit: limit{in}}
	m.room = room
	r, err := ipc.NewReaderFromMessageReader(m, ipc.WithAllocator(room))
	if err != nil {
		return nil, err
	}
	s.next = func() (arrow.RecordBatch, error) {
		room.asked = room.kept
		record, err := r.Read()
		if err == io.EOF && !isFile && in.what != "" {
			err = in.finish()
		}
		return record, err
	}
	return r.Schema(), nil
}

// read fills a batch.
func (s *arrowSource) read(b *Batch) (err error) {
	defer guard(&err, "the Arrow data")
	for s.record == nil || s.at == s.record.NumRows() {
		if s.record, err = s.next(); err != nil {
			s.record = nil
			if err == io.EOF {
				return err
			}
			return caused(err, "the Arrow data is damaged or cut short")
		}
		s.at = 0
	}
	end := min(s.at+batchRows, s.record.NumRows())
	b.Reset(s.native)
	b.Rows = int(end - s.at)
	for i, from := range s.from {
		if err := s.column(&b.Columns[i], i, s.record.Column(from), int(s.at), int(end)); err != nil {
			return err
		}
	}
	s.at = end
	return nil
}

// column appends rows [i, j) of an array to column number n.
func (s *arrowSource) column(c *Column, n int, a arrow.Array, i, j int) error {
	if c.Native != nil {
		return setArrow(c, a, i, j)
	}
	if x, ok := a.(array.ExtensionArray); ok {
		return s.column(c, n, x.Storage(), i, j)
	}
	d, ok := a.(*array.Dictionary)
	if !ok {
		return appendArrow(c, a, i, j)
	}
	words := s.words[n]
	if words.of != d.Data().Dictionary() { // not the one of the previous batch
		words = dictionary{of: d.Data().Dictionary(), values: Column{Field: c.Field}}
		if err := appendArrow(&words.values, d.Dictionary(), 0, d.Dictionary().Len()); err != nil {
			return err
		}
		s.words[n] = words
	}
	return appendDictionary(c, d, &words.values, i, j)
}

// limited is an allocator that refuses sizes which only a damaged input can
// ask for. It panics with an *Error, which guard gives back. Where a stranger sends the data, a batch
// of rows may ask for no more in all its columns, with all dictionaries so far: the reader keeps those.
type limited struct {
	memory.Allocator
	limit limit
	asked int64 // for this batch of rows, with kept
	kept  int64 // for dictionaries
}

func (l *limited) Allocate(size int) []byte {
	l.check(size)
	return l.Allocator.Allocate(size)
}

func (l *limited) Reallocate(size int, b []byte) []byte {
	l.check(size)
	return l.Allocator.Reallocate(size, b)
}

func (l *limited) check(size int) {
	ask := int64(size)
	if l.limit.in.most > 0 && ask >= 0 {
		l.asked += ask
		ask = l.asked
	}
	if err := l.limit.check(ask); err != nil {
		panic(err)
	}
}

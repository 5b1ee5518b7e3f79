package table

import (
	"encoding/binary"
	"errors"
)

// errFlat is the error for Arrow metadata that points outside itself.
var errFlat = errors.New("its metadata points outside itself")

// flat inspects the metadata of Arrow IPC, which are FlatBuffers. The Arrow
// library allocates memory for as many things as the metadata claim, before it
// checks that they exist; flat checks first. A table has its fields at
// positions that a second table lists (0: the field is absent); a vector is
// its length followed by its elements; both are found by offsets relative to
// where the offset is stored.
type flat struct {
	b        []byte
	stranger bool // sends them: they may ask for less
	fields   int  // fields of schemas seen so far
	names    int  // bytes of their names, and of others in schemas
	refused  error
	bad      bool
}

const (
	maxFields = 1 << 16 // a field may be referenced many times, so the size of b is no bound
	maxNested = 64
)

// u16 reads a number at a position; outside of b it sets bad and returns 0.
func (f *flat) u16(at int) int {
	if at < 0 || at+2 > len(f.b) {
		f.bad = true
		return 0
	}
	return int(binary.LittleEndian.Uint16(f.b[at:]))
}

func (f *flat) u32(at int) int {
	if at < 0 || at+4 > len(f.b) {
		f.bad = true
		return 0
	}
	return int(binary.LittleEndian.Uint32(f.b[at:]))
}

func (f *flat) i64(at int) int64 {
	if at < 0 || at+8 > len(f.b) {
		f.bad = true
		return 0
	}
	return int64(binary.LittleEndian.Uint64(f.b[at:]))
}

// follow returns the position that the offset at a position leads to.
func (f *flat) follow(at int) int { return at + f.u32(at) }

// field returns the position of field i of a table, 0 if it is absent.
func (f *flat) field(table, i int) int {
	index := table - int(int32(f.u32(table)))
	if slot := 4 + 2*i; slot+2 <= f.u16(index) {
		if off := f.u16(index + slot); off != 0 {
			return table + off
		}
	}
	return 0
}

// vector returns the position of the first element and the number of elements
// of field i of a table, which must all be inside.
func (f *flat) vector(table, i, width int) (first, n int) {
	at := f.field(table, i)
	if at == 0 {
		return 0, 0
	}
	at = f.follow(at)
	n = f.u32(at)
	if f.bad || n > (len(f.b)-at-4)/width {
		f.bad = true
		return 0, 0
	}
	return at + 4, n
}

// name counts a text in field i of a table.
func (f *flat) name(table, i int) {
	_, n := f.vector(table, i, 1)
	const head = 16 // which each text has where it is kept
	if f.names += n + head; f.stranger && f.names > mostMeta && f.refused == nil {
		f.refused = wrong("the names in its schema take more than %d bytes; send shorter ones", mostMeta)
		f.bad = true
	}
}

// pairs checks the names and values in field i of a table.
func (f *flat) pairs(table, i int) {
	first, n := f.vector(table, i, 4)
	for ; n > 0 && !f.bad; n-- {
		pair := f.follow(first)
		f.name(pair, 0)
		f.name(pair, 1)
		first += 4
	}
}

// fault returns what is wrong, nil if nothing is.
func (f *flat) fault() error {
	if f.bad && f.refused == nil {
		return errFlat
	}
	return f.refused
}

// message checks the metadata of a message and returns the size of its body.
func (f *flat) message() (body int64, err error) {
	root := f.follow(0)
	if at := f.field(root, 3); at != 0 {
		body = f.i64(at)
	}
	kind, header := f.field(root, 1), f.field(root, 2)
	if kind == 0 || header == 0 || f.bad || kind >= len(f.b) {
		return 0, errFlat
	}
	switch at := f.follow(header); f.b[kind] {
	case 1:
		f.schema(at)
	case 2: // a dictionary: its values are a record batch
		if data := f.field(at, 1); data != 0 {
			f.record(f.follow(data))
		}
	case 3:
		f.record(at)
	}
	if body < 0 {
		f.bad = true
	}
	return body, f.fault()
}

func (f *flat) schema(table int) {
	f.children(table, 1, 0)
	f.pairs(table, 2)
}

// children checks the fields in field i of a table.
func (f *flat) children(table, i, depth int) {
	first, n := f.vector(table, i, 4)
	for ; n > 0 && !f.bad; n-- {
		child := f.follow(first)
		if f.fields++; f.stranger && f.fields > mostColumns {
			f.bad, f.refused = true, errColumns
			return
		}
		if f.fields > maxFields || depth > maxNested { // before its own children are looked at: they may go deeper than the stack
			f.bad = true
			return
		}
		f.name(child, 0)
		f.children(child, 5, depth+1)
		f.pairs(child, 6)
		first += 4
	}
}

// record checks a record batch.
func (f *flat) record(table int) {
	f.vector(table, 1, 16)
	_, buffers := f.vector(table, 2, 16)
	first, n := f.vector(table, 4, 8)
	for i := range n {
		if count := f.i64(first + 8*i); count < 0 || count > int64(buffers) {
			f.bad = true
		}
	}
}

// footer checks the footer of a file and returns the positions of its
// messages: dictionaries, then record batches.
func (f *flat) footer() (places []int64, err error) {
	root := f.follow(0)
	for _, i := range []int{2, 3} {
		first, n := f.vector(root, i, 24)
		for range n {
			places = append(places, f.i64(first))
			first += 24
		}
	}
	if f.bad {
		return nil, errFlat
	}
	return places, nil
}

// schemaMessage returns the schema in the footer of a file as a message, with the
// length before it, as it would be in a stream: a table of its own, placed before
// the footer's bytes, whose offset leads to the schema there.
func (f *flat) schemaMessage() ([]byte, error) {
	const (
		index  = 4  // lists where the table's fields are
		table  = 16 // offset to index, offset to the header, version, kind
		header = 20
		before = 32 // bytes before those of the footer
	)
	root := f.follow(0)
	version, schema := f.field(root, 0), f.field(root, 1)
	if schema == 0 || f.bad {
		return nil, errFlat
	}
	at := f.follow(schema)
	if f.schema(at); f.bad {
		return nil, f.fault()
	}
	le := binary.LittleEndian
	b := make([]byte, before, before+len(f.b))
	le.PutUint32(b, table)
	for i, v := range []uint16{10, 12, 8, 10, header - table} { // sizes of index and table; places of version, kind and header
		le.PutUint16(b[index+2*i:], v)
	}
	le.PutUint32(b[table:], table-index)
	le.PutUint32(b[header:], uint32(before+at-header))
	if version != 0 {
		le.PutUint16(b[table+8:], uint16(f.u16(version)))
	}
	b[table+10] = 1 // the header is a schema
	b = append(b, f.b...)
	return append(le.AppendUint32(nil, uint32(len(b))), b...), nil
}

package table

import (
	"encoding/binary"
	"io"
)

// batchRows is the number of rows in a batch of any format but text.
const batchRows = 32 << 10

// rawTypes are the types of raw little-endian values.
var rawTypes = map[string]Type{"u32": Uint32, "u64": Uint64, "i32": Int32, "i64": Int64, "sosd32": Uint32, "sosd64": Uint64}

// raw reads little-endian values, one column named "key" (or "1"). SOSD files
// have their count at the start.
type raw struct {
	serial
	native []Field
	width  int
	left   uint64 // values still to come, if there is a count
	count  bool
	buf    []byte
}

func openRaw(in *input, o Options, format string) (Source, error) {
	t := rawTypes[format]
	r := &raw{width: 8, count: format == "sosd32" || format == "sosd64"}
	if t == Uint32 || t == Int32 {
		r.width = 4
	}
	names := []string{"key"}
	if named(o, "1") {
		names[0] = "1"
	}
	if _, err := pick(names, o); err != nil {
		return nil, err
	}
	if o.Columns != nil && len(o.Columns) != 1 {
		return nil, wrong("raw values have one column, named key")
	}
	r.native = []Field{{Name: names[0], Type: t}}
	if probe := o.Probe.Name; probe != "" {
		if _, err := find(names, probe); err != nil {
			return nil, err
		}
		r.native = append(r.native, r.native[0])
	}
	r.buf = make([]byte, batchRows*r.width)
	r.serial = serial{in: in, schema: forced(r.native, o), fill: r.read, probes: o.Probe.Name != ""}
	if err := r.start(); err != nil {
		return nil, err
	}
	return r, nil
}

// named reports whether the options name a column.
func named(o Options, name string) bool {
	_, typed := o.Types[name]
	for _, c := range o.Columns {
		typed = typed || c == name
	}
	return typed
}

// start reads the count, and compares it with the size if that is known.
func (r *raw) start() error {
	in, size := r.in, uint64(r.in.total)
	known := in.file != nil && in.what == ""
	if r.count {
		head := make([]byte, 8)
		if _, err := io.ReadFull(in.r, head); err != nil {
			return caused(err, "is too short for a SOSD file, which starts with a count of 8 bytes")
		}
		r.left = binary.LittleEndian.Uint64(head)
		if have := (size - 8) / uint64(r.width); known && (r.left != have || size%uint64(r.width) != 0) {
			return wrong("says it has %d values of %d bytes, but has %d bytes after its count; is the format right?", r.left, r.width, size-8)
		}
		return nil
	}
	if known && size%uint64(r.width) != 0 {
		return wrong("has %d bytes, which is no multiple of %d; is the format right?", size, r.width)
	}
	return nil
}

// read fills a batch.
func (r *raw) read(b *Batch) error {
	buf := r.buf
	if r.count && r.left*uint64(r.width) < uint64(len(buf)) && r.left < batchRows {
		buf = buf[:r.left*uint64(r.width)]
	}
	if len(buf) == 0 {
		_, err := r.in.r.ReadByte()
		switch err {
		case nil:
			return wrong("has more values than its count says")
		case io.EOF:
			return err
		}
		return r.in.readFailed(err)
	}
	n, err := readFull(r.in.r, buf)
	if err != nil && err != io.EOF {
		return r.in.readFailed(err)
	}
	if n%r.width != 0 || r.count && n < len(buf) {
		return wrong("ends in the middle of its values; is it cut short, or the format wrong?")
	}
	if n == 0 {
		return io.EOF
	}
	b.Reset(r.native)
	b.Rows = n / r.width
	r.left -= uint64(b.Rows)
	for i := range b.Columns {
		appendRaw(&b.Columns[i], buf[:n])
	}
	return nil
}

// readFull reads until buf is full; io.EOF means that the input ended before
// that. Unlike io.ReadFull it distinguishes the end from a truncated input.
func readFull(r io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var m int
		m, err = r.Read(buf[n:])
		n += m
	}
	return n, err
}

// appendRaw adds little-endian values.
func appendRaw(c *Column, buf []byte) {
	le := binary.LittleEndian
	switch c.Type {
	case Uint64:
		for ; len(buf) >= 8; buf = buf[8:] {
			c.Uint64 = append(c.Uint64, le.Uint64(buf))
		}
	case Int64:
		for ; len(buf) >= 8; buf = buf[8:] {
			c.Int64 = append(c.Int64, int64(le.Uint64(buf)))
		}
	case Uint32:
		for ; len(buf) >= 4; buf = buf[4:] {
			c.Uint32 = append(c.Uint32, le.Uint32(buf))
		}
	case Int32:
		for ; len(buf) >= 4; buf = buf[4:] {
			c.Int32 = append(c.Int32, int32(le.Uint32(buf)))
		}
	}
}

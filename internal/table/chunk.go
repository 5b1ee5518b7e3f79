package table

import (
	"bytes"
	"io"
	"sync"
)

// chunkSize is the text that a worker parses at a time: it fits the second
// level cache together with what is made of it.
const chunkSize = 256 << 10

// maxRecord bounds one record, and so the memory that a quote which is never
// closed can take.
const maxRecord = 64 << 20

// chunker cuts text into chunks at ends of lines, and never inside quotes.
type chunker struct {
	r      io.Reader
	quotes bool   // quotes count: an end of line between two of them is text
	rest   []byte // read, but not yet part of a chunk
	eof    bool
	pool   sync.Pool // of *[]byte
}

// next gives a chunk of whole lines, the last one perhaps without its end.
func (c *chunker) next() ([]byte, error) {
	buf := c.buffer()
	buf = append(buf[:0], c.rest...)
	c.rest = c.rest[:0]
	for size := chunkSize; ; size *= 2 {
		var err error
		if buf, err = c.fill(buf, size); err != nil {
			return nil, err
		}
		if c.eof {
			if len(buf) == 0 {
				return nil, io.EOF
			}
			return buf, nil
		}
		if cut := c.cut(buf); cut > 0 {
			c.rest = append(c.rest, buf[cut:]...)
			return buf[:cut], nil
		}
		if size >= maxRecord {
			e := wrong("the record that starts here is longer than %d MiB; is a quote left open?", maxRecord>>20)
			e.Line = 1
			return nil, e
		}
	}
}

// fill reads until buf has size bytes or the input ends.
func (c *chunker) fill(buf []byte, size int) ([]byte, error) {
	if cap(buf) < size {
		buf = append(make([]byte, 0, size), buf...)
	}
	for !c.eof && len(buf) < size {
		n, err := c.r.Read(buf[len(buf):size])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			c.eof = true
		} else if err != nil {
			return buf, err
		}
	}
	return buf, nil
}

// cut gives the length of the longest part that ends with a line outside
// quotes, 0 if there is none. Whether a place is inside quotes is told by the
// number of quotes before it: text where that fails is not correct CSV, and
// the parser finds its error within the chunk, because up to it the count was
// right.
func (c *chunker) cut(buf []byte) int {
	end := bytes.LastIndexByte(buf, '\n')
	if !c.quotes || end < 0 {
		return end + 1
	}
	odd := bytes.Count(buf[:end], []byte{'"'})&1 == 1
	for odd {
		before := bytes.LastIndexByte(buf[:end], '\n')
		if before < 0 {
			return 0
		}
		odd = odd != (bytes.Count(buf[before:end], []byte{'"'})&1 == 1)
		end = before
	}
	return end + 1
}

func (c *chunker) buffer() []byte {
	if b, ok := c.pool.Get().(*[]byte); ok {
		return *b
	}
	return make([]byte, 0, chunkSize)
}

// done gives the memory of a chunk back.
func (c *chunker) done(chunk []byte) { c.pool.Put(&chunk) }

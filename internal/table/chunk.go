package table

import (
	"bytes"
	"io"
	"sync"
)

// chunkSize is the size in bytes of the text that a worker parses at a time:
// it fits in the second-level cache together with the parsed batch.
const chunkSize = 256 << 10

// maxRecord bounds the size of one record in bytes, and so the memory that an
// unclosed quote can take.
const maxRecord = 64 << 20

// chunker cuts text into chunks at line ends, but never inside quotes.
type chunker struct {
	r      io.Reader
	quotes bool   // quotes count: a line end between two of them is text
	rest   []byte // read, but not yet part of a chunk
	eof    bool
	pool   sync.Pool // holds *[]byte
}

// next returns a chunk of whole lines; the last line of the input may lack its
// line end.
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
			return nil, c.tooLong()
		}
	}
}

// tooLong returns the error for a record beyond maxRecord.
func (c *chunker) tooLong() *Error {
	e := wrong("the record that starts here is longer than %d MiB", maxRecord>>20)
	if c.quotes {
		e.What += "; is a quote left open?"
	}
	e.Line = 1
	return e
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

// cut returns the length of the longest prefix that ends with a line end
// outside quotes, 0 if there is none. Whether a position is inside quotes
// follows from the number of quotes before it. Text for which that fails is
// not correct CSV, and the parser finds the error within the chunk, because
// the count is right up to there.
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

// done returns the memory of a chunk to the pool.
func (c *chunker) done(chunk []byte) { c.pool.Put(&chunk) }

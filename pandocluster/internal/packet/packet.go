// Package packet writes numbers, bytes and texts one behind the other, and reads them: entries of
// the replicas' log, snapshots' headers, and what nodes say to each other.
package packet

import (
	"encoding/binary"
	"errors"
	"unsafe"
)

// ErrBad is returned for bytes that nobody has written so.
var ErrBad = errors.New("a message of the cluster is damaged")

// Uint appends a number.
func Uint(b []byte, n uint64) []byte { return binary.AppendUvarint(b, n) }

// Bool appends a bool.
func Bool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// Bytes appends bytes, or those of a text, and how many there are.
func Bytes[T ~string | ~[]byte](b []byte, v T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(v))), v...)
}

// Reader reads what was appended, in the same order. The first thing that cannot be read is its
// error, and what is read after that is zero.
type Reader struct {
	b   []byte
	bad bool
}

// Read returns a reader of b.
func Read(b []byte) *Reader { return &Reader{b: b} }

// Err returns ErrBad if something could not be read.
func (r *Reader) Err() error {
	if r.bad {
		return ErrBad
	}
	return nil
}

// Rest returns what was not read yet.
func (r *Reader) Rest() []byte { return r.b }

// Uint reads a number.
func (r *Reader) Uint() uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[size:]
	return n
}

// Count reads the number of things that follow, each of which has at least one byte.
func (r *Reader) Count() int {
	n := r.Uint()
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return 0
	}
	return int(n)
}

// Byte reads a byte.
func (r *Reader) Byte() byte {
	if len(r.b) == 0 {
		r.bad = true
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

// Bool reads a bool.
func (r *Reader) Bool() bool { return r.Byte() != 0 }

// Bytes reads bytes, which stay those of the message.
func (r *Reader) Bytes() []byte {
	n := r.Count()
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

// String reads a text.
func (r *Reader) String() string { return string(r.Bytes()) }

// Text reads a text whose bytes stay those of the message.
func (r *Reader) Text() string {
	v := r.Bytes()
	return unsafe.String(unsafe.SliceData(v), len(v))
}

package pando

import (
	"fmt"
	"io"
	"reflect"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/snapshot"
	"github.com/pando-index/pando/internal/text"
)

// Values says how values are written to a file and read back. It is needed for
// values that hold pointers (strings, slices, maps and the like), by Freeze
// for an index that is to be saved and by Open; values without pointers are
// written as they lie in memory, and Values is not asked.
//
// encode appends a value to dst and gives the result, as append does. For the
// same value it must give the same bytes every time. decode gives the value
// back; the bytes are its own, to keep or change. Values are decoded when they
// are asked for, one at a time, by as many goroutines as ask. For strings:
//
//	pando.Values(
//		func(dst []byte, v string) []byte { return append(dst, v...) },
//		func(b []byte) (string, error) { return string(b), nil },
//	)
//
// A value that decode refuses makes the method that asked for it panic: the
// file is damaged, or was written with another codec.
func Values[V any](encode func(dst []byte, v V) []byte, decode func([]byte) (V, error)) Option {
	return func(c *config) { c.values = &valueCodec[V]{encode, decode} }
}

// valueCodec is what Values was given.
type valueCodec[V any] struct {
	encode func(dst []byte, v V) []byte
	decode func([]byte) (V, error)
}

// codecOf gives the codec among the options; nil if there is none.
func codecOf[V any](c config) (*valueCodec[V], error) {
	if c.values == nil {
		return nil, nil
	}
	codec, ok := c.values.(*valueCodec[V])
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: Values is for another type than the index's, %v", ErrOption, reflect.TypeFor[V]())
	case codec.encode == nil || codec.decode == nil:
		return nil, fmt.Errorf("%w: Values needs both encode and decode", ErrOption)
	}
	return codec, nil
}

// coded is values in a file as a codec has written them.
type coded[V any] struct {
	block  *text.Block
	decode func([]byte) (V, error)
	path   string
}

// at gives value i.
func (c *coded[V]) at(i int) V {
	v, err := c.try(i)
	if err != nil && !c.block.Released() { // a closed index gives no answer anyway
		panic(fmt.Sprintf("pando: %s: value %d cannot be decoded: %v; run `pando verify` on the file, or open it with the codec it was saved with", c.path, i, err))
	}
	return v
}

// try decodes value i. A codec may panic over bytes that it has not written.
func (c *coded[V]) try(i int) (v V, err error) {
	defer func() {
		if p := recover(); p != nil {
			var none V
			v, err = none, fmt.Errorf("decode panicked: %v", p)
		}
	}()
	return c.decode(c.block.Copy(i))
}

// copyOut decodes the values from lo on.
func (c *coded[V]) copyOut(vals []V, lo int) {
	for i := range vals {
		vals[i] = c.at(lo + i)
	}
}

// valueParts gives the sections of values that are not in a tree.
func valueParts[V any](rows []V, c *coded[V], codec *valueCodec[V]) ([]snapshot.Part, error) {
	t := reflect.TypeFor[V]()
	switch {
	case c != nil:
		offsets, data := c.block.Segments()
		return []snapshot.Part{snapshot.Memory(snapshot.ValueOffsets, offsets), snapshot.Memory(snapshot.ValueBytes, data)}, nil
	case pointerFree(t) && t.Size() == 0:
		return nil, nil
	case pointerFree(t):
		return []snapshot.Part{snapshot.Memory(snapshot.Rows, arena.Bytes(rows))}, nil
	case codec == nil:
		return nil, fmt.Errorf("%w: %v values hold pointers; give Freeze the option Values", ErrValues, t)
	}
	return codec.parts(rows), nil
}

// parts encodes values into sections. Where each value starts is known, and
// kept, when all have been encoded once.
func (c *valueCodec[V]) parts(rows []V) []snapshot.Part {
	offsets := make([]uint64, 1, len(rows)+1)
	var buf []byte
	for _, v := range rows {
		buf = c.encode(buf[:0], v)
		offsets = append(offsets, offsets[len(offsets)-1]+uint64(len(buf)))
	}
	return []snapshot.Part{
		snapshot.Memory(snapshot.ValueOffsets, arena.Bytes(offsets)),
		{Kind: snapshot.ValueBytes, Write: func(w io.Writer) error { return c.writeAll(w, rows, offsets) }},
	}
}

// writeAll encodes values and writes them, many at a time.
func (c *valueCodec[V]) writeAll(w io.Writer, rows []V, offsets []uint64) error {
	const enough = 64 << 10
	buf := make([]byte, 0, 2*enough)
	for i, v := range rows {
		before := len(buf)
		buf = c.encode(buf, v)
		if uint64(len(buf)-before) != offsets[i+1]-offsets[i] {
			return fmt.Errorf("%w: encode gave %d bytes for value %d, and %d before; it must give the same each time", ErrValues, len(buf)-before, i, offsets[i+1]-offsets[i])
		}
		if len(buf) >= enough {
			if _, err := w.Write(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
	}
	_, err := w.Write(buf)
	return err
}

// valSize is the size of a value that a file holds as it is.
func valSize[V any]() uint32 {
	var v V
	if !pointerFree(reflect.TypeFor[V]()) {
		return 0
	}
	return uint32(unsafe.Sizeof(v))
}

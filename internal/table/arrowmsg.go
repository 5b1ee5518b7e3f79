package table

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// messages reads the messages of Arrow IPC for the Arrow library. It checks
// their metadata first, and allocates memory only for bytes that exist.
type messages struct {
	in   *input
	next func() (io.Reader, error) // returns a reader at the next message, io.EOF if there is none
	last *ipc.Message
	room *limited // from which the messages are unpacked
}

// mostMeta bounds the metadata of a message that a stranger sends, and the names in its schema. The library copies a name as
// often as the metadata refer to it.
const mostMeta = 4 << 20

// streamMessages reads a stream, in which the messages follow one another.
func streamMessages(in *input) *messages {
	return &messages{in: in, next: func() (io.Reader, error) { return in.r, nil }}
}

// fileMessages reads a file, whose footer lists where its messages are, and has
// the schema. Most writers put the schema first, too, after the magic number, but
// not that of JavaScript.
func fileMessages(in *input) (*messages, error) {
	at, size, err := in.at()
	if err != nil {
		return nil, err
	}
	const head, tail = 8, 10 // ARROW1, padded; length of the footer, ARROW1
	end := make([]byte, tail)
	if size < head+tail {
		return nil, errors.New("the file is too short")
	}
	if _, err := at.ReadAt(end, size-tail); err != nil && err != io.EOF {
		return nil, err
	}
	n := int64(binary.LittleEndian.Uint32(end))
	if !bytes.Equal(end[4:], []byte("ARROW1")) || n > size-head-tail {
		return nil, errors.New("the file has no footer; is it cut short?")
	}
	f := flat{b: make([]byte, n), stranger: in.most > 0}
	if _, err := at.ReadAt(f.b, size-tail-n); err != nil && err != io.EOF {
		return nil, err
	}
	places, err := f.footer()
	if err != nil {
		return nil, err
	}
	schema, err := f.schemaMessage()
	if err != nil {
		return nil, err
	}
	next := func() (io.Reader, error) {
		if schema != nil {
			r := bytes.NewReader(schema)
			schema = nil
			return r, nil
		}
		if len(places) == 0 {
			return nil, io.EOF
		}
		place := places[0]
		places = places[1:]
		if place < 0 || place > size {
			return nil, errFlat
		}
		in.done.Store(min(place, in.total))
		return io.NewSectionReader(at, place, size-place), nil
	}
	return &messages{in: in, next: next}, nil
}

// Message implements ipc.MessageReader.Message.
func (m *messages) Message() (*ipc.Message, error) {
	r, err := m.next()
	if err != nil {
		return nil, err
	}
	most := uint32(maxRecord)
	if m.in.most > 0 {
		most = mostMeta
	}
	meta, err := readMeta(r, most)
	if err != nil {
		return nil, err
	}
	f := flat{b: meta, stranger: m.in.most > 0}
	size, err := f.message()
	if err != nil {
		return nil, err
	}
	body, err := readN(r, size)
	if err != nil {
		return nil, fmt.Errorf("a message is cut short: %w", err)
	}
	if m.last != nil && m.last.Type() == ipc.MessageDictionaryBatch {
		m.room.kept = m.room.asked
	}
	m.Release()
	m.last = ipc.NewMessage(memory.NewBufferBytes(meta), memory.NewBufferBytes(body))
	return m.last, nil
}

// readMeta reads the metadata of a message, of at most the given size; it returns
// io.EOF at the end of a stream.
func readMeta(r io.Reader, most uint32) ([]byte, error) {
	head := make([]byte, 4)
	if n, err := readFull(r, head); err == io.EOF && n == 0 {
		return nil, io.EOF
	} else if err != nil {
		return nil, fmt.Errorf("a message is cut short: %w", err)
	}
	size := binary.LittleEndian.Uint32(head)
	if size == 1<<32-1 { // since version 0.15 the size follows this marker
		if _, err := readFull(r, head); err != nil {
			return nil, fmt.Errorf("a message is cut short: %w", err)
		}
		size = binary.LittleEndian.Uint32(head)
	}
	if size == 0 {
		return nil, io.EOF
	}
	if size > most {
		return nil, fmt.Errorf("metadata of %d bytes cannot be right", size)
	}
	return readN(r, int64(size))
}

// readN reads n bytes, without allocating much more memory than there is
// input.
func readN(r io.Reader, n int64) ([]byte, error) {
	const step = 16 << 20
	buf := make([]byte, min(n, step))
	for at := 0; ; {
		m, err := readFull(r, buf[at:])
		if at += m; int64(at) == n {
			return buf, nil
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, err
		}
		more := make([]byte, min(n, 2*int64(len(buf))))
		copy(more, buf)
		buf = more
	}
}

// Retain implements ipc.MessageReader.Retain.
func (m *messages) Retain() {}

// Release implements ipc.MessageReader.Release. The garbage collector does the
// rest.
func (m *messages) Release() {
	if m.last != nil {
		m.last.Release()
		m.last = nil
	}
}

package link

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// A frame is its kind, three bytes of its length, eight of the number of its request, and its bytes.
const headBytes = 12

type kind uint8

const (
	part   kind = iota + 1 // of a request, an answer, or a body
	last                   // the same, and nothing follows
	failed                 // in the place of an answer: a text
	cancel                 // nobody waits for the answer any more
	ping                   // the other end says something, too
	pong
)

type head struct {
	kind   kind
	length int
	number uint64
}

// readHead reads what is before a frame's bytes, and checks it.
func readHead(r io.Reader, buffer *[headBytes]byte) (h head, err error) {
	if _, err := io.ReadFull(r, buffer[:]); err != nil {
		return h, err
	}
	word := binary.LittleEndian.Uint32(buffer[:])
	h = head{kind: kind(word), length: int(word >> 8), number: binary.LittleEndian.Uint64(buffer[4:])}
	switch most := frame; h.kind {
	case part, last:
		err = bounded(h, most)
	case failed:
		err = bounded(h, mostText)
	case cancel, ping, pong:
		err = bounded(h, 0)
	default:
		err = fmt.Errorf("a frame of a kind %d that is not known", h.kind)
	}
	return h, err
}

func bounded(h head, most int) error {
	if h.length > most {
		return fmt.Errorf("a frame of kind %d has %d bytes, more than %d", h.kind, h.length, most)
	}
	return nil
}

// writeFrame writes a frame.
func writeFrame(w *bufio.Writer, k kind, number uint64, data []byte) error {
	var buffer [headBytes]byte
	binary.LittleEndian.PutUint32(buffer[:], uint32(k)|uint32(len(data))<<8)
	binary.LittleEndian.PutUint64(buffer[4:], number)
	if _, err := w.Write(buffer[:]); err != nil {
		return err
	}
	_, err := w.Write(data)
	return err
}

// text returns what fits of an error's text.
func text(err error) []byte {
	b := []byte(err.Error())
	return b[:min(len(b), mostText)]
}

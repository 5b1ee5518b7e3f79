package files

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// Part is a section to be written. Write writes all its bytes; it is called
// twice, once to know size and checksum, and must write the same both times.
type Part struct {
	Kind  SectionKind
	Write func(w io.Writer) error
}

// Memory makes a part of bytes in memory.
func Memory(k SectionKind, b []byte) Part {
	return Part{k, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}}
}

// ErrChanged is the error for a part that wrote other bytes the second time.
var ErrChanged = errors.New("a section has changed while it was written")

// chunk is how many bytes are read or written at a time: few enough to be in
// the cache when they are written after their checksum was taken.
const chunk = 256 << 10

// Write writes a file to w, front to back. The sections are those of parts, in
// their order; version, sizes and sections of h are set here. It returns the
// number of bytes written.
func Write(w io.Writer, h Header, parts []Part) (int64, error) {
	if !littleEndian {
		return 0, errOrder
	}
	if len(h.Key) > MaxKey || len(h.Value) > MaxValue {
		return 0, fmt.Errorf("the description of a type is too long: %d and %d bytes", len(h.Key), len(h.Value))
	}
	if len(h.Note) > MaxNote {
		return 0, fmt.Errorf("a note of %d bytes; %d is the most", len(h.Note), MaxNote)
	}
	h.Version, h.Size, h.Sections = h.version(), Page, nil
	for _, p := range parts {
		m := meter{to: io.Discard}
		if err := p.Write(&m); err != nil {
			return 0, err
		}
		s := Section{Kind: p.Kind, Offset: h.Size, Bytes: m.bytes, Checksum: m.sum}
		h.Sections = append(h.Sections, s)
		h.Size = s.end()
	}
	if err := h.check(); err != nil {
		return 0, fmt.Errorf("internal error: what is to be written makes no file: %w", err)
	}
	return h.writeAll(w, parts)
}

// writeAll writes header and sections whose sizes are known.
func (h *Header) writeAll(w io.Writer, parts []Part) (int64, error) {
	n, err := w.Write(h.encode())
	done := int64(n)
	for i, s := range h.Sections {
		if err != nil {
			return done, err
		}
		m := meter{to: w}
		err = parts[i].Write(&m)
		done += m.bytes
		if err == nil && (m.bytes != s.Bytes || m.sum != s.Checksum) {
			err = fmt.Errorf("%w: %v", ErrChanged, s.Kind)
		}
		if err == nil {
			n, err = w.Write(make([]byte, s.end()-s.Offset-s.Bytes))
			done += int64(n)
		}
	}
	return done, err
}

// meter counts the bytes that go through it, and computes their checksum.
type meter struct {
	to    io.Writer
	bytes int64
	sum   uint32
}

func (m *meter) Write(b []byte) (int, error) {
	done := 0
	for done < len(b) {
		piece := b[done:min(done+chunk, len(b))]
		m.sum = crc32.Update(m.sum, castagnoli, piece)
		n, err := m.to.Write(piece)
		done += n
		m.bytes += int64(n)
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

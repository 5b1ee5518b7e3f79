package files

import (
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
)

// Encoded starts the description of values that a codec has written.
const Encoded = "encoded "

// maxSize is more than any file has, and so little that no sum or product of
// what a header says can overflow.
const maxSize = 1 << 56

// check looks at all fields together. Afterwards no arithmetic on sizes can
// overflow: every one of them is at most the file's.
func (h *Header) check() error {
	switch {
	case h.Size < Page || h.Size%Page != 0 || h.Size > maxSize:
		return bad("the header is damaged: a size of %d bytes", h.Size)
	case h.Entries < 0 || h.Entries > h.mostEntries():
		return bad("the header is damaged: %d entries in %d bytes", uint64(h.Entries), h.Size)
	case h.ValSize > 0 && h.Entries > h.Size/int64(h.ValSize):
		return bad("the header is damaged: %d values of %d bytes in %d bytes", h.Entries, h.ValSize, h.Size)
	case h.Version != h.version():
		return bad("the header is damaged: layout %v in a file of version %d", h.Format, h.Version)
	case (h.PageLevels > 0) != h.Format.Paged:
		return bad("the header is damaged: layout %v with pages of %d levels", h.Format, h.PageLevels)
	case h.Format.Strings != (h.KeyBits == 0) || h.KeyBits != 0 && h.KeyBits != 32 && h.KeyBits != 64:
		return bad("the header is damaged: layout %v of keys of %d bits", h.Format, h.KeyBits)
	case h.ValSize > 0 && h.encoded():
		return bad("the header is damaged: values by codec of %d bytes each", h.ValSize)
	}
	kinds := h.kinds()
	if got := h.listed(); !slices.Equal(got, kinds) {
		return bad("the section table is damaged: it has the sections %v, there must be %v", got, kinds)
	}
	return h.checkTable()
}

// mostEntries returns the most that a file of such a size can have: an entry
// takes 4 bytes, unless its format says otherwise.
func (h *Header) mostEntries() int64 {
	if most := h.Format.MostPerPage; most > 0 {
		return min(h.Size/Page*most, maxSize)
	}
	return h.Size / 4
}

func (h *Header) encoded() bool { return strings.HasPrefix(h.Value, Encoded) }

func (h *Header) listed() []SectionKind {
	out := make([]SectionKind, len(h.Sections))
	for i, s := range h.Sections {
		out[i] = s.Kind
	}
	return out
}

// kinds returns the sections that a file with such a header has.
func (h *Header) kinds() []SectionKind {
	kinds := slices.Clone(h.Format.Sections)
	switch {
	case h.encoded():
		return append(kinds, ValueOffsets, ValueBytes)
	case h.Format.Pairs || h.ValSize == 0:
		return kinds
	case !h.Format.Strings && (h.ValSize == 4 || h.ValSize == 8):
		return append(kinds, Column)
	}
	return append(kinds, Rows)
}

// checkTable sees that sections follow each other without overlap or hole, and
// are as large as entries and types demand. How large nodes and leaves must be
// is known to the layout.
func (h *Header) checkTable() error {
	at := int64(Page)
	for _, s := range h.Sections {
		if s.Offset != at || s.Bytes < 0 || s.Bytes > h.Size {
			return bad("the section table is damaged: section %v has %d bytes at %d, it must start at %d", s.Kind, s.Bytes, s.Offset, at)
		}
		if want := h.bytesOf(s.Kind); want >= 0 && s.Bytes != want {
			return bad("the section table is damaged: section %v has %d bytes, it must have %d", s.Kind, s.Bytes, want)
		}
		at = s.end()
		if at > h.Size {
			return bad("the section table is damaged: section %v ends at %d, the file at %d", s.Kind, at, h.Size)
		}
	}
	if at != h.Size {
		return bad("the section table is damaged: the last section ends at %d, the file at %d", at, h.Size)
	}
	return nil
}

// bytesOf returns the bytes that a section must have; -1 where this package
// cannot know.
func (h *Header) bytesOf(k SectionKind) int64 {
	switch k {
	case Column, Rows:
		return h.Entries * int64(h.ValSize)
	case ValueOffsets:
		return 8 * (h.Entries + 1)
	}
	return -1
}

// Section returns the section of a kind, and reports whether there is one.
func (h *Header) Section(k SectionKind) (Section, bool) {
	for _, s := range h.Sections {
		if s.Kind == k {
			return s, true
		}
	}
	return Section{}, false
}

// Verify reads the whole file and compares the checksum of every section. The
// bytes between sections must be zero.
func Verify(r io.ReaderAt, h *Header) error {
	buf := make([]byte, min(chunk, h.Size))
	for _, s := range h.Sections {
		sum := uint32(0)
		err := pieces(r, buf, s.Offset, s.Offset+s.Bytes, func(b []byte) error {
			sum = crc32.Update(sum, castagnoli, b)
			return nil
		})
		if err == nil && sum != s.Checksum {
			err = bad("section %v (%d bytes at %d) is damaged: its checksum is %08x, the table says %08x", s.Kind, s.Bytes, s.Offset, sum, s.Checksum)
		}
		if err == nil {
			err = pieces(r, buf, s.Offset+s.Bytes, s.end(), func(b []byte) error { return onlyZeros(s.Kind, b) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func onlyZeros(k SectionKind, b []byte) error {
	for _, c := range b {
		if c != 0 {
			return bad("the bytes behind section %v are damaged: they must be zero", k)
		}
	}
	return nil
}

// pieces reads bytes [from, to) and hands them on piece by piece.
func pieces(r io.ReaderAt, buf []byte, from, to int64, take func([]byte) error) error {
	for from < to {
		b := buf[:min(int64(len(buf)), to-from)]
		n, err := r.ReadAt(b, from)
		if n < len(b) {
			if err == io.EOF {
				return bad("cut short while it was read, at byte %d", from+int64(n))
			}
			return fmt.Errorf("cannot read byte %d: %w", from+int64(n), err)
		}
		if err := take(b); err != nil {
			return err
		}
		from += int64(len(b))
	}
	return nil
}

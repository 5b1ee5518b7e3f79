// Package snapshot is the file an index is kept in: a header of one page, and
// sections behind it. It knows bytes, sizes and checksums, and nothing of
// trees. docs/format.md describes the format byte by byte.
//
//	0       4096                                       a multiple of 4096
//	│ header │ section │ zeros │ section │ zeros │ … │
//	         each section starts on a page
//
// A file is read in two steps that do not trust it. Read takes the header: its
// checksum, every field, and the file's real size must agree before anything
// is handed to the caller. Verify then reads all sections and compares their
// checksums; an index that is mapped without it may hold any bytes in its
// sections, but none outside them.
package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// Page is the size of the header and the alignment of sections.
const Page = 4096

// Version is the newest version of the format that this package writes and
// reads. A file has the first that knows its layout, so that older programs
// read as many files as they can.
const Version = 3

// Magic starts every file. Its first byte is no ASCII, and the line end in it
// does not survive a transfer as text.
const Magic = "\x89PANDO\r\n"

// orderMark reads the same only where bytes are read in the order they were
// written in.
const orderMark = 0x01020304

// errOrder is the error of a machine that cannot map or write files: sections
// are memory as it is, and must be little-endian.
var errOrder = errors.New("files need a machine that is little-endian")

// Order returns the error of a machine whose order of bytes is not that of files.
func Order() error {
	if !littleEndian {
		return errOrder
	}
	return nil
}

var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// Where things are in the header.
const (
	atOrder    = 8
	atVersion  = 12
	atChecksum = 16
	atLayout   = 20
	atSize     = 24
	atEntries  = 32
	atKeyBits  = 40
	atValSize  = 44
	atFanout   = 48
	atLevels   = 52
	atSections = 56
	atPage     = 60
	atTable    = 64
	atKey      = atTable + maxSections*tableRow
	atValue    = atKey + 64
	atNote     = atValue + 2 + MaxValue

	tableRow    = 32
	maxSections = 8

	// MaxKey and MaxValue are the most bytes that the descriptions of the
	// types can have.
	MaxKey   = 62
	MaxValue = 1022
	// MaxNote is the most bytes that a note can have.
	MaxNote = 1022

	noteVersion = 3 // the first version of the format that has notes
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Format is a way for keys to lie in a file. The reader of a file says which
// formats there are: this package knows sizes, versions and checksums, and
// nothing of the contents of sections.
type Format struct {
	Number   uint32 // in the header
	Name     string // of its layout, as the face has it
	Version  uint32 // the first version of the format of files that has it
	Sections []Kind // those that hold the keys, in their order
	Strings  bool   // keys are strings
	Pairs    bool   // values lie beside their keys, in the same sections
	Paged    bool   // the header says how many levels a page of inner nodes has
	// MostPerPage is the most entries that a page of a file can hold, where that
	// is more than one for each 4 bytes.
	MostPerPage int64
}

func (f *Format) String() string { return f.Name }

// Kind is the kind of a section's contents.
type Kind struct {
	Number uint32
	Name   string
}

// The sections that hold values.
var (
	Column       = Kind{3, "column"}        // values of 4 or 8 bytes, in key order
	Rows         = Kind{4, "rows"}          // values of any other size, or beside strings
	ValueOffsets = Kind{7, "value offsets"} // where each value begins that a codec has written, and where the last ends
	ValueBytes   = Kind{8, "value bytes"}   // the values that a codec has written
)

func (k Kind) String() string {
	if k.Name == "" {
		return fmt.Sprintf("Kind(%d)", k.Number)
	}
	return k.Name
}

// Section is a part of a file.
type Section struct {
	Kind     Kind
	Offset   int64
	Bytes    int64
	Checksum uint32 // CRC-32C
}

// end is where the next section starts.
func (s Section) end() int64 { return roundUp(s.Offset + s.Bytes) }

// Header is a file's header.
type Header struct {
	Version uint32
	Size    int64 // of the whole file
	Entries int64
	Format  *Format
	KeyBits uint32 // of a key's code: 32 or 64, 0 for strings
	ValSize uint32 // bytes of a value that is kept as it is; 0 for none and for values by codec
	Fanout  uint32 // children of an inner node
	Levels  uint32 // inner levels
	// PageLevels are the binary levels of a page of inner nodes; 0 where they
	// are not in pages.
	PageLevels uint32
	Key        string // types, in words
	Value      string
	Note       string // the writer's text about the file
	Sections   []Section
}

// version returns the first version of the format that can hold the header.
func (h *Header) version() uint32 {
	if h.Note != "" {
		return max(h.Format.Version, noteVersion)
	}
	return h.Format.Version
}

// Bad is the error for a file that is damaged or none of Pando's, with the
// reason.
type Bad string

func (b Bad) Error() string { return string(b) }

func bad(format string, args ...any) error { return Bad(fmt.Sprintf(format, args...)) }

// Newer is the error for a file of a later version, which it is.
type Newer uint32

func (n Newer) Error() string {
	return fmt.Sprintf("the file has version %d of the format, this program reads up to %d", uint32(n), Version)
}

func roundUp(n int64) int64 { return (n + Page - 1) / Page * Page }

// encode returns the header's page.
func (h *Header) encode() []byte {
	page := make([]byte, Page)
	le := binary.LittleEndian
	copy(page, Magic)
	le.PutUint32(page[atOrder:], orderMark)
	le.PutUint32(page[atVersion:], h.Version)
	le.PutUint32(page[atLayout:], h.Format.Number)
	le.PutUint64(page[atSize:], uint64(h.Size))
	le.PutUint64(page[atEntries:], uint64(h.Entries))
	le.PutUint32(page[atKeyBits:], h.KeyBits)
	le.PutUint32(page[atValSize:], h.ValSize)
	le.PutUint32(page[atFanout:], h.Fanout)
	le.PutUint32(page[atLevels:], h.Levels)
	le.PutUint32(page[atSections:], uint32(len(h.Sections)))
	le.PutUint32(page[atPage:], h.PageLevels)
	for i, s := range h.Sections {
		row := page[atTable+i*tableRow:]
		le.PutUint32(row, s.Kind.Number)
		le.PutUint32(row[4:], s.Checksum)
		le.PutUint64(row[8:], uint64(s.Offset))
		le.PutUint64(row[16:], uint64(s.Bytes))
	}
	putText(page[atKey:atValue], h.Key)
	putText(page[atValue:atNote], h.Value)
	putText(page[atNote:atNote+2+MaxNote], h.Note)
	Seal(page)
	return page
}

// Seal sets the checksum of a header's page.
func Seal(page []byte) { binary.LittleEndian.PutUint32(page[atChecksum:], checksum(page)) }

// checksum is that of a header's page, with zero in the checksum's own place.
func checksum(page []byte) uint32 {
	sum := crc32.Update(0, castagnoli, page[:atChecksum])
	sum = crc32.Update(sum, castagnoli, make([]byte, 4))
	return crc32.Update(sum, castagnoli, page[atChecksum+4:Page])
}

// putText writes a text behind its length.
func putText(to []byte, s string) {
	binary.LittleEndian.PutUint16(to, uint16(len(s)))
	copy(to[2:], s)
}

func takeText(from []byte) (string, bool) {
	n := int(binary.LittleEndian.Uint16(from))
	if n > len(from)-2 {
		return "", false
	}
	return string(from[2 : 2+n]), true
}

// Read reads and checks the header of a file of size bytes, which is in one of the formats. A
// size below 0 is not known, and not compared. It returns a Bad, a Newer, or the system's error.
func Read(r io.ReaderAt, size int64, formats []*Format) (*Header, error) {
	if !littleEndian {
		return nil, errOrder
	}
	page := make([]byte, Page)
	n, err := r.ReadAt(page, 0)
	switch {
	case err != nil && err != io.EOF:
		return nil, err
	case n == 0:
		return nil, Bad("the file is empty")
	case !bytes.HasPrefix(page, []byte(Magic)[:min(n, len(Magic))]):
		return nil, Bad("not a file of Pando's: it does not start with the right bytes")
	case n < Page:
		return nil, bad("cut short: %d bytes, the header alone has %d", n, Page)
	}
	h, err := decode(page, formats)
	if err != nil {
		return nil, err
	}
	switch {
	case size < 0:
	case size < h.Size:
		return nil, bad("cut short: %d bytes, the header says %d", size, h.Size)
	case size > h.Size:
		return nil, bad("%d bytes, the header says %d: something was added behind the end", size, h.Size)
	}
	return h, nil
}

// decode turns a page into a header that is right in itself.
func decode(page []byte, formats []*Format) (*Header, error) {
	le := binary.LittleEndian
	if mark := le.Uint32(page[atOrder:]); mark == 0x04030201 {
		return nil, Bad("written in big-endian byte order; save it again with Pando, which writes little-endian everywhere")
	} else if mark != orderMark {
		return nil, Bad("the header is damaged: the mark of the byte order is none")
	}
	if want, got := le.Uint32(page[atChecksum:]), checksum(page); got != want {
		return nil, bad("the header is damaged: its checksum is %08x, it says %08x", got, want)
	}
	h := &Header{Version: le.Uint32(page[atVersion:])}
	switch {
	case h.Version > Version:
		return nil, Newer(h.Version)
	case h.Version == 0:
		return nil, Bad("the header is damaged: version 0")
	}
	number := le.Uint32(page[atLayout:])
	if h.Format = find(formats, number); h.Format == nil {
		return nil, bad("the header is damaged: no layout has number %d", number)
	}
	h.Size = int64(le.Uint64(page[atSize:]))
	h.Entries = int64(le.Uint64(page[atEntries:]))
	h.KeyBits = le.Uint32(page[atKeyBits:])
	h.ValSize = le.Uint32(page[atValSize:])
	h.Fanout = le.Uint32(page[atFanout:])
	h.Levels = le.Uint32(page[atLevels:])
	h.PageLevels = le.Uint32(page[atPage:])
	if err := h.takeTable(page); err != nil {
		return nil, err
	}
	var good, also, too bool
	h.Key, good = takeText(page[atKey:atValue])
	h.Value, also = takeText(page[atValue:atNote])
	h.Note, too = takeText(page[atNote : atNote+2+MaxNote])
	if !good || !also || !too {
		return nil, Bad("the header is damaged: the description of a type is too long")
	}
	if err := h.check(); err != nil {
		return nil, err
	}
	// A header has one encoding: any other is damage.
	if !bytes.Equal(h.encode(), page) {
		return nil, Bad("the header is damaged: bytes that must be zero are not")
	}
	return h, nil
}

// find returns the format of a number, or nil.
func find(formats []*Format, number uint32) *Format {
	for _, f := range formats {
		if f.Number == number {
			return f
		}
	}
	return nil
}

// kindOf returns the section kind of a number, without a name where the format
// has none such.
func (f *Format) kindOf(number uint32) Kind {
	for _, k := range append([]Kind{Column, Rows, ValueOffsets, ValueBytes}, f.Sections...) {
		if k.Number == number {
			return k
		}
	}
	return Kind{Number: number}
}

// takeTable reads the section table.
func (h *Header) takeTable(page []byte) error {
	le := binary.LittleEndian
	n := le.Uint32(page[atSections:])
	if n > maxSections {
		return bad("the header is damaged: %d sections, at most %d can be", n, maxSections)
	}
	for i := range int(n) {
		row := page[atTable+i*tableRow:]
		h.Sections = append(h.Sections, Section{
			Kind:     h.Format.kindOf(le.Uint32(row)),
			Checksum: le.Uint32(row[4:]),
			Offset:   int64(le.Uint64(row[8:])),
			Bytes:    int64(le.Uint64(row[16:])),
		})
	}
	return nil
}

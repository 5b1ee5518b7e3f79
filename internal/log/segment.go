package log

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/pando-index/pando/internal/mutant"
)

// Info is what the header of each segment says of a store.
type Info struct {
	Store      uint64 // a number by chance, which tells stores apart
	Key, Value string // names of the types, as files have them
	ValSize    uint32 // bytes of a value that is written as it is, else 0
}

// HeaderSize is the bytes of a segment's header.
const HeaderSize = 4096

const (
	magic     = "\x89PANDOL\n"
	byteOrder = 0x01020304
	version   = 1

	atOrder   = 8
	atVersion = 12
	atSum     = 16 // CRC-32C of the header, these four bytes taken as zero
	atValSize = 20
	atStore   = 24
	atNumber  = 32
	atBytes   = 40  // length that the file had when it was made: it is never shorter
	atKey     = 64  // two bytes of length, 62 of text
	atValue   = 128 // two bytes of length, 1022 of text
	behind    = 1152
)

// Name returns the name of a segment's file.
func Name(segment uint64) string { return fmt.Sprintf("log-%016x", segment) }

// Numbered returns the number of a segment by the name of its file.
func Numbered(name string) (segment uint64, ok bool) {
	digits, ok := strings.CutPrefix(name, "log-")
	if !ok || len(digits) != 16 {
		return 0, false
	}
	segment, err := strconv.ParseUint(digits, 16, 64)
	return segment, err == nil && Name(segment) == name
}

// header returns the header of a segment whose file has a length.
func (i *Info) header(segment, length uint64) []byte {
	h := make([]byte, HeaderSize)
	le := binary.LittleEndian
	copy(h, magic)
	le.PutUint32(h[atOrder:], byteOrder)
	le.PutUint32(h[atVersion:], version)
	le.PutUint32(h[atValSize:], i.ValSize)
	le.PutUint64(h[atStore:], i.Store)
	le.PutUint64(h[atNumber:], segment)
	le.PutUint64(h[atBytes:], length)
	putText(h[atKey:atValue], i.Key)
	putText(h[atValue:behind], i.Value)
	le.PutUint32(h[atSum:], crc32.Checksum(h, castagnoli))
	return h
}

func putText(to []byte, s string) {
	binary.LittleEndian.PutUint16(to, uint16(len(s)))
	copy(to[2:], s)
}

// Bad says that a segment is damaged, and where.
type Bad struct {
	Name   string
	Offset int64
	Why    string
}

func (b *Bad) Error() string { return fmt.Sprintf("%s, byte %d: %s", b.Name, b.Offset, b.Why) }

// Newer says that a segment has a later version.
type Newer struct {
	Name    string
	Version uint32
}

func (n *Newer) Error() string {
	return fmt.Sprintf("%s has version %d of the log, and this program knows version %d", n.Name, n.Version, version)
}

// ReadInfo returns what the header of a segment says.
func ReadInfo(data []byte, segment uint64) (i Info, err error) {
	bad := func(at int64, why string) (Info, error) { return i, &Bad{Name(segment), at, why} }
	le := binary.LittleEndian
	if len(data) < HeaderSize {
		return bad(int64(len(data)), fmt.Sprintf("the file ends before its header, which has %d bytes", HeaderSize))
	}
	h := bytes.Clone(data[:HeaderSize])
	if string(h[:atOrder]) != magic || le.Uint32(h[atOrder:]) != byteOrder {
		return bad(0, "this is no log of Pando's, or its first bytes are damaged")
	}
	if v := le.Uint32(h[atVersion:]); v > version {
		return i, &Newer{Name(segment), v}
	}
	sum := le.Uint32(h[atSum:])
	le.PutUint32(h[atSum:], 0)
	if crc32.Checksum(h, castagnoli) != sum {
		return bad(atSum, "the header is damaged")
	}
	i = Info{Store: le.Uint64(h[atStore:]), ValSize: le.Uint32(h[atValSize:])}
	key, value := int(le.Uint16(h[atKey:])), int(le.Uint16(h[atValue:]))
	if key > atValue-atKey-2 || value > behind-atValue-2 {
		return bad(atKey, "the header is damaged: a name is too long")
	}
	i.Key, i.Value = string(h[atKey+2:atKey+2+key]), string(h[atValue+2:atValue+2+value])
	if n := le.Uint64(h[atNumber:]); n != segment {
		return bad(atNumber, fmt.Sprintf("this is segment %d under another's name", n))
	}
	if le.PutUint32(h[atSum:], sum); !bytes.Equal(h, i.header(segment, le.Uint64(h[atBytes:]))) {
		return bad(0, "the header has bytes that no version knows")
	}
	return i, nil
}

// Scan is what a segment holds.
type Scan struct {
	Frames  int
	First   uint64   // number of the first operation, if there are frames
	Next    uint64   // and of the first behind the last
	Commits []uint64 // batches that have one
	End     int64    // where the last whole frame ends
	Sealed  bool     // the last frame is a Seal
	Closed  bool     // the last frame is a Close
	Durable int64    // up to this offset some frame says that the segment was synced
	Torn    int64    // bytes behind End that are not zero, up to the last such
}

// Read reads a segment whose header is good. It calls do, unless it is nil, with each whole frame, in order, up to the
// first place where there is none, or to the Seal. It returns a Bad where that place cannot be the end of what was
// written, and the error of do. The result is good up to there in any case, without the frame
// that do has refused.
//
// A frame that is not whole is the end if nothing behind it says that it was durable: a frame has
// in it how far the segment was synced when it was written.
func Read(data []byte, info *Info, segment uint64, do func(f *Frame) error) (s Scan, err error) {
	s.End, s.Durable = HeaderSize, HeaderSize
	for !s.Sealed {
		f, ok := frameAt(data, s.End, info.Store, segment)
		if !ok || !f.whole(data, info.Store, segment) {
			break
		}
		with := s
		if err := with.take(&f, segment); err != nil {
			return s, err
		}
		if do != nil {
			if err := do(&f); err != nil {
				return s, err
			}
		}
		s = with
	}
	return s, s.ends(data, info, segment)
}

// take adds a frame.
func (s *Scan) take(f *Frame, segment uint64) error {
	switch {
	case s.Frames == 0:
		s.First = f.Sequence
	case f.Sequence != s.Next:
		return &Bad{Name(segment), f.Offset, fmt.Sprintf("operation %d is followed by %d", s.Next-1, f.Sequence)}
	case s.Closed && f.Kind != Open && f.Kind != Seal:
		return &Bad{Name(segment), f.Offset, "the log goes on behind its end"}
	}
	if f.Durable > f.Offset || f.Durable < s.Durable {
		return &Bad{Name(segment), f.Offset, "it says that more was synced than there is, or less than before"}
	}
	if f.Kind == Commit {
		s.Commits = append(s.Commits, f.Batch)
	}
	s.Frames++
	s.Next, s.End, s.Durable = f.Next(), f.end(), f.Durable
	s.Sealed, s.Closed = f.Kind == Seal, f.Kind == Close
	return nil
}

// ends looks at what is behind the last whole frame.
func (s *Scan) ends(data []byte, info *Info, segment uint64) error {
	if length := binary.LittleEndian.Uint64(data[atBytes:]); uint64(len(data)) < length {
		return &Bad{Name(segment), int64(len(data)), fmt.Sprintf("the file ends here, and had %d bytes when it was made", length)}
	}
	rest := data[min(s.End, int64(len(data))):]
	n := lastSet(rest)
	if n == 0 {
		return nil
	}
	if s.Sealed {
		return &Bad{Name(segment), s.End, "there is something behind the segment's end"}
	}
	s.Torn = n
	for at := s.End + 8; at < s.End+n; at += 8 {
		if f, ok := frameAt(data, at, info.Store, segment); ok && f.Durable > s.End && !(mutant.On && mutant.Is("store: damage before the end")) {
			return &Bad{Name(segment), s.End, fmt.Sprintf("a frame is damaged that was durable before another was written at byte %d", at)}
		}
	}
	return nil
}

// lastSet returns the number of bytes up to the last that is not zero.
func lastSet(b []byte) int64 {
	n := len(b)
	for n >= 8 && binary.LittleEndian.Uint64(b[n-8:]) == 0 {
		n -= 8
	}
	for n > 0 && b[n-1] == 0 {
		n--
	}
	return int64(n)
}

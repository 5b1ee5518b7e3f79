package raftlog

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"github.com/hashicorp/raft"
)

// kind is what a record says.
type kind uint8

const (
	entry    kind = iota + 1 // an entry of a group; the same again where it was moved
	value                    // a stable value; its key is behind it
	truncate                 // the group's entries from an index on are void
	compact                  // the group's entries before an index are no longer needed
	drop                     // the group has left: all of its entries and values are void
	oldest                   // segments before the one of this number are no longer needed
	lastKind = oldest
)

// recordHeader is the size of a record's header:
//
//	 0 │ CRC-32C of what follows, up to the end of the key (4 bytes)
//	 4 │ kind, type of an entry as raft has it, zeros (4)
//	 8 │ group (8)
//	16 │ index, or segment (8)
//	24 │ term (8)
//	32 │ when the leader appended it, in nanoseconds since 1970, 0 if not known (8)
//	40 │ bytes of the data, bytes of the extensions or of the key (4 each)
//	48 │ data, extensions or key, zeros up to 8 bytes
const recordHeader = 48

// mostData is the most bytes that data and extensions of a record may have together.
const mostData = 64 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// record is what a frame has one after the other.
type record struct {
	kind    kind
	of      raft.LogType
	group   uint64
	index   uint64
	term    uint64
	at      int64
	data    []byte
	trailer []byte // extensions of an entry, key of a value
}

// size returns the bytes that a record takes.
func (r *record) size() int { return recordHeader + (len(r.data)+len(r.trailer)+7)&^7 }

// appendTo appends the record's bytes.
func (r *record) appendTo(b []byte) []byte {
	begin, le := len(b), binary.LittleEndian
	b = append(b, 0, 0, 0, 0, byte(r.kind), byte(r.of), 0, 0)
	b = le.AppendUint64(b, r.group)
	b = le.AppendUint64(b, r.index)
	b = le.AppendUint64(b, r.term)
	b = le.AppendUint64(b, uint64(r.at))
	b = le.AppendUint32(b, uint32(len(r.data)))
	b = le.AppendUint32(b, uint32(len(r.trailer)))
	b = append(append(b, r.data...), r.trailer...)
	le.PutUint32(b[begin:], crc32.Checksum(b[begin+4:], castagnoli))
	return append(b, make([]byte, begin+r.size()-len(b))...)
}

// recordAt reads the record that b begins with, whose bytes stay b's. Its sum is looked at only
// if that is asked for: that of a frame covers all of its records.
func recordAt(b []byte, summed bool) (r record, err error) {
	if len(b) < recordHeader {
		return r, fmt.Errorf("a record ends in its header")
	}
	le := binary.LittleEndian
	data, trailer := uint64(le.Uint32(b[40:])), uint64(le.Uint32(b[44:]))
	if data+trailer > mostData || recordHeader+data+trailer > uint64(len(b)) {
		return r, fmt.Errorf("a record of %d bytes does not fit", data+trailer)
	}
	end := recordHeader + data + trailer
	r = record{
		kind: kind(b[4]), of: raft.LogType(b[5]), group: le.Uint64(b[8:]), index: le.Uint64(b[16:]), term: le.Uint64(b[24:]),
		at: int64(le.Uint64(b[32:])), data: b[recordHeader : recordHeader+data], trailer: b[recordHeader+data : end],
	}
	switch {
	case r.kind == 0 || r.kind > lastKind:
		return r, fmt.Errorf("a record has kind %d, which this program does not know", r.kind)
	case r.size() > len(b):
		return r, fmt.Errorf("a record has no end")
	case r.kind == entry && (r.index == 0 || r.index == math.MaxUint64):
		return r, fmt.Errorf("an entry has index %d", r.index)
	case summed && crc32.Checksum(b[4:end], castagnoli) != le.Uint32(b):
		return r, fmt.Errorf("a record is damaged")
	}
	return r, nil
}

// ofEntry returns the record of an entry.
func ofEntry(group uint64, l *raft.Log) record {
	r := record{kind: entry, of: l.Type, group: group, index: l.Index, term: l.Term, data: l.Data, trailer: l.Extensions}
	if !l.AppendedAt.IsZero() {
		r.at = l.AppendedAt.UnixNano()
	}
	return r
}

// entry returns the entry that a record has.
func (r *record) entry() raft.Log {
	l := raft.Log{Index: r.index, Term: r.term, Type: r.of, Data: r.data}
	if len(r.trailer) > 0 {
		l.Extensions = r.trailer
	}
	if r.at != 0 {
		l.AppendedAt = time.Unix(0, r.at)
	}
	return l
}

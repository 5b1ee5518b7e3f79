// Package log is a log of frames in segments. It knows no types: what is in a frame is its
// users' to know. docs/format.md has its bytes, docs/store.md the argument why a crash
// leaves a prefix.
//
//	segment:  │ header, a page │ frame │ frame │ … │ seal │ zeros │
//	frame:    │ header, 64 bytes │ payload │ zeros up to 8 bytes │
//
// A Writer appends frames, and goes on in the next segment when one is full. A Scan reads a
// segment, and says where it ends and why.
package log

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/pando-index/pando/internal/mutant"
)

// FrameKind is what a frame is. Those up to LastChange hold operations, the others words of
// the log itself.
type FrameKind uint16

const (
	Set         FrameKind = iota + 1 // keys and values
	Delete                           // keys
	Mixed                            // kinds, keys and values
	DeleteRange                      // two keys
	Commit                           // all parts of a batch are there
	Open                             // a program has begun to write; parts without a Commit are void
	Seal                             // the log goes on in the next segment
	Close                            // a program has ended well
	Refused                          // the tree has refused changes, which are void
	Records                          // what replicas of a cluster are to keep
	last        = Records

	LastChange = DeleteRange
)

// frameHeader is the size of a frame's header.
const frameHeader = 64

// MostPayload is the most bytes that a payload may have.
const MostPayload = 1<<31 - 1

// Where the fields of a frame's header are.
const (
	atHeaderSum  = 0  // CRC-32C of the header from here on, seeded
	atPayloadSum = 4  // CRC-32C of the payload, seeded
	atLength     = 8  // bytes of the payload
	atKind       = 12 // what it is
	atPart       = 14 // 1 if it is part of a batch that a Commit ends
	atSequence   = 16 // number of the first operation
	atSegment    = 24 // segment that it is in
	atCount      = 32 // operations
	atDurable    = 40 // up to this offset the segment was synced before the frame was written
	atBatch      = 48 // of a part, and of a Commit: number of the first operation of the batch
	atZero       = 56
)

// Frame is a frame that was read.
type Frame struct {
	Kind     FrameKind
	Part     bool
	Sequence uint64 // of its first operation
	Count    int    // operations
	Durable  int64
	Batch    uint64
	Offset   int64  // in the segment
	Payload  []byte // in the segment's bytes, at an aligned address
}

// Next returns the number of the first operation behind the frame.
func (f *Frame) Next() uint64 { return f.Sequence + uint64(f.Count) }

// Start returns where in the segment the frame's payload begins.
func (f *Frame) Start() int64 { return f.Offset + frameHeader }

// size returns the bytes that a frame takes.
func size(payload int) int64 { return frameHeader + int64(payload+7)&^7 }

// end returns where the next frame begins.
func (f *Frame) end() int64 { return f.Offset + size(len(f.Payload)) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// frameSeed returns what the checksums of a frame begin with: so a frame that lies anywhere but
// where it was written, left over from another file or another store, is none.
func frameSeed(store, segment uint64, offset int64) uint32 {
	if mutant.On && mutant.Is("store: seed") {
		return 0
	}
	var b [24]byte
	binary.LittleEndian.PutUint64(b[:], store)
	binary.LittleEndian.PutUint64(b[8:], segment)
	binary.LittleEndian.PutUint64(b[16:], uint64(offset))
	return crc32.Checksum(b[:], castagnoli)
}

// put writes the header of a frame whose payload is behind it.
func (f *Frame) put(b []byte, store, segment uint64) {
	h, payload := b[:frameHeader], b[frameHeader:frameHeader+len(f.Payload)]
	clear(h)
	s := frameSeed(store, segment, f.Offset)
	le := binary.LittleEndian
	le.PutUint32(h[atPayloadSum:], crc32.Update(s, castagnoli, payload))
	le.PutUint32(h[atLength:], uint32(len(payload)))
	le.PutUint16(h[atKind:], uint16(f.Kind))
	if f.Part {
		h[atPart] = 1
	}
	le.PutUint64(h[atSequence:], f.Sequence)
	le.PutUint64(h[atSegment:], segment)
	le.PutUint64(h[atCount:], uint64(f.Count))
	le.PutUint64(h[atDurable:], uint64(f.Durable))
	le.PutUint64(h[atBatch:], f.Batch)
	le.PutUint32(h[atHeaderSum:], crc32.Update(s, castagnoli, h[4:]))
}

// frameAt reads the header of the frame at an offset, and reports whether there is one: its
// own checksum is right, and it makes sense. The payload may still be damaged.
func frameAt(data []byte, offset int64, store, segment uint64) (f Frame, ok bool) {
	if offset+frameHeader > int64(len(data)) {
		return f, false
	}
	h := data[offset : offset+frameHeader]
	le := binary.LittleEndian
	kind := FrameKind(le.Uint16(h[atKind:]))
	if le.Uint64(h[atSegment:]) != segment || kind == 0 || kind > last {
		return f, false
	}
	if le.Uint32(h[atHeaderSum:]) != crc32.Update(frameSeed(store, segment, offset), castagnoli, h[4:]) {
		return f, false
	}
	length, count := int64(le.Uint32(h[atLength:])), le.Uint64(h[atCount:])
	at := offset + frameHeader
	if at+(length+7)&^7 > int64(len(data)) || count > MostPayload || h[atPart] > 1 {
		return f, false
	}
	return Frame{
		Kind: kind, Part: h[atPart] == 1, Sequence: le.Uint64(h[atSequence:]), Count: int(count), Durable: int64(le.Uint64(h[atDurable:])),
		Batch: le.Uint64(h[atBatch:]), Offset: offset, Payload: data[at : at+length : at+length],
	}, true
}

// whole reports whether the payload of a frame is as it was written.
func (f *Frame) whole(data []byte, store, segment uint64) bool {
	sum := binary.LittleEndian.Uint32(data[f.Offset+atPayloadSum:])
	return crc32.Update(frameSeed(store, segment, f.Offset), castagnoli, f.Payload) == sum
}

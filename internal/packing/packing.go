// Package packing brings strings to a device, a bucket at a time, one behind the
// other:
//
//	offsets, u32: n+1 │ bytes of all strings
package packing

import (
	"sort"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/flow"
)

// Strings is Keys, or, where Offsets is not nil, strings one behind the other as Arrow
// has them: string i has the bytes of Data from Offsets[i] to Offsets[i+1].
type Strings struct {
	Keys    []string
	Data    []byte
	Offsets []int32
}

// Len returns the number of strings.
func (b *Strings) Len() int {
	if b.Offsets == nil {
		return len(b.Keys)
	}
	return len(b.Offsets) - 1
}

// At returns string i where it lies.
func (b *Strings) At(i int) string {
	if b.Offsets == nil {
		return b.Keys[i]
	}
	part := b.Data[b.Offsets[i]:b.Offsets[i+1]]
	return unsafe.String(unsafe.SliceData(part), len(part))
}

// Shared reports whether a device can read the strings where they are.
func (b *Strings) Shared() bool {
	return b.Offsets != nil && device.Shared(b.Data) && device.Shared(arena.Bytes(b.Offsets))
}

// Span returns strings [lo, hi) where they lie, in dst or in Keys.
func (b *Strings) Span(lo, hi int, dst []string) []string {
	if b.Offsets == nil {
		return b.Keys[lo:hi]
	}
	dst = dst[:hi-lo]
	for i := range dst {
		dst[i] = b.At(lo + i)
	}
	return dst
}

// A bucket of strings is filled by one worker, as most of them fill buckets at
// the same time: to gather Go strings is what takes longest. It has room for
// stringBytes per string; how many are put into it depends on how long they are.
// Strings longer than Longest stay with the CPU, as few as there are of them.
const (
	MaxStrings  = 32 << 10 // of a bucket that is gathered
	MinStrings  = 4 << 10
	Longest     = 1 << 10
	stringBytes = 64
)

// In returns the bytes that a bucket of n strings takes in a slot.
func In(n int) int { return 4*(n+1) + n*stringBytes }

// Bucket is strings [Lo, Hi) under way. Only the first Packed of them are packed where
// they have not all found room.
type Bucket struct {
	Lo, Hi int
	Packed int
	bytes  int
}

// Packer cuts strings into buckets, and packs these.
type Packer struct {
	Keys   Strings
	Next   int  // first string that is in no bucket yet,
	Last   int  // and the last: what is behind is the CPU's
	Room   int  // strings that a slot has room for, if they are not too long
	Bucket int  // strings that are put into a bucket
	after  bool // a zero byte is packed behind each
	packed bool // strings are copied as they lie, one behind the other,
	direct bool // and the device reads them where they are
}

// Begin makes a packer ready for strings, at least one, with a zero byte behind each
// where after is true: of all strings that are above one, that is the least. A bucket
// has most of them at most.
func (p *Packer) Begin(keys Strings, after bool, most int) {
	n := keys.Len()
	*p = Packer{Keys: keys, Last: n, after: after}
	p.Room = min(max((n+flow.MaxFlight-1)/flow.MaxFlight, MinStrings), most)
	p.Bucket = p.fitting(n)
	p.packed = keys.Offsets != nil && !after
	p.direct = p.packed && keys.Shared()
}

// fitting returns how many strings of the batch are put into a bucket: with
// some of them measured, about as many as find room.
func (p *Packer) fitting(n int) int {
	const some = 256
	total, count := 0, min(n, some)
	for i := range count {
		total += min(len(p.Keys.At(i*n/count)), Longest)
	}
	mean := total/count + 1
	return min(p.Room, max(p.Room*stringBytes*7/8/mean, 32))
}

// Cut takes the next strings, and returns the number of pieces that they are packed
// in, 1 or 0; ok is false where there are none.
func (p *Packer) Cut(b *Bucket) (pieces int, ok bool) {
	if p.Next >= p.Last {
		return 0, false
	}
	b.Lo, b.Hi = p.Next, min(p.Next+p.Bucket, p.Last)
	p.Next = b.Hi
	if p.direct {
		p.measure(b)
		return 0, true
	}
	return 1, true
}

// measure sees how many strings that lie one behind the other find room.
func (p *Packer) measure(b *Bucket) {
	offsets := p.Keys.Offsets[b.Lo : b.Hi+1]
	from, most := offsets[0], int32(p.Room*stringBytes)
	b.Packed = len(offsets) - 1
	if offsets[b.Packed]-from > most {
		b.Packed = sort.Search(b.Packed, func(i int) bool { return offsets[i+1]-from > most })
	}
	b.bytes = int(offsets[b.Packed] - from)
}

// takes returns the bytes that a string takes in a bucket.
func (p *Packer) takes(key string) int {
	switch {
	case len(key) > Longest:
		return 0
	case p.after:
		return len(key) + 1
	}
	return len(key)
}

// Pack packs the strings of a bucket into page-locked memory.
func (p *Packer) Pack(b *Bucket, in []byte) {
	if p.packed {
		p.measure(b)
		from := p.Keys.Offsets[b.Lo:]
		copy(arena.As[int32](in), from[:b.Packed+1])
		copy(in[4*(b.Packed+1):], p.Keys.Data[from[0]:][:b.bytes])
		return
	}
	p.gather(b, in)
}

// gather packs strings, as many as find room. Of those that are too long
// nothing is packed. Behind room for offsets of the whole bucket bytes have no
// gap: where not all are packed they are moved.
func (p *Packer) gather(b *Bucket, in []byte) {
	n := b.Hi - b.Lo
	offsets, bytes := arena.As[uint32](in[:4*(n+1)]), in[4*(n+1):]
	at, most := 0, p.Room*stringBytes
	b.Packed = n
	for i := range n {
		key := p.Keys.At(b.Lo + i)
		size := p.takes(key)
		if at+size > most {
			b.Packed = i
			break
		}
		offsets[i] = uint32(at)
		if copy(bytes[at:at+size], key) < size {
			bytes[at+size-1] = 0
		}
		at += size
	}
	offsets[b.Packed] = uint32(at)
	b.bytes = at
	if b.Packed < n {
		copy(in[4*(b.Packed+1):], bytes[:at])
	}
}

// CopyIn queues copies of the strings that are packed to device memory of a slot, and
// returns where their bytes are, as their offsets count, which are at its begin.
func (p *Packer) CopyIn(b *Bucket, st device.Stream, dst device.Ptr, in []byte) (keys device.Ptr, err error) {
	head := 4 * (b.Packed + 1)
	keys = dst + device.Ptr(head)
	if p.direct {
		offsets := p.Keys.Offsets[b.Lo : b.Lo+b.Packed+1]
		if err := st.CopyIn(dst, arena.Bytes(offsets)); err != nil {
			return 0, err
		}
		if b.bytes > 0 {
			err = st.CopyIn(keys, p.Keys.Data[offsets[0]:][:b.bytes])
		}
	} else {
		err = st.CopyIn(dst, in[:head+b.bytes])
	}
	if p.packed { // offsets count from the first string of the batch
		keys -= device.Ptr(p.Keys.Offsets[b.Lo])
	}
	return keys, err
}

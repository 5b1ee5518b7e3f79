// Package packing brings strings to a device, a bucket at a time, one behind the
// other:
//
//	offsets, u32: n+1 │ up to a multiple of 8 │ bytes of all strings
//
// Where all strings of a bucket are of one length, and the caller can do without,
// there are no offsets.
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

// Limits is what a bucket may have.
type Limits struct {
	Strings int
	Bytes   int // of all strings together
	Longest int // strings above are not packed
}

// Gathered is the limits of buckets that the CPU fills.
var Gathered = Limits{MaxStrings, MaxStrings * stringBytes, Longest}

// shares is how many buckets a batch has at least whose strings the device reads where
// they are: more than are under way, so that nothing waits for the first and the last.
const shares = 2 * flow.MaxFlight

// head returns where the bytes of n strings begin.
func head(n int) int { return (4*(n+1) + 7) &^ 7 }

// In returns the bytes that a bucket of n strings takes in a slot.
func In(n int) int { return head(n) + n*stringBytes }

// Bucket is strings [Lo, Hi) under way. Only the first Packed of them are packed where
// they have not all found room.
type Bucket struct {
	Lo, Hi  int
	Packed  int
	Width   int // the length of all that are packed, which have no offsets; 0 where they do
	Longest int // at least the length of the longest that is packed
	bytes   int
}

// Packer cuts strings into buckets, and packs these.
type Packer struct {
	Keys   Strings
	Next   int  // first string that is in no bucket yet,
	Last   int  // and the last: those behind are the CPU's
	Room   int  // strings that a slot has room for, if they are not too long
	Bucket int  // strings that are put into a bucket
	Even   bool // strings of one length need no offsets
	limits Limits
	bytes  int  // that a slot has room for
	after  bool // a zero byte is packed behind each
	packed bool // strings are copied as they lie, one behind the other,
	direct bool // and the device reads them where they are
}

// Begin makes a packer ready for strings, at least one, with a zero byte behind each
// where after is true: of all strings that are above one, that is the least.
func (p *Packer) Begin(keys Strings, after bool, limits Limits) {
	n := keys.Len()
	*p = Packer{Keys: keys, Last: n, limits: limits, after: after}
	p.packed = keys.Offsets != nil && !after
	p.direct = p.packed && keys.Shared()
	parts := flow.MaxFlight
	if p.direct {
		parts = shares
	}
	p.Room = min(max((n+parts-1)/parts, MinStrings), limits.Strings)
	p.bytes = min(p.Room*stringBytes, limits.Bytes)
	if !p.packed {
		p.Bucket = p.fitting(n)
		return
	}
	mean := (int(keys.Offsets[n]-keys.Offsets[0]) + n - 1) / n
	p.Bucket, p.bytes = p.Room, min(max(p.Room*mean, MinStrings*stringBytes), limits.Bytes)
}

// In returns the bytes that slots must have.
func (p *Packer) In() int { return head(p.Room) + p.bytes }

// fitting returns how many strings of the batch are put into a bucket: with
// some of them measured, about as many as find room.
func (p *Packer) fitting(n int) int {
	const some = 256
	total, count := 0, min(n, some)
	for i := range count {
		total += p.takes(p.Keys.At(i * n / count))
	}
	mean := total/count + 1
	return min(p.Room, max(p.bytes*7/8/mean, 32))
}

// Cut takes the next strings, and returns the number of pieces that they are packed
// in, 1 or 0; ok is false where there are none. It takes a multiple of 8, but at the end.
func (p *Packer) Cut(b *Bucket) (pieces int, ok bool) {
	if p.Next >= p.Last {
		return 0, false
	}
	*b = Bucket{Lo: p.Next, Hi: min(p.Next+max(p.Bucket&^7, 8), p.Last)}
	if p.packed {
		if n := p.room(b); n < b.Hi-b.Lo {
			b.Hi = min(b.Lo+max(n&^7, 8), b.Hi)
		}
	}
	p.Next = b.Hi
	if p.direct && !p.Even {
		p.measure(b)
		return 0, true
	}
	return 1, true
}

// room returns how many strings of a bucket, which lie one behind the other, find room.
func (p *Packer) room(b *Bucket) int {
	offsets := p.Keys.Offsets[b.Lo : b.Hi+1]
	n := len(offsets) - 1
	if int(offsets[n])-int(offsets[0]) <= p.bytes {
		return n
	}
	return sort.Search(n, func(i int) bool { return int(offsets[i+1])-int(offsets[0]) > p.bytes })
}

// measure sees what strings that lie one behind the other take.
func (p *Packer) measure(b *Bucket) {
	b.Packed = p.room(b)
	offsets := p.Keys.Offsets[b.Lo : b.Lo+b.Packed+1]
	b.bytes = int(offsets[b.Packed] - offsets[0])
	b.Longest = b.bytes
	if p.Even && b.Packed > 0 {
		b.Width, b.Longest = Spacing(offsets)
	}
}

// Spacing returns the distance of offsets, at least two, if it is always the same and
// not 0, and else 0, and the largest.
func Spacing(offsets []int32) (width, largest int) {
	n := len(offsets) - 1
	if first := int(offsets[1] - offsets[0]); first*n == int(offsets[n])-int(offsets[0]) && spaced(offsets, uint64(first)) {
		return first, first
	}
	most := int32(0)
	for i, o := range offsets[1:] {
		most = max(most, o-offsets[i])
	}
	return 0, int(most)
}

// spaced reports whether offsets are so far apart. It looks at two at a time: where
// the first two are, each is twice as far from the one before the last.
func spaced(offsets []int32, by uint64) bool {
	pairs := unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(offsets))), len(offsets)/2)
	var differs uint64
	if len(pairs) > 1 {
		before := pairs[0]
		for _, p := range pairs[1:] {
			differs |= p - before ^ (by<<33 + by<<1)
			before = p
		}
	}
	n := len(offsets)
	return differs == 0 && uint64(offsets[1]-offsets[0]) == by && uint64(offsets[n-1]-offsets[n-2]) == by
}

// takes returns the bytes that a string takes in a bucket.
func (p *Packer) takes(key string) int {
	switch {
	case len(key) > p.limits.Longest:
		return 0
	case p.after:
		return len(key) + 1
	}
	return len(key)
}

// Pack packs the strings of a bucket into page-locked memory, unless the device reads
// them where they are.
func (p *Packer) Pack(b *Bucket, in []byte) {
	if !p.packed {
		p.gather(b, in)
		return
	}
	p.measure(b)
	if p.direct {
		return
	}
	from := p.Keys.Offsets[b.Lo:]
	if b.Width == 0 {
		copy(arena.As[int32](in), from[:b.Packed+1])
	}
	copy(in[head(b.Packed):], p.Keys.Data[from[0]:][:b.bytes])
}

// gather packs strings, as many as find room. Of those that are too long
// nothing is packed. Behind room for offsets of the whole bucket bytes have no
// gap: where not all are packed they are moved.
func (p *Packer) gather(b *Bucket, in []byte) {
	n := b.Hi - b.Lo
	offsets, bytes := arena.As[uint32](in[:4*(n+1)]), in[head(n):]
	at, first, even := 0, p.takes(p.Keys.At(b.Lo)), p.Even
	b.Packed = n
	for i := range n {
		key := p.Keys.At(b.Lo + i)
		size := p.takes(key)
		if at+size > p.bytes {
			b.Packed = i
			break
		}
		even = even && size == first
		b.Longest = max(b.Longest, len(key))
		offsets[i] = uint32(at)
		if copy(bytes[at:at+size], key) < size {
			bytes[at+size-1] = 0
		}
		at += size
	}
	offsets[b.Packed] = uint32(at)
	b.bytes = at
	if even {
		b.Width = first
	}
	if b.Packed < n {
		copy(in[head(b.Packed):], bytes[:at])
	}
}

// CopyIn queues copies of the strings that are packed to device memory of a slot, and
// returns where their bytes are, as their offsets count, which are at its begin; or
// where they begin, if there are none.
func (p *Packer) CopyIn(b *Bucket, st device.Stream, dst device.Ptr, in []byte) (keys device.Ptr, err error) {
	at := head(b.Packed)
	bytes := in[at : at+b.bytes]
	if p.direct {
		bytes = p.Keys.Data[p.Keys.Offsets[b.Lo]:][:b.bytes]
	}
	if b.Width > 0 {
		return dst, st.CopyIn(dst, bytes)
	}
	keys = dst + device.Ptr(at)
	if p.direct {
		offsets := p.Keys.Offsets[b.Lo : b.Lo+b.Packed+1]
		if err = st.CopyIn(dst, arena.Bytes(offsets)); err == nil && b.bytes > 0 {
			err = st.CopyIn(keys, bytes)
		}
	} else {
		err = st.CopyIn(dst, in[:at+b.bytes])
	}
	if p.packed { // offsets count from the first string of the batch
		keys -= device.Ptr(p.Keys.Offsets[b.Lo])
	}
	return keys, err
}

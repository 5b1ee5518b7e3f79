package packing

import (
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/arena"
)

// packedAs returns strings one behind the other, from some byte on.
func packedAs(keys []string) Strings {
	b := Strings{Data: []byte("first"), Offsets: []int32{5}}
	for _, k := range keys {
		b.Data = append(b.Data, k...)
		b.Offsets = append(b.Offsets, int32(len(b.Data)))
	}
	return b
}

// More strings than a bucket holds, and more bytes; strings that are longer
// than any bucket. What is packed is what was asked.
func TestStringsInBuckets(t *testing.T) {
	keys := slices.Repeat([]string{strings.Repeat("k", Longest), "", strings.Repeat("l", Longest+1), "short"}, 3000)
	keys = append(keys, strings.Repeat("m", MinStrings*stringBytes+1), "last", "")
	for _, after := range []bool{false, true} {
		for _, batch := range []Strings{{Keys: keys}, packedAs(keys)} {
			var p Packer
			p.Begin(batch, after, MaxStrings)
			in := make([]byte, In(p.Room))
			next, packed := 0, 0
			for {
				var b Bucket
				pieces, ok := p.Cut(&b)
				if !ok {
					break
				}
				n := b.Hi - b.Lo
				if b.Lo != next || n < 1 || n > p.Bucket || pieces != 1 {
					t.Fatalf("a bucket of %d strings from %d on, in %d pieces", n, b.Lo, pieces)
				}
				next = b.Hi
				p.Pack(&b, in)
				if 4*(b.Packed+1)+b.bytes > len(in) || b.Packed > n {
					t.Fatalf("%d of %d strings are packed, in %d bytes", b.Packed, n, b.bytes)
				}
				packed += b.Packed
				p.mustHavePacked(t, &b, in)
			}
			if next != len(keys) {
				t.Fatalf("%d of %d strings are in buckets", next, len(keys))
			}
			if packed < len(keys)/2 {
				t.Errorf("only %d of %d strings are packed", packed, len(keys))
			}
		}
	}
}

// mustHavePacked compares what is in a bucket with what was asked. Strings that
// are too long may be empty.
func (p *Packer) mustHavePacked(t *testing.T, b *Bucket, in []byte) {
	t.Helper()
	offsets, bytes := arena.As[uint32](in[:4*(b.Packed+1)]), in[4*(b.Packed+1):]
	for i := range b.Packed {
		want := p.Keys.At(b.Lo + i)
		got := string(bytes[offsets[i]-offsets[0] : offsets[i+1]-offsets[0]])
		if p.after && len(want) <= Longest {
			want += "\x00"
		}
		if got != want && (len(want) <= Longest || got != "") {
			t.Fatalf("%.20q is packed as %.20q", want, got)
		}
	}
}

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
			p.Begin(batch, after, Gathered)
			in := make([]byte, p.In())
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
				if head(b.Packed)+b.bytes > len(in) || b.Packed > n {
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
	offsets, bytes := arena.As[uint32](in[:4*(b.Packed+1)]), in[head(b.Packed):]
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

// Strings of one length have no offsets where nobody needs them, and strings that lie
// one behind the other are cut so that all find room.
func TestEven(t *testing.T) {
	for _, c := range []struct {
		name   string
		widths []int
		width  int
	}{
		{"eight", []int{8}, 8}, {"none", []int{0}, 0}, {"two", []int{8, 9}, 0}, {"as long on average", []int{8, 7, 9}, 0},
		{"the last is longer", append(slices.Repeat([]int{5}, 8*1000-1), 6), 0}, {"too long", []int{Longest + 1}, 0},
	} {
		keys := make([]string, 8*1000)
		for i := range keys {
			keys[i] = strings.Repeat("w", c.widths[i%len(c.widths)])
		}
		for _, batch := range []Strings{{Keys: keys}, packedAs(keys)} {
			var p Packer
			p.Begin(batch, false, Gathered)
			p.Even = true
			in := make([]byte, p.In())
			var b Bucket
			packed, even := 0, true
			for {
				if _, ok := p.Cut(&b); !ok {
					break
				}
				p.Pack(&b, in)
				packed += b.Packed
				even = even && b.Width > 0
				if b.Width == 0 {
					p.mustHavePacked(t, &b, in)
				} else if got := string(in[head(b.Packed):][:b.bytes]); got != strings.Repeat("w", b.Packed*b.Width) {
					t.Fatalf("%s: %.40q is packed", c.name, got)
				}
				for i := range b.Packed {
					if n := len(batch.At(b.Lo + i)); n > b.Longest {
						t.Fatalf("%s: a string of %d bytes, of %d at most", c.name, n, b.Longest)
					}
				}
			}
			if packed != len(keys) {
				t.Errorf("%s: %d of %d strings are packed", c.name, packed, len(keys))
			}
			if want := c.width; want > 0 && (!even || b.Width != want) || want == 0 && b.Width != 0 && batch.Offsets == nil {
				t.Errorf("%s: strings of width %d", c.name, b.Width)
			}
		}
	}
}

// spaced is true of what is spaced, and of nothing else, wherever one offset is another.
func TestSpaced(t *testing.T) {
	for n := 2; n < 20; n++ {
		for _, by := range []int32{0, 1, 8, 1 << 20} {
			offsets := make([]int32, n)
			for i := range offsets {
				offsets[i] = 5 + int32(i)*by
			}
			if !spaced(offsets, uint64(by)) || spaced(offsets, uint64(by)+1) {
				t.Fatalf("%v are %d apart", offsets, by)
			}
			for i := range offsets {
				for _, more := range []int32{-1, 1, 7, 1 << 19} {
					offsets[i] += more
					if spaced(offsets, uint64(by)) {
						t.Fatalf("%v are not %d apart", offsets, by)
					}
					offsets[i] -= more
				}
			}
		}
	}
}

func BenchmarkSpacing(b *testing.B) {
	offsets := make([]int32, 1<<20+1)
	for i := range offsets {
		offsets[i] = int32(8 * i)
	}
	for b.Loop() {
		Spacing(offsets)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(1<<20), "ns/string")
}

package order

import (
	"fmt"
	"testing"

	"github.com/pando-index/pando/internal/seed"
)

var sink uint64

func BenchmarkEncode(b *testing.B) {
	b.Run("uint64", benchEncode[uint64])
	b.Run("int64", benchEncode[int64])
	b.Run("float64", benchEncode[float64])
}

func benchEncode[K Key](b *testing.B) {
	c := newCodec[K, uint64]()
	r := seed.Rand(b)
	keys := make([]K, 512)
	for i := range keys {
		keys[i] = c.Decode(r.Uint64())
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		sink += c.Encode(keys[i&511])
		i++
	}
}

func BenchmarkSlices(b *testing.B) {
	b.Run("int16", benchSlices[int16, uint32])
	b.Run("int32", benchSlices[int32, uint32])
	b.Run("float32", benchSlices[float32, uint32])
	b.Run("uint64", benchSlices[uint64, uint64])
	b.Run("int64", benchSlices[int64, uint64])
	b.Run("float64", benchSlices[float64, uint64])
}

func benchSlices[K interface {
	Key
	int16 | int32 | int64 | uint64 | float32 | float64
}, C Code](b *testing.B) {
	const n = 1 << 20
	c := newCodec[K, C]()
	keys, codes := make([]K, n), make([]C, n)
	for i := range keys {
		keys[i] = c.Decode(c.Encode(0) + C(i)>>5) // an int16 has no more
	}
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.EncodeSlice(codes, keys)
		}
		perKey(b, n)
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.DecodeSlice(keys, codes)
		}
		perKey(b, n)
	})
	b.Run("sorted", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			sortedKeys(c, keys, 1)
		}
		perKey(b, n)
	})
}

func perKey(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/key")
}

func randomPairs(b *testing.B, n int) pairs[uint64, uint64] {
	r := seed.Rand(b)
	p := pairs[uint64, uint64]{make([]uint64, n), make([]uint64, n)}
	for i := range p.codes {
		p.codes[i], p.payload[i] = r.Uint64(), uint64(i)
	}
	return p
}

// BenchmarkSort sorts pairs of uint64. The time to restore the input is not
// counted.
func BenchmarkSort(b *testing.B) {
	for _, n := range []int{1 << 10, 1 << 15, 1 << 20, 1 << 24} {
		for _, d := range distributions {
			if n != 1<<20 && d.name != "random" {
				continue
			}
			for _, workers := range []int{1, 2} {
				b.Run(fmt.Sprintf("%s/n=%d/workers=%d", d.name, n, workers), func(b *testing.B) {
					input := randomPairs(b, n)
					d.fill(seed.Rand(b), input.codes)
					benchSort(b, input, workers)
				})
			}
		}
	}
}

func benchSort(b *testing.B, input pairs[uint64, uint64], workers int) {
	n := len(input.codes)
	x, y := randomPairs(b, n), randomPairs(b, n)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		x.copyFrom(input)
		b.StartTimer()
		Sort(x.codes, y.codes, x.payload, y.payload, workers)
	}
	perKey(b, n)
}

// BenchmarkSolo sorts a million pairs in buckets, one by one.
func BenchmarkSolo(b *testing.B) {
	const n = 1 << 20
	for _, size := range []int{16, 32, 1 << 10, 1 << 13, 1 << 15, 1 << 16} {
		b.Run(fmt.Sprintf("bucket=%d", size), func(b *testing.B) {
			input, x, scratch := randomPairs(b, n), randomPairs(b, n), randomPairs(b, size)
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				x.copyFrom(input)
				b.StartTimer()
				for lo := 0; lo < n; lo += size {
					bucket := x.slice(lo, lo+size)
					sortSolo(bucket, bucket, scratch)
				}
			}
			perKey(b, n)
		})
	}
}

// BenchmarkMove splits pairs into varying numbers of buckets.
func BenchmarkMove(b *testing.B) {
	const n = 1 << 22
	for _, width := range []int{2, 4, 6, 8, 11, 13} {
		b.Run(fmt.Sprintf("buckets=%d", 1<<width), func(b *testing.B) {
			p := &partition[uint64, uint64]{
				from: source[uint64, uint64]{pairs: randomPairs(b, n)}, to: randomPairs(b, n), parts: 1,
				shift: 64 - width, mask: 1<<width - 1, next: make([]int, 1<<width),
			}
			b.ReportAllocs()
			for b.Loop() {
				clear(p.next)
				p.count(0)
				p.place(1<<width, 0)
				p.move(0)
			}
			perKey(b, n)
		})
	}
}

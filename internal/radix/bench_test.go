package radix

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/pando-index/pando/internal/op"
)

// benchKeys returns n keys of a kind.
func benchKeys(kind string, n int) []string {
	rng := rand.New(rand.NewPCG(1, 2))
	keys := make([]string, n)
	for i := range keys {
		switch kind {
		case "8bytes":
			keys[i] = string(binary.BigEndian.AppendUint64(nil, rng.Uint64()))
		case "32bytes":
			keys[i] = fmt.Sprintf("%016x%016x", rng.Uint64(), rng.Uint64())
		case "url":
			keys[i] = fmt.Sprintf("https://www.example%d.com/section/%d/item-%d.html", rng.IntN(1000), rng.IntN(100), rng.Uint32())
		}
	}
	return keys
}

func BenchmarkSet(b *testing.B) {
	asInPrograms(b)
	for _, kind := range []string{"8bytes", "32bytes", "url"} {
		b.Run(kind, func(b *testing.B) {
			keys := benchKeys(kind, b.N)
			b.ReportAllocs()
			b.ResetTimer()
			t := New(0)
			for i, k := range keys {
				t.Set(k, uint64(i))
			}
			b.StopTimer()
			b.ReportMetric(float64(t.Bytes())/float64(t.Len()), "B/entry")
			t.Close()
		})
	}
}

func BenchmarkGet(b *testing.B) {
	asInPrograms(b)
	for _, kind := range []string{"8bytes", "32bytes", "url"} {
		const n = 1 << 20
		keys := benchKeys(kind, n)
		t := New(0)
		for i, k := range keys {
			t.Set(k, uint64(i))
		}
		rand.Shuffle(n, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		b.Run(kind+"/one", func(b *testing.B) {
			for i := range b.N {
				t.Get(keys[i%n])
			}
		})
		b.Run(kind+"/batch", func(b *testing.B) {
			vals, found := make([]uint64, 65536), make([]bool, 65536)
			b.ResetTimer()
			for i := 0; i < b.N; i += 65536 {
				lo := i % n
				t.GetBatch(keys[lo:lo+65536], vals, found, 1, nil)
			}
		})
		b.Run(kind+"/scan", func(b *testing.B) {
			c := t.Cursor()
			for range b.N {
				if _, _, ok := c.Next(); !ok {
					c.MoveEnd(false)
				}
			}
		})
		t.Close()
	}
}

// BenchmarkWorkers is batches on one worker and on several.
func BenchmarkWorkers(b *testing.B) {
	asInPrograms(b)
	const n = 1 << 16
	for _, kind := range []string{"8bytes", "32bytes", "url"} {
		for workers := 1; workers <= runtime.GOMAXPROCS(0); workers *= 2 {
			b.Run(fmt.Sprintf("%s/%d", kind, workers), func(b *testing.B) {
				keys := benchKeys(kind, (b.N+n-1)/n*n)
				vals := make([]uint64, n)
				b.ResetTimer()
				t := New(0)
				t.Workers = workers
				for lo := 0; lo < len(keys); lo += n {
					t.Apply(&Ops{Kind: op.Set, Keys: keys[lo : lo+n], Vals: vals, Workers: workers})
				}
				b.StopTimer()
				t.Close()
			})
		}
	}
}

// BenchmarkWriters is single operations of one goroutine and of several.
func BenchmarkWriters(b *testing.B) {
	asInPrograms(b)
	for _, kind := range []string{"8bytes", "32bytes", "url"} {
		for writers := 1; writers <= runtime.GOMAXPROCS(0); writers *= 2 {
			b.Run(fmt.Sprintf("%s/%d", kind, writers), func(b *testing.B) {
				keys := benchKeys(kind, b.N)
				b.ResetTimer()
				t := New(0)
				var wg sync.WaitGroup
				for g := range writers {
					wg.Add(1)
					go func() {
						defer wg.Done()
						for i := g; i < len(keys); i += writers {
							t.Set(keys[i], 1)
						}
					}()
				}
				wg.Wait()
				b.StopTimer()
				t.Close()
			})
		}
	}
}

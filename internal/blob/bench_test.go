package blob

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
)

// Each operation on a store of many values, on one goroutine and on two, by the length of a
// value: go test -run '^$' -bench . ./internal/blob
func BenchmarkStore(b *testing.B) {
	for _, n := range []int{32, 1000, 100_000} {
		val := valueOf(1, n)
		count := min(4<<20, 256<<20/n)
		s := New(0, nil)
		refs := make([]Ref, count)
		if err := s.PutBatch(refs, func(int) []byte { return val }, 1); err != nil {
			b.Fatal(err)
		}
		rand.Shuffle(count, func(i, j int) { refs[i], refs[j] = refs[j], refs[i] })
		for _, goroutines := range []int{1, 2} {
			run := func(name string, work func(part []Ref, times int)) {
				b.Run(fmt.Sprintf("%s/%d bytes/%d", name, n, goroutines), func(b *testing.B) {
					b.ReportAllocs()
					var wg sync.WaitGroup
					for g := range goroutines {
						wg.Add(1)
						go func() {
							defer wg.Done()
							part := count / goroutines
							work(refs[g*part:(g+1)*part], (b.N+goroutines-1)/goroutines)
						}()
					}
					wg.Wait()
				})
			}
			run("exchange", func(part []Ref, times int) { // a value at random is freed, and another put
				var old [atOnce]Ref
				for i := range times {
					r, err := s.Put(val, 1)
					if err != nil {
						panic(err)
					}
					old[i%atOnce], part[i%len(part)] = part[i%len(part)], r
					if i%atOnce == atOnce-1 {
						s.Retire(old[:])
						s.Free(old[:])
					}
				}
			})
			run("read", func(part []Ref, times int) {
				buf := make([]byte, 0, n)
				for i := range times {
					buf = part[i%len(part)].Append(buf[:0])
				}
			})
			run("read prefetched", func(part []Ref, times int) {
				buf := make([]byte, 0, n)
				var words [64]uint64
				for i := 0; i < times; i += len(words) {
					some := part[i%(len(part)-len(words)):][:len(words)]
					for j, r := range some {
						words[j] = uint64(r)
					}
					Fetch(words[:])
					for _, r := range some {
						buf = r.Append(buf[:0])
					}
				}
			})
		}
		s.Close()
	}
}

// Values that are put into an empty store, and all freed.
func BenchmarkFill(b *testing.B) {
	for _, n := range []int{32, 1000} {
		b.Run(fmt.Sprintf("%d bytes", n), func(b *testing.B) {
			val, s := valueOf(1, n), New(0, nil)
			defer s.Close()
			refs := make([]Ref, 0, b.N)
			for range b.N {
				r, err := s.Put(val, 1)
				if err != nil {
					b.Fatal(err)
				}
				refs = append(refs, r)
			}
			s.Drop(refs...)
		})
	}
}

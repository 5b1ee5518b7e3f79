package pando_test

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/pando-index/pando"
)

// prices is an index of a shop's prices by article number.
func prices() *pando.Frozen[uint32, float32] {
	articles := []uint32{4711, 1001, 3000, 1002, 2500}
	price := []float32{19.90, 3.50, 7.25, 3.95, 12}
	ix, err := pando.Freeze(articles, price)
	if err != nil {
		panic(err)
	}
	return ix
}

// readings are temperatures by the second they were measured in, two of them
// in the same.
func readings() *pando.Frozen[int64, string] {
	seconds := []int64{100, 160, 160, 220, 280}
	ix, err := pando.Freeze(seconds, []string{"18.2°", "18.4°", "18.5°", "18.9°", "18.7°"})
	if err != nil {
		panic(err)
	}
	return ix
}

func ExampleFreeze() {
	articles := []uint32{4711, 1001, 3000}
	prices := []float32{19.90, 3.50, 7.25}
	ix, err := pando.Freeze(articles, prices)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ix.Close()
	for article, price := range ix.All() {
		fmt.Println(article, price)
	}
	// Output:
	// 1001 3.5
	// 3000 7.25
	// 4711 19.9
}

// Where values take no memory, an index is an ordered set.
func ExampleFreeze_set() {
	primes, err := pando.Freeze[uint16, struct{}]([]uint16{7, 2, 11, 3, 5}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer primes.Close()
	_, isPrime := primes.Get(9)
	fmt.Println(isPrime, primes.Count(4, 12))
	// Output: false 3
}

func ExampleFreezeSeq() {
	population := map[string]int{"Oslo": 717_710, "Bergen": 291_940, "Tromsø": 77_992}
	cities, err := pando.FreezeSeq(maps.All(population))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cities.Close()
	for city, people := range cities.Range("C", "P") {
		fmt.Println(city, people)
	}
	// Output: Oslo 717710
}

func ExampleFrozen_Get() {
	ix := prices()
	defer ix.Close()
	price, ok := ix.Get(3000)
	fmt.Println(price, ok)
	price, ok = ix.Get(3001)
	fmt.Println(price, ok)
	// Output:
	// 7.25 true
	// 0 false
}

// Look up a whole basket at once: many times faster than one by one.
func ExampleFrozen_GetBatch() {
	ix := prices()
	defer ix.Close()
	basket := []uint32{1002, 9999, 4711, 1002}
	price := make([]float32, len(basket))
	found := make([]bool, len(basket))
	hits := ix.GetBatch(basket, price, found)
	fmt.Println(hits, "of", len(basket))
	fmt.Println(price)
	fmt.Println(found)
	// Output:
	// 3 of 4
	// [3.95 0 19.9 3.95]
	// [true false true true]
}

func ExampleFrozen_Len() {
	ix := readings()
	defer ix.Close()
	fmt.Println(ix.Len())
	// Output: 5
}

func ExampleFrozen_Rank() {
	ix := readings()
	defer ix.Close()
	fmt.Println(ix.Rank(200), "readings before second 200")
	// Output: 3 readings before second 200
}

// The number of readings in each minute, from the ranks of the minutes' ends.
func ExampleFrozen_RankBatch() {
	ix := readings()
	defer ix.Close()
	ends := []int64{60, 120, 180, 240, 300}
	ranks := make([]int, len(ends))
	ix.RankBatch(ends, ranks)
	for i := 1; i < len(ends); i++ {
		fmt.Printf("minute %d: %d\n", i+1, ranks[i]-ranks[i-1])
	}
	// Output:
	// minute 2: 1
	// minute 3: 2
	// minute 4: 1
	// minute 5: 1
}

// The median is the entry in the middle.
func ExampleFrozen_At() {
	ix := prices()
	defer ix.Close()
	article, price := ix.At(ix.Len() / 2)
	fmt.Println(article, price)
	// Output: 2500 12
}

func ExampleFrozen_Min() {
	ix := readings()
	defer ix.Close()
	if second, reading, ok := ix.Min(); ok {
		fmt.Println("first:", second, reading)
	}
	// Output: first: 100 18.2°
}

func ExampleFrozen_Max() {
	ix := readings()
	defer ix.Close()
	if second, reading, ok := ix.Max(); ok {
		fmt.Println("last:", second, reading)
	}
	// Output: last: 280 18.7°
}

// What was the last reading at that time?
func ExampleFrozen_Floor() {
	ix := readings()
	defer ix.Close()
	fmt.Println(ix.Floor(200))
	_, _, ok := ix.Floor(99)
	fmt.Println(ok)
	// Output:
	// 160 18.5° true
	// false
}

// What is the next reading from that time on?
func ExampleFrozen_Ceil() {
	ix := readings()
	defer ix.Close()
	fmt.Println(ix.Ceil(101))
	// Output: 160 18.4° true
}

func ExampleFrozen_All() {
	ix := readings()
	defer ix.Close()
	for second, reading := range ix.All() {
		fmt.Println(second, reading)
	}
	// Output:
	// 100 18.2°
	// 160 18.4°
	// 160 18.5°
	// 220 18.9°
	// 280 18.7°
}

// The two latest readings.
func ExampleFrozen_Backward() {
	ix := readings()
	defer ix.Close()
	n := 0
	for second, reading := range ix.Backward() {
		fmt.Println(second, reading)
		if n++; n == 2 {
			break
		}
	}
	// Output:
	// 280 18.7°
	// 220 18.9°
}

// Both ends belong to a range, and equal keys come in the order they were
// given.
func ExampleFrozen_Range() {
	ix := readings()
	defer ix.Close()
	for second, reading := range ix.Range(160, 220) {
		fmt.Println(second, reading)
	}
	// Output:
	// 160 18.4°
	// 160 18.5°
	// 220 18.9°
}

func ExampleFrozen_Count() {
	ix := prices()
	defer ix.Close()
	fmt.Println(ix.Count(1000, 1999), "articles in group 1")
	// Output: 2 articles in group 1
}

// The cheapest way to ask for many ranges: here the first two articles of each
// group.
func ExampleFrozen_RangeBatch() {
	ix := prices()
	defer ix.Close()
	from := []uint32{1000, 2000, 5000}
	to := []uint32{1999, 4999, 5999}
	groups := ix.RangeBatch(from, to, 2)
	for i := range groups.Len() {
		articles, prices := groups.At(i)
		fmt.Println(from[i], articles, prices)
	}
	// Output:
	// 1000 [1001 1002] [3.5 3.95]
	// 2000 [2500 3000] [12 7.25]
	// 5000 [] []
}

func ExampleFrozen_Stats() {
	keys := make([]uint64, 1_000_000)
	for i := range keys {
		keys[i] = uint64(i) * 17
	}
	ix, err := pando.Freeze(keys, keys)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ix.Close()
	s := ix.Stats()
	fmt.Println(s.Len, "entries in", s.Layout)
	fmt.Println("a lookup reads", s.Levels+1, "cache lines")
	fmt.Printf("%.1f bytes an entry\n", float64(s.InnerBytes+s.LeafBytes)/float64(s.Len))
	// Output:
	// 1000000 entries in pairs
	// a lookup reads 7 cache lines
	// 18.0 bytes an entry
}

// Close returns memory back at once. Without it, the garbage collector does so
// when nothing refers to the index any more.
func ExampleFrozen_Close() {
	ix := prices()
	price, _ := ix.Get(2500)
	ix.Close()
	fmt.Println(price) // results are copies
	// Output: 12
}

func ExampleMemoryLimit() {
	keys := make([]uint64, 1_000_000)
	_, err := pando.Freeze(keys, keys, pando.MemoryLimit(4<<20)) // the values alone take 8 MB
	fmt.Println(errors.Is(err, pando.ErrMemoryLimit))
	// Output: true
}

func ExampleFrozen_Prefix() {
	pages := []string{"/", "/books", "/books/7", "/books/12", "/music", "/bookshop"}
	visits := []int{90, 40, 3, 5, 20, 1}
	ix, err := pando.Freeze(pages, visits)
	if err != nil {
		panic(err)
	}
	defer ix.Close()
	for page, n := range ix.Prefix("/books/") {
		fmt.Println(page, n)
	}
	// Output:
	// /books/12 5
	// /books/7 3
}

func ExampleFrozen_PrefixCount() {
	words := []string{"car", "card", "care", "cat", "dog"}
	ix, err := pando.Freeze(words, make([]struct{}, len(words)))
	if err != nil {
		panic(err)
	}
	defer ix.Close()
	fmt.Println(ix.PrefixCount("car"), ix.PrefixCount("c"), ix.PrefixCount("x"), ix.PrefixCount(""))
	// Output: 3 4 0 5
}

func ExampleResponseTime() {
	keys := []uint64{2, 3, 5, 7}
	ix, err := pando.Freeze(keys, keys, pando.ResponseTime(5*time.Millisecond))
	if err != nil {
		panic(err)
	}
	defer ix.Close()
	vals := make([]uint64, 3)
	fmt.Println(ix.GetBatch([]uint64{5, 6, 7}, vals, nil), vals)
	// Output: 2 [5 0 7]
}

func ExampleLayout() {
	keys := []uint64{1, 2, 3}
	small, err := pando.Freeze(keys, keys, pando.Layout(pando.Compressed))
	if err != nil {
		panic(err)
	}
	defer small.Close()
	fmt.Println(small.Stats().Layout)
	_, err = pando.Freeze(keys, []string{"a", "b", "c"}, pando.Layout(pando.Pairs))
	fmt.Println(errors.Is(err, pando.ErrLayout))
	// Output:
	// compressed
	// true
}

func ExampleFrozen_GetBatchBytes() {
	ix, err := pando.Freeze([]string{"apple", "banana", "cherry"}, []int{3, 5, 7})
	if err != nil {
		panic(err)
	}
	defer ix.Close()
	// "cherry", "plum" and "apple", one behind the other, as Arrow has them.
	data, offsets := []byte("cherryplumapple"), []int32{0, 6, 10, 15}
	vals, found := make([]int, 3), make([]bool, 3)
	hits := ix.GetBatchBytes(data, offsets, vals, found)
	fmt.Println(hits, vals, found)
	// Output: 2 [7 0 3] [true false true]
}

func ExampleParseDevice() {
	d, err := pando.ParseDevice("hybrid:0")
	fmt.Println(d == pando.Hybrid(0), err)
	_, err = pando.ParseDevice("tpu")
	fmt.Println(err)
	// Output:
	// true <nil>
	// pando: no such device: "tpu"; take auto, cpu, gpu:0 or hybrid:0
}

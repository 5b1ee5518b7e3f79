package pando_test

import (
	"fmt"
	"log"

	"github.com/pando-index/pando"
)

func ExampleFrozen_Get() {
	prices, err := pando.Freeze([]uint32{4711, 1001, 3000}, []float32{19.90, 3.50, 7.25})
	if err != nil {
		log.Fatal(err)
	}
	defer prices.Close()

	price, ok := prices.Get(3000)
	fmt.Println(price, ok)
	price, ok = prices.Get(3001)
	fmt.Println(price, ok)
	// Output:
	// 7.25 true
	// 0 false
}

// Look up a whole basket at once: many times faster than one by one.
func ExampleFrozen_GetBatch() {
	prices, err := pando.Freeze([]uint32{4711, 1001, 3000, 1002}, []float32{19.90, 3.50, 7.25, 3.95})
	if err != nil {
		log.Fatal(err)
	}
	defer prices.Close()

	basket := []uint32{1002, 9999, 4711, 1002}
	price := make([]float32, len(basket))
	found := make([]bool, len(basket))
	hits := prices.GetBatch(basket, price, found)
	fmt.Println(hits, "of", len(basket))
	fmt.Println(price)
	fmt.Println(found)
	// Output:
	// 3 of 4
	// [3.95 0 19.9 3.95]
	// [true false true true]
}

func ExampleFrozen_Has() {
	prices, err := pando.Freeze([]uint32{4711, 1001, 3000}, []float32{19.90, 3.50, 7.25})
	if err != nil {
		log.Fatal(err)
	}
	defer prices.Close()

	fmt.Println(prices.Has(3000), prices.Has(3001))
	// Output: true false
}

// Equal keys are all kept.
func ExampleFrozen_Len() {
	readings, err := pando.Freeze([]int64{100, 160, 160}, []string{"18.2°", "18.4°", "18.5°"})
	if err != nil {
		log.Fatal(err)
	}
	defer readings.Close()

	fmt.Println(readings.Len())
	// Output: 3
}

// Rank counts the keys below one.
func ExampleFrozen_Rank() {
	seconds := []int64{100, 160, 160, 220, 280}
	readings, err := pando.Freeze(seconds, []string{"18.2°", "18.4°", "18.5°", "18.9°", "18.7°"})
	if err != nil {
		log.Fatal(err)
	}
	defer readings.Close()

	fmt.Println(readings.Rank(200), "readings before second 200")
	// Output: 3 readings before second 200
}

// The number of readings in each minute, from the ranks of the minutes' ends.
func ExampleFrozen_RankBatch() {
	seconds := []int64{100, 160, 160, 220, 280}
	readings, err := pando.Freeze(seconds, []string{"18.2°", "18.4°", "18.5°", "18.9°", "18.7°"})
	if err != nil {
		log.Fatal(err)
	}
	defer readings.Close()

	ends := []int64{60, 120, 180, 240, 300}
	ranks := make([]int, len(ends))
	readings.RankBatch(ends, ranks)
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
	prices, err := pando.Freeze([]uint32{4711, 1001, 3000}, []float32{19.90, 3.50, 7.25})
	if err != nil {
		log.Fatal(err)
	}
	defer prices.Close()

	article, price := prices.At(prices.Len() / 2)
	fmt.Println(article, price)
	// Output: 3000 7.25
}

func ExampleFrozen_Min() {
	readings, err := pando.Freeze([]int64{160, 100, 220}, []string{"18.4°", "18.2°", "18.9°"})
	if err != nil {
		log.Fatal(err)
	}
	defer readings.Close()

	if second, reading, ok := readings.Min(); ok {
		fmt.Println("first:", second, reading)
	}
	// Output: first: 100 18.2°
}

func ExampleFrozen_Max() {
	readings, err := pando.Freeze([]int64{160, 100, 220}, []string{"18.4°", "18.2°", "18.9°"})
	if err != nil {
		log.Fatal(err)
	}
	defer readings.Close()

	if second, reading, ok := readings.Max(); ok {
		fmt.Println("last:", second, reading)
	}
	// Output: last: 220 18.9°
}

// What was the last reading at that time?
func ExampleFrozen_Floor() {
	readings, err := pando.Freeze([]int64{160, 100, 220}, []string{"18.4°", "18.2°", "18.9°"})
	if err != nil {
		log.Fatal(err)
	}
	defer readings.Close()

	second, reading, ok := readings.Floor(200)
	fmt.Println(second, reading, ok)
	_, _, ok = readings.Floor(99)
	fmt.Println(ok)
	// Output:
	// 160 18.4° true
	// false
}

// What is the next reading from that time on?
func ExampleFrozen_Ceil() {
	readings, err := pando.Freeze([]int64{160, 100, 220}, []string{"18.4°", "18.2°", "18.9°"})
	if err != nil {
		log.Fatal(err)
	}
	defer readings.Close()

	second, reading, ok := readings.Ceil(101)
	fmt.Println(second, reading, ok)
	// Output: 160 18.4° true
}

// Both ends are counted.
func ExampleFrozen_Count() {
	prices, err := pando.Freeze([]uint32{4711, 1001, 3000, 1002}, []float32{19.90, 3.50, 7.25, 3.95})
	if err != nil {
		log.Fatal(err)
	}
	defer prices.Close()

	fmt.Println(prices.Count(1000, 1999), "articles in group 1")
	// Output: 2 articles in group 1
}

func ExampleFrozen_CountBatch() {
	ix, err := pando.Freeze[int, struct{}]([]int{10, 20, 20, 30}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer ix.Close()

	counts := make([]int, 2)
	ix.CountBatch([]int{10, 20}, []int{20, 20}, counts)
	fmt.Println(counts)
	// Output: [3 2]
}

func ExampleFrozen_Stats() {
	keys := make([]uint64, 1_000_000)
	for i := range keys {
		keys[i] = uint64(i) * 17
	}
	ix, err := pando.Freeze(keys, keys)
	if err != nil {
		log.Fatal(err)
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

func ExampleFrozen_String() {
	ix, err := pando.Freeze([]uint64{1, 2, 3}, []uint64{4, 5, 6}, pando.On(pando.CPU))
	if err != nil {
		log.Fatal(err)
	}
	ix.Close()

	fmt.Println(ix)
	// Output: pando.Frozen[uint64,uint64]{closed}
}

// Close gives memory back at once. Without it, the garbage collector does so when
// nothing refers to the index any more.
func ExampleFrozen_Close() {
	prices, err := pando.Freeze([]uint32{4711, 1001, 3000}, []float32{19.90, 3.50, 7.25})
	if err != nil {
		log.Fatal(err)
	}
	price, _ := prices.Get(3000)
	if err := prices.Close(); err != nil {
		log.Fatal(err)
	}

	fmt.Println(price) // results are copies
	// Output: 7.25
}

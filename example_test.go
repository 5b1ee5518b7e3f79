package pando_test

import (
	"fmt"
	"log"
	"maps"

	"github.com/pando-index/pando"
)

// Keys need not be sorted.
func ExampleFreeze() {
	articles := []uint32{4711, 1001, 3000}
	prices := []float32{19.90, 3.50, 7.25}
	ix, err := pando.Freeze(articles, prices)
	if err != nil {
		log.Fatal(err)
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
	primes, err := pando.Freeze[int, struct{}]([]int{7, 2, 11, 3, 5}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer primes.Close()

	fmt.Println(primes.Has(9), primes.Count(4, 12))
	// Output: false 3
}

func ExampleFreezeSeq() {
	population := map[string]int{"Oslo": 717_710, "Bergen": 291_940, "Tromsø": 77_992}
	cities, err := pando.FreezeSeq(maps.All(population))
	if err != nil {
		log.Fatal(err)
	}
	defer cities.Close()

	for city, people := range cities.Range("C", "P") {
		fmt.Println(city, people)
	}
	// Output: Oslo 717710
}

// Merge yields the entries of both, Intersect those of the first whose key the
// second has, and Difference those whose key it has not.
func ExampleMerge() {
	a, err := pando.Freeze[int, struct{}]([]int{1, 3, 5}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer a.Close()
	b, err := pando.Freeze[int, struct{}]([]int{3, 4}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()

	var merged, both, rest []int
	for k := range pando.Merge(a, b) {
		merged = append(merged, k)
	}
	for k := range pando.Intersect(a, b) {
		both = append(both, k)
	}
	for k := range pando.Difference(a, b) {
		rest = append(rest, k)
	}
	fmt.Println(merged, both, rest)
	// Output: [1 3 3 4 5] [3] [1 5]
}

// The same as an index, made on all cores.
func ExampleFreezeMerge() {
	a, err := pando.Freeze[int, struct{}]([]int{1, 3, 5}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer a.Close()
	b, err := pando.Freeze[int, struct{}]([]int{3, 4}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()

	all, err := pando.FreezeMerge(a, b)
	if err != nil {
		log.Fatal(err)
	}
	defer all.Close()
	fmt.Println(all.Len(), all.Count(3, 3))
	// Output: 5 2
}

// Reading is the same for a Frozen and a Tree.
func ExampleIndex() {
	frozen, err := pando.Freeze([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer frozen.Close()
	tree, err := pando.TreeOf([]uint32{2500, 1002}, []int{3, 1})
	if err != nil {
		log.Fatal(err)
	}
	defer tree.Close()

	for _, ix := range []pando.Index[uint32, int]{frozen, tree} {
		fmt.Println(ix.Len(), "articles,", ix.Count(1000, 1999), "in group 1")
	}
	// Output:
	// 3 articles, 1 in group 1
	// 2 articles, 1 in group 1
}

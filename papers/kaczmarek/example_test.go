package kaczmarek_test

import (
	"fmt"
	"log"

	"github.com/pando-index/pando/papers/kaczmarek"
	"github.com/pando-index/pando/papers/machine"
)

// A tree takes one pair after the other, and all its values are visited at once.
func ExamplePages() {
	d := machine.Interpreter() // or machine.GPU(0)
	defer d.Close()
	tree, err := kaczmarek.NewPages[uint64](d, 2048, 10, 32) // pairs of a page, pages, threads of a block
	if err != nil {
		log.Fatal(err)
	}
	defer tree.Close()

	if _, err := tree.Insert([]uint64{30, 10, 20}, []uint64{3, 1, 2}); err != nil {
		log.Fatal(err)
	}
	if err := tree.Add(100); err != nil {
		log.Fatal(err)
	}
	sum, err := tree.Sum()
	if err != nil {
		log.Fatal(err)
	}
	keys, vals, err := tree.Check()
	fmt.Println(sum, keys, vals, err)
	// Output: 306 [10 20 30] [101 102 103] <nil>
}

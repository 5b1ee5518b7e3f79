package thesis_test

import (
	"fmt"
	"log"

	"github.com/pando-index/pando/papers/machine"
	"github.com/pando-index/pando/papers/thesis"
)

// Many operations change and search one tree at once.
func ExampleBlink() {
	d := machine.Interpreter() // or machine.GPU(0)
	defer d.Close()
	tree, err := thesis.NewBlink[uint64](d, 16, 1000) // pairs of a node, nodes
	if err != nil {
		log.Fatal(err)
	}
	defer tree.Close()

	if _, err := tree.Put([]uint64{30, 10, 20}, []uint64{3, 1, 2}); err != nil {
		log.Fatal(err)
	}
	vals := make([]uint64, 2)
	outcomes, err := tree.Get([]uint64{20, 25}, vals)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(vals[0], outcomes[0] == thesis.BlinkFound, outcomes[1] == thesis.BlinkFound)
	keys, _, err := tree.Ranges([]thesis.BlinkRange[uint64]{{Low: 10, High: 29}}, 100)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(keys[0])
	// Output:
	// 2 true false
	// [10 20]
}

// Command with uses Pando, and asks for a GPU, with the import of a driver.
package main

import (
	"fmt"

	"github.com/pando-index/pando"
	_ "github.com/pando-index/pando/cuda"
)

func main() {
	f, err := pando.Freeze([]uint64{1, 2, 3}, []uint64{4, 5, 6}, pando.On(pando.GPU(0)))
	fmt.Println(err)
	fmt.Println(f.Get(2))
	fmt.Println(f.Stats().Device, f.Stats().Reason)
	t, err := pando.NewTree[string, int64]()
	fmt.Println(err, t.Set("a", 2))
	fmt.Println(t.Get("a"))
}

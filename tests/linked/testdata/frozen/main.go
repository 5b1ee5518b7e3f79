// Command frozen uses an index that does not change.
package main

import (
	"fmt"

	"github.com/pando-index/pando"
)

func main() {
	f, err := pando.Freeze([]uint64{1, 2, 3}, []uint64{4, 5, 6})
	fmt.Println(err)
	fmt.Println(f.Get(2))
}

// Command tree uses an index that changes.
package main

import (
	"fmt"

	"github.com/pando-index/pando"
)

func main() {
	t, err := pando.NewTree[uint64, uint64]()
	fmt.Println(err, t.Set(1, 2))
	fmt.Println(t.Get(1))
}

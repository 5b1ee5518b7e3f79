// Command store uses a store, without the import of a driver.
package main

import (
	"fmt"
	"os"

	"github.com/pando-index/pando/pandostore"
)

func main() {
	s, err := pandostore.Open[string, int64](os.Args[1])
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Set("a", 2), s.Close())
}

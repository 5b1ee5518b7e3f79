package pandostore_test

import (
	"fmt"
	"log"
	"os"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/pandostore"
)

// A store is a folder. What was acknowledged is there when it is opened again.
func Example() {
	dir, err := os.MkdirTemp("", "store")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	s, err := pandostore.Open[string, int64](dir)
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Set("apples", 3); err != nil { // on disk when it returns
		log.Fatal(err)
	}
	if err := s.SetBatch([]string{"pears", "plums"}, []int64{5, 8}); err != nil { // all of it or nothing
		log.Fatal(err)
	}
	if err := s.Update("apples", func(old int64, had bool) (int64, bool) { return old + 1, true }); err != nil {
		log.Fatal(err)
	}
	if err := s.Close(); err != nil {
		log.Fatal(err)
	}

	if s, err = pandostore.Open[string, int64](dir); err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	for k, v := range s.All() {
		fmt.Println(k, v)
	}
	fmt.Println("sum", pando.Aggregate(s, "a", "z").Sum)
	fmt.Println("operations done again:", s.Log().Found.LogOperations)
	// Output:
	// apples 4
	// pears 5
	// plums 8
	// sum 17
	// operations done again: 4
}

// Other processes read the newest checkpoint, which is an ordinary file of Pando's.
func ExampleOpenCheckpoint() {
	dir, err := os.MkdirTemp("", "store")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	s, err := pandostore.Open[uint64, uint64](dir, pandostore.CheckpointAfter(1<<30))
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	if err := s.Set(1, 10); err != nil {
		log.Fatal(err)
	}
	if err := s.Checkpoint(); err != nil {
		log.Fatal(err)
	}
	if err := s.Set(2, 20); err != nil {
		log.Fatal(err)
	}

	f, err := pandostore.OpenCheckpoint[uint64, uint64](dir)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	fmt.Println(f.Len(), s.Len())
	// Output: 1 2
}

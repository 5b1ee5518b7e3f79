package pando_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pando-index/pando"
)

// A snapshot stays as it was.
func ExampleTree_Snapshot() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	before := stock.Snapshot()
	defer before.Close()
	if err := stock.Set(4711, 4); err != nil {
		log.Fatal(err)
	}
	fmt.Println(before.Get(4711))
	fmt.Println(stock.Get(4711))
	// Output:
	// 5 true
	// 4 true
}

// A compact copy, made while others go on changing the tree.
func ExampleTree_Freeze() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	ix, err := stock.Freeze()
	if err != nil {
		log.Fatal(err)
	}
	defer ix.Close()
	fmt.Println(ix.Len(), ix.Rank(4000))
	// Output: 3 2
}

// What is saved is the tree as it is at one moment, while others go on changing it.
func ExampleTree_Save() {
	dir, err := os.MkdirTemp("", "pando")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "stock.pando")

	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()
	if err := stock.Save(path); err != nil {
		log.Fatal(err)
	}

	ix, err := pando.Open[uint32, int](path)
	if err != nil {
		log.Fatal(err)
	}
	defer ix.Close()
	fmt.Println(ix.Get(1001))
	// Output: 12 true
}

// A tree goes on from a file.
func ExampleOpenTree() {
	dir, err := os.MkdirTemp("", "pando")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "stock.pando")

	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	if err := stock.Save(path); err != nil {
		log.Fatal(err)
	}
	stock.Close()

	stock, err = pando.OpenTree[uint32, int](path)
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()
	if err := stock.Set(2000, 7); err != nil {
		log.Fatal(err)
	}
	fmt.Println(stock.Len())
	// Output: 4
}

func ExampleTree_WriteTo() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	var stream bytes.Buffer // or a connection, or an upload
	if _, err := stock.WriteTo(&stream); err != nil {
		log.Fatal(err)
	}
	ix, err := pando.Read[uint32, int](&stream)
	if err != nil {
		log.Fatal(err)
	}
	defer ix.Close()
	fmt.Println(ix.Len())
	// Output: 3
}

// After Close, what returns an error returns ErrClosed, and all else panics.
func ExampleTree_Close() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	if err := stock.Close(); err != nil {
		log.Fatal(err)
	}

	err = stock.Set(4711, 6)
	fmt.Println(errors.Is(err, pando.ErrClosed))
	// Output: true
}

// A server closes its tree last: Shutdown returns when no handler is running any
// more, and then nobody reads the tree.
func ExampleTree_Close_shutdown() {
	visits, err := pando.NewTree[string, int]()
	if err != nil {
		log.Fatal(err)
	}
	count := func(w http.ResponseWriter, r *http.Request) {
		var n int
		err := visits.Update(r.URL.Path, func(old int, had bool) (int, bool) {
			n = old + 1
			return n, true
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(w, "%s: visit %d\n", r.URL.Path, n)
	}
	server := &http.Server{Handler: http.HandlerFunc(count)}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go server.Serve(listener)

	answer, err := http.Get("http://" + listener.Addr().String() + "/news")
	if err != nil {
		log.Fatal(err)
	}
	io.Copy(os.Stdout, answer.Body)
	answer.Body.Close()

	// On a signal, say: see signal.NotifyContext.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		log.Fatal(err) // a handler is still running: leave the tree open
	}
	if err := visits.Close(); err != nil {
		log.Fatal(err)
	}
	// Output: /news: visit 1
}

func ExampleTree_Stats() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	s := stock.Stats()
	fmt.Println(s.Len, s.Layout)
	// Output: 3 bplus
}

func ExampleTree_String() {
	stock, err := pando.TreeOf([]uint32{4711, 1001, 3000}, []int{5, 12, 0})
	if err != nil {
		log.Fatal(err)
	}
	defer stock.Close()

	text, _, _ := strings.Cut(stock.String(), ", ") // its memory and device follow
	fmt.Println(text)
	// Output: pando.Tree[uint32,int]{3 entries
}

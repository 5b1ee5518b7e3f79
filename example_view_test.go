package pando_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/pandoview"
)

// Package pandoview shows an index in a browser.
func ExampleFrozen_Inside() {
	ix, err := pando.Freeze([]int64{1, 2, 3}, []string{"one", "two", "three"})
	if err != nil {
		log.Fatal(err)
	}
	defer ix.Close()
	h := pandoview.Handler(ix)

	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "http://localhost/", nil))
	fmt.Println(answer.Code, answer.Header().Get("Content-Type"))
	fmt.Println(ix.Inside().Key, ix.Inside().Stats().Len)
	// Output:
	// 200 text/html; charset=utf-8
	// int64 3
}

// A tree is shown while others change it.
func ExampleTree_Inside() {
	t, err := pando.TreeOf([]int64{1, 2, 3}, []string{"one", "two", "three"})
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close()
	in := t.Inside()
	if err := t.Set(4, "four"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(in.Mutable, in.Stats().Len)
	// Output: true 4
}

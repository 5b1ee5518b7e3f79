package pando_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/pandoview"
)

// Package pandoview shows an index in a browser: a tree while others change it.
func Example_view() {
	t, err := pando.TreeOf([]int64{1, 2, 3}, []string{"one", "two", "three"})
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close()
	h := pandoview.Handler(t)

	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "http://localhost/", nil))
	fmt.Println(answer.Code, answer.Header().Get("Content-Type"))
	// Output: 200 text/html; charset=utf-8
}

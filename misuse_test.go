package pando_test

import (
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/facetest"
)

// Misuse panics with a sentence that says what was wrong, and changes nothing.
func TestMisusePanics(t *testing.T) {
	ix := counted(t, 10)
	defer ix.Close()
	words := facetest.MustFreeze(t, []string{"a", "b"}, []uint64{1, 2})
	defer words.Close()
	keys, vals, found, ranks := make([]uint64, 5), make([]uint64, 4), make([]bool, 4), make([]int, 4)
	vals[0], found[0], ranks[0] = 7, true, 7
	for _, c := range []struct {
		name string
		do   func()
		want string
	}{
		{"short vals", func() { ix.GetBatch(keys, vals, nil) }, "pando: GetBatch: vals holds 4 results, but there are 5 keys"},
		{"nil vals", func() { ix.GetBatch(keys, nil, nil) }, "pando: GetBatch: vals holds 0 results, but there are 5 keys"},
		{"short found", func() { ix.GetBatch(keys, make([]uint64, 5), found) }, "pando: GetBatch: found holds 4 results, but there are 5 keys"},
		{"empty found", func() { ix.GetBatch(keys, make([]uint64, 5), found[:0]) }, "pando: GetBatch: found holds 0 results, but there are 5 keys"},
		{"short ranks", func() { ix.RankBatch(keys, ranks) }, "pando: RankBatch: ranks holds 4 results, but there are 5 keys"},
		{"at -1", func() { ix.At(-1) }, "pando: At(-1): the index has 10 entries"},
		{"at the end", func() { ix.At(10) }, "pando: At(10): the index has 10 entries"},
		{"more below", func() { ix.RangeBatch(keys, keys[:3], 0) }, "pando: RangeBatch: 5 lower and 3 upper bounds"},
		{"more above", func() { ix.RangeBatch(nil, keys, 1) }, "pando: RangeBatch: 0 lower and 5 upper bounds"},
		{"strings, vals", func() { words.GetBatch([]string{"a"}, nil, nil) }, "pando: GetBatch: vals holds 0 results, but there are 1 keys"},
		{"bytes of numbers", func() { ix.GetBatchBytes(nil, []int32{0}, nil, nil) }, "pando: GetBatchBytes: only strings can be looked up by bytes, and the keys here are uint64"},
		{"no offsets", func() { words.GetBatchBytes(nil, nil, nil, nil) }, "pando: GetBatchBytes: no offsets; there is one more than there are keys"},
		{"offset beyond", func() { words.GetBatchBytes([]byte("ab"), []int32{0, 3}, make([]uint64, 1), nil) }, "pando: GetBatchBytes: offset 1 is 3; offsets ascend from 0 to the length of data, 2"},
		{"offsets descend", func() { words.GetBatchBytes([]byte("ab"), []int32{0, 2, 1}, make([]uint64, 2), nil) }, "pando: GetBatchBytes: offset 2 is 1; offsets ascend from 0 to the length of data, 2"},
		{"offset below 0", func() { words.GetBatchBytes([]byte("ab"), []int32{-1, 2}, make([]uint64, 1), nil) }, "pando: GetBatchBytes: offset 0 is -1; offsets ascend from 0 to the length of data, 2"},
		{"bytes, vals", func() { words.GetBatchBytes([]byte("ab"), []int32{0, 1, 2}, make([]uint64, 1), nil) }, "pando: GetBatchBytes: vals holds 1 results, but there are 2 keys"},
		{"strings, at", func() { words.At(2) }, "pando: At(2): the index has 2 entries"},
	} {
		if got := facetest.PanicOf(c.do); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if vals[0] != 7 || !found[0] || ranks[0] != 7 {
		t.Error("a refused batch has written results")
	}
	if v, ok := ix.Get(3); !ok || v != 3 {
		t.Error("the index is no longer of use after misuse")
	}
}

// At on an empty index has nothing to give.
func TestAtOfEmptyIndex(t *testing.T) {
	ix := counted(t, 0)
	defer ix.Close()
	if got := facetest.PanicOf(func() { ix.At(0) }); !strings.Contains(got, "the index has 0 entries") {
		t.Errorf("%q", got)
	}
}

package pandoarrow

import (
	"errors"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/seed"
)

// TestTree tests a tree of Arrow arrays, which keeps nothing of them, against a map.
func TestTree(t *testing.T) {
	r := seed.Rand(t)
	for range 20 {
		mem := checked(t)
		tree, err := pando.NewTree[string, string]()
		if err != nil {
			t.Fatal(err)
		}
		model := map[string]string{}
		for range 10 {
			kb, vb, db := array.NewStringBuilder(mem), array.NewStringBuilder(mem), array.NewStringBuilder(mem)
			for range r.IntN(50) {
				k, v := fmt.Sprint("key", r.IntN(40)), fmt.Sprint("v", r.Uint32())
				switch r.IntN(8) {
				case 0:
					kb.AppendNull()
					vb.Append(v)
				case 1:
					kb.Append(k)
					vb.AppendNull()
				default:
					kb.Append(k)
					vb.Append(v)
					model[k] = v
				}
			}
			gone := 0
			for range r.IntN(10) {
				k := fmt.Sprint("key", r.IntN(40))
				if r.IntN(4) == 0 {
					db.AppendNull()
					continue
				}
				db.Append(k)
				if _, ok := model[k]; ok {
					gone++
				}
				delete(model, k)
			}
			keys, vals, dead := kb.NewArray(), vb.NewArray(), db.NewArray()
			err := SetBatchValid(tree, keys, vals)
			n, dErr := DeleteBatch(tree, dead)
			for _, x := range []interface{ Release() }{keys, vals, dead, kb, vb, db} {
				x.Release()
			}
			if err != nil || dErr != nil || n != gone || tree.Len() != len(model) {
				t.Fatalf("%v, %v, %d deleted, want %d; %d left, want %d", err, dErr, n, gone, tree.Len(), len(model))
			}
		}
		for k, v := range tree.All() {
			if model[k] != v {
				t.Fatalf("%s: %s, want %s", k, v, model[k])
			}
		}
		tree.Close()
	}
}

// TestTreeOf tests that functions which take an index take a tree, and errors.
func TestTreeOf(t *testing.T) {
	mem := checked(t)
	p := arrow.PrimitiveTypes
	keys := makeArray(t, mem, p.Int64, []string{"5", "3", "3"})
	defer keys.Release()
	tree, err := TreeOf[int64, int64](keys, keys)
	if err != nil || tree.Len() != 2 {
		t.Fatal(tree, err)
	}
	defer tree.Close()
	got, hits, err := Get(tree, keys, mem)
	if err != nil || hits != 3 || texts(got) != "5 3 3" {
		t.Fatalf("%v, %d, %v", got, hits, err)
	}
	got.Release()
	ranks, err := Rank(tree, keys, mem)
	if err != nil || texts(ranks) != "1 0 0" {
		t.Fatalf("%v, %v", ranks, err)
	}
	ranks.Release()
	holed := makeArray(t, mem, p.Int64, []string{"1", "", "2"})
	defer holed.Release()
	if _, err := TreeOf[int64, int64](holed, keys); !errors.Is(err, ErrNull) {
		t.Errorf("null key: %v", err)
	}
	if err := SetBatch(tree, keys, Column(holed)); !errors.Is(err, ErrNull) {
		t.Errorf("null value: %v", err)
	}
	if err := SetBatch(tree, keys, nil); !errors.Is(err, pando.ErrLength) {
		t.Errorf("no values: %v", err)
	}
	words := makeArray(t, mem, arrow.BinaryTypes.String, []string{"a", "b", "c"})
	defer words.Release()
	if err := SetBatch(tree, holed, words); !errors.Is(err, ErrType) {
		t.Errorf("words: %v", err)
	}
	if _, err := DeleteBatch(tree, words); !errors.Is(err, ErrType) {
		t.Errorf("words deleted: %v", err)
	}
	if tree.Len() != 2 {
		t.Errorf("%d entries after errors", tree.Len())
	}
	set, err := TreeOf[int64, struct{}](keys, nil)
	if err != nil || SetBatch(set, holed, nil) == nil || SetBatchValid(set, holed, nil) != nil || set.Len() != 4 {
		t.Errorf("a set: %v, %v", set, err)
	}
	set.Close()
}

package pandoview_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/pandoview"
)

// Nodes of strings show text on every level, ends of what is there, and those of the
// last level have all keys.
func TestStringsAreText(t *testing.T) {
	h := pandoview.Handler(indexes(t)["words"])
	type view struct {
		Levels []struct {
			Nodes int
			Keys  [][]string
		}
	}
	levels := get[view](t, h, "/api/view").Levels
	if len(levels) < 2 {
		t.Fatalf("%d levels", len(levels))
	}
	for l := range levels {
		for i := range levels[l].Nodes {
			n := get[shown](t, h, fmt.Sprintf("/api/node?level=%d&node=%d", l, i))
			for _, k := range n.Keys {
				var number int
				if _, err := fmt.Sscanf(k, "key %05d", &number); err != nil || number >= 5000 {
					t.Fatalf("level %d, node %d shows %q", l, i, k)
				}
			}
		}
		for _, keys := range levels[l].Keys {
			for _, k := range keys {
				if !strings.HasPrefix(k, "key ") {
					t.Fatalf("the picture of level %d shows %q", l, k)
				}
			}
		}
	}
}

// shown is what tests look at of a node.
type shown struct {
	Keys, Values []string
}

// A leaf shows the value of each key, that of its own entry where keys are equal, and
// none where there are none.
func TestLeavesShowValues(t *testing.T) {
	last := func(ix pandoview.Index) shown {
		h := pandoview.Handler(ix)
		levels := get[struct{ Levels []struct{ Nodes int } }](t, h, "/api/view").Levels
		return get[shown](t, h, fmt.Sprintf("/api/node?level=%d&node=0", len(levels)-1))
	}
	all := indexes(t)
	for _, name := range []string{"pairs", "apart", "blocked", "compressed"} {
		n := last(all[name])
		if len(n.Keys) == 0 || len(n.Values) != len(n.Keys) {
			t.Fatalf("%s: %d keys, %d values", name, len(n.Keys), len(n.Values))
		}
		for i, v := range n.Values {
			if n.Keys[i] != fmt.Sprint(10*i) || v != fmt.Sprint(i) {
				t.Errorf("%s: entry %d is %s with %s", name, i, n.Keys[i], v)
			}
		}
	}
	if n := last(all["small"]); len(n.Keys) != 3 || n.Values != nil {
		t.Errorf("keys alone: %q, values %q", n.Keys, n.Values)
	}
	tree, err := pando.TreeOf([]int64{1, 2}, []string{"one", "two"})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	if n := last(tree); fmt.Sprint(n.Values) != "[one two]" {
		t.Errorf("a tree: %q", n.Values)
	}
	long := strings.Repeat("x", 1000)
	for _, layout := range []pando.LayoutKind{pando.AutoLayout, pando.Apart, pando.Radix} {
		equal, err := pando.Freeze([]string{"a", "a", "b", long}, []int{1, 2, 3, 4}, pando.Layout(layout))
		if err != nil {
			t.Fatal(err)
		}
		if n := last(equal); fmt.Sprint(n.Values) != "[1 2 3 4]" {
			t.Errorf("equal keys, %v: %q of %.100q", layout, n.Values, n.Keys)
		}
		equal.Close()
	}
}

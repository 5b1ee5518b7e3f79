package pandoview_test

import (
	"strconv"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/pandoview"
)

// A batch on the latched tree is told with the index's own keys, tile by tile.
func TestLatched(t *testing.T) {
	tree, err := pando.TreeOf([]int64{-30, -20, -10, 0, 10, 20, 30}, make([]int, 7))
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	type recording struct {
		Seed               uint64
		Schedule, Name     string
		Tiles, Room, Turns int
		Ops                []struct{ Kind, Key string }
		Steps              []struct {
			Step            string
			Tile, Op, Other int
			Ran             []int
			Nodes           []struct {
				ID, Holder int
				Low, High  string
			}
		}
	}
	a := get[recording](t, pandoview.Handler(tree), "/api/steps?op=latched&n=40&seed=5&key=0")
	if a.Seed != 5 || a.Schedule != "random" || a.Name != "blinkMixed64x16" || a.Tiles != 3 || a.Room != 16 || len(a.Ops) != 40 {
		t.Fatalf("%+v", a)
	}
	first, last := a.Steps[0], a.Steps[len(a.Steps)-1]
	if first.Step != "start" || len(first.Nodes) != 1 || first.Nodes[0].High != "∞" || last.Step != "finished" {
		t.Errorf("it begins with %+v, and ends with %+v", first, last)
	}
	for i, o := range a.Ops {
		if k, err := strconv.Atoi(o.Key); err != nil || k%10 != 0 || k < -30 || k > 30 || (o.Kind == "set") != (k/10%2 == 0) {
			t.Errorf("operation %d: %+v", i, o)
		}
	}
	ran := 0
	for _, s := range a.Steps {
		for _, n := range s.Ran {
			ran += n
		}
	}
	if ran < a.Turns { // a turn may be of both tiles of a warp
		t.Errorf("%d turns of tiles, %d in all", ran, a.Turns)
	}
}

package debugger_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/papers/thesis"
	"github.com/pando-index/pando/papers/thesis/debugger"
)

// every returns n codes that are a step apart.
func every(step uint64, n int) (out []uint64) {
	for i := range n {
		out = append(out, uint64(i)*step)
	}
	return out
}

// replay follows the nodes of a recording to its end, and checks that whatever is
// held, and whatever no parent has, comes to an end.
func replay(t *testing.T, rec *debugger.Latched) map[int]debugger.LatchedNode {
	t.Helper()
	nodes := map[int]debugger.LatchedNode{}
	for i, s := range rec.Steps {
		held := map[int]int{}
		for _, n := range s.Nodes {
			nodes[n.ID] = n
		}
		for _, n := range nodes {
			if n.Holder >= 0 {
				held[n.Holder]++
			}
		}
		for tile, n := range held {
			if n > 2 {
				t.Errorf("step %d: tile %d holds %d latches", i, tile, n)
			}
		}
		if len(s.Ran) != rec.Tiles || s.Tile >= rec.Tiles || s.Tile >= 0 && s.Op/thesis.BlinkTile != s.Tile {
			t.Fatalf("step %d: %+v", i, s)
		}
	}
	for _, n := range nodes {
		if n.Holder >= 0 || !n.Told {
			t.Errorf("in the end node %d is held by %d, a parent has it: %v", n.ID, n.Holder, n.Told)
		}
	}
	return nodes
}

// entriesIn counts what is in the leaves below a node.
func entriesIn(nodes map[int]debugger.LatchedNode, id int) (n int) {
	if x := nodes[id]; x.Level == 0 {
		return x.Used
	}
	for _, c := range nodes[id].Children {
		n += entriesIn(nodes, c)
	}
	return n
}

// A batch on the latched tree shows who holds what, splits before their parents know
// of them, and retries; every operation ends with the outcome that the kernel says,
// under both schedules, and a seed repeats all of it.
func TestLatched(t *testing.T) {
	if seed.RaceDetector {
		t.Skip("the interpreter runs on one goroutine, slowly")
	}
	met := map[debugger.LatchedWhat]int{}
	for _, bits := range []int{32, 64} {
		for _, how := range []debugger.Schedule{debugger.Random, debugger.Frozen} {
			for number := range uint64(seed.Times(1, 2)) {
				rec, err := debugger.Latch(bits, every(7, debugger.LatchedCodes), 64, number, how)
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%d bits, %s, seed %d: %d steps, %d turns, %d instructions", bits, how, number, len(rec.Steps), rec.Turns, rec.Work)
				if rec.Dropped > 0 {
					t.Fatalf("%d steps were dropped", rec.Dropped)
				}
				there := rec.Keys
				for i, o := range rec.Ops {
					if o.Done < 0 || rec.Steps[o.Done].Op != i || o.Outcome == thesis.BlinkNoRoom {
						t.Fatalf("operation %d: %+v", i, o)
					}
					end := rec.Steps[o.Done].What
					if (end == debugger.LatchedAnswer) != (o.Kind == thesis.BlinkGet || o.Kind == thesis.BlinkDelete && o.Outcome == thesis.BlinkAbsent) {
						t.Errorf("operation %d, %+v, ends with %q", i, o, end)
					}
					switch {
					case o.Kind == thesis.BlinkSet && o.Outcome == thesis.BlinkAbsent:
						there++
					case o.Kind == thesis.BlinkDelete && o.Outcome == thesis.BlinkFound:
						there--
					}
				}
				if got := entriesIn(replay(t, rec), 0); got != there {
					t.Errorf("%d entries in the end, want %d", got, there)
				}
				for _, s := range rec.Steps {
					met[s.What]++
				}
				if !seed.Long() && bits == 32 {
					continue
				}
				again, err := debugger.Latch(bits, every(7, debugger.LatchedCodes), 64, number, how)
				if err != nil || !reflect.DeepEqual(rec, again) {
					t.Errorf("a seed does not repeat a recording: %v", err)
				}
			}
		}
	}
	for _, w := range []debugger.LatchedWhat{
		debugger.LatchedHeld, debugger.LatchedChanged, debugger.LatchedMissed, debugger.LatchedSplit, debugger.LatchedParent, debugger.LatchedCut, debugger.LatchedWrite, debugger.LatchedAnswer,
	} {
		if met[w] == 0 {
			t.Errorf("no step %q in all recordings", w)
		}
	}
	t.Log(met)
}

// Whatever the number of keys and operations, a recording ends and is whole.
func TestLatchedSizes(t *testing.T) {
	if seed.RaceDetector {
		t.Skip("the interpreter runs on one goroutine, slowly")
	}
	for _, c := range [][2]int{{1, 1}, {1, 17}, {2, 16}, {3, 40}, {30, 60}, {5000, debugger.MostLatched + 1}} {
		keys, n := c[0], c[1]
		rec, err := debugger.Latch(64, every(1, keys), n, 1, debugger.Random)
		if err != nil {
			t.Fatalf("%d keys, %d operations: %v", keys, n, err)
		}
		if len(rec.Ops) != min(n, debugger.MostLatched) || len(rec.Steps) > debugger.MostSteps {
			t.Errorf("%d keys, %d operations: %d, %d steps", keys, n, len(rec.Ops), len(rec.Steps))
		}
		if rec.Dropped == 0 {
			replay(t, rec)
		}
	}
	// Full leaves below one root: it grows.
	rec, err := debugger.Latch(64, every(2, 28), 28, 1, debugger.Random)
	if err != nil || !slices.ContainsFunc(rec.Steps, func(s debugger.LatchedStep) bool { return s.What == debugger.LatchedGrow }) {
		t.Errorf("the root does not grow: %v", err)
	}
	if _, err := debugger.Latch(64, nil, 5, 1, debugger.Random); err == nil {
		t.Error("a tree of no keys")
	}
	if _, err := debugger.Latch(64, every(1, 9), 5, 1, "unfair"); err == nil {
		t.Error("a schedule that there is not")
	}
}

package steps_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/live"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/steps"
)

// every returns n codes, each so far from the next.
func every(step uint64, n int) (out []uint64) {
	for i := range n {
		out = append(out, uint64(i)*step)
	}
	return out
}

// treeOf returns a tree of codes.
func treeOf(t *testing.T, bits int, codes []uint64) bplus.Scratch {
	t.Helper()
	tree, err := live.SampleTree(bits, codes)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func stepsOf(r steps.Tree) (out []bplus.Step) {
	for _, e := range r.Events {
		out = append(out, e.Step)
	}
	return out
}

// Inserts split a leaf and in the end the root, whatever the width; a key that
// the keys leave no room behind is taken from before it.
func TestInsert(t *testing.T) {
	for _, bits := range []int{32, 64} {
		greatest := uint64(1)<<bits - 1
		codes := every(4, steps.ScratchEntries(bits))
		for name, key := range map[string]uint64{"middle": codes[len(codes)/2], "first": 0, "greatest": greatest} {
			if bits == 32 && name != "middle" && !seed.Long() {
				continue
			}
			rec, err := steps.Insert(treeOf(t, bits, codes), codes, key, greatest, 600)
			if err != nil {
				t.Fatal(err)
			}
			all := stepsOf(rec)
			for _, want := range []bplus.Step{bplus.StepStart, bplus.StepSearch, bplus.StepFill, bplus.StepSplit, bplus.StepParent, bplus.StepFinished} {
				if !slices.Contains(all, want) && rec.Dropped == 0 {
					t.Errorf("%d bits, %s: no step %q", bits, name, want)
				}
			}
			if len(rec.Events) > steps.MostEvents {
				t.Errorf("%d events", len(rec.Events))
			}
		}
	}
	if rec, err := steps.Insert(treeOf(t, 64, nil), nil, 5, 1<<64-1, 3); err != nil || len(rec.Events) < 4 {
		t.Errorf("%v: %d events in an empty tree", err, len(rec.Events))
	}
}

// A batch goes through its phases in order.
func TestBatch(t *testing.T) {
	codes := every(1000, steps.ScratchEntries(64))
	rec, err := steps.Batch(treeOf(t, 64, codes), codes, 1<<64-1, 5000, 1)
	if err != nil {
		t.Fatal(err)
	}
	all := stepsOf(rec)
	last := -1
	for _, want := range []bplus.Step{bplus.StepSort, bplus.StepPromise, bplus.StepPlaces, bplus.StepFill, bplus.StepSplit, bplus.StepTell, bplus.StepParent, bplus.StepFinished} {
		at := slices.Index(all, want)
		if at <= last {
			t.Errorf("step %q is at %d, behind %d", want, at, last)
		}
		last = at
	}
	again, err := steps.Batch(treeOf(t, 64, codes), codes, 1<<64-1, 5000, 1)
	if err != nil || len(again.Events) != len(rec.Events) {
		t.Errorf("%v: the same seed gives %d events, then %d", err, len(rec.Events), len(again.Events))
	}
}

// A kernel's lanes come down level by level to the leaf of their query, in every
// layout, and a seed repeats the schedule.
func TestKernel(t *testing.T) {
	codes := every(3, 2500)
	asked := codes[1000:1032]
	for _, bits := range []int{32, 64} {
		for _, kind := range []layout.Name{"implicit", layout.Pairs, "blocked", "compressed"} {
			tree, err := index.Sample(bits, kind, codes)
			if err != nil {
				t.Fatal(err)
			}
			look := tree.(layout.Shown).Look()
			search := func(seed uint64) *steps.Kernel {
				rec, err := steps.Search(tree.(layout.OnDevice), look.(layout.Located), bits, asked, seed)
				if err != nil {
					t.Fatalf("%v, %d bits: %v", kind, bits, err)
				}
				return rec
			}
			a, again, b := search(1), search(1), search(2)
			if !reflect.DeepEqual(a, again) {
				t.Errorf("%v, %d bits: a seed does not repeat a recording", kind, bits)
			}
			if reflect.DeepEqual(a.Turns, b.Turns) {
				t.Errorf("%v, %d bits: two seeds have one schedule", kind, bits)
			}
			levels := map[int]bool{}
			for _, s := range a.Steps {
				for _, l := range s.Lanes {
					if s.What == steps.Node {
						levels[l.Level] = true
						if l.Node < 0 || l.Node >= look.Levels()[l.Level].Nodes {
							t.Fatalf("%v: lane at node %d of level %d", kind, l.Node, l.Level)
						}
					}
				}
			}
			if len(levels) != len(look.Levels()) {
				t.Errorf("%v, %d bits: lanes were on levels %v of %d", kind, bits, levels, len(look.Levels()))
			}
			for i, r := range a.Ranks {
				if int(r) != 1000+i || b.Ranks[i] != r {
					t.Fatalf("%v, %d bits: query %d has rank %d", kind, bits, i, r)
				}
			}
			tree.Release()
		}
	}
}

// A kernel finds strings by partial keys, level by level.
func TestKernelOfStrings(t *testing.T) {
	var texts []string
	for i := range 4000 {
		texts = append(texts, fmt.Sprintf("https://example.org/%05d", i))
	}
	tree, err := index.SampleStrings("compressed", texts)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Release()
	look := tree.(layout.Shown).Look()
	rec, err := steps.SearchStrings(tree.(layout.StringsOnDevice), look.(layout.LocatedParts), texts[500:540], 1)
	if err != nil {
		t.Fatal(err)
	}
	levels := map[int]bool{}
	for _, s := range rec.Steps {
		for _, l := range s.Lanes {
			if s.What == steps.Node {
				levels[l.Level] = true
			}
		}
	}
	if len(levels) != len(look.Levels()) {
		t.Errorf("lanes were on levels %v of %d", levels, len(look.Levels()))
	}
	for i, r := range rec.Ranks {
		if int(r) != 500+i {
			t.Fatalf("query %d has rank %d", i, r)
		}
	}
}

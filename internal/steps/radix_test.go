package steps_test

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/radix"
	"github.com/pando-index/pando/internal/steps"
)

// urls returns n strings in order.
func urls(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("https://example.org/%c/%04d", 'a'+i*5/n, i*3))
	}
	return out
}

// radixReplay follows the nodes of a recording to its end and returns the keys that are
// left, by their number.
func radixReplay(t *testing.T, rec steps.Radix) (leaves int) {
	t.Helper()
	nodes := map[uint32]radix.Seen{}
	for i, e := range rec.Events {
		for _, id := range e.Gone {
			delete(nodes, id)
		}
		for _, n := range e.Nodes {
			nodes[n.ID] = n
		}
		for _, id := range e.At {
			if _, ok := nodes[id]; !ok {
				t.Fatalf("event %d, %s: node %d is not in the tree", i, e.Step, id)
			}
		}
	}
	if len(rec.Events) == 0 || rec.Events[len(rec.Events)-1].Step != steps.RadixFinished {
		t.Fatal("the recording has no end")
	}
	met := 0
	var walk func(id uint32)
	walk = func(id uint32) {
		met++
		for _, l := range nodes[id].Links {
			if l.Leaf {
				leaves++
			} else {
				walk(l.To)
			}
		}
	}
	if root := rec.Events[len(rec.Events)-1].Root; len(nodes) > 0 {
		walk(root)
	} else if root != 0 {
		leaves++
	}
	if met != len(nodes) {
		t.Errorf("%d nodes of %d are in the tree", met, len(nodes))
	}
	return leaves
}

func radixSteps(rec steps.Radix) map[steps.RadixStep]int {
	out := map[steps.RadixStep]int{}
	for _, e := range rec.Events {
		out[e.Step]++
	}
	return out
}

// Every change of a radix tree's structure is told from what is before and after it,
// for strings and for numbers.
func TestRadix(t *testing.T) {
	for name, keys := range map[string][]string{
		"strings": urls(steps.RadixKeys), "32 bits": steps.Digits(32, every(977, steps.RadixKeys)), "64 bits": steps.Digits(64, every(1<<37+9, steps.RadixKeys)),
	} {
		half := steps.RadixKeys / 2
		rec, err := steps.RadixInsert(keys, keys[half], steps.MostRadix)
		if err != nil {
			t.Fatal(err)
		}
		got := radixSteps(rec)
		if n := radixReplay(t, rec); n != 2*half || got[steps.RadixWay] != half || got[steps.RadixGrow] == 0 || got[steps.RadixLink]+got[steps.RadixGrow]+got[steps.RadixBranch] != half {
			t.Errorf("%s, inserts: %d keys, %v", name, n, got)
		}
		rec, err = steps.RadixDelete(keys, keys[half], steps.MostRadix)
		if err != nil {
			t.Fatal(err)
		}
		got = radixSteps(rec)
		if n := radixReplay(t, rec); n != 0 || got[steps.RadixShrink] == 0 || got[steps.RadixCollapse] == 0 ||
			got[steps.RadixUnlink]+got[steps.RadixShrink]+got[steps.RadixCollapse] != half {
			t.Errorf("%s, deletes: %d keys, %v", name, n, got)
		}
		rec, err = steps.RadixBeside(keys, keys[half], 50)
		if err != nil {
			t.Fatal(err)
		}
		got = radixSteps(rec)
		if n := radixReplay(t, rec); n != half || got[steps.RadixSnapshot] != 1 || got[steps.RadixLeaf] != 50 || got[steps.RadixCopy] == 0 {
			t.Errorf("%s, beside a snapshot: %d keys, %v", name, n, got)
		}
		rec, err = steps.RadixBatch(keys, 100, 1)
		if err != nil {
			t.Fatal(err)
		}
		got = radixSteps(rec)
		changes := 0
		for _, s := range []steps.RadixStep{steps.RadixLink, steps.RadixGrow, steps.RadixBranch, steps.RadixUnlink, steps.RadixShrink, steps.RadixCollapse} {
			changes += got[s]
		}
		if n := radixReplay(t, rec); n != half+80-20 || got[steps.RadixPromise] != 1 || got[steps.RadixTogether] != 2 || changes != 100 {
			t.Errorf("%s, a batch: %d keys, %v", name, n, got)
		}
		again, _ := steps.RadixBatch(keys, 100, 1)
		other, _ := steps.RadixBatch(keys, 100, 2)
		if keysOf(rec)[5] != keysOf(again)[5] || !slices.Equal(keysOf(rec), keysOf(again)) || slices.Equal(keysOf(rec), keysOf(other)) {
			t.Errorf("%s: a seed does not choose the batch", name)
		}
	}
}

func keysOf(rec steps.Radix) (out []string) {
	for _, e := range rec.Events {
		out = append(out, e.Key)
	}
	return out
}

// A key that goes on where another ends has a node of its own there, and collapses
// into it again. Small trees have few nodes, or none.
func TestRadixSmall(t *testing.T) {
	keys := []string{"a", "ab", "abc", "abcd"}
	for n := range len(keys) + 1 {
		for _, from := range []string{"", "b"} {
			rec, err := steps.RadixInsert(keys[:n], from, 9)
			if err != nil {
				t.Fatal(err)
			}
			if got := radixReplay(t, rec); got != n {
				t.Errorf("%d keys: %d", n, got)
			}
			if rec, err = steps.RadixDelete(keys[:n], from, 9); err != nil || radixReplay(t, rec) != 0 {
				t.Errorf("%d keys: deletes leave some: %v", n, err)
			}
			if rec, err = steps.RadixBeside(keys[:n], from, 9); err != nil || radixReplay(t, rec) != (n+1)/2 {
				t.Errorf("%d keys beside a snapshot: %v", n, err)
			}
			if rec, err = steps.RadixBatch(keys[:n], 9, 1); err != nil {
				t.Errorf("%d keys in a batch: %v", n, err)
			}
			radixReplay(t, rec)
		}
	}
	rec, err := steps.RadixInsert([]string{"a", "ab", "long" + string(make([]byte, 5000))}, "a", 5)
	if err != nil || radixReplay(t, rec) != 2 {
		t.Errorf("a key that is too long is not left out: %v", err)
	}
	if got := radixSteps(rec); got[steps.RadixBranch] != 1 {
		t.Errorf("%v", got)
	}
}

// Digits are the bytes of a code, the greatest first.
func TestDigits(t *testing.T) {
	for _, bits := range []int{32, 64} {
		got := steps.Digits(bits, []uint64{0, 258, 1<<bits - 1})
		want := []string{string(make([]byte, bits/8)), "", ""}
		want[1] = string(binary.BigEndian.AppendUint64(nil, 258)[8-bits/8:])
		want[2] = string(binary.BigEndian.AppendUint64(nil, 1<<64-1)[:bits/8])
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%d bits: %q, want %q", bits, got, want)
		}
	}
}

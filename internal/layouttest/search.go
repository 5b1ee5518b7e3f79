package layouttest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
)

// ask asks a tree everything there is to ask.
func ask[C layout.Code](tree layout.Tree[C], want *answers[C]) error {
	return first(
		func() error { return askKeys(tree, want) },
		func() error { return askPairs(tree, want) },
		func() error { return askEntries(tree, want.of) },
	)
}

// askKeys asks for ranks and places: at once, in batches, one by one, and cut at
// every level.
func askKeys[C layout.Code](tree layout.Tree[C], want *answers[C]) error {
	for _, size := range batches(len(want.asked)) {
		lo := (size * 7) % (len(want.asked) - size + 1)
		part := want.part(lo, lo+size)
		before := slices.Clone(part.asked)
		if err := first(
			func() error { return asWanted("Rank", tree.Rank, part.asked, nil, part.ranks) },
			func() error { return asWanted("Find", tree.Find, part.asked, nil, part.finds) },
		); err != nil {
			return err
		}
		if !slices.Equal(before, part.asked) {
			return errors.New("a search has changed its keys")
		}
	}
	for i, key := range want.asked {
		if rank, equal := tree.Seek(key); rank != want.ranks[i] || equal != want.found[i] {
			return fmt.Errorf("Seek(%d) = %d, %v; want %d, %v", key, rank, equal, want.ranks[i], want.found[i])
		}
	}
	if steps, ok := tree.(layout.Stepped[C]); ok {
		return askSteps(steps, want)
	}
	return nil
}

// askSteps cuts searches at every level, and again at every level below.
func askSteps[C layout.Code](steps layout.Stepped[C], want *answers[C]) error {
	depth := steps.Depth()
	at := make([][]int, depth+1)
	for to := range at {
		var err error
		if at[to], err = descend(steps, 0, to, want.asked, nil); err != nil {
			return err
		}
	}
	for from, places := range at {
		for to := from; to <= depth; to++ {
			got, err := descend(steps, from, to, want.asked, places)
			if err != nil {
				return err
			}
			if !slices.Equal(got, at[to]) {
				return fmt.Errorf("down to level %d at once is not down to level %d, then to %d", to, from, to)
			}
		}
		if err := askFrom(steps, from, places, want); err != nil {
			return fmt.Errorf("from level %d of %d: %w", from, depth, err)
		}
	}
	return nil
}

// descend takes queries from one level to another. Their places are those of
// nodes.
func descend[C layout.Code](steps layout.Stepped[C], from, to int, keys []C, places []int) ([]int, error) {
	got, err := each(func(keys []C, places []int) { steps.Descend(from, to, keys, places) }, keys, places)
	if err != nil {
		return nil, fmt.Errorf("down from level %d to %d: %w", from, to, err)
	}
	for _, p := range got {
		if p < 0 || p%layout.NodeWords != 0 {
			return nil, fmt.Errorf("place %d on level %d is not that of a node", p, to)
		}
	}
	return got, nil
}

// askFrom lets searches begin where they have come to.
func askFrom[C layout.Code](steps layout.Stepped[C], from int, places []int, want *answers[C]) error {
	for _, start := range [][]int{places, nil} { // a search that begins at the root is told no place
		if start == nil && from > 0 {
			break
		}
		if err := first(
			func() error {
				return asWanted("RankFrom", func(k []C, r []int) { steps.RankFrom(from, k, r) }, want.asked, start, want.ranks)
			},
			func() error {
				return asWanted("FindFrom", func(k []C, r []int) { steps.FindFrom(from, k, r) }, want.asked, start, want.finds)
			},
		); err != nil {
			return err
		}
	}
	pairs, ok := steps.(layout.SteppedPairs[C])
	if !ok {
		return nil
	}
	for _, found := range [][]bool{nil, make([]bool, len(want.asked))} {
		vals := make([]C, len(want.asked))
		for i, p := range places {
			vals[i] = C(p)
		}
		hits := pairs.GetPairsFrom(from, want.asked, vals, found)
		if err := want.samePairs("GetPairsFrom", vals, found, hits); err != nil {
			return err
		}
	}
	return nil
}

// askPairs asks for values out of the leaves, where they lie there. A tree that
// holds none there does not say that it does: that is how callers tell.
func askPairs[C layout.Code](tree layout.Tree[C], want *answers[C]) error {
	pairs, ok := tree.(layout.Paired[C])
	if ok != want.of.pairs {
		return fmt.Errorf("a tree of %v says that it has pairs: %v", want.of.form, ok)
	}
	if !ok {
		return nil
	}
	for _, size := range batches(len(want.asked)) {
		lo := (size * 5) % (len(want.asked) - size + 1)
		part := want.part(lo, lo+size)
		for _, found := range [][]bool{nil, slices.Repeat([]bool{true, false}, size)[:size]} {
			vals := slices.Repeat([]C{12345}, size+1)
			hits := pairs.GetPairs(part.asked, vals, found)
			if err := part.samePairs("GetPairs", vals[:size], found, hits); err != nil {
				return err
			}
			if vals[size] != 12345 {
				return errors.New("GetPairs writes a value behind the last")
			}
		}
	}
	return inPlace(tree, want)
}

// inPlace asks for values in the place of keys, which is what a batch may do.
func inPlace[C layout.Code](tree layout.Tree[C], want *answers[C]) error {
	cpu := exec.NewCPU(tree, tree.Len(), 1)
	for _, found := range [][]bool{nil, make([]bool, len(want.asked))} {
		same := slices.Clone(want.asked)
		hits := cpu.GetPairs(order.KeysOf(same), same, found)
		if err := want.samePairs("GetPairs in the place of keys", same, found, hits); err != nil {
			return err
		}
	}
	return nil
}

// samePairs compares values out of the leaves.
func (a *answers[C]) samePairs(what string, vals []C, found []bool, hits int) error {
	if hits != a.hits {
		return fmt.Errorf("%s of %d: %d hits, want %d", what, len(a.asked), hits, a.hits)
	}
	for i, v := range vals {
		if v != a.vals[i] || found != nil && found[i] != a.found[i] {
			return fmt.Errorf("%s of %d: %d gives %d, want %d, %v", what, len(a.asked), a.asked[i], v, a.vals[i], a.found[i])
		}
	}
	return nil
}

// askEntries reads all entries, one by one and in runs.
func askEntries[C layout.Code](tree layout.Tree[C], h *held[C]) error {
	n := len(h.keys)
	if tree.Len() != n {
		return fmt.Errorf("%d entries, want %d", tree.Len(), n)
	}
	for i, k := range h.keys {
		if tree.Key(i) != k {
			return fmt.Errorf("key %d is %d, want %d", i, tree.Key(i), k)
		}
	}
	for lo := 0; lo <= n; lo += 1 + lo/2 {
		for _, size := range []int{0, 1, 3, 15, 16, 17, 300, n - lo} {
			size = min(size, n-lo)
			got := slices.Repeat([]C{12345}, size+1)
			tree.Prefetch(lo, size)
			tree.CopyKeys(got[:size], lo)
			if !slices.Equal(got[:size], h.keys[lo:lo+size]) || got[size] != 12345 {
				return fmt.Errorf("%d keys from %d on are not those", size, lo)
			}
		}
	}
	if h.size > 0 {
		return askValues(tree, h)
	}
	return nil
}

// askValues reads the values that lie in the tree.
func askValues[C layout.Code](tree layout.Tree[C], h *held[C]) error {
	v, ok := tree.(layout.Valued)
	if !ok {
		return errors.New("a tree with values has no way to read them")
	}
	n := len(h.keys)
	for i := range h.keys {
		if got := unsafe.Slice((*byte)(v.Val(i)), h.size); !bytes.Equal(got, h.val(i)) {
			return fmt.Errorf("value %d is %x, want %x", i, got, h.val(i))
		}
	}
	for lo := 0; lo < n; lo += 1 + lo/2 {
		for _, count := range []int{1, 3, 15, 16, 17, 300, n - lo} {
			size := min(count, n-lo) * h.size
			got := roomFor(size + 8)
			got[size] = 0x5a
			v.CopyVals(got[:size], lo)
			if !bytes.Equal(got[:size], h.vals[lo*h.size:][:size]) || got[size] != 0x5a {
				return fmt.Errorf("%d values from %d on are not those", count, lo)
			}
		}
	}
	return nil
}

// inside asks a tree whose bytes may be anything: searches end, ranks are those
// of entries, or, where Find is misled, of the padding in the last line.
func inside[C layout.Code](tree layout.Tree[C], asked []C) error {
	const padding = 16
	n := tree.Len()
	ranks, finds := make([]int, len(asked)), make([]int, len(asked))
	tree.Rank(asked, ranks)
	tree.Find(asked, finds)
	for i, key := range asked {
		if i%8 == 0 {
			rank, _ := tree.Seek(key)
			ranks = append(ranks, rank)
		}
	}
	if err := first(
		func() error { return within(ranks, 0, n) },
		func() error { return within(finds, -1, n+padding) },
	); err != nil {
		return err
	}
	if steps, ok := tree.(layout.Stepped[C]); ok {
		if err := insideSteps(tree, steps, asked); err != nil {
			return err
		}
	}
	if pairs, ok := tree.(layout.Paired[C]); ok {
		pairs.GetPairs(asked, make([]C, len(asked)), nil)
	}
	tree.Prefetch(0, n)
	tree.CopyKeys(make([]C, n), 0)
	tree.Stats()
	lookAround(tree, probes(asked[:min(len(asked), 50)]))
	_ = tree.Check()
	return nil
}

// insideSteps does the same level by level.
func insideSteps[C layout.Code](tree layout.Tree[C], steps layout.Stepped[C], asked []C) error {
	places := make([]int, len(asked))
	for from := range steps.Depth() + 1 {
		ranks := slices.Clone(places)
		steps.RankFrom(from, asked, ranks)
		if err := within(ranks, 0, tree.Len()); err != nil {
			return fmt.Errorf("from level %d: %w", from, err)
		}
		steps.FindFrom(from, asked, slices.Clone(places))
		if pairs, ok := tree.(layout.SteppedPairs[C]); ok {
			vals := make([]C, len(asked))
			for i, p := range places {
				vals[i] = C(p)
			}
			pairs.GetPairsFrom(from, asked, vals, nil)
		}
		if from < steps.Depth() {
			steps.Descend(from, from+1, asked, places)
		}
	}
	return nil
}

// readAll reads every key and value.
func readAll[C layout.Code](tree layout.Tree[C], size int) {
	for i := range tree.Len() {
		tree.Key(i)
		if v, ok := tree.(layout.Valued); ok && size > 0 {
			_ = *(*byte)(v.Val(i))
		}
	}
	if v, ok := tree.(layout.Valued); ok && size > 0 && tree.Len() > 0 {
		v.CopyVals(arena.Bytes(make([]uint64, tree.Len()))[:size*tree.Len()], 0)
	}
}

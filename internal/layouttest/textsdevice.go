package layouttest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"sync"

	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/seed"
)

// A copy of a tree of strings on a device, with the strings or without, answers
// as the tree does. A damaged copy is refused, or searched without a fault.
func (s *texts) device() {
	for _, kind := range allTexts() {
		for _, n := range []int{0, 1, 65, 1500} {
			if n > 65 && s.rng.IntN(2) > 0 || !seed.Long() && s.rng.IntN(6) > 0 {
				continue
			}
			keys, what := s.keys(kind, n), fmt.Sprintf("%d strings %s", n, kind)
			tree := s.build(keys)
			if _, ok := tree.(layout.StringsOnDevice); !ok {
				tree.Release()
				s.Skip("this layout stays on the CPU")
			}
			asked := s.questions(keys, 60)
			for _, leave := range []bool{false, true} {
				s.ok(s.copied(tree, leave, func(g *exec.StringsGPU) error { return askDevice(g, keys, asked) }), "%s, strings left on the host: %v", what, leave)
			}
			s.damagedCopies(tree, asked[:min(20, len(asked))], what)
			tree.Release()
		}
	}
}

// copied copies a tree to the interpreter and asks it there. A kernel that
// faults takes the device down.
func (s *texts) copied(tree layout.StringTree, leave bool, ask func(*exec.StringsGPU) error) error {
	dev := ptx.New(ptx.Seed(s.rng.Uint64()), ptx.Memory(128<<20), ptx.Steps(mostSteps), ptx.RaceCheck(s.rng.IntN(4) == 0))
	g, err := exec.NewStringsGPU(exec.NewStrings(tree, 2), dev, 128<<20, leave)
	if err != nil {
		return err
	}
	return first(func() error { return ask(g) }, g.Down, g.Close)
}

// damagedCopies spoils what a device would hold. A tree that points outside of
// itself does not get there; no other makes a kernel fault or go on forever.
func (s *texts) damagedCopies(tree layout.StringTree, asked []string, what string) {
	s.Helper()
	spoils := s.spoils()
	names := slices.Sorted(maps.Keys(spoils))
	for i := range tree.Segments() {
		for _, name := range []string{"one bit", "random words", pick(s.rng, names)} { // much damage is refused, little is not
			changed, err := s.open(tree.Len(), inFile(tree, form{}), spoiled(tree.Segments(), i, spoils[name]))
			if err != nil {
				continue
			}
			if _, err := changed.(layout.StringsOnDevice).StringImage(); err == nil {
				s.ok(s.copied(changed, s.rng.IntN(4) == 0, func(g *exec.StringsGPU) error { return asks(g, asked, tree.Len()) }), "%s, segment %d: %s", what, i, name)
			}
			changed.Release()
		}
	}
}

// asks asks every question of a damaged tree of n strings, whose answers may be
// any that are in it.
func asks(g *exec.StringsGPU, asked []string, n int) error {
	batch := exec.StringBatch{Keys: asked}
	ranks, after := dirtyInts(len(asked)), dirtyInts(len(asked))
	g.Rank(batch, ranks)
	g.RankAfter(batch, after)
	g.FindEach(batch, &places{at: dirtyInts(len(asked))})
	return errors.Join(within(ranks, 0, n), within(after, 0, n))
}

// places is a sink that notes what it is told.
type places struct {
	mu sync.Mutex
	at []int
}

// Take notes places.
func (p *places) Take(lo int, ranks []int) (hits int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, r := range ranks {
		if p.at[lo+i] = r; r >= 0 {
			hits++
		}
	}
	return hits
}

// askDevice asks every question and compares with a sorted slice.
func askDevice(g *exec.StringsGPU, keys, asked []string) error {
	batch := exec.StringBatch{Keys: asked}
	ranks, after, found := dirtyInts(len(asked)), dirtyInts(len(asked)), &places{at: dirtyInts(len(asked))}
	g.Rank(batch, ranks)
	g.RankAfter(batch, after)
	hits := g.FindEach(batch, found)
	for i, k := range asked {
		rank, equal := slices.BinarySearch(keys, k)
		up := rank + sort.Search(len(keys)-rank, func(j int) bool { return keys[rank+j] > k })
		at := -1
		if equal {
			at = rank
			hits--
		}
		if ranks[i] != rank || after[i] != up || found.at[i] != at {
			return fmt.Errorf("%.60q: rank %d, after %d, found at %d; want %d, %d, %d", k, ranks[i], after[i], found.at[i], rank, up, at)
		}
	}
	if hits != 0 {
		return fmt.Errorf("%d hits too many", hits)
	}
	return nil
}

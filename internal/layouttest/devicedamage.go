package layouttest

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/seed"
)

// Even in a damaged file, no kernel reads outside of the levels that a device
// holds of it, wherever the search is cut and whatever nodes the CPU has brought
// it to.
func (s *suite[C]) deviceDamage() {
	if seed.RaceDetector {
		s.T.Skip("one goroutine, and half a minute of it")
	}
	var forms []form
	for _, f := range s.forms() {
		tree := s.build(newHeld(keysOf[C](s.rng, "random", 150), f))
		if _, ok := tree.(layout.OnDevice); ok {
			forms = append(forms, f)
		}
		tree.Release()
	}
	if len(forms) == 0 {
		s.Skip("no tree of this layout lies on a device")
	}
	m := s.machine()
	defer m.dev.Close()
	most := 150 // copies, which take some 10 ms each
	if !seed.Long() {
		most = 15
	}
	// Sizes at which the last node of a level has few children, so that a search
	// gone astray leaves the level: the last one below pages of 256 keys, too.
	sizes := []int{1, 150, 300, 700, 5000, 180_000}
	spoils := s.spoils()
	names := slices.Sorted(maps.Keys(spoils))
	copies := 0
	for tries := 0; copies < most && tries < most; tries++ {
		f, n := pick(s.rng, forms), pick(s.rng, sizes)
		h := newHeld(keysOf[C](s.rng, pick(s.rng, []string{"random", "clustered", "ends"}), n), f)
		built := s.build(h)
		for i := range built.Segments() {
			for _, name := range []string{"zeros", pick(s.rng, names)} { // zeros lead furthest
				what := fmt.Sprintf("%d keys, %v, segment %d: %s", n, f, i, name)
				copies += s.damagedParts(m, h, inFile(built, f), spoiled(built.Segments(), i, spoils[name]), what)
			}
		}
		built.Release()
	}
	if copies == 0 {
		s.Skip("no tree of this seed can lie on a device")
	}
}

// damagedParts opens a damaged file, and searches copies of all of its levels
// and of some of them. It returns the number of copies.
func (s *suite[C]) damagedParts(m *machine, h *held[C], in layout.InFile, segments [][]byte, what string) (copies int) {
	s.Helper()
	tree, err := s.open(len(h.keys), in, segments)
	if err != nil {
		return 0 // refused, as it may be
	}
	defer tree.Release()
	on, ok := tree.(layout.OnDevice)
	if !ok {
		return 0
	}
	steps, im := tree.(layout.Stepped[C]), on.Image()
	asked := questions(s.rng, h.keys, 40)
	for len(asked) < 40 {
		asked = append(asked, C(s.rng.Uint64()))
	}
	for hi := 1; hi <= im.Depth()+1; hi++ {
		for _, lo := range []int{0, s.rng.IntN(hi)} {
			c := s.place(m, im, im.Memory, lo, hi)
			s.ok(c.everyCut(steps, asked, lo, hi), "%s, levels %d to %d of %d on the device", what, lo, hi, im.Depth())
			s.ok(c.close(), "%s", what)
			copies++
		}
	}
	if s.rng.IntN(8) == 0 {
		s.ok(s.batches(tree, h.form, asked), "%s", what)
	}
	return copies
}

// batches lets CPU and device answer batches together, by every split of the
// levels that the device holds. A kernel that faults takes the device down,
// though the CPU goes on.
func (s *suite[C]) batches(tree layout.Tree[C], f form, asked []C) error {
	im := tree.(layout.OnDevice).Image()
	keep := exec.Keep{First: s.rng.IntN(im.Depth() + 1)}
	keep.Last = keep.First + 1 + s.rng.IntN(im.Depth()+1-keep.First)
	dev := ptx.New(ptx.Seed(s.rng.Uint64()), ptx.Steps(mostSteps), ptx.RaceCheck(false))
	g, err := exec.NewGPU(exec.NewCPU[C](tree, tree.Len(), 2), dev, im, keep)
	if err != nil {
		return err
	}
	for upper := keep.First; upper <= min(keep.Last, im.Depth()); upper++ {
		for lower := upper; lower <= keep.Last; lower++ {
			split := exec.Split{Upper: upper, Lower: lower}
			if upper < min(lower, im.Depth()) {
				split.Share = 0.5
			}
			plan := g.Plan()
			plan.Split = split
			err := first(func() error { return g.Use(plan) }, func() error { return askBatches(g, tree, f, asked) }, g.Down)
			if err != nil {
				return errors.Join(fmt.Errorf("levels %d to %d of %d on the device, split %+v: %w", keep.First, keep.Last, im.Depth(), split, err), g.Close())
			}
		}
	}
	return g.Close()
}

// askBatches asks a schedule all it can be asked. Any answer within the tree
// will do.
func askBatches[C layout.Code](g *exec.GPU[C], tree layout.Tree[C], f form, asked []C) error {
	keys, ranks, after := order.KeysOf(asked), dirtyInts(len(asked)), dirtyInts(len(asked))
	found, vals := make([]bool, len(asked)), roomFor(8*len(asked))
	g.Rank(keys, ranks)
	g.RankAfter(keys, after)
	if err := errors.Join(within(ranks, 0, tree.Len()), within(after, 0, tree.Len())); err != nil {
		return err
	}
	g.FindEach(keys, &places{at: dirtyInts(len(asked))})
	if f.pairs {
		g.GetPairs(keys, arena.As[C](vals)[:len(asked)], found)
	} else if f.size > 0 {
		g.FindVals(keys, &places{at: dirtyInts(len(asked))}, vals[:f.size*len(asked)], found)
	}
	return nil
}

// everyCut launches searches from every level that the device holds to every
// other. Any answer will do.
func (c *onDevice[C]) everyCut(steps layout.Stepped[C], asked []C, lo, hi int) error {
	depth := steps.Depth()
	for from := lo; from <= min(hi, depth); from++ {
		for to := from; to <= hi; to++ {
			deeps, wants := []int{0}, []layout.Want{layout.WantRanks}
			if from < min(to, depth) {
				deeps = []int{0, 32, len(asked)}
			}
			if to > depth {
				wants = c.wants()
			}
			for _, deep := range deeps {
				for _, w := range wants {
					if _, _, err := c.launch(steps, asked, from, deep, to, w); err != nil {
						return fmt.Errorf("from %d to %d, %d queries a level further, want %d: %w", from, to, deep, w, err)
					}
				}
			}
		}
	}
	if hi > depth && lo == 0 {
		return c.copyRuns(steps, asked)
	}
	return nil
}

// copyRuns copies runs of entries, as ranges of at most 20 do: from one rank
// towards another, both out of the damaged tree.
func (c *onDevice[C]) copyRuns(steps layout.Stepped[C], asked []C) error {
	copier, ok := c.image.Resident.(layout.EntryCopier)
	if !ok {
		return nil
	}
	ranks := make([]int, len(asked))
	steps.RankFrom(0, asked, ranks)
	var starts, offsets []uint32
	n := 0
	for i := 1; i < len(ranks); i++ {
		if ranks[i] > ranks[i-1] {
			starts, offsets = append(starts, uint32(ranks[i-1])), append(offsets, uint32(n))
			n += min(ranks[i]-ranks[i-1], 20)
		}
	}
	if n == 0 {
		return nil
	}
	e := layout.EntryCopy{Set: c.kernels, Stream: c.stream, Params: &c.params, Bits: 8 * width[C](), ValBits: 8 * c.image.ValSize, Runs: len(starts), N: n}
	at := []*device.Ptr{&e.First, &e.Offsets, &e.Keys, &e.Vals}
	if c.image.ValSize == 0 {
		at = at[:3]
	}
	for _, p := range at {
		var err error
		if *p, err = c.dev.Alloc(8 * n); err != nil {
			return err
		}
		defer c.dev.Free(*p)
	}
	return first(
		func() error { return c.stream.CopyIn(e.First, arena.Bytes(starts)) },
		func() error { return c.stream.CopyIn(e.Offsets, arena.Bytes(offsets)) },
		func() error { return copier.CopyEntries(&e) },
		c.stream.Synchronize,
	)
}

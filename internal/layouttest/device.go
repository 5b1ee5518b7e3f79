package layouttest

import (
	"fmt"
	"slices"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/seed"
)

// mostSteps ends a launch that would never end. A search of a hundred keys takes
// some hundred thousand instructions.
const mostSteps = 50_000_000

// A copy of a tree on a device, of all of it or of some levels, answers as the
// tree does: for every Want, from any level on, down to any other.
func (s *suite[C]) device() {
	m := s.machine()
	defer m.dev.Close()
	tried := false
	for _, f := range s.forms() {
		for _, n := range []int{0, 1, 300, 4000} {
			for _, kind := range []string{"random", "ends", "clustered"} {
				if s.rng.IntN(3) > 0 && n != 4000 || !seed.Long() && s.rng.IntN(3) > 0 {
					continue
				}
				h := newHeld(keysOf[C](s.rng, kind, n), f)
				tree := s.build(h)
				if on, ok := tree.(layout.OnDevice); ok {
					tried = true
					s.copied(m, tree, on.Image(), h, fmt.Sprintf("%d keys %s, %v", n, kind, f))
				}
				tree.Release()
			}
		}
	}
	if !tried {
		s.Skip("no tree of this seed can lie on a device")
	}
}

// copied tries copies of a tree: all of it, its inner levels, some of them, and
// one whose bytes are damaged.
func (s *suite[C]) copied(m *machine, tree layout.Tree[C], im layout.Image, h *held[C], what string) {
	s.Helper()
	steps, ok := tree.(layout.Stepped[C])
	if !ok || steps.Depth() != im.Depth() {
		s.Fatalf("%s: an image of %d levels of a tree whose searches cannot be cut there", what, im.Depth())
	}
	s.ok(levelsInOrder(&im), "%s", what)
	depth := im.Depth()
	asked := questions(s.rng, h.keys, 96+s.rng.IntN(10))
	for len(asked) < 40 {
		asked = append(asked, C(s.rng.Uint64()))
	}
	want := h.answers(asked)
	keeps := [][2]int{{0, depth + 1}}
	if depth > 0 {
		keeps = append(keeps, [2]int{0, depth})
		from := s.rng.IntN(depth)
		keeps = append(keeps, [2]int{from, from + 1 + s.rng.IntN(depth-from)}, [2]int{depth, depth + 1})
	}
	for _, keep := range keeps {
		c := s.place(m, im, im.Memory, keep[0], keep[1])
		for from := keep[0]; from <= min(keep[1], depth); from++ {
			for to := from; to <= keep[1]; to++ {
				s.ok(c.goDown(steps, want, from, to), "%s, levels %d to %d of %d on the device, from %d to %d", what, keep[0], keep[1], depth, from, to)
			}
		}
		s.ok(c.close(), "%s", what)
	}
	s.damagedCopy(m, steps, im, want, what)
}

// levelsInOrder returns an error for an image whose levels are not in order.
func levelsInOrder(im *layout.Image) error {
	if len(im.Levels) == 0 || im.Levels[0] < 0 || !slices.IsSorted(im.Levels) || im.Levels[im.Depth()] > len(im.Memory) {
		return fmt.Errorf("levels at %d of %d bytes", im.Levels, len(im.Memory))
	}
	return nil
}

// damagedCopy searches a copy whose bytes are anything: no kernel reads outside
// of it, and all of them end.
func (s *suite[C]) damagedCopy(m *machine, steps layout.Stepped[C], im layout.Image, want *answers[C], what string) {
	s.Helper()
	spoils := s.spoils()
	for _, name := range []string{"zeros", "ones", "random", "some bits"} {
		memory := slices.Clone(im.Memory)
		spoils[name](memory)
		c := s.place(m, im, memory, 0, im.Depth()+1)
		for _, w := range c.wants() {
			_, _, err := c.launch(steps, want.asked, 0, 0, im.Depth()+1, w)
			s.ok(err, "%s, %s on the device, want %d", what, name, w)
		}
		s.ok(c.close(), "%s", what)
	}
}

// machine is the interpreter, with the kernels that are loaded.
type machine struct {
	dev    *ptx.Device
	stream device.Stream
	sets   map[int]*kernel.Set // by the number of their sources
}

func (s *suite[C]) machine() *machine {
	s.Helper()
	dev := ptx.New(ptx.Seed(s.rng.Uint64()), ptx.Memory(64<<20), ptx.Steps(mostSteps), ptx.RaceCheck(s.rng.IntN(3) == 0))
	stream, err := dev.NewStream()
	s.ok(err, "a stream")
	return &machine{dev, stream, map[int]*kernel.Set{}}
}

// set returns the kernels of a layout.
func (m *machine) set(sources []kernel.Source) (set *kernel.Set, err error) {
	if set = m.sets[len(sources)]; set == nil {
		set, err = kernel.Load(m.dev, sources...)
		m.sets[len(sources)] = set
	}
	return set, err
}

// onDevice is a copy of a tree on the interpreter.
type onDevice[C layout.Code] struct {
	*machine
	kernels *kernel.Set
	image   layout.Image
	at      device.Ptr
	params  kernel.Params
}

// place copies levels [lo, hi) of an image to a device.
func (s *suite[C]) place(m *machine, im layout.Image, memory []byte, lo, hi int) *onDevice[C] {
	s.Helper()
	c := &onDevice[C]{machine: m, image: im}
	var err error
	c.kernels, err = m.set(im.Resident.Kernels())
	s.ok(err, "kernels")
	part := memory[im.Level(lo):im.Level(hi)]
	c.at, err = m.dev.Alloc(max(len(part), 4))
	s.ok(err, "%d bytes", len(part))
	if len(part) > 0 {
		s.ok(m.stream.CopyIn(c.at, part), "a copy")
	}
	s.ok(im.Resident.Place(c.at-device.Ptr(im.Level(lo))), "levels %d to %d", lo, hi)
	im.Resident.Favor(m.stream)
	return c
}

func (c *onDevice[C]) close() error { return c.dev.Free(c.at) }

// wants lists what a search of such a tree can result in.
func (c *onDevice[C]) wants() []layout.Want {
	switch {
	case c.image.Pairs:
		return []layout.Want{layout.WantRanks, layout.WantFinds, layout.WantPairs}
	case c.image.ValSize > 0:
		return []layout.Want{layout.WantRanks, layout.WantFinds, layout.WantColumn}
	}
	return []layout.Want{layout.WantRanks, layout.WantFinds}
}

// goDown takes queries from one level to another, or to their answers, where
// some of them have come a level further already.
func (c *onDevice[C]) goDown(steps layout.Stepped[C], want *answers[C], from, to int) error {
	depth := steps.Depth()
	deeps := []int{0}
	if from+1 <= min(to, depth) {
		deeps = []int{0, 32, len(want.asked)}
	}
	for _, deep := range deeps {
		if to <= depth {
			if err := c.nodes(steps, want, from, deep, to); err != nil {
				return err
			}
			continue
		}
		for _, w := range c.wants() {
			if err := c.answer(steps, want, from, deep, w); err != nil {
				return fmt.Errorf("%d queries a level further, want %d: %w", deep, w, err)
			}
		}
	}
	return nil
}

// nodes compares the nodes that queries come to with the CPU's, and goes on from
// there.
func (c *onDevice[C]) nodes(steps layout.Stepped[C], want *answers[C], from, deep, to int) error {
	out, _, err := c.launch(steps, want.asked, from, deep, to, layout.WantRanks)
	if err != nil {
		return err
	}
	places := make([]int, len(want.asked))
	for i, node := range arena.As[uint32](out)[:len(places)] {
		places[i] = int(node) * layout.NodeWords
	}
	there := make([]int, len(places))
	if steps.Descend(0, to, want.asked, there); !slices.Equal(places, there) {
		return fmt.Errorf("%d queries a level further: other nodes than the CPU's", deep)
	}
	return asWanted("RankFrom where the device has come to", func(k []C, r []int) { steps.RankFrom(to, k, r) }, want.asked, places, want.ranks)
}

// answer compares the answers of queries with what is wanted.
func (c *onDevice[C]) answer(steps layout.Stepped[C], want *answers[C], from, deep int, w layout.Want) error {
	out, found, err := c.launch(steps, want.asked, from, deep, steps.Depth()+1, w)
	if err != nil {
		return err
	}
	for i, key := range want.asked {
		got, is := answerOf(out, i, w, c.image.ValSize), found[i/8]>>(i%8)&1 == 1
		wants, hit := want.of.answerTo(want, i, w), want.found[i]
		if got != wants || (w == layout.WantPairs || w == layout.WantColumn) && is != hit {
			return fmt.Errorf("%d gives %d, %v; want %d, %v", key, got, is, wants, hit)
		}
	}
	return nil
}

// answerOf reads answer i out of results.
func answerOf(out []byte, i int, w layout.Want, size int) uint64 {
	if (w == layout.WantPairs || w == layout.WantColumn) && size == 8 {
		return arena.As[uint64](out)[i]
	}
	return uint64(arena.As[uint32](out)[i])
}

// answerTo returns the answer that a device must give to query i.
func (h *held[C]) answerTo(a *answers[C], i int, w layout.Want) uint64 {
	at := a.finds[i]
	switch {
	case w == layout.WantRanks:
		return uint64(a.ranks[i])
	case w == layout.WantFinds && at < 0:
		return kernel.NotFound
	case w == layout.WantFinds:
		return uint64(at)
	case at < 0:
		return 0
	case h.size == 8:
		return arena.As[uint64](h.vals)[at]
	}
	return uint64(arena.As[uint32](h.vals)[at])
}

// launch runs a bucket of queries that have come to a level; deep of them are
// one further.
func (c *onDevice[C]) launch(steps layout.Stepped[C], keys []C, from, deep, to int, w layout.Want) (out, found []byte, err error) {
	n := len(keys)
	l := layout.Launch{
		Set: c.kernels, Stream: c.stream, Params: &c.params, Bits: 8 * width[C](), N: n,
		Begins: from > 0 || deep > 0, From: from, Deep: deep, To: to, Want: w, Vals: 8 * c.image.ValSize,
	}
	out, found = roomFor(8*n), roomFor((n+31)/32*4)
	for _, p := range []*device.Ptr{&l.Keys, &l.Nodes, &l.Out, &l.Found} {
		if *p, err = c.dev.Alloc(8 * n); err != nil {
			return nil, nil, err
		}
		defer c.dev.Free(*p)
	}
	result := out[:4*n]
	if w == layout.WantPairs || w == layout.WantColumn {
		result = out[:c.image.ValSize*n]
	}
	err = first(
		func() error { return c.stream.CopyIn(l.Keys, arena.Bytes(keys)) },
		func() error { return c.stream.CopyIn(l.Nodes, arena.Bytes(starts(steps, keys, from, deep))) },
		func() error { return c.image.Resident.Launch(&l) },
		func() error { return c.stream.CopyOut(result, l.Out) },
		func() error { return c.stream.CopyOut(found, l.Found) },
		c.stream.Synchronize,
	)
	return out, found, err
}

// starts returns the nodes at which queries begin.
func starts[C layout.Code](steps layout.Stepped[C], keys []C, from, deep int) []uint32 {
	places := make([]int, len(keys))
	if deep > 0 {
		steps.Descend(0, from+1, keys[:deep], places[:deep])
	}
	steps.Descend(0, from, keys[deep:], places[deep:])
	nodes := make([]uint32, len(keys))
	for i, p := range places {
		nodes[i] = uint32(p / layout.NodeWords)
	}
	return nodes
}

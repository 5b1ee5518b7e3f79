package layouttest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/seed"
)

// suite is the properties of a layout of numbers.
type suite[C layout.Code] struct {
	base
	layout layout.Numbers[C]
}

func newSuite[C layout.Code](t *testing.T, l layout.Numbers[C]) *suite[C] {
	return &suite[C]{newBase(t, l.Name()), l}
}

// forms lists every way in which the layout holds values of 4 and 8 bytes, and
// none.
func (s *suite[C]) forms() (out []form) {
	for _, size := range []int{0, 4, 8} {
		for _, asked := range []layout.Name{s.kind, layout.Auto, layout.Pairs, layout.Apart} {
			pairs, ok := s.layout.Settle(asked, 1000, size)
			if f := (form{pairs, size}); ok && !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
	}
	if len(out) == 0 {
		s.Fatalf("layout %v serves nothing, not even by its name", s.kind)
	}
	return out
}

// build builds a tree, from codes or by encoding keys, on some workers. Nothing
// of what it is built from is left when it is asked.
func (s *suite[C]) build(h *held[C]) layout.Tree[C] {
	s.Helper()
	src, spoil := h.source(s.rng.IntN(waysIn))
	cfg := h.config()
	cfg.Workers = s.rng.IntN(4)
	cfg.Pages = []arena.Pages{arena.Small, arena.HugeInner, arena.HugeAll}[s.rng.IntN(3)]
	tree, err := s.layout.Build(src, cfg)
	s.ok(err, "%d keys, %v", len(h.keys), h.form)
	spoil()
	return tree
}

// sizes lists 0 to 3, and numbers around powers of two and around the borders of
// nodes and levels, up to some thousands.
func (s *suite[C]) sizes() []int {
	h := newHeld(keysOf[C](s.rng, "random", 5000), s.forms()[0])
	tree := s.build(h)
	fanout := max(tree.Stats().Fanout, 2)
	tree.Release()
	out := []int{0, 1, 2, 3}
	add := func(n int) { out = append(out, n-1, n, n+1) }
	for n := 4; n <= 4096; n *= 2 {
		add(n)
	}
	for _, leaf := range []int{4, 8, 16, 256} {
		for n := leaf; n <= 6000; n *= fanout {
			add(n)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// A tree of any keys is whole, and answers everything as a sorted slice does,
// on every path.
func (s *suite[C]) search() {
	forms := s.forms()
	for i, n := range s.sizes() {
		for j, kind := range allKinds[C]() {
			if !seed.Long() && s.rng.IntN(10) > 0 || n > 2000 && s.rng.IntN(3) > 0 {
				continue
			}
			h := newHeld(keysOf[C](s.rng, kind, n), forms[(i+j)%len(forms)])
			s.whole(h, 3000, fmt.Sprintf("%d keys %s, %v", n, kind, h.form))
		}
	}
}

// More keys than a worker takes at a time.
func (s *suite[C]) large() {
	n, forms := seed.Size(70_000, 200_000), s.forms()
	if !seed.Long() {
		forms = forms[:1]
	}
	for i, f := range forms {
		kind := []string{"random", "clustered", "dense"}[i%3]
		s.whole(newHeld(keysOf[C](s.rng, kind, n), f), n/20, fmt.Sprintf("%d keys %s, %v", n, kind, f))
	}
}

// whole builds a tree and tries all that must be true of it.
func (s *suite[C]) whole(h *held[C], most int, what string) {
	s.Helper()
	tree := s.build(h)
	defer tree.Release()
	want := h.answers(questions(s.rng, h.keys, most))
	s.ok(tree.Check(), "%s", what)
	s.ok(checkStats(tree, s.kind), "%s", what)
	s.ok(s.ownStats(tree, h), "%s", what)
	s.ok(onPaths(func() error { return ask(tree, want) }), "%s", what)
	s.ok(onPaths(func() error { return prefetched(tree, want) }), "%s", what)
	if len(h.keys) <= 6000 {
		s.ok(looksLike(tree, probes(h.keys), probes(want.asked[:min(len(want.asked), 200)])), "%s", what)
	}
}

// ownStats compares statistics with what was built.
func (s *suite[C]) ownStats(tree layout.Tree[C], h *held[C]) error {
	stats, column := tree.Stats(), int64(len(h.vals))
	if h.pairs {
		column = 0
	}
	if stats.ValueBytes != column || stats.Kind == layout.Pairs && !h.pairs || stats.Kind == layout.Apart && h.pairs {
		return fmt.Errorf("%d values in %v: %+v", len(h.keys), h.form, stats)
	}
	if im, ok := tree.(layout.OnDevice); ok {
		image := im.Image()
		if steps, ok := tree.(layout.Stepped[C]); ok && steps.Depth() != image.Depth() || image.Pairs != h.pairs || image.ValSize != h.size {
			return fmt.Errorf("the image is that of another tree: %d levels, pairs %v, values of %d bytes", image.Depth(), image.Pairs, image.ValSize)
		}
	}
	return nil
}

// prefetched asks again when values lie elsewhere: that changes no answer.
func prefetched[C layout.Code](tree layout.Tree[C], want *answers[C]) error {
	f, ok := tree.(layout.ValueFetcher)
	if !ok || want.of.size > 0 {
		return nil
	}
	column := make([]uint64, len(want.of.keys)+1)
	f.PrefetchFrom(unsafe.Pointer(&column[0]), 8)
	err := asWanted("Find with values elsewhere", tree.Find, want.asked, nil, want.finds)
	runtime.KeepAlive(column)
	return err
}

// However many build, and from whatever source, the bytes are the same.
func (s *suite[C]) sameBytes() {
	sizes := []int{0, 1, 300, 5000, 200_000}
	if !seed.Long() {
		sizes = sizes[:4]
	}
	for _, f := range s.forms() {
		for _, n := range sizes {
			h := newHeld(keysOf[C](s.rng, "clustered", n), f)
			var trees []layout.Tree[C]
			for i, workers := range []int{1, 1, 2, 5} {
				src, _ := h.source(i % waysIn)
				cfg := h.config()
				cfg.Workers = workers
				tree, err := s.layout.Build(src, cfg)
				s.ok(err, "%d keys, %v, %d workers", n, f, workers)
				trees = append(trees, tree)
				s.ok(sameSegments(tree.Segments(), trees[0].Segments()), "%d keys, %v, %d workers", n, f, workers)
			}
			for _, tree := range trees {
				tree.Release()
			}
		}
	}
	src := layout.Source[C]{} // no keys at all, and no way to get at them
	tree, err := s.layout.Build(src, layout.Config{})
	s.ok(err, "an empty source")
	s.ok(ask(tree, newHeld[C](nil, form{}).answers([]C{0, 1, ^C(0)})), "an empty source")
	tree.Release()
}

// A tree takes what Need says at most, and just what Survey says; with a byte
// less it is not built, and takes nothing.
func (s *suite[C]) memory() {
	for _, f := range s.forms() {
		for _, kind := range []string{"random", "all equal", "clustered"} {
			for _, n := range []int{0, 1, 3, 255, 1000, 30_000} {
				if !seed.Long() && s.rng.IntN(4) > 0 {
					continue
				}
				s.limits(newHeld(keysOf[C](s.rng, kind, n), f), fmt.Sprintf("%d keys %s, %v", n, kind, f))
			}
		}
	}
}

func (s *suite[C]) limits(h *held[C], what string) {
	s.Helper()
	src, _ := h.source(s.rng.IntN(waysIn))
	cfg := h.config()
	need, err := s.layout.Need(src.Len, cfg)
	s.ok(err, "%s: Need", what)
	before := arena.InUse()
	tree, err := s.layout.Build(src, cfg)
	s.ok(err, "%s", what)
	taken := tree.Stats().TotalBytes
	if now := arena.InUse() - before; now > taken {
		s.Errorf("%s: takes %d bytes, says %d", what, now, taken)
	}
	tree.Release()
	if need < taken {
		s.Errorf("%s: takes %d bytes, Need says %d", what, taken, need)
	}
	if v, ok := s.layout.(layout.Surveyed[C]); ok {
		if size, err := v.Survey(src, cfg); err != nil || size != taken {
			s.Errorf("%s: takes %d bytes, Survey says %d, %v", what, taken, size, err)
		}
		if least, err := v.Least(src.Len, cfg); err != nil || least > taken {
			s.Errorf("%s: takes %d bytes, Least says %d, %v", what, taken, least, err)
		}
	}
	before = arena.InUse()
	for _, limit := range []int64{1, taken - 1} {
		cfg.Limit = limit
		if tree, err := s.layout.Build(src, cfg); !errors.Is(err, arena.ErrLimit) || tree != nil {
			s.Errorf("%s: takes %d bytes, the limit is %d: %v", what, taken, limit, err)
		}
	}
	leavesNothing(s.T, before, what)
	cfg.Limit = taken
	tree, err = s.layout.Build(src, cfg)
	s.ok(err, "%s: takes %d bytes, which is the limit", what, taken)
	tree.Release()
}

// Keys that are out of order are found wherever they are, and leave nothing
// behind.
func (s *suite[C]) unsorted() {
	for _, f := range s.forms() {
		for _, n := range []int{2, 3, 40, 1100, 20_000} {
			for range seed.Times(8, 40) {
				s.swapped(n, f)
			}
		}
	}
}

// swapped tries to build from keys of which one is too large or too small.
func (s *suite[C]) swapped(n int, f form) {
	s.Helper()
	keys := make([]C, n)
	for i := range keys {
		keys[i] = C(i + 1)
	}
	at := []int{1, n - 1, 1 + s.rng.IntN(n-1), min(n-1, 1<<s.rng.IntN(12))}[s.rng.IntN(4)]
	keys[at-1], keys[at] = keys[at], keys[at-1]
	src, _ := newHeld(keys, f).source(s.rng.IntN(waysIn))
	before := arena.InUse()
	tree, err := s.layout.Build(src, layout.Config{Pairs: f.pairs, ValSize: f.size, Workers: 1 + s.rng.IntN(3)})
	if !errors.Is(err, layout.ErrUnsorted) || tree != nil {
		s.Fatalf("keys %d and %d of %d are swapped: %v", at-1, at, n, err)
	}
	leavesNothing(s.T, before, fmt.Sprintf("keys %d and %d of %d are swapped", at-1, at, n))
}

// A reader that is overtaken by Release reads nonsense, but does not fault.
func (s *suite[C]) released() {
	for _, f := range s.forms() {
		for _, n := range []int{0, 1, 100, 5000, 70_000} {
			if !seed.Long() && n > 5000 {
				continue
			}
			h := newHeld(keysOf[C](s.rng, "clustered", n), f)
			s.gone(s.build(h), h)
			built := s.build(h)
			opened, err := s.open(n, inFile(built, f), built.Segments())
			s.ok(err, "%d keys, %v", n, f)
			built.Release()
			s.gone(opened, h)
		}
	}
}

// gone releases a tree, twice, and asks it.
func (s *suite[C]) gone(tree layout.Tree[C], h *held[C]) {
	s.Helper()
	tree.Release()
	tree.Release()
	asked := questions(s.rng, h.keys, 500)
	s.ok(onPaths(func() error { return inside(tree, asked) }), "%d keys, %v, released", len(h.keys), h.form)
	readAll(tree, h.size)
}

// pick returns one of several.
func pick[T any](rng *rand.Rand, of []T) T { return of[rng.IntN(len(of))] }

package layouttest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/seed"
)

// texts is the properties of a layout of strings.
type texts struct {
	base
	layout layout.Strings
}

func newTexts(t *testing.T, l layout.Strings) *texts {
	return &texts{newBase(t, l.Name()), l}
}

// textKinds are strings that try to break something: one the prefix of another,
// the bytes at both ends, long ones that differ late.
var textKinds = map[string]func(rng *rand.Rand, i int) string{
	"random":    func(rng *rand.Rand, _ int) string { return letters(rng, rng.IntN(20), 256) },
	"short":     func(rng *rand.Rand, _ int) string { return letters(rng, rng.IntN(3), 256) },
	"2 letters": func(rng *rand.Rand, _ int) string { return letters(rng, 16, 2) },
	"prefixes":  func(_ *rand.Rand, i int) string { return strings.Repeat("a", i%1300) },
	"zeros":     func(_ *rand.Rand, i int) string { return strings.Repeat("\x00", i%300) },
	"equal":     func(*rand.Rand, int) string { return "always the same" },
	"empty":     func(*rand.Rand, int) string { return "" },
	"ends":      func(rng *rand.Rand, _ int) string { return pick(rng, awkward) },
	"far":       func(rng *rand.Rand, _ int) string { return far + fmt.Sprint(rng.IntN(3000)) },
	"apart": func(rng *rand.Rand, _ int) string {
		return letters(rng, 1, 2) + far[:100] + letters(rng, 1, 3) + far[:200] + letters(rng, 4, 9)
	},
	"urls": func(rng *rand.Rand, _ int) string {
		return fmt.Sprintf("https://%s.example/%s/%d", pick(rng, hosts), pick(rng, hosts), rng.IntN(500))
	},
}

var (
	awkward = []string{"", "\x00", "\x00\x00", "\x00\xff", "a", "a\x00", "aa", "\x7f", "\x80", "\xfe\xff", "\xff", "\xff\x00", "\xff\xff", strings.Repeat("\xff", 300)}
	far     = strings.Repeat("0123456789abcdef", 80)
	hosts   = strings.Fields("news newspaper newspapers shop shopping a static images")
)

// letters returns n bytes, each one of the given number of values.
func letters(rng *rand.Rand, n, values int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('0' + rng.IntN(values))
	}
	return string(b)
}

// allTexts lists the kinds in order, so that a seed repeats a run.
func allTexts() (names []string) {
	for name := range textKinds {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// keys returns n sorted strings of a kind.
func (s *texts) keys(kind string, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = textKinds[kind](s.rng, i)
	}
	slices.Sort(keys)
	return keys
}

// questions returns what to ask: strings that are held, those near them, and
// those far from all.
func (s *texts) questions(keys []string, most int) []string {
	out := append(slices.Clone(awkward), far, far+far, strings.Repeat("x", 1<<16))
	for i := 0; len(keys) > 0 && len(out) < most; i++ {
		k := pick(s.rng, keys)
		if 2*len(keys) < most && i < len(keys) {
			k = keys[i]
		}
		b := []byte(k)
		switch s.rng.IntN(6) {
		case 0:
			b = append(b, byte(s.rng.Uint32()))
		case 1:
			b = b[:s.rng.IntN(len(b)+1)]
		case 2:
			s.flip(b, 1)
		case 3:
			if len(b) > 0 {
				b[len(b)-1]++
			}
		}
		out = append(out, k, string(b))
	}
	s.rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// build builds a tree, of strings in order or in any, on some workers. Nothing
// of what it is built from is left when it is asked.
func (s *texts) build(keys []string) layout.StringTree {
	s.Helper()
	given, order := make([]string, len(keys)), []int(nil)
	for i, k := range keys {
		given[i] = strings.Clone(k)
	}
	if s.rng.IntN(2) == 0 {
		order = make([]int, len(keys))
		for i, at := range s.rng.Perm(len(keys)) {
			given[at], order[i] = strings.Clone(keys[i]), at
		}
	}
	cfg := layout.Config{Workers: s.rng.IntN(4), Pages: pick(s.rng, []arena.Pages{arena.Small, arena.HugeAll})}
	tree, err := s.layout.Build(given, order, cfg)
	s.ok(err, "%d strings", len(keys))
	clear(given)
	clear(order)
	return tree
}

// textSizes are around powers of two, where pages and nodes end.
func textSizes() []int {
	out := []int{0, 1, 2, 3}
	for n := 4; n <= 4096; n *= 4 {
		out = append(out, n-1, n, n+1)
	}
	return out
}

// A tree of any strings is whole, and answers everything as a sorted slice
// does, on every path.
func (s *texts) search() {
	for _, kind := range allTexts() {
		for _, n := range textSizes() {
			if n > 1000 && s.rng.IntN(3) > 0 || !seed.Long() && s.rng.IntN(8) > 0 {
				continue
			}
			s.whole(s.keys(kind, n), 800, fmt.Sprintf("%d strings %s", n, kind))
		}
	}
}

// More strings than a worker takes at a time.
func (s *texts) large() {
	n, kinds := seed.Size(20_000, 60_000), []string{"urls", "random"}
	if !seed.Long() {
		kinds = kinds[s.rng.IntN(2):][:1]
	}
	for _, kind := range kinds {
		s.whole(s.keys(kind, n), n/12, fmt.Sprintf("%d strings %s", n, kind))
	}
}

// whole builds a tree and tries all that must be true of it.
func (s *texts) whole(keys []string, most int, what string) {
	s.Helper()
	tree := s.build(keys)
	defer tree.Release()
	asked := s.questions(keys, most)
	s.ok(tree.Check(), "%s", what)
	s.ok(checkStats(tree, s.kind), "%s", what)
	s.ok(holds(tree, keys), "%s", what)
	s.ok(onPaths(func() error { return askTexts(tree, keys, asked) }), "%s", what)
	if len(keys) <= 6000 {
		s.ok(looksLike(tree, textProbes(keys), textProbes(asked[:min(len(asked), 200)])), "%s", what)
	}
}

// holds returns an error unless a tree has just these strings.
func holds(tree layout.StringTree, keys []string) error {
	if tree.Len() != len(keys) {
		return fmt.Errorf("%d strings, want %d", tree.Len(), len(keys))
	}
	for i, k := range keys {
		if got := tree.Key(i); got != k {
			return fmt.Errorf("string %d is %.60q, want %.60q", i, got, k)
		}
	}
	return nil
}

// askTexts asks for ranks and places: at once, in batches, and one by one.
func askTexts(tree layout.StringTree, keys, asked []string) error {
	n := len(asked)
	ranks, finds := make([]int, n), make([]int, n)
	for i, k := range asked {
		at, found := slices.BinarySearch(keys, k)
		if ranks[i], finds[i] = at, -1; found {
			finds[i] = at
		}
		after := at + sort.Search(len(keys)-at, func(j int) bool { return keys[at+j] > k })
		if got := tree.After(k); got != after {
			return fmt.Errorf("After(%.60q) = %d, want %d", k, got, after)
		}
		if got, equal := tree.Seek(k); got != at || equal != found {
			return fmt.Errorf("Seek(%.60q) = %d, %v; want %d, %v", k, got, equal, at, found)
		}
	}
	for _, size := range batches(n) {
		lo := (size * 7) % (n - size + 1)
		some := asked[lo : lo+size]
		if err := first(
			func() error { return asWanted("Rank", tree.Rank, some, nil, ranks[lo:lo+size]) },
			func() error { return asWanted("Find", tree.Find, some, nil, finds[lo:lo+size]) },
		); err != nil {
			return err
		}
	}
	return nil
}

// However many build, and in whatever order strings come, the bytes are the
// same.
func (s *texts) sameBytes() {
	for _, kind := range []string{"urls", "equal", "prefixes", "random"} {
		for _, n := range []int{0, 1, 300, 20_000} {
			if n > 300 && (!seed.Long() || kind == "prefixes") {
				continue
			}
			keys := s.keys(kind, n)
			one, err := s.layout.Build(keys, nil, layout.Config{Workers: 1})
			s.ok(err, "%d strings %s", n, kind)
			for _, workers := range []int{2, 5} {
				other, err := s.layout.Build(keys, nil, layout.Config{Workers: workers})
				s.ok(err, "%d strings %s", n, kind)
				s.ok(sameSegments(other.Segments(), one.Segments()), "%d strings %s, %d workers", n, kind, workers)
				other.Release()
			}
			mixed := s.build(keys)
			s.ok(sameSegments(mixed.Segments(), one.Segments()), "%d strings %s in another order", n, kind)
			mixed.Release()
			one.Release()
		}
	}
}

// A tree off the Go heap takes no more than its limit, or is refused before it
// takes anything; a limit equal to its size is enough. One on the Go heap takes
// the bytes that Need returns: its builder compares them with the limit.
func (s *texts) memory() {
	for _, kind := range []string{"urls", "prefixes", "equal"} {
		for _, n := range []int{0, 1, 200, 3000} {
			if !seed.Long() && s.rng.IntN(3) > 0 {
				continue
			}
			keys := s.keys(kind, n)
			what := fmt.Sprintf("%d strings %s", n, kind)
			need, err := s.layout.Need(keys, layout.Config{})
			s.ok(err, "%s", what)
			before := arena.InUse()
			tree, err := s.layout.Build(keys, nil, layout.Config{})
			s.ok(err, "%s", what)
			taken, heap := arena.InUse()-before, tree.Stats().OnHeap
			if heap && (taken > 0 || tree.Stats().TotalBytes > need) {
				s.Errorf("%s on the Go heap take %d bytes off it, %d in all, Need says %d", what, taken, tree.Stats().TotalBytes, need)
			}
			tree.Release()
			if heap {
				continue
			}
			if need > taken {
				s.Errorf("%s take %d bytes, Need says %d at least", what, taken, need)
			}
			for _, limit := range []int64{1, need - 1, need, taken - 1, taken, 2 * taken} {
				s.limited(keys, limit, taken, what)
			}
		}
	}
}

// limited builds strings that take takes bytes under a limit.
func (s *texts) limited(keys []string, limit, takes int64, what string) {
	s.Helper()
	before, beside := arena.InUse(), s.rng.Int64N(1000)
	arena.MostInUse()
	tree, err := s.layout.Build(keys, nil, layout.Config{Limit: limit + beside, Beside: beside})
	most := arena.MostInUse() - before
	switch {
	case err == nil:
		if most > limit || limit < takes {
			s.Errorf("%s take %d bytes, the limit is %d", what, most, limit)
		}
		tree.Release()
	case !errors.Is(err, arena.ErrLimit) || tree != nil || limit >= takes:
		s.Errorf("%s, limit %d of %d: %v", what, limit, takes, err)
	case most > 0:
		s.Errorf("%s, limit %d of %d: %d bytes are taken before it is refused", what, limit, takes, most)
	}
	leavesNothing(s.T, before, what)
}

// Strings that are out of order are refused, and leave nothing behind; a layout
// that takes them as they come says so when it is checked.
func (s *texts) unsorted() {
	for _, n := range []int{2, 3, 65, 700} {
		for range 20 {
			keys := make([]string, n)
			for i := range keys {
				keys[i] = fmt.Sprintf("%06d", i)
			}
			at := pick(s.rng, []int{1, n - 1, 1 + s.rng.IntN(n-1)})
			keys[at-1], keys[at] = keys[at], keys[at-1]
			before := arena.InUse()
			tree, err := s.layout.Build(keys, nil, layout.Config{Workers: 1 + s.rng.IntN(3)})
			if err == nil {
				err = tree.Check()
				tree.Release()
			} else if !errors.Is(err, layout.ErrUnsorted) || tree != nil {
				s.Fatalf("strings %d and %d of %d are swapped: %v", at-1, at, n, err)
			}
			if err == nil {
				s.Fatalf("strings %d and %d of %d are swapped, not seen", at-1, at, n)
			}
			leavesNothing(s.T, before, "strings out of order")
		}
	}
}

// open opens a tree of n strings over segments in a file.
func (s *texts) open(n int, in layout.InFile, segments [][]byte) (layout.StringTree, error) {
	s.Helper()
	o, err := s.layout.Outline(n, in)
	if err == nil {
		err = agrees(o, in)
	}
	if err != nil {
		return nil, err
	}
	block := s.mapped(segments, o.Slack)
	tree, err := s.layout.Open(n, in, block)
	if err != nil {
		block.Release()
		return nil, err
	}
	return tree, nil
}

// A tree in a file is the tree that was written.
func (s *texts) files() {
	for _, n := range textSizes() {
		for range 2 {
			kind := pick(s.rng, allTexts())
			keys, what := s.keys(kind, n), fmt.Sprintf("%d strings %s", n, kind)
			built := s.build(keys)
			in := inFile(built, form{})
			if !slices.Contains(s.layout.Formats(), in.Format) || len(in.Sections) != len(in.Format.Sections) {
				s.Fatalf("%s: format %+v, %d segments", what, in.Format, len(in.Sections))
			}
			tree, err := s.open(n, in, built.Segments())
			s.ok(err, "%s: in a file", what)
			s.ok(tree.Check(), "%s: in a file", what)
			s.ok(checkStats(tree, s.kind), "%s: in a file", what)
			s.ok(sameSegments(tree.Segments(), built.Segments()), "%s: in a file", what)
			s.ok(holds(tree, keys), "%s: in a file", what)
			asked := s.questions(keys, 200)
			s.ok(onPaths(func() error { return askTexts(tree, keys, asked) }), "%s: in a file", what)
			built.Release()
			tree.Release()
		}
	}
}

// Sections of other sizes are refused by the outline, when a tree is made, or by
// Check; where only the number of strings differs, searches stay inside.
func (s *texts) otherSizes() {
	for _, n := range []int{0, 1, 100, 700} {
		keys := s.keys("urls", n)
		built := s.build(keys)
		in := inFile(built, form{})
		for i := range in.Sections {
			for _, more := range []int{-576, -64, -8, -1, 1, 8, 64, 576} {
				s.resized(keys, in, built.Segments(), i, more)
			}
		}
		for _, other := range []int{0, 1, n - 1, n + 1, 2 * n} {
			if other < 0 || other == n {
				continue
			}
			if tree, err := s.open(other, in, built.Segments()); err == nil {
				s.ok(insideTexts(tree, keys), "%d strings opened as %d", n, other)
				tree.Release()
			}
		}
		built.Release()
	}
}

// resized opens a tree with one section that is longer or shorter.
func (s *texts) resized(keys []string, in layout.InFile, segments [][]byte, i, more int) {
	s.Helper()
	size := len(segments[i]) + more
	if size < 0 {
		return
	}
	in.Sections, segments = slices.Clone(in.Sections), slices.Clone(segments)
	in.Sections[i], segments[i] = int64(size), append(slices.Clone(segments[i]), make([]byte, max(more, 0))...)[:size]
	tree, err := s.open(len(keys), in, segments)
	if err != nil {
		return
	}
	defer tree.Release()
	if tree.Check() == nil {
		s.Errorf("%d strings: section %d has %d bytes more, not seen", len(keys), i, more)
	}
	s.ok(insideTexts(tree, keys), "%d strings: section %d has %d bytes more", len(keys), i, more)
}

// insideTexts asks a tree whose bytes may be anything: searches end, and ranks
// are those of entries.
func insideTexts(tree layout.StringTree, asked []string) error {
	n := tree.Len()
	ask := func() error {
		ranks, finds := make([]int, len(asked)), make([]int, len(asked))
		tree.Rank(asked, ranks)
		tree.Find(asked, finds)
		for i, k := range asked {
			if i%8 == 0 {
				rank, _ := tree.Seek(k)
				ranks = append(ranks, rank, tree.After(k))
			}
		}
		return first(func() error { return within(ranks, 0, n) }, func() error { return within(finds, -1, n-1) })
	}
	if err := onPaths(ask); err != nil {
		return err
	}
	for i := range n {
		tree.Key(i)
	}
	tree.Stats()
	lookAround(tree, textProbes(asked[:min(len(asked), 50)]))
	_ = tree.Check()
	return nil
}

// Even in a damaged file, searches end inside of it, and Check comes back.
func (s *texts) damage() {
	for _, kind := range []string{"urls", "prefixes", "equal", "2 letters"} {
		for _, n := range []int{1, 64, 1500} {
			if !seed.Long() && s.rng.IntN(4) > 0 {
				continue
			}
			keys := s.keys(kind, n)
			built := s.build(keys)
			asked := s.questions(keys, 200)
			for i := range built.Segments() {
				for name, spoil := range s.spoils() {
					tree, err := s.open(n, inFile(built, form{}), spoiled(built.Segments(), i, spoil))
					if err != nil {
						continue // refused, as it may be
					}
					s.ok(insideTexts(tree, asked), "%d strings %s, segment %d: %s", n, kind, i, name)
					tree.Release()
				}
			}
			built.Release()
		}
	}
}

// Every bit of a tree is there for a reason: Check sees each change, but for one
// that makes a string another and leaves a whole tree of the strings that there
// are then.
func (s *texts) check() {
	for _, kind := range []string{"urls", "prefixes", "2 letters"} {
		for _, n := range []int{1, 65, 600} {
			keys := s.keys(kind, n)
			tree := s.build(keys)
			for i, seg := range tree.Segments() {
				tries, seen := min(20, len(seg)), 0
				for range tries {
					at, bit := s.rng.IntN(len(seg)), byte(1)<<s.rng.IntN(8)
					seg[at] ^= bit
					if tree.Check() != nil {
						seen++
					} else if err := s.another(tree, keys); err != nil {
						s.Errorf("%d strings %s: bit %#x of byte %d of segment %d changed, not seen: %v", n, kind, bit, at, i, err)
					}
					seg[at] ^= bit
				}
				if seen == 0 && tries > 0 && n >= 65 {
					s.Errorf("%d strings %s: no change of segment %d is seen", n, kind, i)
				}
			}
			s.ok(tree.Check(), "%d strings %s: all bits are as they were", n, kind)
			tree.Release()
		}
	}
}

// another returns an error unless a tree in which Check finds nothing is a tree
// of other strings.
func (s *texts) another(tree layout.StringTree, keys []string) error {
	is := make([]string, len(keys))
	for i := range is {
		is[i] = strings.Clone(tree.Key(i)) // the memory changes again
	}
	if slices.Equal(is, keys) {
		return errors.New("the strings are the same")
	}
	if !slices.IsSorted(is) {
		return errors.New("the strings are not in order")
	}
	return askTexts(tree, is, s.questions(is, 100))
}

// A reader that is overtaken by Release reads nonsense, but does not fault.
// Strings that it has got stay what they are.
func (s *texts) released() {
	for _, kind := range []string{"urls", "prefixes", "equal"} {
		for _, n := range []int{0, 1, 64, 2000} {
			keys := s.keys(kind, n)
			built := s.build(keys)
			opened, err := s.open(n, inFile(built, form{}), built.Segments())
			s.ok(err, "%d strings %s", n, kind)
			for _, tree := range []layout.StringTree{built, opened} {
				got := make([]string, n)
				for i := range got {
					got[i] = tree.Key(i)
				}
				tree.Release()
				tree.Release()
				if !slices.Equal(got, keys) {
					s.Errorf("%d strings %s: strings that were given out are gone", n, kind)
				}
				s.ok(insideTexts(tree, s.questions(keys, 300)), "%d strings %s, released", n, kind)
			}
		}
	}
}

package layouttest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/files"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/seed"
)

// mapped writes segments to a file, each on a page of its own behind a first
// page of something else, and maps it.
func (b *base) mapped(segments [][]byte, slack int) *arena.Block {
	b.Helper()
	file := bytes.Repeat([]byte{0xee}, files.Page)
	var parts []arena.Part
	for _, s := range segments {
		parts = append(parts, arena.Part{Offset: len(file), Size: len(s)})
		file = append(file, s...)
		file = append(file, make([]byte, -len(file)&(files.Page-1))...)
	}
	path := filepath.Join(b.dir, "tree")
	b.ok(os.WriteFile(path, file, 0o600), "a file")
	defer os.Remove(path)
	f, err := os.Open(path)
	b.ok(err, "a file")
	defer f.Close()
	block, err := arena.Map(f, int64(len(file)), parts, slack, 0)
	b.ok(err, "a file")
	return block
}

// spoiled returns copies of segments, one of them changed by spoil, which may be
// nil.
func spoiled(segments [][]byte, at int, spoil func([]byte)) [][]byte {
	out := make([][]byte, len(segments))
	for i, s := range segments {
		out[i] = slices.Clone(s)
	}
	if spoil != nil {
		spoil(out[at])
	}
	return out
}

// inFile is how a file describes a tree.
func inFile(b layout.Body, f form) layout.InFile {
	in := layout.InFile{Format: b.Format(), Shape: b.Shape(), ValSize: f.size}
	for _, s := range b.Segments() {
		in.Sections = append(in.Sections, int64(len(s)))
	}
	return in
}

// errOutline is the error for sections that are not as an outline has them.
var errOutline = errors.New("not as the outline has it")

// agrees compares an outline with a file's header, as the opener of a file does
// before a tree is made.
func agrees(o layout.Outline, in layout.InFile) error {
	if o.Shape != in.Shape {
		return fmt.Errorf("%w: shape %+v, want %+v", errOutline, in.Shape, o.Shape)
	}
	if len(o.Sizes) != len(in.Sections) {
		return fmt.Errorf("%w: %d sections, want %d", errOutline, len(in.Sections), len(o.Sizes))
	}
	for i, size := range o.Sizes {
		if size >= 0 && int64(size) != in.Sections[i] {
			return fmt.Errorf("%w: section %d has %d bytes, want %d", errOutline, i, in.Sections[i], size)
		}
	}
	return nil
}

// open opens a tree of n keys over segments in a file.
func (s *suite[C]) open(n int, in layout.InFile, segments [][]byte) (layout.Tree[C], error) {
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
func (s *suite[C]) files() {
	forms := s.forms()
	for i, n := range s.sizes() {
		if n > 100 && s.rng.IntN(3) > 0 || !seed.Long() && s.rng.IntN(3) > 0 {
			continue
		}
		kind := pick(s.rng, allKinds[C]())
		h := newHeld(keysOf[C](s.rng, kind, n), forms[i%len(forms)])
		s.written(h, fmt.Sprintf("%d keys %s, %v", n, kind, h.form))
	}
}

func (s *suite[C]) written(h *held[C], what string) {
	s.Helper()
	built := s.build(h)
	defer built.Release()
	in := inFile(built, h.form)
	if !slices.Contains(s.layout.Formats(), in.Format) || in.Format.Pairs != h.pairs {
		s.Fatalf("%s: format %+v", what, in.Format)
	}
	sections := len(in.Format.Sections)
	if h.size > 0 && !h.pairs {
		sections++ // the column
	}
	if len(in.Sections) != sections {
		s.Fatalf("%s: %d segments, want %d", what, len(in.Sections), sections)
	}
	tree, err := s.open(len(h.keys), in, built.Segments())
	s.ok(err, "%s: in a file", what)
	defer tree.Release()
	s.ok(tree.Check(), "%s: in a file", what)
	s.ok(sameSegments(tree.Segments(), built.Segments()), "%s: in a file", what)
	if again := inFile(tree, h.form); again.Format != in.Format || again.Shape != in.Shape {
		s.Errorf("%s: in a file %+v, was %+v", what, again, in)
	}
	s.ok(checkStats(tree, s.kind), "%s: in a file", what)
	want := h.answers(questions(s.rng, h.keys, 500))
	s.ok(onPaths(func() error { return ask(tree, want) }), "%s: in a file", what)
}

// Sections of other sizes are refused by the outline, when a tree is made, or by
// Check; where only the number of keys differs, searches stay inside.
func (s *suite[C]) otherSizes() {
	for _, f := range s.forms() {
		for _, n := range []int{0, 1, 100, 3000} {
			h := newHeld(keysOf[C](s.rng, "random", n), f)
			built := s.build(h)
			in := inFile(built, f)
			for i := range in.Sections {
				for _, more := range []int{-64, -8, -1, 1, 8, 64, 4096} {
					s.resized(h, in, built.Segments(), i, more)
				}
			}
			for _, other := range []int{0, 1, n - 1, n + 1, 2 * n, 100_000} {
				s.recounted(h, in, built.Segments(), other)
			}
			built.Release()
		}
	}
}

// resized opens a tree with one section that is longer or shorter.
func (s *suite[C]) resized(h *held[C], in layout.InFile, segments [][]byte, i, more int) {
	s.Helper()
	size := len(segments[i]) + more
	if size < 0 {
		return
	}
	in.Sections, segments = slices.Clone(in.Sections), slices.Clone(segments)
	in.Sections[i], segments[i] = int64(size), append(slices.Clone(segments[i]), make([]byte, max(more, 0))...)[:size]
	tree, err := s.open(len(h.keys), in, segments)
	if err != nil {
		return
	}
	defer tree.Release()
	if tree.Check() == nil {
		s.Errorf("%d keys, %v: section %d has %d bytes more, not seen", len(h.keys), h.form, i, more)
	}
	asked := questions(s.rng, h.keys, 200)
	s.ok(onPaths(func() error { return inside(tree, asked) }), "%d keys, %v: section %d has %d bytes more", len(h.keys), h.form, i, more)
}

// recounted opens a tree as one of another number of keys.
func (s *suite[C]) recounted(h *held[C], in layout.InFile, segments [][]byte, n int) {
	s.Helper()
	if n < 0 || n == len(h.keys) {
		return
	}
	tree, err := s.open(n, in, segments)
	if err != nil {
		return
	}
	defer tree.Release()
	asked := questions(s.rng, h.keys, 200)
	s.ok(onPaths(func() error { return inside(tree, asked) }), "%d keys, %v: opened as %d", len(h.keys), h.form, n)
}

// spoils are ways to spoil a segment.
func (b *base) spoils() map[string]func([]byte) {
	return map[string]func([]byte){
		"zeros": func(seg []byte) { clear(seg) },
		"ones": func(seg []byte) {
			for i := range seg {
				seg[i] = 0xff
			}
		},
		"random":            func(seg []byte) { b.garble(seg) },
		"random from 64 on": func(seg []byte) { b.garble(seg[min(64, len(seg)):]) },
		"random end":        func(seg []byte) { b.garble(seg[b.rng.IntN(len(seg)+1):]) },
		"random words": func(seg []byte) {
			at := b.rng.IntN(len(seg)+1) &^ 7
			b.garble(seg[at:min(at+32, len(seg))])
		},
		"one bit":   func(seg []byte) { b.flip(seg, 1) },
		"some bits": func(seg []byte) { b.flip(seg, 20) },
	}
}

// garble sets bytes at random.
func (b *base) garble(seg []byte) {
	for i := range seg {
		seg[i] = byte(b.rng.Uint32())
	}
}

// flip flips bits at random.
func (b *base) flip(seg []byte, bits int) {
	for i := 0; i < bits && len(seg) > 0; i++ {
		seg[b.rng.IntN(len(seg))] ^= 1 << b.rng.IntN(8)
	}
}

// Even in a damaged file, searches end inside of it, and Check comes back.
func (s *suite[C]) damage() {
	sizes := []int{1, 10, 300, 4000, 20_000}
	if !seed.Long() {
		sizes = []int{1, 300, 4000}
	}
	for _, f := range s.forms() {
		for _, n := range sizes {
			h := newHeld(keysOf[C](s.rng, pick(s.rng, []string{"random", "clustered", "ends"}), n), f)
			built := s.build(h)
			for i := range built.Segments() {
				for name, spoil := range s.spoils() {
					if !seed.Long() && s.rng.IntN(5) > 0 {
						continue
					}
					what := fmt.Sprintf("%d keys, %v, segment %d: %s", n, f, i, name)
					s.survives(h, inFile(built, f), spoiled(built.Segments(), i, spoil), what)
				}
			}
			built.Release()
		}
	}
}

func (s *suite[C]) survives(h *held[C], in layout.InFile, segments [][]byte, what string) {
	s.Helper()
	tree, err := s.open(len(h.keys), in, segments)
	if err != nil {
		return // refused, as it may be
	}
	asked := questions(s.rng, h.keys, 300)
	s.ok(onPaths(func() error { return inside(tree, asked) }), "%s", what)
	readAll(tree, h.size)
	tree.Release()
}

// Every bit of a tree that is not a value is there for a reason: Check sees each
// change, but for one that makes a key another and leaves a whole tree of the
// keys that there are then.
func (s *suite[C]) check() {
	sizes := []int{1, 30, 300, 3000}
	for _, f := range s.forms() {
		for _, n := range sizes {
			for _, kind := range []string{"random", "dense", "few distinct", "clustered"} {
				if !seed.Long() && s.rng.IntN(6) > 0 {
					continue
				}
				h := newHeld(keysOf[C](s.rng, kind, n), f)
				tree := s.build(h)
				for i := range tree.Format().Sections {
					s.flipped(tree, h, i, kind)
				}
				s.ok(tree.Check(), "%d keys %s, %v: all bits are as they were", n, kind, f)
				tree.Release()
			}
		}
	}
}

// flipped flips bits of a segment, one after another, and goes on until Check
// has seen one of them: of the changes to random pairs, four in five leave a tree of
// other keys or are of a value, so that a few dozen need not show whether Check reads the
// segment.
func (s *suite[C]) flipped(tree layout.Tree[C], h *held[C], i int, kind string) {
	s.Helper()
	seg, seen := tree.Segments()[i], 0
	for try := 0; try < min(30, len(seg)) || seen == 0 && len(h.keys) >= 300 && try < len(seg); try++ {
		at, bit := s.rng.IntN(len(seg)), byte(1)<<s.rng.IntN(8)
		seg[at] ^= bit
		if tree.Check() != nil {
			seen++
		} else if err := s.another(tree, h, i); err != nil {
			s.Errorf("%d keys %s, %v: bit %#x of byte %d of segment %d changed, not seen: %v", len(h.keys), kind, h.form, bit, at, i, err)
			seg[at] ^= bit
			return
		}
		seg[at] ^= bit
	}
	if seen == 0 && len(seg) > 0 && len(h.keys) >= 300 {
		s.Errorf("%d keys %s, %v: no change of segment %d is seen", len(h.keys), kind, h.form, i)
	}
}

// another returns an error unless a tree in which Check finds nothing is a tree
// of other keys, or the change may be one of a value beside them.
func (s *suite[C]) another(tree layout.Tree[C], h *held[C], segment int) error {
	is := make([]C, len(h.keys))
	tree.CopyKeys(is, 0)
	beside := h.pairs && tree.Format().Sections[segment] == layout.SectionLeaves
	if slices.Equal(is, h.keys) && !beside {
		return errors.New("the keys are the same")
	}
	if !slices.IsSorted(is) {
		return errors.New("the keys are not in order")
	}
	now := newHeld(is, h.form)
	if h.size > 0 && len(is) > 0 {
		tree.(layout.Valued).CopyVals(now.vals, 0)
	}
	return askKeys(tree, now.answers(questions(s.rng, is, 200)))
}

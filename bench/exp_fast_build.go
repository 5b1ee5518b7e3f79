package main

import (
	"fmt"
	"runtime"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/arena"
)

var fastBuild = &experiment{
	name:     "fast-build",
	about:    "Freeze of sorted uint32 keys without values with each layout, and of a quarter as many URLs, on all cores",
	figure:   "section 5.1.1 of the " + paper10 + ": 64M keys in less than 0.1 s",
	per:      "one key put into the index",
	caseName: "keys",
	sizes:    []int{64 * mega},
	threads:  []int{runtime.NumCPU()},
	extra:    []extraColumn{{colSeconds, three}},
	run:      runFastBuild,
}

// colSeconds is the time of one build.
const colSeconds = "build s"

func runFastBuild(s *session) error {
	there, err := s.lookForGPU()
	if err != nil {
		return err
	}
	for _, n := range s.sizes {
		if !s.room("keys", n, 4*keyBytesU32, "use a smaller --n") {
			continue
		}
		s.say("making %s random keys of 32 bits ...", sizeText(n))
		d := &dataset[uint32]{keys: sortedKeys[uint32](n, s.seed)}
		builders, err := setBuilders(s, d, there)
		if err != nil {
			return err
		}
		if err := buildContests(s, d, "uint32", builders); err != nil {
			return err
		}
		if err := buildURLs(s, max(1, n/4)); err != nil {
			return err
		}
	}
	for _, r := range s.rows {
		r.set(colSeconds, r.Median*float64(r.Ops)/1e9)
	}
	return nil
}

// setBuilders returns a builder for each layout, on the CPU and, including the
// copy to it, on a GPU; then the limit.
func setBuilders(s *session, d *dataset[uint32], there bool) (out []builder[uint32], err error) {
	const peak = 1.3 * keyBytesU32
	for _, l := range layoutsCompared {
		out = append(out, builder[uint32]{name: l.name, peak: peak, make: freezeSet[uint32](pando.CPU, l.kind)})
	}
	for _, l := range layoutsCompared {
		if !there {
			break
		}
		name := l.name + " and copy to the GPU"
		why, err := notThere(d, pando.GPU(s.gpu), l.kind)
		if err != nil {
			return nil, err
		}
		if why != "" && !s.elsewhere {
			s.skip("%s at n %s: %s", name, sizeText(len(d.keys)), why)
			continue
		}
		out = append(out, builder[uint32]{name: name, peak: peak, make: freezeSet[uint32](pando.GPU(s.gpu), l.kind)})
	}
	return append(out, builder[uint32]{name: "limit: copy of the keys", peak: keyBytesU32, make: copyKeys[uint32]}), nil
}

// copyKeys copies the keys to huge pages of new memory, on all threads: a tree
// of keys without values is little more than that.
func copyKeys[W word](d *dataset[W], threads int) (made[W], error) {
	block, err := arena.New([]int{len(arena.Bytes(d.keys))}, 0, arena.HugeAll, 0)
	if err != nil {
		return made[W]{}, err
	}
	from, to := arena.Bytes(d.keys), block.Segment(0)
	copied := spread(threads, len(from), func(lo, hi int) int { return copy(to[lo:hi], from[lo:hi]) })
	return made[W]{entries: copied * 8 / bitsOf[W](), close: block.Release}, nil
}

// buildURLs builds indexes of strings, of which only one layout is suitable
// for lookups, with each number of threads.
func buildURLs(s *session, n int) error {
	kind := textKinds[0]
	if !s.room(kind.label, n, 3*(kind.bytes+stringHeader+textValue), "use a smaller --n") {
		return nil
	}
	t := newTexts(s, kind, n)
	for _, threads := range s.threads {
		c := &contest{n: n, threads: threads, label: kind.label, ops: n}
		c.subjects = append(c.subjects, textBuild(s, t, namePando, threads))
		c.subjects[0].reference = true
		if s.wanted(limitText) {
			c.subjects = append(c.subjects, textCopy(t, threads))
		}
		if err := s.compete(c); err != nil {
			return err
		}
	}
	return nil
}

const limitText = "limit: copy of the strings' bytes"

// textBuild returns a subject that builds an index of strings to uint64.
func textBuild(s *session, t *texts, name string, threads int) *subject {
	var f *frozenText
	return &subject{
		system: name,
		whole:  true,
		do: func(int) (err error) {
			f, err = freezeTexts(t, name, threads)
			return err
		},
		check: func(int) error { return f.check(s, t) },
		reset: func() {
			if f != nil {
				f.Close()
			}
			f = nil
			runtime.GC() // the garbage collector is off
		},
	}
}

// check looks some keys up in what was built.
func (f *frozenText) check(s *session, t *texts) error {
	q := newTextQueries(t, min(kilo, len(t.keys)))
	q.draw(s.seed, 0)
	l := &textLookups{q, make([]uint64, len(q.q)), make([]bool, len(q.q))}
	hits := f.Get(q.q, l.vals, l.found)
	return l.check(len(q.q), hits)
}

// textCopy returns a subject that copies all bytes to huge pages of new
// memory, one string after the other, on the given number of threads.
func textCopy(t *texts, threads int) *subject {
	var block *arena.Block
	copied, total := 0, int(t.mean*float64(len(t.keys))+0.5)
	return &subject{
		system: limitText,
		whole:  true,
		do: func(int) (err error) {
			if block, err = arena.New([]int{total}, 0, arena.HugeAll, 0); err != nil {
				return err
			}
			copied = spread(threads, len(t.keys), func(lo, hi int) int { return copyTexts(block.Segment(0), t.keys, lo, hi) })
			return nil
		},
		check: func(int) error {
			if copied != total {
				return fmt.Errorf("copied %d bytes of %d", copied, total)
			}
			return nil
		},
		reset: func() {
			if block != nil {
				block.Release()
			}
			block = nil
		},
	}
}

// copyTexts copies the strings [lo, hi) to their offsets among all strings.
func copyTexts(dst []byte, keys []string, lo, hi int) (copied int) {
	at := 0
	for _, k := range keys[:lo] {
		at += len(k)
	}
	for _, k := range keys[lo:hi] {
		copied += copy(dst[at+copied:], k)
	}
	return copied
}

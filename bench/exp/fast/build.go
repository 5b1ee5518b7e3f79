package fast

import (
	"fmt"
	"runtime"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/inside"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/rig"
	"github.com/pando-index/pando/bench/work"
)

var fastBuild = &contest.Experiment{
	Name:     "fast-build",
	About:    "Freeze of sorted uint32 keys without values with each layout, and of a quarter as many URLs, on all cores",
	Figure:   "section 5.1.1 of the " + contest.Paper10 + ": 64M keys in less than 0.1 s",
	Per:      "one key put into the index",
	CaseName: "keys",
	Sizes:    []int{64 * contest.Mega},
	Threads:  []int{runtime.NumCPU()},
	Extra:    []contest.ExtraColumn{{Name: colSeconds, Format: three}},
	Run:      runFastBuild,
}

// colSeconds is the time of one build.
const colSeconds = "build s"

func runFastBuild(s *contest.Session) error {
	there, err := rig.LookForGPU(s)
	if err != nil {
		return err
	}
	for _, n := range s.Sizes {
		if !s.Room("keys", n, 4*data.KeyBytesU32, "use a smaller --n") {
			continue
		}
		s.Say("making %s random keys of 32 bits ...", contest.SizeText(n))
		d := &data.Dataset[uint32]{Keys: data.SortedKeys[uint32](n, s.Seed)}
		builders, err := setBuilders(s, d, there)
		if err != nil {
			return err
		}
		if err := work.BuildContests(s, d, "uint32", builders); err != nil {
			return err
		}
		if err := buildURLs(s, max(1, n/4)); err != nil {
			return err
		}
	}
	for _, r := range s.Rows {
		r.Set(colSeconds, r.Median*float64(r.Ops)/1e9)
	}
	return nil
}

// setBuilders returns a builder for each layout, on the CPU and, including the
// copy to it, on a GPU; then the limit.
func setBuilders(s *contest.Session, d *data.Dataset[uint32], there bool) (out []peers.Builder[uint32], err error) {
	const peak = 1.3 * data.KeyBytesU32
	for _, l := range layoutsCompared {
		out = append(out, peers.Builder[uint32]{Name: l.name, Peak: peak, Make: ours.FreezeSet[uint32](pando.CPU, l.kind)})
	}
	for _, l := range layoutsCompared {
		if !there {
			break
		}
		name := l.name + " and copy to the GPU"
		why, err := ours.NotThere(d, pando.GPU(s.GPU), l.kind)
		if err != nil {
			return nil, err
		}
		if why != "" && !s.Elsewhere {
			s.Skip("%s at n %s: %s", name, contest.SizeText(len(d.Keys)), why)
			continue
		}
		out = append(out, peers.Builder[uint32]{Name: name, Peak: peak, Make: ours.FreezeSet[uint32](pando.GPU(s.GPU), l.kind)})
	}
	return append(out, peers.Builder[uint32]{Name: "limit: copy of the keys", Peak: data.KeyBytesU32, Make: copyKeys[uint32]}), nil
}

// copyKeys copies the keys to huge pages of new memory, on all threads: a tree
// of keys without values is little more than that.
func copyKeys[W data.Word](d *data.Dataset[W], threads int) (peers.Made[W], error) {
	block, err := inside.NewBlock(len(inside.Bytes(d.Keys)))
	if err != nil {
		return peers.Made[W]{}, err
	}
	from, to := inside.Bytes(d.Keys), block.Segment(0)
	copied := contest.Spread(threads, len(from), func(lo, hi int) int { return copy(to[lo:hi], from[lo:hi]) })
	return peers.Made[W]{Entries: copied * 8 / data.BitsOf[W](), Close: block.Release}, nil
}

// buildURLs builds indexes of strings, of which only one layout is suitable
// for lookups, with each number of threads.
func buildURLs(s *contest.Session, n int) error {
	kind := data.TextKinds[0]
	if !s.Room(kind.Label, n, 3*(kind.Bytes+data.StringHeader+data.TextValue), "use a smaller --n") {
		return nil
	}
	t := data.NewTexts(s, kind, n)
	for _, threads := range s.Threads {
		c := &contest.Contest{N: n, Threads: threads, Label: kind.Label, Ops: n}
		c.Subjects = append(c.Subjects, textBuild(s, t, contest.Pando, threads))
		c.Subjects[0].Reference = true
		if s.Wanted(limitText) {
			c.Subjects = append(c.Subjects, textCopy(t, threads))
		}
		if err := s.Compete(c); err != nil {
			return err
		}
	}
	return nil
}

const limitText = "limit: copy of the strings' bytes"

// textBuild returns a subject that builds an index of strings to uint64.
func textBuild(s *contest.Session, t *data.Texts, name string, threads int) *contest.Subject {
	var f *ours.FrozenText
	return &contest.Subject{
		System: name,
		Whole:  true,
		Do: func(int) (err error) {
			f, err = ours.FreezeTexts(t, name, threads)
			return err
		},
		Check: func(int) error { return check(f, s, t) },
		Reset: func() {
			if f != nil {
				f.Close()
			}
			f = nil
			runtime.GC() // the garbage collector is off
		},
	}
}

// check looks some keys up in what was built.
func check(f *ours.FrozenText, s *contest.Session, t *data.Texts) error {
	q := data.NewTextQueries(t, min(contest.Kilo, len(t.Keys)))
	q.Draw(s.Seed, 0)
	l := &work.TextLookups{TextQueries: q, Vals: make([]uint64, len(q.Q)), Found: make([]bool, len(q.Q))}
	hits := f.Get(q.Q, l.Vals, l.Found)
	return l.Check(len(q.Q), hits)
}

// textCopy returns a subject that copies all bytes to huge pages of new
// memory, one string after the other, on the given number of threads.
func textCopy(t *data.Texts, threads int) *contest.Subject {
	var block *inside.Block
	copied, total := 0, int(t.Mean*float64(len(t.Keys))+0.5)
	return &contest.Subject{
		System: limitText,
		Whole:  true,
		Do: func(int) (err error) {
			if block, err = inside.NewBlock(total); err != nil {
				return err
			}
			copied = contest.Spread(threads, len(t.Keys), func(lo, hi int) int { return copyTexts(block.Segment(0), t.Keys, lo, hi) })
			return nil
		},
		Check: func(int) error {
			if copied != total {
				return fmt.Errorf("copied %d bytes of %d", copied, total)
			}
			return nil
		},
		Reset: func() {
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

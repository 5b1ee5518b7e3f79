package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/pando-index/pando"
)

// paper21 is the paper whose tree internal/radix is.
const paper21 = "CuART paper (ICPP 2021)"

const (
	nameRadix    = "Pando radix"
	nameRadixOne = "Pando radix, key by key"

	cuartBatch = 32 * kilo // of the paper's figures
)

var (
	cuartLayout = &experiment{
		name:     "cuart-layout",
		about:    "lookups in a radix tree of pointers and in flat ones, by size of the tree and length of the key, on all cores",
		figure:   "fig. 7 of the " + paper21,
		per:      "one key looked up",
		caseName: "bytes a key",
		sizes:    []int{64 * kilo, 1 * mega, 16 * mega},
		threads:  []int{runtime.NumCPU()},
		run: func(s *session) error {
			return s.eachCuart([]int{8, 16, 32}, func(t *texts, threads int) error { return cuartContest(s, t, threads, t.label, cuartBatch) })
		},
	}
	cuartBatches = &experiment{
		name:     "cuart-batch",
		about:    "lookups in radix trees of keys of 32 bytes by the size of batches, on all cores",
		figure:   "fig. 8 of the " + paper21 + ", the CPU's part",
		per:      "one key looked up",
		caseName: "keys a batch",
		sizes:    []int{16 * mega},
		threads:  []int{runtime.NumCPU()},
		run:      runCuartBatches,
	}
	cuartThreads = &experiment{
		name:    "cuart-threads",
		about:   "lookups in radix trees of keys of 32 bytes by the number of threads",
		figure:  "fig. 9 of the " + paper21 + ", the CPU's part",
		per:     "one key looked up",
		sizes:   []int{16 * mega},
		threads: allThreads(),
		run: func(s *session) error {
			return s.eachCuart([]int{32}, func(t *texts, threads int) error { return cuartContest(s, t, threads, "", cuartBatch) })
		},
	}
	cuartSizes = &experiment{
		name:    "cuart-sizes",
		about:   "lookups in radix trees of keys of 32 bytes by the size of the tree, on all cores",
		figure:  "fig. 10 of the " + paper21 + ", the CPU's part",
		per:     "one key looked up",
		sizes:   []int{64 * kilo, 256 * kilo, 1 * mega, 4 * mega, 16 * mega},
		threads: []int{runtime.NumCPU()},
		run: func(s *session) error {
			return s.eachCuart([]int{32}, func(t *texts, threads int) error { return cuartContest(s, t, threads, "", cuartBatch) })
		},
	}
	cuartKeys = &experiment{
		name:     "cuart-keys",
		about:    "lookups in radix trees by the length of keys, on all cores",
		figure:   "fig. 11 of the " + paper21 + ", the CPU's part",
		per:      "one key looked up",
		caseName: "bytes a key",
		sizes:    []int{16 * mega},
		threads:  []int{runtime.NumCPU()},
		run: func(s *session) error {
			return s.eachCuart([]int{4, 8, 12, 16, 24, 32}, func(t *texts, threads int) error { return cuartContest(s, t, threads, t.label, cuartBatch) })
		},
	}
	cuartReal = &experiment{
		name:     "cuart-real",
		about:    "lookups in radix trees of keys as people make them: URLs as in logs, and the files of this machine's Debian packages; on all cores",
		figure:   "fig. 12 of the " + paper21 + ", the CPU's part",
		per:      "one key looked up",
		caseName: "keys",
		sizes:    []int{1 * mega},
		threads:  []int{runtime.NumCPU()},
		run:      runCuartReal,
	}
	cuartLong = &experiment{
		name:     "cuart-long",
		about:    "lookups in radix trees by the share of long keys: 300 bytes among keys of 32, on all cores",
		figure:   "fig. 13 of the " + paper21 + ", the CPU's part",
		per:      "one key looked up",
		caseName: "long keys",
		sizes:    []int{1 * mega},
		threads:  []int{runtime.NumCPU()},
		run:      runCuartLong,
	}
)

// eachCuart makes random keys of some lengths for each size and number of threads.
func (s *session) eachCuart(lengths []int, do func(t *texts, threads int) error) error {
	for _, n := range s.sizes {
		for _, length := range lengths {
			kind := textKind{fmt.Sprint(length), float64(length), func(n int, seed uint64) []string { return randomTexts(n, length, seed) }}
			if err := s.withTexts(kind, n, do); err != nil {
				return err
			}
		}
	}
	return nil
}

// withTexts makes keys of a kind, and calls do with them for each number of threads.
func (s *session) withTexts(kind textKind, n int, do func(t *texts, threads int) error) error {
	debug.FreeOSMemory() // frees the memory of those before
	if kind.label == "4" && n > 1<<31 {
		s.skip("keys of 4 bytes at n %s: there are not so many", sizeText(n))
		return nil
	}
	if !s.room("keys of "+kind.label, n, 3*(kind.bytes+stringHeader+textValue), "use a smaller --n") {
		return nil
	}
	t := newTexts(s, kind, n)
	for _, threads := range s.threads {
		if err := do(t, threads); err != nil {
			return err
		}
	}
	return nil
}

// randomTexts returns n distinct sorted keys of random bytes.
func randomTexts(n, length int, seed uint64) []string {
	if length == 4 {
		numbers := sortedKeys[uint32](n, seed)
		return fixedTexts(n, length, seed, func(dst []byte, i int, _ *rand.Rand) { binary.BigEndian.PutUint32(dst, numbers[i]) })
	}
	first := sortedKeys[uint64](n, seed)
	return fixedTexts(n, length, seed, func(dst []byte, i int, rng *rand.Rand) {
		binary.BigEndian.PutUint64(dst, first[i])
		for at := 8; at < length; at += 4 {
			binary.BigEndian.PutUint32(dst[at:], rng.Uint32())
		}
	})
}

// cuartMakers returns Pando's radix trees, its default layout, and a radix tree of
// pointers.
func cuartMakers(threads int) []textMaker {
	frozen := func(label string, opts ...pando.Option) textMaker {
		return textMaker{name: label, peak: func(key float64) float64 { return 2*(key+16) + 32 }, build: func(t *texts) (textSystem, error) {
			f, err := freezeTexts(t, label, threads, opts...)
			if err != nil {
				return nil, err
			}
			return f, nil
		}}
	}
	tree := textMaker{name: namePandoTree, peak: func(key float64) float64 { return 2*key + 60 }, build: func(t *texts) (textSystem, error) {
		tree, err := pando.TreeOf(t.keys, t.vals, pando.On(pando.CPU), pando.Workers(threads))
		if err != nil {
			return nil, err
		}
		return &treeText{tree}, nil
	}}
	return []textMaker{frozen(nameRadix, pando.Layout(pando.Radix)), tree, frozen(namePando), makeTextART()}
}

// cuartContest looks keys up in batches of a size.
func cuartContest(s *session, t *texts, threads int, label string, batch int) error {
	systems, err := buildTexts(s, t, cuartMakers(threads))
	if err != nil {
		return err
	}
	defer closeAll(systems)
	return s.compete(cuartLookups(s, t, threads, label, batch, systems))
}

// cuartLookups returns the contest of some systems.
func cuartLookups(s *session, t *texts, threads int, label string, batch int, systems []textSystem) *contest {
	l := newTextLookups(s, t)
	c := &contest{n: len(t.keys), threads: threads, label: label, ops: s.queries,
		fresh: func(round int) { l.draw(s.seed, round) }}
	for _, sys := range systems {
		sub := l.subject(perBatch{sys, batch, threads})
		sub.reference = sys.Name() == nameRadix
		c.subjects = append(c.subjects, sub)
		if f, ok := sys.(*frozenText); ok && sub.reference && s.wanted(nameRadixOne) {
			c.subjects = append(c.subjects, l.subject(keyByKey{f, threads}))
		}
	}
	return c
}

// perBatch asks a system a batch at a time. Pando spreads a batch over its
// goroutines; of a peer each thread asks for its part of the keys.
type perBatch struct {
	textSystem
	batch, threads int
}

func (b perBatch) Get(q []string, vals []uint64, found []bool) (hits int) {
	if !isPando(b.Name()) {
		return spread(b.threads, len(q), func(lo, hi int) int { return b.textSystem.Get(q[lo:hi], vals[lo:hi], found[lo:hi]) })
	}
	for lo := 0; lo < len(q); lo += b.batch {
		hi := min(lo+b.batch, len(q))
		hits += b.textSystem.Get(q[lo:hi], vals[lo:hi], found[lo:hi])
	}
	return hits
}

// keyByKey makes one call a key, as the paper's CPU does: the layout is then the only
// difference.
type keyByKey struct {
	*frozenText
	threads int
}

func (k keyByKey) Name() string { return nameRadixOne }

func (k keyByKey) Get(q []string, vals []uint64, found []bool) int {
	return spread(k.threads, len(q), func(lo, hi int) (hits int) {
		for i := lo; i < hi; i++ {
			if vals[i], found[i] = k.ix.Get(q[i]); found[i] {
				hits++
			}
		}
		return hits
	})
}

func runCuartBatches(s *session) error {
	return s.eachCuart([]int{32}, func(t *texts, threads int) error {
		systems, err := buildTexts(s, t, cuartMakers(threads)[:3])
		if err != nil {
			return err
		}
		defer closeAll(systems)
		for batch := 64; batch <= mega; batch *= 4 {
			c := cuartLookups(s, t, threads, sizeText(batch), batch, systems)
			c.subjects = slices.DeleteFunc(c.subjects, func(sub *subject) bool { return sub.system == nameRadixOne })
			if err := s.compete(c); err != nil {
				return err
			}
		}
		return nil
	})
}

func runCuartReal(s *session) error {
	files := packageFiles()
	if len(files) == 0 {
		s.skip("files of Debian packages: this machine has none in /var/lib/dpkg/info")
	}
	for _, n := range s.sizes {
		for _, kind := range []textKind{{"URLs", 60, urls}, {"files", 60, func(n int, _ uint64) []string { return files[:n] }}} {
			some := n
			if kind.label == "files" {
				some = min(n, len(files))
			}
			if some == 0 {
				continue
			}
			err := s.withTexts(kind, some, func(t *texts, threads int) error { return cuartContest(s, t, threads, t.label, cuartBatch) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// packageFiles returns the paths of all files that Debian's packages have brought to
// this machine, in order.
func packageFiles() (out []string) {
	lists, _ := filepath.Glob("/var/lib/dpkg/info/*.list")
	for _, list := range lists {
		if text, err := os.ReadFile(list); err == nil {
			out = append(out, strings.Fields(string(text))...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// longShares are the shares of long keys, in percent.
var longShares = []int{0, 1, 3, 10, 30}

func runCuartLong(s *session) error {
	const length = 300 // more than a leaf of a Tree has room for
	for _, n := range s.sizes {
		for _, percent := range longShares {
			kind := textKind{fmt.Sprintf("%d %%", percent), 32 + float64(percent)*3, func(n int, seed uint64) []string {
				keys := randomTexts(n, 32, seed)
				rng := newRand(seed, streamTexts)
				for i, k := range keys {
					if rng.IntN(100) < percent {
						keys[i] = k + strings.Repeat("x", length-len(k))
					}
				}
				return keys
			}}
			err := s.withTexts(kind, n, func(t *texts, threads int) error { return cuartContest(s, t, threads, t.label, cuartBatch) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

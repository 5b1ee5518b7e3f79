package cuart

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
	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/work"
)

// paper21 is the paper whose tree internal/radix is.
const paper21 = "CuART paper (ICPP 2021)"

const (
	nameRadix    = "Pando radix"
	nameRadixOne = "Pando radix, key by key"

	cuartBatch = 32 * contest.Kilo // of the paper's figures
)

var (
	cuartLayout = &contest.Experiment{
		Name:     "cuart-layout",
		About:    "lookups in a radix tree of pointers and in flat ones, by size of the tree and length of the key, on all cores",
		Figure:   "fig. 7 of the " + paper21,
		Per:      "one key looked up",
		CaseName: "bytes a key",
		Sizes:    []int{64 * contest.Kilo, 1 * contest.Mega, 16 * contest.Mega},
		Threads:  []int{runtime.NumCPU()},
		Run: func(s *contest.Session) error {
			return eachCuart(s, []int{8, 16, 32}, func(t *data.Texts, threads int) error { return cuartContest(s, t, threads, t.Label, cuartBatch) })
		},
	}
	cuartBatches = &contest.Experiment{
		Name:     "cuart-batch",
		About:    "lookups in radix trees of keys of 32 bytes by the size of batches, on all cores",
		Figure:   "fig. 8 of the " + paper21 + ", the CPU's part",
		Per:      "one key looked up",
		CaseName: "keys a batch",
		Sizes:    []int{16 * contest.Mega},
		Threads:  []int{runtime.NumCPU()},
		Run:      runCuartBatches,
	}
	cuartThreads = &contest.Experiment{
		Name:    "cuart-threads",
		About:   "lookups in radix trees of keys of 32 bytes by the number of threads",
		Figure:  "fig. 9 of the " + paper21 + ", the CPU's part",
		Per:     "one key looked up",
		Sizes:   []int{16 * contest.Mega},
		Threads: contest.AllThreads(),
		Run: func(s *contest.Session) error {
			return eachCuart(s, []int{32}, func(t *data.Texts, threads int) error { return cuartContest(s, t, threads, "", cuartBatch) })
		},
	}
	cuartSizes = &contest.Experiment{
		Name:    "cuart-sizes",
		About:   "lookups in radix trees of keys of 32 bytes by the size of the tree, on all cores",
		Figure:  "fig. 10 of the " + paper21 + ", the CPU's part",
		Per:     "one key looked up",
		Sizes:   []int{64 * contest.Kilo, 256 * contest.Kilo, 1 * contest.Mega, 4 * contest.Mega, 16 * contest.Mega},
		Threads: []int{runtime.NumCPU()},
		Run: func(s *contest.Session) error {
			return eachCuart(s, []int{32}, func(t *data.Texts, threads int) error { return cuartContest(s, t, threads, "", cuartBatch) })
		},
	}
	cuartKeys = &contest.Experiment{
		Name:     "cuart-keys",
		About:    "lookups in radix trees by the length of keys, on all cores",
		Figure:   "fig. 11 of the " + paper21 + ", the CPU's part",
		Per:      "one key looked up",
		CaseName: "bytes a key",
		Sizes:    []int{16 * contest.Mega},
		Threads:  []int{runtime.NumCPU()},
		Run: func(s *contest.Session) error {
			return eachCuart(s, []int{4, 8, 12, 16, 24, 32}, func(t *data.Texts, threads int) error { return cuartContest(s, t, threads, t.Label, cuartBatch) })
		},
	}
	cuartReal = &contest.Experiment{
		Name:     "cuart-real",
		About:    "lookups in radix trees of keys as people make them: URLs as in logs, and the files of this machine's Debian packages; on all cores",
		Figure:   "fig. 12 of the " + paper21 + ", the CPU's part",
		Per:      "one key looked up",
		CaseName: "keys",
		Sizes:    []int{1 * contest.Mega},
		Threads:  []int{runtime.NumCPU()},
		Run:      runCuartReal,
	}
	cuartLong = &contest.Experiment{
		Name:     "cuart-long",
		About:    "lookups in radix trees by the share of long keys: 300 bytes among keys of 32, on all cores",
		Figure:   "fig. 13 of the " + paper21 + ", the CPU's part",
		Per:      "one key looked up",
		CaseName: "long keys",
		Sizes:    []int{1 * contest.Mega},
		Threads:  []int{runtime.NumCPU()},
		Run:      runCuartLong,
	}
)

// eachCuart makes random keys of some lengths for each size and number of threads.
func eachCuart(s *contest.Session, lengths []int, do func(t *data.Texts, threads int) error) error {
	for _, n := range s.Sizes {
		for _, length := range lengths {
			kind := data.TextKind{Label: fmt.Sprint(length), Bytes: float64(length), Keys: func(n int, seed uint64) []string { return randomTexts(n, length, seed) }}
			if err := withTexts(s, kind, n, do); err != nil {
				return err
			}
		}
	}
	return nil
}

// withTexts makes keys of a kind, and calls do with them for each number of threads.
func withTexts(s *contest.Session, kind data.TextKind, n int, do func(t *data.Texts, threads int) error) error {
	debug.FreeOSMemory() // frees the memory of those before
	if kind.Label == "4" && n > 1<<31 {
		s.Skip("keys of 4 bytes at n %s: there are not so many", contest.SizeText(n))
		return nil
	}
	if !s.Room("keys of "+kind.Label, n, 3*(kind.Bytes+data.StringHeader+data.TextValue), "use a smaller --n") {
		return nil
	}
	t := data.NewTexts(s, kind, n)
	for _, threads := range s.Threads {
		if err := do(t, threads); err != nil {
			return err
		}
	}
	return nil
}

// randomTexts returns n distinct sorted keys of random bytes.
func randomTexts(n, length int, seed uint64) []string {
	if length == 4 {
		numbers := data.SortedKeys[uint32](n, seed)
		return data.FixedTexts(n, length, seed, func(dst []byte, i int, _ *rand.Rand) { binary.BigEndian.PutUint32(dst, numbers[i]) })
	}
	first := data.SortedKeys[uint64](n, seed)
	return data.FixedTexts(n, length, seed, func(dst []byte, i int, rng *rand.Rand) {
		binary.BigEndian.PutUint64(dst, first[i])
		for at := 8; at < length; at += 4 {
			binary.BigEndian.PutUint32(dst[at:], rng.Uint32())
		}
	})
}

// cuartMakers returns Pando's radix trees, its default layout, and a radix tree of
// pointers.
func cuartMakers(threads int) []peers.TextMaker {
	frozen := func(label string, opts ...pando.Option) peers.TextMaker {
		return peers.TextMaker{Name: label, Peak: func(key float64) float64 { return 2*(key+16) + 32 }, Build: func(t *data.Texts) (peers.TextSystem, error) {
			f, err := ours.FreezeTexts(t, label, threads, opts...)
			if err != nil {
				return nil, err
			}
			return f, nil
		}}
	}
	tree := peers.TextMaker{Name: ours.NameTree, Peak: func(key float64) float64 { return 2*key + 60 }, Build: func(t *data.Texts) (peers.TextSystem, error) {
		tree, err := pando.TreeOf(t.Keys, t.Vals, pando.On(pando.CPU), pando.Workers(threads))
		if err != nil {
			return nil, err
		}
		return &ours.TreeText{Tree: tree}, nil
	}}
	return []peers.TextMaker{frozen(nameRadix, pando.Layout(pando.Radix)), tree, frozen(contest.Pando), peers.MakeTextART()}
}

// cuartContest looks keys up in batches of a size.
func cuartContest(s *contest.Session, t *data.Texts, threads int, label string, batch int) error {
	systems, err := peers.BuildTexts(s, t, cuartMakers(threads))
	if err != nil {
		return err
	}
	defer peers.CloseAll(systems)
	return s.Compete(cuartLookups(s, t, threads, label, batch, systems))
}

// cuartLookups returns the contest of some systems.
func cuartLookups(s *contest.Session, t *data.Texts, threads int, label string, batch int, systems []peers.TextSystem) *contest.Contest {
	l := work.NewTextLookups(s, t)
	c := &contest.Contest{N: len(t.Keys), Threads: threads, Label: label, Ops: s.Queries,
		Fresh: func(round int) { l.Draw(s.Seed, round) }}
	for _, sys := range systems {
		sub := l.Subject(perBatch{sys, batch, threads})
		sub.Reference = sys.Name() == nameRadix
		c.Subjects = append(c.Subjects, sub)
		if f, ok := sys.(*ours.FrozenText); ok && sub.Reference && s.Wanted(nameRadixOne) {
			c.Subjects = append(c.Subjects, l.Subject(keyByKey{f, threads}))
		}
	}
	return c
}

// perBatch asks a system a batch at a time. Pando spreads a batch over its
// goroutines; of a peer each thread asks for its part of the keys.
type perBatch struct {
	peers.TextSystem
	batch, threads int
}

func (b perBatch) Get(q []string, vals []uint64, found []bool) (hits int) {
	if !contest.IsPando(b.Name()) {
		return contest.Spread(b.threads, len(q), func(lo, hi int) int { return b.TextSystem.Get(q[lo:hi], vals[lo:hi], found[lo:hi]) })
	}
	for lo := 0; lo < len(q); lo += b.batch {
		hi := min(lo+b.batch, len(q))
		hits += b.TextSystem.Get(q[lo:hi], vals[lo:hi], found[lo:hi])
	}
	return hits
}

// keyByKey makes one call a key, as the paper's CPU does: the layout is then the only
// difference.
type keyByKey struct {
	*ours.FrozenText
	threads int
}

func (k keyByKey) Name() string { return nameRadixOne }

func (k keyByKey) Get(q []string, vals []uint64, found []bool) int {
	return contest.Spread(k.threads, len(q), func(lo, hi int) (hits int) {
		for i := lo; i < hi; i++ {
			if vals[i], found[i] = k.Ix.Get(q[i]); found[i] {
				hits++
			}
		}
		return hits
	})
}

func runCuartBatches(s *contest.Session) error {
	return eachCuart(s, []int{32}, func(t *data.Texts, threads int) error {
		systems, err := peers.BuildTexts(s, t, cuartMakers(threads)[:3])
		if err != nil {
			return err
		}
		defer peers.CloseAll(systems)
		for batch := 64; batch <= contest.Mega; batch *= 4 {
			c := cuartLookups(s, t, threads, contest.SizeText(batch), batch, systems)
			c.Subjects = slices.DeleteFunc(c.Subjects, func(sub *contest.Subject) bool { return sub.System == nameRadixOne })
			if err := s.Compete(c); err != nil {
				return err
			}
		}
		return nil
	})
}

func runCuartReal(s *contest.Session) error {
	files := packageFiles()
	if len(files) == 0 {
		s.Skip("files of Debian packages: this machine has none in /var/lib/dpkg/info")
	}
	for _, n := range s.Sizes {
		for _, kind := range []data.TextKind{{Label: "URLs", Bytes: 60, Keys: data.URLs}, {Label: "files", Bytes: 60, Keys: func(n int, _ uint64) []string { return files[:n] }}} {
			some := n
			if kind.Label == "files" {
				some = min(n, len(files))
			}
			if some == 0 {
				continue
			}
			err := withTexts(s, kind, some, func(t *data.Texts, threads int) error { return cuartContest(s, t, threads, t.Label, cuartBatch) })
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

func runCuartLong(s *contest.Session) error {
	const length = 300 // more than a leaf of a Tree has room for
	for _, n := range s.Sizes {
		for _, percent := range longShares {
			kind := data.TextKind{Label: fmt.Sprintf("%d %%", percent), Bytes: 32 + float64(percent)*3, Keys: func(n int, seed uint64) []string {
				keys := randomTexts(n, 32, seed)
				rng := data.NewRand(seed, data.StreamTexts)
				for i, k := range keys {
					if rng.IntN(100) < percent {
						keys[i] = k + strings.Repeat("x", length-len(k))
					}
				}
				return keys
			}}
			err := withTexts(s, kind, n, func(t *data.Texts, threads int) error { return cuartContest(s, t, threads, t.Label, cuartBatch) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

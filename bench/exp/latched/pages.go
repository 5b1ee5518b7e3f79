package latched

import (
	"errors"
	"fmt"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/gpu"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/rig"
	"github.com/pando-index/pando/papers/kaczmarek"
)

// The experiments of this file are those of Kaczmarek's paper: a tree of large
// pages on the GPU, one insert at a time.

const kaczmarekPaper = "Experimental B+-tree for GPU (Kaczmarek)"

var gpuSingleInsert = &contest.Experiment{
	Name:   "gpu-single-insert",
	About:  "one random insert by one launch, in trees on the GPU of growing size",
	Figure: "fig. 3 of " + kaczmarekPaper,
	Per:    "one insert, launch included",
	Sizes:  []int{contest.Mega, 16 * contest.Mega, 64 * contest.Mega, 256 * contest.Mega, 1024 * contest.Mega},
	Run:    runSingleInsert,
}

var gpuPageSize = &contest.Experiment{
	Name:     "gpu-page-size",
	About:    "a tree on the GPU made by single inserts, by the size of its pages and the threads of a block",
	Figure:   "fig. 2 of " + kaczmarekPaper,
	Per:      "one insert",
	CaseName: "page",
	Sizes:    []int{5 * contest.Kilo, 30 * contest.Kilo, 100 * contest.Kilo},
	Run:      runPageSize,
}

var gpuVisit = &contest.Experiment{
	Name:     "gpu-visit",
	About:    "all values of a tree of large pages on the GPU added up, or changed; cub and thrust over a flat array beside",
	Figure:   "fig. 4 (right) of " + kaczmarekPaper,
	Per:      "one value",
	CaseName: "page",
	Sizes:    []int{contest.Mega, 16 * contest.Mega, 32 * contest.Mega},
	Extra:    contest.GigaColumns,
	Run:      runVisit,
}

// The paper's pages, and threads of a block.
var (
	pageSizes   = []int{512, 2048, 4096, 8192, 16384}
	pageThreads = []int{32, 256, 512}
)

// pagedTree is Kaczmarek's tree with keys, values and outcomes on the GPU.
type pagedTree struct {
	g          *rig.Rig
	tree       *kaczmarek.Pages[uint64]
	keys, vals []uint64
	at         struct{ keys, vals, fresh, out rig.Ptr }
}

// newPagedTree returns an empty tree for these keys.
func newPagedTree(g *rig.Rig, keys []uint64, order, threads int) (*pagedTree, error) {
	p := &pagedTree{g: g, keys: keys, vals: make([]uint64, len(keys))}
	for i, k := range keys {
		p.vals[i] = data.ValueOf(k)
	}
	set, err := g.Latched()
	if err != nil {
		return nil, err
	}
	var errs error
	if p.tree, err = kaczmarek.NewPagesOf[uint64](g.Dev, set, order, len(keys)*2/order*9/8+8, threads); err != nil {
		return nil, err
	}
	for _, at := range []*rig.Ptr{&p.at.vals, &p.at.fresh} {
		*at, err = rig.Put(g, p.vals)
		errs = errors.Join(errs, err)
	}
	p.at.keys, err = rig.Put(g, keys)
	errs = errors.Join(errs, err)
	p.at.out, err = g.Alloc(len(keys))
	if errs = errors.Join(errs, err); errs != nil {
		return nil, errors.Join(errs, p.tree.Close())
	}
	return p, nil
}

func (p *pagedTree) clear() error {
	return errors.Join(p.tree.Kernels.Clear(p.g.Stream, &p.tree.Tree), p.g.Stream.CopyDevice(p.at.vals, p.at.fresh, 8*len(p.keys)))
}

// insert inserts pairs from one on, all of them by one launch.
func (p *pagedTree) insert(first, n int) error {
	at := rig.Ptr(8 * first)
	return p.tree.Kernels.Insert(p.g.Stream, &p.g.PagesParams, &p.tree.Tree, 64, p.tree.Threads, p.at.keys+at, p.at.vals+at, n, p.at.out)
}

// check looks whether the tree has all pairs.
func (p *pagedTree) check() error {
	keys, vals, err := p.tree.Check()
	if err != nil {
		return err
	}
	if len(keys) != len(p.keys) {
		return fmt.Errorf("%d entries, not %d", len(keys), len(p.keys))
	}
	for i, k := range keys {
		if vals[i] != data.ValueOf(k) {
			return fmt.Errorf("key %d has the value %d, not %d", k, vals[i], data.ValueOf(k))
		}
	}
	return nil
}

// subject times the whole tree, made by single inserts. It takes so long that the
// GPU is warm for most of the time.
func (p *pagedTree) subject() *contest.Subject {
	return &contest.Subject{System: fmt.Sprintf("%d threads", p.tree.Threads), OnGPU: true, Whole: true, Clock: p.g.Clock,
		Do: func(n int) error {
			return errors.Join(p.clear(), p.g.TimeOnce(func() error { return p.insert(0, n) }))
		},
		Check: func(int) error { return p.check() },
	}
}

// shuffledKeys returns 0 to n-1 in random order.
func shuffledKeys(s *contest.Session, n int) []uint64 {
	return sequences[0].keys(data.NewRand(s.Seed, data.StreamShuffle), n)
}

func runPageSize(s *contest.Session) error {
	return rig.With(s, 0, func(g *rig.Rig) error {
		for _, n := range s.Sizes {
			keys := shuffledKeys(s, n)
			for _, order := range pageSizes {
				if err := g.Clear(n, pageContest(g, keys, order)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func pageContest(g *rig.Rig, keys []uint64, order int) (err error) {
	c := &contest.Contest{N: len(keys), Threads: 1, Label: fmt.Sprint(order), Ops: len(keys)}
	for i, threads := range pageThreads {
		p, e := newPagedTree(g, keys, order, threads)
		if e != nil {
			return e
		}
		defer func() { err = errors.Join(err, p.tree.Close()) }()
		sub := p.subject()
		sub.Reference = i == 0
		c.Subjects = append(c.Subjects, sub)
	}
	return g.S.Compete(c)
}

func runVisit(s *contest.Session) error {
	err := rig.With(s, 0, func(g *rig.Rig) error {
		for _, n := range s.Sizes {
			if err := withFlat(s, n, func(flat []*contest.Subject) (err error) {
				for _, order := range pageSizes {
					err = errors.Join(err, g.Clear(n, visitContest(g, n, order, flat)))
				}
				return err
			}); err != nil {
				return err
			}
		}
		return nil
	})
	s.SetGigas()
	return err
}

// withFlat calls body with those that visit the values of an array, where they
// can run.
func withFlat(s *contest.Session, n int, body func(flat []*contest.Subject) error) error {
	return peers.WithThrustOf(s, nameFlatSum, gpu.Sum64, n, n, 8, func(sum *contest.Subject) error {
		return peers.WithThrustOf(s, nameFlatAdd, gpu.Add64, n, n, 8, func(add *contest.Subject) error {
			var flat []*contest.Subject
			for _, sub := range []*contest.Subject{sum, add} {
				if sub != nil {
					sub.Whole = true
					flat = append(flat, sub)
				}
			}
			return body(flat)
		})
	})
}

// visited is a tree whose values are visited.
type visited struct {
	*pagedTree
	sum   rig.Ptr
	total uint64 // of all values at first
	added uint64 // to each value since
}

// visitContest visits the values of a tree that is as full as random inserts
// leave it, and those of an array, if flat has them.
func visitContest(g *rig.Rig, n, order int, flat []*contest.Subject) (err error) {
	p, err := newPagedTree(g, countUp(n), order, 256)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.tree.Close()) }()
	v := &visited{pagedTree: p}
	for _, x := range p.vals {
		v.total += x
	}
	if v.sum, err = rig.Put(g, []uint64{0}); err != nil {
		return err
	}
	err = p.tree.Kernels.Build(g.Stream, &g.PagesParams, &p.tree.Tree, 64, p.tree.Blocks, p.tree.Threads, p.at.keys, p.at.vals, n, order*fullPercent/100)
	if err = errors.Join(err, g.Stream.Synchronize()); err != nil {
		return err
	}
	return g.S.Compete(&contest.Contest{N: n, Threads: 1, Label: fmt.Sprint(order), Ops: n, Subjects: append([]*contest.Subject{v.sums(), v.adds()}, flat...)})
}

// fullPercent is how full random inserts leave nodes: the logarithm of 2.
const fullPercent = 69

const (
	nameVisit    = "pages, 256 threads a block"
	nameVisitAdd = "pages, 256 threads a block, each changed"
	nameFlatSum  = "cub::DeviceReduce::Sum, an array"
	nameFlatAdd  = "thrust::transform, an array, each changed"
)

// sums adds all values up.
func (v *visited) sums() *contest.Subject {
	sub := v.g.Subject(nameVisit, 0, func(int) error { return v.addUp() }, func(int) error { return v.g.Stream.Fill(v.sum, 0, 8) },
		func(int) error { return v.check() })
	sub.Whole, sub.Reference = true, true
	return sub
}

// adds adds 1 to each value.
func (v *visited) adds() *contest.Subject {
	sub := v.g.Subject(nameVisitAdd, 0, func(int) error {
		v.added++
		return v.tree.Kernels.Add(v.g.Stream, &v.g.PagesParams, &v.tree.Tree, 64, v.tree.Blocks, v.tree.Threads, 1)
	}, func(int) error { return nil }, func(int) error {
		return errors.Join(v.g.Stream.Fill(v.sum, 0, 8), v.addUp(), v.check())
	})
	sub.Whole = true
	return sub
}

func (v *visited) addUp() error {
	return v.tree.Kernels.Sum(v.g.Stream, &v.g.PagesParams, &v.tree.Tree, 64, v.tree.Blocks, v.tree.Threads, v.sum)
}

func (v *visited) check() error {
	want := v.total + v.added*uint64(len(v.vals))
	return rig.ReadBack(v.g, v.sum, 1, func(_ int, part []uint64) error {
		if part[0] != want {
			return fmt.Errorf("the sum is %d, not %d", part[0], want)
		}
		return nil
	})
}

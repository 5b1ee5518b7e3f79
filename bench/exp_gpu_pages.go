package main

import (
	"errors"
	"fmt"

	"github.com/pando-index/pando/bench/gpu"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/papers/kaczmarek"
)

// The experiments of this file are those of Kaczmarek's paper: a tree of large
// pages on the GPU, one insert at a time.

const kaczmarekPaper = "Experimental B+-tree for GPU (Kaczmarek)"

var gpuSingleInsert = &experiment{
	name:   "gpu-single-insert",
	about:  "one random insert by one launch, in trees on the GPU of growing size",
	figure: "fig. 3 of " + kaczmarekPaper,
	per:    "one insert, launch included",
	sizes:  []int{mega, 16 * mega, 64 * mega, 256 * mega, 1024 * mega},
	run:    runSingleInsert,
}

var gpuPageSize = &experiment{
	name:     "gpu-page-size",
	about:    "a tree on the GPU made by single inserts, by the size of its pages and the threads of a block",
	figure:   "fig. 2 of " + kaczmarekPaper,
	per:      "one insert",
	caseName: "page",
	sizes:    []int{5 * kilo, 30 * kilo, 100 * kilo},
	run:      runPageSize,
}

var gpuVisit = &experiment{
	name:     "gpu-visit",
	about:    "all values of a tree of large pages on the GPU added up, or changed; cub and thrust over a flat array beside",
	figure:   "fig. 4 (right) of " + kaczmarekPaper,
	per:      "one value",
	caseName: "page",
	sizes:    []int{mega, 16 * mega, 32 * mega},
	extra:    gigaColumns,
	run:      runVisit,
}

// The paper's pages, and threads of a block.
var (
	pageSizes   = []int{512, 2048, 4096, 8192, 16384}
	pageThreads = []int{32, 256, 512}
)

// pagedTree is Kaczmarek's tree with keys, values and outcomes on the GPU.
type pagedTree struct {
	g          *gpuRig
	tree       *kaczmarek.Pages[uint64]
	keys, vals []uint64
	at         struct{ keys, vals, fresh, out device.Ptr }
}

// newPagedTree returns an empty tree for these keys.
func newPagedTree(g *gpuRig, keys []uint64, order, threads int) (*pagedTree, error) {
	p := &pagedTree{g: g, keys: keys, vals: make([]uint64, len(keys))}
	for i, k := range keys {
		p.vals[i] = valueOf(k)
	}
	set, err := g.latched()
	if err != nil {
		return nil, err
	}
	var errs error
	if p.tree, err = kaczmarek.NewPagesOf[uint64](g.dev, set, order, len(keys)*2/order*9/8+8, threads); err != nil {
		return nil, err
	}
	for _, at := range []*device.Ptr{&p.at.vals, &p.at.fresh} {
		*at, err = put(g, p.vals)
		errs = errors.Join(errs, err)
	}
	p.at.keys, err = put(g, keys)
	errs = errors.Join(errs, err)
	p.at.out, err = g.alloc(len(keys))
	if errs = errors.Join(errs, err); errs != nil {
		return nil, errors.Join(errs, p.tree.Close())
	}
	return p, nil
}

func (p *pagedTree) clear() error {
	return errors.Join(p.tree.Kernels.Clear(p.g.stream, &p.tree.Tree), p.g.stream.CopyDevice(p.at.vals, p.at.fresh, 8*len(p.keys)))
}

// insert inserts pairs from one on, all of them by one launch.
func (p *pagedTree) insert(first, n int) error {
	at := device.Ptr(8 * first)
	return p.tree.Kernels.Insert(p.g.stream, &p.g.pagesParams, &p.tree.Tree, 64, p.tree.Threads, p.at.keys+at, p.at.vals+at, n, p.at.out)
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
		if vals[i] != valueOf(k) {
			return fmt.Errorf("key %d has the value %d, not %d", k, vals[i], valueOf(k))
		}
	}
	return nil
}

// subject times the whole tree, made by single inserts. It takes so long that the
// GPU is warm for most of the time.
func (p *pagedTree) subject() *subject {
	return &subject{system: fmt.Sprintf("%d threads", p.tree.Threads), onGPU: true, whole: true, clock: p.g.clock,
		do: func(n int) error {
			return errors.Join(p.clear(), p.g.timeOnce(func() error { return p.insert(0, n) }))
		},
		check: func(int) error { return p.check() },
	}
}

// shuffledKeys returns 0 to n-1 in random order.
func shuffledKeys(s *session, n int) []uint64 {
	return sequences[0].keys(newRand(s.seed, streamShuffle), n)
}

func runPageSize(s *session) error {
	return withGPU(s, 0, func(g *gpuRig) error {
		for _, n := range s.sizes {
			keys := shuffledKeys(s, n)
			for _, order := range pageSizes {
				if err := g.clear(n, pageContest(g, keys, order)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func pageContest(g *gpuRig, keys []uint64, order int) (err error) {
	c := &contest{n: len(keys), threads: 1, label: fmt.Sprint(order), ops: len(keys)}
	for i, threads := range pageThreads {
		p, e := newPagedTree(g, keys, order, threads)
		if e != nil {
			return e
		}
		defer func() { err = errors.Join(err, p.tree.Close()) }()
		sub := p.subject()
		sub.reference = i == 0
		c.subjects = append(c.subjects, sub)
	}
	return g.s.compete(c)
}

func runVisit(s *session) error {
	err := withGPU(s, 0, func(g *gpuRig) error {
		for _, n := range s.sizes {
			if err := withFlat(s, n, func(flat []*subject) (err error) {
				for _, order := range pageSizes {
					err = errors.Join(err, g.clear(n, visitContest(g, n, order, flat)))
				}
				return err
			}); err != nil {
				return err
			}
		}
		return nil
	})
	s.setGigas()
	return err
}

// withFlat calls body with those that visit the values of an array, where they
// can run.
func withFlat(s *session, n int, body func(flat []*subject) error) error {
	return withThrustOf(s, nameFlatSum, gpu.Sum64, n, n, 8, func(sum *subject) error {
		return withThrustOf(s, nameFlatAdd, gpu.Add64, n, n, 8, func(add *subject) error {
			var flat []*subject
			for _, sub := range []*subject{sum, add} {
				if sub != nil {
					sub.whole = true
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
	sum   device.Ptr
	total uint64 // of all values at first
	added uint64 // to each value since
}

// visitContest visits the values of a tree that is as full as random inserts
// leave it, and those of an array, if flat has them.
func visitContest(g *gpuRig, n, order int, flat []*subject) (err error) {
	p, err := newPagedTree(g, countUp(n), order, 256)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.tree.Close()) }()
	v := &visited{pagedTree: p}
	for _, x := range p.vals {
		v.total += x
	}
	if v.sum, err = put(g, []uint64{0}); err != nil {
		return err
	}
	err = p.tree.Kernels.Build(g.stream, &g.pagesParams, &p.tree.Tree, 64, p.tree.Blocks, p.tree.Threads, p.at.keys, p.at.vals, n, order*fullPercent/100)
	if err = errors.Join(err, g.stream.Synchronize()); err != nil {
		return err
	}
	return g.s.compete(&contest{n: n, threads: 1, label: fmt.Sprint(order), ops: n, subjects: append([]*subject{v.sums(), v.adds()}, flat...)})
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
func (v *visited) sums() *subject {
	sub := v.g.subject(nameVisit, 0, func(int) error { return v.addUp() }, func(int) error { return v.g.stream.Fill(v.sum, 0, 8) },
		func(int) error { return v.check() })
	sub.whole, sub.reference = true, true
	return sub
}

// adds adds 1 to each value.
func (v *visited) adds() *subject {
	sub := v.g.subject(nameVisitAdd, 0, func(int) error {
		v.added++
		return v.tree.Kernels.Add(v.g.stream, &v.g.pagesParams, &v.tree.Tree, 64, v.tree.Blocks, v.tree.Threads, 1)
	}, func(int) error { return nil }, func(int) error {
		return errors.Join(v.g.stream.Fill(v.sum, 0, 8), v.addUp(), v.check())
	})
	sub.whole = true
	return sub
}

func (v *visited) addUp() error {
	return v.tree.Kernels.Sum(v.g.stream, &v.g.pagesParams, &v.tree.Tree, 64, v.tree.Blocks, v.tree.Threads, v.sum)
}

func (v *visited) check() error {
	want := v.total + v.added*uint64(len(v.vals))
	return readBack(v.g, v.sum, 1, func(_ int, part []uint64) error {
		if part[0] != want {
			return fmt.Errorf("the sum is %d, not %d", part[0], want)
		}
		return nil
	})
}

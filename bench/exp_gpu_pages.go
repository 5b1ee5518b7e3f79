package main

import (
	"errors"
	"fmt"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/experiments"
)

// The experiments of this file are those of Kaczmarek's paper: a tree of large
// pages on the GPU, one insert at a time.

const kaczmarek = "Experimental B+-tree for GPU (Kaczmarek)"

var gpuSingleInsert = &experiment{
	name:   "gpu-single-insert",
	about:  "one random insert by one launch, in trees on the GPU of growing size",
	figure: "fig. 3 of " + kaczmarek,
	per:    "one insert, launch included",
	sizes:  []int{mega, 16 * mega, 64 * mega, 256 * mega, 1024 * mega},
	run:    runSingleInsert,
}

var gpuPageSize = &experiment{
	name:     "gpu-page-size",
	about:    "a tree on the GPU made by single inserts, by the size of its pages and the threads of a block",
	figure:   "fig. 2 of " + kaczmarek,
	per:      "one insert",
	caseName: "page",
	sizes:    []int{5 * kilo, 30 * kilo, 100 * kilo, mega},
	run:      runPageSize,
}

var gpuVisit = &experiment{
	name:     "gpu-visit",
	about:    "the sum of all values of a tree of large pages on the GPU",
	figure:   "fig. 4 (right) of " + kaczmarek,
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
	tree       *experiments.Pages[uint64]
	keys, vals []uint64
	at         struct{ keys, vals, fresh, out device.Ptr }
}

// newPagedTree returns an empty tree for these keys.
func newPagedTree(g *gpuRig, keys []uint64, order, threads int) (*pagedTree, error) {
	p := &pagedTree{g: g, keys: keys, vals: make([]uint64, len(keys))}
	for i, k := range keys {
		p.vals[i] = valueOf(k)
	}
	var err, errs error
	if p.tree, err = experiments.NewPages[uint64](g.dev, order, len(keys)*2/order*9/8+8, threads); err != nil {
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
	return errors.Join(p.tree.Set.PagesClear(p.g.stream, &p.tree.Tree), p.g.stream.CopyDevice(p.at.vals, p.at.fresh, 8*len(p.keys)))
}

// insert inserts pairs from one on, all of them by one launch.
func (p *pagedTree) insert(first, n int) error {
	at := device.Ptr(8 * first)
	return p.tree.Set.PagesInsert(p.g.stream, &p.g.params, &p.tree.Tree, 64, p.tree.Threads, p.at.keys+at, p.at.vals+at, n, p.at.out)
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

// subject times the whole tree, made by single inserts.
func (p *pagedTree) subject() *subject {
	sub := p.g.subject(fmt.Sprintf("%d threads", p.tree.Threads), 0, func(n int) error { return p.insert(0, n) },
		func(int) error { return p.clear() }, func(int) error { return p.check() })
	sub.whole = true
	return sub
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
			for _, order := range pageSizes {
				if err := g.clear(n, visitContest(g, n, order)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	s.setGigas()
	return err
}

// visitContest sums values up in a tree of random inserts.
func visitContest(g *gpuRig, n, order int) (err error) {
	p, err := newPagedTree(g, shuffledKeys(g.s, n), order, 256)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.tree.Close()) }()
	if err := errors.Join(p.clear(), p.insert(0, n), g.stream.Synchronize()); err != nil {
		return err
	}
	want, got := uint64(0), []uint64{0}
	for _, v := range p.vals {
		want += v
	}
	sum, err := put(g, got)
	if err != nil {
		return err
	}
	sub := g.subject(nameVisit, 0, func(int) error {
		return p.tree.Set.PagesSum(g.stream, &g.params, &p.tree.Tree, 64, p.tree.Blocks, p.tree.Threads, sum)
	}, func(int) error { return g.stream.Fill(sum, 0, 8) }, func(int) error {
		return readBack(g, sum, 1, func(_ int, part []uint64) error {
			if part[0] != want {
				return fmt.Errorf("the sum is %d, not %d", part[0], want)
			}
			return nil
		})
	})
	sub.whole, sub.reference = true, true
	return g.s.compete(&contest{n: n, threads: 1, label: fmt.Sprint(order), ops: n, subjects: []*subject{sub}})
}

const nameVisit = "pages, 256 threads a block"
